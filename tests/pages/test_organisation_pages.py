"""API keys, members, the audit log, a session token, tiers: pages that call operations."""

import html
import re
import shlex

import pytest

from registry.caller import Role, Tier
from registry.limits import TIERS
from storage.organisations import memberships_of
from tests.pages.browser import Browser
from tests.pages.site import Site


async def test_a_key_is_made_shown_once_used_and_revoked(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="order service", seconds_until_expiration="604800")
    assert seen.status == 200
    secret = re.search(r"ak_[A-Za-z0-9]{46}", seen.page.text)
    assert secret is not None
    assert "Good until 22 Jan 2027, 12:00 UTC" in seen.page.text
    listed = await hers.get("/auth/api-keys")
    assert secret[0] not in listed.page.html
    assert "order service" in listed.page.text and secret[0][:11] in listed.page.text
    headers = {"Authorization": f"Bearer {secret[0]}"}
    assert (await hers.http.get("/v1/api-keys", headers=headers)).status_code == 200
    seen = await hers.send(listed.page.form("/auth/api-keys", "revoke"))
    assert "revoked" in seen.page.text
    assert (await hers.http.get("/v1/api-keys", headers=headers)).status_code == 401


async def test_a_key_that_only_reads_is_told_so(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="desk", seconds_until_expiration="", read_only="on")
    assert "only reads" in seen.page.text and "does not expire" in seen.page.text
    secret = re.search(r"ak_[A-Za-z0-9]{46}", seen.page.text)
    assert secret is not None
    headers = {"Authorization": f"Bearer {secret[0]}"}
    assert (await hers.http.post("/v1/api-keys", headers=headers, json={"name": "more"})).status_code == 403


async def test_a_new_key_comes_with_a_command_that_issues_a_test_esim(site: Site, hers: Browser) -> None:
    form = (await hers.get("/auth/api-keys")).page.form("/auth/api-keys", "create")
    page = (await hers.send(form, name="shop", calls_per_day="100", toolset="connectivity")).page
    command = shlex.split(html.unescape(page.html[page.html.index("curl -X POST") : page.html.index("</code></pre>")]))
    assert command[:4] == ["curl", "-X", "POST", f"{site.base_url}/v1/connectivity/intents"]
    headers = dict(command[place + 1].split(": ") for place, word in enumerate(command) if word == "-H")
    made = await hers.http.post("/v1/connectivity/intents", content=command[-1], headers=headers)
    assert made.status_code == 201 and made.json()["status"] == "succeeded"
    listed = (await hers.http.get("/v1/api-keys", headers=headers)).status_code
    assert listed == 403, "the key is for connectivity alone"
    seen = await hers.send(form, name="desk", read_only="on")
    assert "is ready" in seen.page.text and "curl" not in seen.page.text
    for calls in ("0", "many", "9" * 9):
        assert (await hers.send(form, name="x", calls_per_day=calls)).page.wrong("calls_per_day") is not None, calls
    form.fields["toolset"] = "no-such"
    assert (await hers.send(form, name="x")).page.wrong("toolset") is not None


async def test_without_an_organisation_there_is_no_form_for_a_key(site: Site, browser: Browser) -> None:
    await site.person("alone@fjord.example")
    page = (await site.sign_in(browser, "alone@fjord.example", "/auth/api-keys")).page
    assert [form.action for form in page.forms] == ["/auth/sign-out"] and "begin one" in page.text


async def test_refusals_of_keys_are_on_the_page(site: Site, hers: Browser) -> None:
    form = (await hers.get("/auth/api-keys")).page.form("/auth/api-keys", "create")
    seen = await hers.send(form, name="")
    assert (seen.status, seen.page.wrong("name")) == (400, "Missing; it is required. What the key is for, 1-64 characters.")
    seen = await hers.send(form, name="x" * 65, read_only="on")
    assert seen.status == 400 and seen.page.form("/auth/api-keys", "create").fields["read_only"] == "on"
    form.fields["seconds_until_expiration"] = "soon"
    assert "must be an integer" in ((await hers.send(form, name="x")).page.wrong("seconds_until_expiration") or "")
    token = form.fields["csrf"]
    seen = await hers.post("/auth/api-keys", {"csrf": token, "do": "revoke", "id": "key_none"})
    assert seen.status == 404


async def test_another_organisations_keys_and_members_are_not_there(site: Site, hers: Browser) -> None:
    bob = await site.person("bob@fjord.example", name="Bob Bobson")
    await site.organisation(bob, "Bobs")
    async with site.browser("203.0.113.9") as bobs:
        page = (await site.sign_in(bobs, "bob@fjord.example", "/auth/api-keys")).page
        made = await bobs.send(page.form("/auth/api-keys", "create"), name="bobs key")
        id = made.page.form("/auth/api-keys", "revoke").fields["id"]
        token = (await hers.get("/auth/account")).page.forms[0].fields["csrf"]
        assert (await hers.post("/auth/api-keys", {"csrf": token, "do": "revoke", "id": id})).status == 404
        assert (await hers.post("/auth/members", {"csrf": token, "do": "remove", "id": bob})).status == 404
        for path in ("account", "api-keys", "members", "audit", "onboarding"):
            text = (await hers.get(f"/auth/{path}")).page.html
            assert "bobs key" not in text and "Bob" not in text and bob not in text
        assert (await bobs.get("/auth/api-keys")).page.form("/auth/api-keys", "revoke").fields["id"] == id


async def test_an_admin_invites_takes_back_and_removes(site: Site, hers: Browser, ada: str) -> None:
    [home] = await site.service.store.read(memberships_of, person=ada)
    carl = await site.person("carl@fjord.example", name="Carl")
    await site.join(carl, home.organisation_id)
    page = (await hers.get("/auth/members")).page
    seen = await hers.send(page.form("/auth/members", "invite"), email="dora@fjord.example")
    assert "invited, has not answered yet" in seen.page.text
    assert (await site.letters())[-1].to == "dora@fjord.example"
    forms = [form for form in seen.page.forms if form.fields.get("do") == "remove"]
    assert len(forms) == 2, "nobody is offered to remove themselves"
    for form in forms:
        seen = await hers.send(form)
    assert "carl@" not in seen.page.text.lower() and "dora@" not in seen.page.text


async def test_refusals_of_members_are_on_the_page(site: Site, hers: Browser, ada: str) -> None:
    form = (await hers.get("/auth/members")).page.form("/auth/members", "invite")
    seen = await hers.send(form, email="nobody", role="admin")
    assert seen.status == 400 and seen.page.wrong("email") is not None
    assert seen.page.form("/auth/members", "invite").fields["role"] == "admin"
    seen = await hers.send(form, email="ada@fjord.example")
    assert seen.status == 409 and "member of your organisation already" in (seen.page.wrong("email") or "")
    seen = await hers.post("/auth/members", {"csrf": form.fields["csrf"], "do": "remove", "id": ada})
    assert seen.status == 409 and "last admin" in seen.page.text


async def test_a_member_sees_the_others_and_no_forms_nor_the_audit_log(site: Site, browser: Browser, ada: str) -> None:
    [home] = await site.service.store.read(memberships_of, person=ada)
    await site.join(await site.person("carl@fjord.example"), home.organisation_id, Role.MEMBER)
    page = (await site.sign_in(browser, "carl@fjord.example", "/auth/members")).page
    assert "Ada Berg" in page.text
    assert [form.action for form in page.forms] == ["/auth/sign-out"]
    assert "Audit log" not in page.text
    token = page.forms[0].fields["csrf"]
    seen = await browser.post("/auth/members", {"csrf": token, "do": "remove", "id": ada})
    assert seen.status == 403 and "Only admins of your organisation may do this." in seen.page.text
    assert "list_members" not in seen.page.text
    seen = await browser.get("/auth/audit")
    assert seen.status == 403 and "Only admins of your organisation may do this." in seen.page.text
    assert [form.action for form in seen.page.forms] == ["/auth/sign-out"], "no filter for what is not shown"


async def test_the_audit_log_is_shown_and_filtered(site: Site, hers: Browser) -> None:
    token = (await hers.get("/auth/account")).page.forms[0].fields["csrf"]
    await hers.post("/auth/api-keys", {"csrf": token, "do": "revoke", "id": "key_none"})
    page = (await hers.get("/auth/audit")).page
    assert "sign_in" in page.text and "revoke_api_key" in page.text and "not_found 404" in page.text
    seen = await hers.send(page.form("/auth/audit"), outcome="not_found")
    assert seen.path.endswith("outcome=not_found")
    assert "revoke_api_key" in seen.page.text and "sign_in" not in seen.page.text
    assert "There is nothing with this outcome" in (await hers.get("/auth/audit?outcome=never")).page.text
    seen = await hers.get("/auth/audit?outcome=" + "x" * 65)
    assert seen.status == 400 and seen.page.wrong("outcome") is not None


async def test_what_pages_read_to_be_shown_is_left_out_of_the_audit_log_until_asked_for(hers: Browser) -> None:
    await hers.get("/auth/members")
    page = (await hers.get("/auth/audit")).page
    assert "list_members" not in page.text and "sign_in" in page.text
    link = next(tag for tag in page.tags if "looks=shown" in tag.attributes.get("href", ""))
    page = (await hers.get(link.attributes["href"])).page
    assert "list_members" in page.text and "sign_in" in page.text
    assert page.form("/auth/audit").fields["looks"] == "shown"


@pytest.mark.long
async def test_the_audit_log_is_read_page_by_page(hers: Browser) -> None:
    token = (await hers.get("/auth/account")).page.forms[0].fields["csrf"]
    for number in range(51):
        await hers.post("/auth/members", {"csrf": token, "do": "remove", "id": f"usr_{number}"})
    page = (await hers.get("/auth/audit?outcome=not_found")).page
    assert page.text.count("remove_member") == 50
    link = next(tag for tag in page.tags if "starting_after" in tag.attributes.get("href", ""))
    page = (await hers.get(link.attributes["href"])).page
    assert page.text.count("remove_member") == 1 and "Older entries" not in page.text
    assert (await hers.get("/auth/audit?starting_after=aud_x")).status == 400


async def test_a_session_token_is_good_for_an_hour_at_the_api(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/session-token")).page
    seen = await hers.send(page.form("/auth/session-token"))
    assert "Good until 15 Jan 2027, 13:00 UTC" in seen.page.text
    found = re.search(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", seen.page.text)
    assert found is not None
    headers = {"Authorization": f"Bearer {found[0]}"}
    assert (await hers.http.get("/v1/members", headers=headers)).status_code == 200
    assert found[0] not in (await hers.get("/auth/session-token")).page.html
    account = (await hers.get("/auth/account")).page
    await hers.send(account.form("/auth/account", "revoke"))
    assert (await hers.http.get("/v1/members", headers=headers)).status_code == 401


async def test_the_tiers_are_those_of_the_limits(site: Site, browser: Browser, ada: str) -> None:
    text = (await browser.get("/auth/upgrade")).page.text
    for tier in Tier:
        assert tier.capitalize() in text
        assert f"{TIERS[tier].calls_per_day:,}" in text
    assert "ssistant" not in text and "at http" not in text, "what is not built is not promised"
    assert "yours" not in text and "Yours is" not in text
    await site.sign_in(browser, "ada@fjord.example")
    text = (await browser.get("/auth/upgrade")).page.text
    assert "Free yours" in text and "Yours is Fjord" in text


async def test_whoever_signed_in_long_ago_changes_neither_keys_nor_members_nor_the_connection(site: Site, hers: Browser) -> None:
    key = (await hers.get("/auth/api-keys")).page.form("/auth/api-keys", "create")
    invitation = (await hers.get("/auth/members")).page.form("/auth/members", "invite")
    account = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "managed")
    site.clock.advance(15 * 60 + 1)
    for path in ("/auth/api-keys", "/auth/members", "/auth/onboarding", "/auth/payments"):
        seen = await hers.get(path)
        assert "You signed in more than 15 minutes ago" in seen.page.text and seen.page.form(path, "again"), path
    led = await hers.send(key, name="late")
    assert led.path == "/auth/sign-in?next=/auth/api-keys"
    for form, typed in ((invitation, {"email": "late@fjord.example"}), (account, {})):
        assert (await hers.send(form, **typed)).path.startswith("/auth/sign-in")
    back = await site.sign_in(hers, "ada@fjord.example", "/auth/api-keys")
    assert back.page.form("/auth/api-keys", "create") and "None yet." in back.page.text
    assert "not answered yet" not in (await hers.get("/auth/members")).page.text
