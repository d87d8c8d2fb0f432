"""The page Organisation: who and what may act, what they did, and the settings."""

import re

import httpx
import pytest

from registry.caller import Role
from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser
from tests.pages.document import Document
from tests.pages.site import Site
from tests.pages.trail import trail

PAGE, AUDIT, SETTINGS = "/console/organisation", "/console/organisation/audit", "/console/organisation/settings"
MEMBER_ADDRESS = "bo@fjord.example"


def disabled(page: Document) -> list[str]:
    """The buttons that are off, each by the id of the reason that it names."""
    return [tag.attributes["aria-describedby"] for tag in page.tags if tag.name == "button" and "disabled" in tag.attributes]


def make_key(api: httpx.Client, name: str) -> dict[str, str]:
    answer = api.post("/v1/api-keys", json={"name": name, "restrictions": {"read_only": True, "calls_per_day": 7}})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.long
async def test_a_key_is_shown_with_its_worst_case_revoked_after_a_question_and_its_last_call_seen(
    demo: Browser, demo_server: DemoConsole
) -> None:
    key = make_key(demo_server.api, "till")
    used = {"Authorization": f"Bearer {key['secret']}"}
    with httpx.Client(base_url=demo_server.server.base_url, headers=used) as till:
        assert till.get("/v1/fleet/sync-status").status_code == 200

    seen = await demo.get(PAGE)
    assert "In a day at most 7 calls, 0 new lines and €0.00; nothing that cannot be undone." in seen.page.text
    asked = await demo.send(seen.page.form(PAGE, "revoke", id=key["id"]))
    assert "Revoke “till”?" in asked.page.text
    listed = {row["id"]: row["status"] for row in demo_server.api.get("/v1/api-keys").json()["data"]}
    assert listed[key["id"]] == "active"
    done = await demo.send(asked.page.form(PAGE, "revoke"))
    assert (done.path, "The key is revoked" in done.page.text) == (f"{PAGE}?done=revoked", True)

    with httpx.Client(base_url=demo_server.server.base_url, headers=used) as till:
        assert till.get("/v1/fleet/sync-status").status_code == 401
    shown = await demo.get(f"{PAGE}/keys/{key['id']}")
    assert "till" in shown.page.text and "Revoked" in shown.page.text and "7 calls a day." in shown.page.text
    assert "fleet_sync_status" in shown.page.text and "It only reads." in shown.page.text
    assert f"key={key['id']}" in shown.answer.text


@pytest.mark.long
async def test_the_audit_page_shows_rows_and_pages_and_keeps_its_filter(demo: Browser, demo_server: DemoConsole) -> None:
    for _ in range(55):
        assert demo_server.api.get("/v1/members").status_code == 200
    first = await demo.get(f"{AUDIT}?operation=list_members&way=http")
    assert first.answer.text.count("<code>list_members</code>") == 50
    following = next(tag.attributes["href"] for tag in first.page.tags if tag.attributes.get("rel") == "next")
    assert following.startswith(f"{AUDIT}?way=http&operation=list_members&after=aud_")
    second = await demo.get(following)
    assert 5 <= second.answer.text.count("<code>list_members</code>") < 50
    assert not any(tag.attributes.get("rel") == "next" for tag in second.page.tags)
    none = await demo.get(f"{AUDIT}?outcome=quota_exceeded&from=2026-01-01")
    assert "No call matches" in none.page.text


async def test_looks_at_the_console_are_left_out_until_they_are_asked_for(hers: Browser) -> None:
    await hers.get(PAGE)
    assert "Looked at a page" not in (await hers.get(AUDIT)).page.text
    assert "Looked at a page" in (await hers.get(f"{AUDIT}?looks=shown")).page.text


@pytest.mark.long
async def test_a_mail_choice_is_saved_and_shown_again(demo: Browser) -> None:
    form = (await demo.get(SETTINGS)).page.form(SETTINGS, "mails")
    typed = {"kind order.*": "digest", "add": "esim.issued", "add_timing": "at_once", "digest_hour": "7", "timezone": "Europe/Berlin"}
    seen = await demo.send(form, **typed)
    assert (seen.path, "Your mails are kept" in seen.page.text) == (f"{SETTINGS}?done=mails", True)
    again = (await demo.get(SETTINGS)).page.form(SETTINGS, "mails").fields
    assert {name: again[name] for name in ("kind order.*", "kind esim.issued", "digest_hour", "timezone")} == {
        "kind order.*": "digest",
        "kind esim.issued": "at_once",
        "digest_hour": "7",
        "timezone": "Europe/Berlin",
    }
    assert (await demo.send(form, **typed)).status == 200  # what was sent twice holds once
    old = await demo.send(form, **{**typed, "digest_hour": "9"})
    assert (old.status, old.page.form(SETTINGS, "mails").fields["digest_hour"]) == (412, "9")


async def test_a_zone_that_is_none_is_refused_at_its_field_and_stays_typed(demo: Browser) -> None:
    form = (await demo.get(SETTINGS)).page.form(SETTINGS, "mails")
    seen = await demo.send(form, timezone="Europe/Berlinn")
    assert (seen.status, seen.page.form(SETTINGS, "mails").fields["timezone"]) == (400, "Europe/Berlinn")
    assert "Europe/Berlin" in (seen.page.wrong("timezone") or "")


@pytest.mark.long
async def test_alerts_are_saved_and_an_old_form_loses_nothing_of_another_tab(demo: Browser, demo_server: DemoConsole) -> None:
    form = (await demo.get(SETTINGS)).page.form(SETTINGS, "alerts")
    assert (await demo.send(form, days_to_open="14", days_to_close="18", quota=None)).path == f"{SETTINGS}?done=alerts"
    old = await demo.send(form, days_to_open="3")
    assert (old.status, "You have changed this yourself at" in old.page.text) == (412, True)
    kept = demo_server.api.get("/v1/connectivity/alerts").json()["settings"]
    assert (kept["days_to_open"], kept["days_to_close"], kept["quota"]) == (14, 18, False)
    refused = await demo.send((await demo.get(SETTINGS)).page.form(SETTINGS, "alerts"), days_to_open="14", days_to_close="14")
    assert (refused.status, refused.page.form(SETTINGS, "alerts").fields["days_to_close"]) == (400, "14")


@pytest.mark.long
async def test_an_invitation_that_is_sent_twice_is_mailed_once(site: Site, hers: Browser) -> None:
    form = (await hers.get(PAGE)).page.form(PAGE, "invite")
    before = len(await site.letters())
    for _ in range(2):
        seen = await hers.send(form, email=MEMBER_ADDRESS)
        assert (seen.status, seen.path) == (200, f"{PAGE}?done=invited")
    assert len(await site.letters()) == before + 1
    assert [row.outcome for row in await trail(site, "invite_member")] == ["ok", "replayed"]


@pytest.mark.long
async def test_an_invitation_is_withdrawn_after_a_question(hers: Browser) -> None:
    seen = await hers.send((await hers.get(PAGE)).page.form(PAGE, "invite"), email=MEMBER_ADDRESS)
    asked = await hers.send(seen.page.form(PAGE, "remove", about=MEMBER_ADDRESS))
    assert f"Remove {MEMBER_ADDRESS}?" in asked.page.text
    assert MEMBER_ADDRESS in (await hers.get(PAGE)).page.text
    assert MEMBER_ADDRESS not in (await hers.send(asked.page.form(PAGE, "remove"))).page.text


@pytest.mark.long
async def test_an_address_that_is_none_stays_typed_with_the_reason(hers: Browser) -> None:
    seen = await hers.send((await hers.get(PAGE)).page.form(PAGE, "invite"), email="nobody")
    assert (seen.status, seen.page.form(PAGE, "invite").fields["email"]) == (400, "nobody")
    assert seen.page.wrong("email")


@pytest.mark.long
async def test_whoever_signed_in_long_ago_signs_in_again_and_comes_back(site: Site, hers: Browser) -> None:
    fresh = (await hers.get(PAGE)).page.form(PAGE, "invite")
    site.clock.advance(15 * 60 + 1)
    seen = await hers.get(PAGE)
    assert set(disabled(seen.page)) == {"why-stale"} and "Sign in again" in seen.page.text
    led = await hers.send(fresh, email=MEMBER_ADDRESS)
    assert led.path == "/auth/sign-in?next=/console/organisation"
    assert await trail(site, "invite_member") == []
    again = await hers.send(led.page.form("/auth/sign-in"), email="ada@fjord.example")
    back = await hers.send(again.page.form("/auth/sign-in/code"), code=await site.code())
    assert (back.path, disabled(back.page)) == (PAGE, [])


async def test_a_member_sees_the_buttons_of_admins_off_with_the_reason(site: Site, browser: Browser, fjord: str) -> None:
    await site.join(await site.person(MEMBER_ADDRESS), fjord, Role.MEMBER)
    seen = await site.sign_in(browser, MEMBER_ADDRESS, PAGE)
    assert disabled(seen.page) == ["why-members"] * 3
    assert "2 people and 0 keys may act for you." in seen.page.text
    assert re.search(r'id="why-members">Only admins of your organisation may do this\.', seen.answer.text)
    settings = await browser.get(SETTINGS)
    assert disabled(settings.page) == ["why-alerts"]
    assert (await browser.get(AUDIT)).status == 403
    assert await trail(site, "set_alerts", "invite_member") == []


@pytest.mark.long
async def test_a_revoked_key_says_when_and_by_whom_it_ended_and_what_it_did_last(site: Site, hers: Browser) -> None:
    made = await hers.send((await hers.get("/auth/api-keys")).page.form("/auth/api-keys", "create"), name="night job")
    secret = re.search(r"ak_[A-Za-z0-9]{46}", made.page.text)
    key = made.page.form("/auth/api-keys", "revoke").fields["id"]
    assert secret is not None
    assert (await hers.http.get("/v1/members", headers={"Authorization": f"Bearer {secret[0]}"})).status_code == 200
    page = f"{PAGE}/keys/{key}"
    site.clock.advance(60)
    asked = await hers.send((await hers.get(page)).page.form(page, "revoke"))
    ended = await hers.send(asked.page.form(page, "revoke"))
    assert ended.path == page and re.search(r"Revoked \d+ January 2027, \d\d:01 UTC by Ada Berg", ended.page.text)
    assert "List members" in ended.page.text and [form for form in ended.page.forms if form.action == page] == []
    log = (await hers.get(f"{AUDIT}?key={key}")).page
    assert "List members" in log.text and "night job" in log.html.partition("<tbody>")[2].partition("</tbody>")[0]
