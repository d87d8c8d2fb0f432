"""The organisation's account at the payment processor, connected by a person with a browser."""

import re
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import pytest

from clients.payments.client import ProcessorClient
from registry.caller import Role, Tier
from tests.pages.browser import Browser, Seen, query_of
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import HTTP, Site
from tests.pages.test_every_page import HOSTILE_MARKUP, check_page
from tests.pages.trail import trail

PAGE = "/auth/payments"
CODE, STATE = "ac_R8x2Lk9QvWm4", "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE"
CHANGES = ("operator_billing_connect_begin", "operator_billing_connect_oauth_begin", "operator_billing_connect_oauth_complete")


@pytest.fixture
async def bobs(site: Site) -> AsyncGenerator[Browser]:
    """A browser, signed in as Bob, the admin of Nordwind, which may write."""
    await site.organisation(await site.person("bob@nord.example"), "Nordwind", tier=Tier.PRO)
    async with site.browser() as browser:
        await site.sign_in(browser, "bob@nord.example")
        yield browser


def onward(seen: Seen) -> str:
    """Where the page's link to the processor leads."""
    [link] = [tag.attributes["href"] for tag in seen.page.tags if tag.attributes.get("class") == "button"]
    assert seen.status == 200 and "Continue at the payment processor" in seen.page.text and seen.way == []
    check_page("onward", seen)
    return link


async def press(browser: Browser, do: str) -> Seen:
    return await browser.send((await browser.get(PAGE)).page.form(PAGE, do))


async def at_the_processor(browser: Browser, link: str, button: str) -> Seen:
    """Follow the link, and press what the simulated processor shows."""
    shown = await browser.get(link.removeprefix(HTTP))
    assert shown.status == 200 and "Simulated payment processor" in shown.page.text
    return await browser.send(shown.page.forms[0], button)


async def test_an_organisation_without_an_account_reads_so_and_is_offered_both_ways(hers: Browser) -> None:
    account = (await hers.get("/auth/account")).page
    assert PAGE in [tag.attributes.get("href") for tag in account.tags]
    page = (await hers.get(PAGE)).page
    assert "Your account there not connected" in page.text and "Platform fee 1 %" in page.text and "Takes payments" not in page.text
    assert [form.buttons[0][0] for form in page.forms if form.action == PAGE] == ["Begin or continue onboarding", "I have an account there"]


async def test_from_nothing_through_the_processors_pages_to_an_active_account(site: Site, hers: Browser) -> None:
    link = onward(await press(hers, "begin"))
    seen = await at_the_processor(hers, link, "Come back later")
    assert (seen.status, seen.path) == (200, PAGE)
    assert "Your account there waiting" in seen.page.text and "Takes payments no Pays out no" in seen.page.text
    assert "external_account" in seen.page.text, "what is still due is named"
    assert (await hers.get(link.removeprefix(HTTP))).path == PAGE, "a link that was used leads here, too"
    again = onward(await hers.send(seen.page.form(PAGE, "begin")))
    seen = await at_the_processor(hers, again, "Complete onboarding")
    assert (seen.status, seen.path) == (200, PAGE)
    assert "Your account there active" in seen.page.text and "Takes payments yes Pays out yes" in seen.page.text
    assert "acct_" in seen.page.text and "nothing that we were told of" in seen.page.text
    check_page("active", seen)


async def let_go(site: Site, account: str) -> None:
    """The account's owner lets the service go, and the processor's event of it is lost."""
    sandbox = site.service.payments.sandbox
    assert sandbox is not None
    async with sandbox.turn(writes=True) as state:
        state.accounts[account].attached = False


async def test_a_live_account_that_let_the_service_go_is_replaced_after_a_question(site: Site, hers: Browser) -> None:
    link = onward(await press(hers, "begin"))
    seen = await at_the_processor(hers, link, "Complete onboarding")
    form, first = seen.page.form(PAGE, "begin"), re.findall(r"acct_\w+", seen.page.text)[0]
    await let_go(site, first)
    asked = await hers.send(form)
    assert asked.status == 200 and "Replace your payment account?" in asked.page.text and first in asked.page.text
    assert "operator_billing" not in asked.page.text, "the way back is told in the words of the page"
    check_page("replace", asked)
    assert [row.outcome for row in await trail(site, CHANGES[0])] == ["ok", "confirm_token_required"]
    away = await hers.send(asked.page.form(PAGE, "begin"))
    onward(away)
    assert first not in (await hers.get(PAGE)).page.text


@pytest.mark.long
async def test_an_account_that_somebody_has_is_attached_after_a_word_of_theirs(site: Site, bobs: Browser) -> None:
    link = onward(await press(bobs, "oauth"))
    assert query_of(link)["redirect_uri"] == f"{HTTP}{PAGE}"
    asked = await at_the_processor(bobs, link, "Allow")
    assert asked.status == 200 and urlsplit(asked.path).path == PAGE
    check_page("asked", asked)
    form = asked.page.form(PAGE, "attach")
    assert form.buttons[0][0] == "Attach this account to " and "Attach this account to Nordwind" in asked.page.text
    assert {"code": form.fields["code"], "state": form.fields["state"]}.items() <= query_of(asked.path).items()
    assert "Your account there not connected" in (await bobs.get(PAGE)).page.text, "opening an address changes nothing"
    seen = await bobs.send(form)
    assert (seen.status, seen.path) == (200, PAGE), "the address has no code any more"
    assert "Your account there active" in seen.page.text and "acct_" in seen.page.text
    again = await bobs.send(form)
    assert again.status == 400 and "used already" in again.page.text and "Your account there active" in again.page.text
    rows = await trail(site, *CHANGES)
    assert [(row.operation, row.surface, row.outcome) for row in rows] == [
        (CHANGES[1], "web", "ok"),
        (CHANGES[2], "web", "ok"),
        (CHANGES[2], "web", "invalid_request"),
    ]
    written = b"".join(site.log)
    assert b'"path":"/auth"' in written
    assert form.fields["code"].encode() not in written and form.fields["state"].encode() not in written
    refused = await press(bobs, "begin")
    assert refused.status == 409 and "whose owner signs in at the processor itself" in refused.page.text


async def test_whoever_denies_reads_that_nothing_was_changed(site: Site, bobs: Browser) -> None:
    seen = await at_the_processor(bobs, onward(await press(bobs, "oauth")), "Deny")
    assert seen.status == 200 and query_of(seen.path)["error"] == "access_denied"
    assert "You did not allow it; nothing was changed." in seen.page.text and "Your account there not connected" in seen.page.text
    odd = await bobs.get(f"{PAGE}?error=%3Cscript%3E&code=a&state=b")
    assert "did not let it happen; nothing was changed." in odd.page.text and "<script" not in odd.answer.text
    assert "not complete" in (await bobs.get(f"{PAGE}?code=a")).page.text


@pytest.mark.parametrize("fields", [{"code": CODE, "state": STATE}, {"code": "", "state": ""}, {"code": "a b", "state": "ü"}, {}])
async def test_a_state_that_nobody_began_with_attaches_nothing(bobs: Browser, fields: dict[str, str]) -> None:
    token = (await bobs.get(PAGE)).page.forms[0].fields["csrf"]
    seen = await bobs.post(PAGE, {"csrf": token, "do": "attach", **fields})
    assert seen.status == 400 and "Nothing was attached" in seen.page.text and "oauth_begin" not in seen.page.text
    assert "Your account there not connected" in seen.page.text and CODE not in seen.answer.text


async def test_what_one_began_another_organisation_cannot_end(site: Site, bobs: Browser) -> None:
    asked = await at_the_processor(bobs, onward(await press(bobs, "oauth")), "Allow")
    await site.organisation(await site.person("carl@sund.example"), "Sund", tier=Tier.PRO)
    async with site.browser() as carls:
        await site.sign_in(carls, "carl@sund.example")
        form = (await carls.get(asked.path)).page.form(PAGE, "attach")
        seen = await carls.send(form)
        assert seen.status == 400 and "another organisation began it" in seen.page.text
        assert "Your account there not connected" in seen.page.text
    seen = await bobs.send(asked.page.form(PAGE, "attach"))
    assert "Your account there active" in seen.page.text, "the other one used nothing up"


async def test_what_a_key_of_theirs_began_a_person_ends_here(bobs: Browser) -> None:
    made = await bobs.send((await bobs.get("/auth/api-keys")).page.form("/auth/api-keys", "create"), name="order service")
    found = re.search(r"Bearer (\S+?)\"", made.page.html)
    assert found is not None
    begun = await bobs.http.post("/v1/operator-billing/connect/oauth/begin", json={}, headers={"Authorization": f"Bearer {found[1]}"})
    asked = await at_the_processor(bobs, begun.json()["url"], "Allow")
    seen = await bobs.send(asked.page.form(PAGE, "attach"))
    assert "Your account there active" in seen.page.text


async def test_a_plain_member_connects_too(site: Site, browser: Browser) -> None:
    house = await site.organisation(await site.person(ADA_ADDRESS), tier=Tier.PRO)
    await site.join(await site.person("dora@fjord.example"), house, Role.MEMBER)
    assert (await site.sign_in(browser, "dora@fjord.example", PAGE)).path == PAGE
    seen = await at_the_processor(browser, onward(await press(browser, "begin")), "Complete onboarding")
    assert "Your account there active" in seen.page.text
    [row] = await trail(site, *CHANGES)
    assert (row.organisation, row.outcome) == (house, "ok")


async def test_the_free_tier_is_told_of_the_tiers_for_an_account_that_is_there_already(hers: Browser) -> None:
    seen = await press(hers, "oauth")
    assert seen.status == 402 and "The page Tiers shows which one does." in seen.page.text
    assert seen.page.html.count('role="alert"') == 1
    assert '<a href="/auth/upgrade">See the tiers</a>' in seen.answer.text
    token = seen.page.forms[0].fields["csrf"]
    seen = await hers.post(PAGE, {"csrf": token, "do": "attach", "code": CODE, "state": STATE})
    assert seen.status == 402 and "See the tiers" in seen.page.text


async def test_a_deployment_without_a_client_id_says_so(site: Site, bobs: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessorClient, "authorize_url", lambda *_, **__: None)
    seen = await press(bobs, "oauth")
    assert seen.status == 501 and "has no client id at the payment processor" in seen.page.text and "/v1/" not in seen.page.text


async def test_forms_of_elsewhere_do_nothing(site: Site, hers: Browser) -> None:
    form = (await hers.get(PAGE)).page.form(PAGE, "begin")
    for fields, headers in (
        ({**form.fields, "csrf": "x"}, {}),
        ({"do": "begin"}, {}),
        (form.fields, {"Origin": "https://evil.example"}),
        (form.fields, {"Sec-Fetch-Site": "cross-site"}),
    ):
        assert (await hers.post(PAGE, fields, **headers)).status == 403
    for do in ("attach", "oauth"):
        assert (await hers.post(PAGE, {"csrf": "x", "do": do, "code": CODE, "state": STATE})).status == 403
    assert (await hers.send(form, None)).status == 200
    assert (await hers.post(PAGE, {**form.fields, "do": "detach"})).status == 400
    assert [row.operation for row in await trail(site, *CHANGES)] == [CHANGES[0]]


@pytest.mark.parametrize("query", ["", f"?code={CODE}&state={STATE}", "?error=access_denied"])
async def test_whoever_must_sign_in_first_comes_back_with_what_the_processor_said(
    site: Site, browser: Browser, ada: str, query: str
) -> None:
    seen = await site.sign_in(browser, ADA_ADDRESS, PAGE + query)
    assert (seen.status, seen.path) == (200, PAGE + query)
    written = b"".join(site.log)
    assert b'"path":"/auth"' in written and CODE.encode() not in written and STATE.encode() not in written


async def test_a_confirmation_after_the_sign_in_ended_is_asked_again(site: Site, hers: Browser) -> None:
    form = (await hers.get(f"{PAGE}?code={CODE}&state={STATE}")).page.form(PAGE, "attach")
    await hers.send((await hers.get("/auth/account")).page.form("/auth/sign-out"))
    seen = await hers.send(form)
    assert seen.path.startswith("/auth/sign-in?next=")
    assert seen.page.form("/auth/sign-in").fields["next"] == f"{PAGE}?code={CODE}&state={STATE}"


async def test_a_code_of_odd_characters_is_not_kept(site: Site, browser: Browser, ada: str) -> None:
    assert (await site.sign_in(browser, ADA_ADDRESS, f"{PAGE}?code=%2F%2Fevil.example&state={STATE}")).path == "/auth/account"


async def test_hostile_texts_stay_texts(site: Site, browser: Browser) -> None:
    await site.organisation(await site.person("evil@fjord.example"), HOSTILE_MARKUP)
    await site.sign_in(browser, "evil@fjord.example")
    for path in (PAGE, f"{PAGE}?code=%22%3E%3Cimg&state=%3Cscript%3E"):
        seen = await browser.get(path)
        check_page(path, seen)
        assert "<img" not in seen.answer.text and "<script" not in seen.answer.text
