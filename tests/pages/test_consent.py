"""The question whether a program may act for somebody."""

import asyncio

import pytest

from registry.caller import Role, Tier
from registry.operation import Scope
from registry.ports import SessionClaims
from storage.access_grants import grants_of
from tests.pages.asking import REDIRECT, consent_token
from tests.pages.browser import Browser, query_of
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from tests.pages.trail import TrailRow, trail
from transports.web.pages.consent import csp_source


async def test_who_asks_and_where_the_answer_goes_is_told(site: Site, hers: Browser) -> None:
    page = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page
    assert "Chart maker wants to act for you" in page.text
    assert "Unverified program." in page.text and "Vouched for" not in page.text
    assert "app.example" in page.text and "Fjord" in page.text
    published = await consent_token(site, client="https://charts.example/client.json", vouched=True)
    page = (await hers.get(f"/auth/consent?request={published}")).page
    assert "Vouched for by charts.example" in page.text and "Unverified" not in page.text
    own = await consent_token(site, redirect="http://127.0.0.1:51234/callback")
    text = (await hers.get(f"/auth/consent?request={own}")).page.text
    assert "The name is its own claim. It runs on your computer (127.0.0.1)." in text and "Unverified" not in text


async def test_allowing_sends_the_browser_back_with_a_code(site: Site, hers: Browser, ada: str) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    assert {name for name in form.fields if name.startswith("scope_")} == {"scope_read", "scope_write"}, "admin is never ticked for them"
    seen = await hers.send(form, "Allow")
    assert seen.status == 303 and seen.way[-1].startswith(REDIRECT + "&")
    answer = query_of(seen.way[-1])
    assert answer["state"] == "st-1" and answer["iss"] == f"{site.base_url}/auth" and answer["code"].startswith("ac_")
    [grant] = await site.service.store.read(grants_of, person=ada, now=site.clock.now())
    assert (grant.scopes, grant.organisation_id) == ("read write", form.fields["organization"])
    assert await trail(site, "grant_access") == [TrailRow("grant_access", form.fields["organization"], ada, "web", "ok")]
    again = await hers.send(form, "Allow")
    assert again.status == 404 and "answered already" in again.page.text
    assert "Chart maker" in (await hers.get("/auth/account")).page.text


async def test_denying_leads_to_no_strangers_page_and_grants_nothing(site: Site, hers: Browser, ada: str) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    seen = await hers.send(form, "Deny")
    assert (seen.status, seen.way) == (200, [])
    assert "Chart maker got nothing." in seen.page.text and "app.example is not a page of ours" in seen.page.text
    [back] = [tag.attributes for tag in seen.page.tags if tag.attributes.get("href", "").startswith(REDIRECT)]
    assert query_of(back["href"])["error"] == "access_denied", "whoever trusts the program may go there"
    assert back["rel"] == "noreferrer"
    assert await site.service.store.read(grants_of, person=ada, now=site.clock.now()) == []
    assert await trail(site, "grant_access") == []
    assert (await hers.send(form, "Deny")).status == 404


async def test_denying_a_program_on_ones_own_computer_tells_it_so(site: Site, hers: Browser, ada: str) -> None:
    own = await consent_token(site, redirect="http://127.0.0.1:51234/callback")
    form = (await hers.get(f"/auth/consent?request={own}")).page.form("/auth/consent")
    seen = await hers.send(form, "Deny")
    answer = query_of(seen.way[-1])
    assert answer["error"] == "access_denied" and answer["state"] == "st-1" and "code" not in answer
    assert await site.service.store.read(grants_of, person=ada, now=site.clock.now()) == []
    assert await trail(site, "grant_access") == []
    assert (await hers.send(form, "Deny")).status == 404


async def test_the_buttons_have_one_size_and_neither_is_pressed_by_the_enter_key_for_them(site: Site, hers: Browser) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    assert [button[0] for button in form.buttons] == ["Deny", "Allow"], "the first is what Enter presses"


async def test_only_what_was_asked_and_what_the_person_has_can_be_allowed(site: Site, browser: Browser, ada: str) -> None:
    await site.join(await site.person("carl@fjord.example"), await site.organisation(ada, "Second", tier=Tier.PRO), Role.MEMBER)
    await site.sign_in(browser, "carl@fjord.example")
    page = (await browser.get(f"/auth/consent?request={await consent_token(site)}")).page
    form = page.form("/auth/consent")
    assert form.boxes == {"scope_read", "scope_write"}
    assert "It also asks for admin, which you do not have here" in page.text
    form.boxes.add("scope_admin")
    seen = await browser.send(form, "Allow", scope_admin="on")
    assert seen.status == 400 and "Choose at least one thing" in seen.page.text
    form = (await browser.get(f"/auth/consent?request={await consent_token(site, scopes=['read'])}")).page.form("/auth/consent")
    assert form.boxes == {"scope_read"}
    form.boxes.add("scope_write")
    assert (await browser.send(form, "Allow", scope_write="on")).status == 400
    seen = await browser.send(form, "Allow", scope_read=None)
    assert seen.status == 400 and "Choose at least one thing" in seen.page.text
    assert "https://app.example:8443" in seen.answer.headers["content-security-policy"], "the form is there again"
    assert "scope_read" not in seen.page.form("/auth/consent").fields


async def test_a_grant_does_what_was_ticked_and_no_more(site: Site, hers: Browser, ada: str) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    await hers.send(form, "Allow", scope_write=None)
    [grant] = await site.service.store.read(grants_of, person=ada, now=site.clock.now())
    caller = await site.service.directory.by_session(SessionClaims(ada, None, grant.id), site.clock.now())
    assert caller is not None
    assert caller.scopes == Scope.READ and caller.restrictions.no_admin


@pytest.mark.parametrize(("ticked", "granted"), [("write", "read write"), ("admin", "read admin")])
async def test_write_and_admin_include_read_and_the_page_says_so(site: Site, hers: Browser, ada: str, ticked: str, granted: str) -> None:
    page = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page
    assert "Write and Admin include Read: a program that has one of them sees everything that Read shows." in page.text
    form = page.form("/auth/consent")
    form.boxes.add("scope_admin")
    chosen = {f"scope_{name}": "on" if name == ticked else None for name in ("read", "write", "admin")}
    await hers.send(form, "Allow", **chosen)
    [grant] = await site.service.store.read(grants_of, person=ada, now=site.clock.now())
    assert grant.scopes == granted
    assert f"may {granted.replace(' ', ', ')}" in (await hers.get("/auth/account")).page.text


@pytest.mark.parametrize("alone", ["write", "admin"])
async def test_who_asks_for_write_or_admin_alone_is_shown_as_somebody_who_reads(site: Site, hers: Browser, ada: str, alone: str) -> None:
    page = (await hers.get(f"/auth/consent?request={await consent_token(site, scopes=[alone])}")).page
    assert "Write and Admin include Read" in page.text and "ll that Read shows" in page.text
    await hers.send(page.form("/auth/consent"), "Allow", **{f"scope_{alone}": "on"})
    [grant] = await site.service.store.read(grants_of, person=ada, now=site.clock.now())
    assert grant.scopes == alone, "the program is told no word that it did not ask for"
    assert f"may read, {alone}" in (await hers.get("/auth/account")).page.text
    caller = await site.service.directory.by_session(SessionClaims(ada, None, grant.id), site.clock.now())
    assert caller is not None and caller.has(Scope.READ)


async def test_a_program_that_asks_to_read_alone_is_told_nothing_about_more(site: Site, hers: Browser) -> None:
    page = (await hers.get(f"/auth/consent?request={await consent_token(site, scopes=['read'])}")).page
    assert "include Read" not in page.text


async def test_another_of_ones_organisations_can_be_chosen_and_no_foreign_one(site: Site, hers: Browser, ada: str) -> None:
    second = await site.organisation(ada, "Second", role=Role.MEMBER)
    foreign = await site.organisation(await site.person("bob@fjord.example"), "Bobs secret")
    token = await consent_token(site)
    page = (await hers.get(f"/auth/consent?request={token}")).page
    choice = next(form for form in page.forms if form.method == "get")
    assert len(choice.choices["organization"]) == 2
    seen = await hers.send(choice, organization=second)
    [form] = [one for one in seen.page.forms if one.method == "post" and one.fields.get("request") == token]
    assert form.fields["organization"] == second and "scope_admin" not in form.boxes
    for id in (foreign, "", "org_none"):
        form.fields["organization"] = id
        refused = await hers.send(form, "Allow")
        assert refused.status == 400 and "Bobs secret" not in refused.answer.text
    form.fields["organization"] = second
    await hers.send(form, "Allow")
    [grant] = await site.service.store.read(grants_of, person=ada, now=site.clock.now())
    assert grant.organisation_id == second


async def test_somebody_without_an_organisation_allows_for_themselves(site: Site, browser: Browser) -> None:
    person = await site.person("alone@fjord.example")
    token = await consent_token(site)
    seen = await site.sign_in(browser, "alone@fjord.example", f"/auth/consent?request={token}")
    assert seen.path == f"/auth/consent?request={token}", "signing in leads back to the question"
    assert "you belong to no organisation" in seen.page.text
    await browser.send(seen.page.form("/auth/consent"), "Allow")
    [grant] = await site.service.store.read(grants_of, person=person, now=site.clock.now())
    assert grant.organisation_id is None


@pytest.mark.cases
@pytest.mark.parametrize("token", ["", "ar_unknown", "%3Cscript%3E", "a" * 300])
async def test_a_request_that_is_none_is_not_found(site: Site, hers: Browser, token: str) -> None:
    seen = await hers.get(f"/auth/consent?request={token}")
    assert seen.status == 404
    assert "Begin the login again in the program that asked" in seen.page.text


async def test_a_request_ends_after_half_an_hour(site: Site, hers: Browser) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    site.clock.advance(1801)
    assert (await hers.send(form, "Allow")).status == 404


async def test_a_press_of_nothing_asks_again(site: Site, hers: Browser) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    seen = await hers.post("/auth/consent", form.fields)
    assert seen.status == 400 and "Press Allow or Deny" in seen.page.text


@pytest.mark.parametrize(
    ("redirect", "source"),
    [
        ("https://app.example/callback", "https://app.example"),
        ("https://app.example:8443/callback?a=b", "https://app.example:8443"),
        ("http://127.0.0.1:51234/callback", "http://127.0.0.1:51234"),
        ("http://localhost/callback", "http://localhost"),
        ("http://[::1]:51234/callback", "http:"),
        ("com.example.app:/callback", "com.example.app:"),
        ("cursor://anysphere.cursor/callback", "cursor:"),
        ("https://user;x@app.example/", "https://app.example"),
    ],
)
def test_the_policy_lets_the_answer_go_where_it_must(redirect: str, source: str) -> None:
    assert csp_source(redirect) == source


async def test_the_sign_in_before_the_question_keeps_its_place(site: Site, browser: Browser, ada: str) -> None:
    token = await consent_token(site)
    seen = await site.sign_in(browser, ADA_ADDRESS, f"/auth/consent?request={token}")
    assert seen.path == f"/auth/consent?request={token}"


async def test_signing_up_before_the_question_keeps_its_place_too(site: Site, browser: Browser) -> None:
    path = f"/auth/consent?request={await consent_token(site)}"
    link = next(tag for tag in (await browser.get(path)).page.tags if "/auth/sign-up" in tag.attributes.get("href", ""))
    seen = await browser.get(link.attributes["href"])
    back = next(tag for tag in seen.page.tags if "/auth/sign-in" in tag.attributes.get("href", ""))
    assert query_of(back.attributes["href"]) == {"next": path}
    seen = await browser.send(seen.page.form("/auth/sign-up"), email="new@fjord.example", organization_name="Nordlys")
    seen = await browser.send(seen.page.form("/auth/sign-up"))
    assert seen.path == "/auth/sign-up/code", "a new code was mailed"
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
    assert seen.path == path and "Nordlys" in seen.page.text


async def test_who_presses_twice_at_once_allows_once_and_one_line_of_the_audit_log_tells_it(site: Site, hers: Browser) -> None:
    form = (await hers.get(f"/auth/consent?request={await consent_token(site)}")).page.form("/auth/consent")
    seen = await asyncio.gather(*(hers.send(form, "Allow") for _ in range(8)))
    assert sum("code=" in one.way[-1] for one in seen if one.way) == 1
    assert {one.status for one in seen if not one.way} == {404}
    log = (await hers.get("/auth/audit")).page.text
    assert log.count("grant_access") == 1
