"""Signing up."""

import re

import pytest

from storage.organisations import memberships_of
from storage.people import find_by_address
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from tests.pages.trail import TrailRow, trail

NEW = "new@fjord.example"


async def test_a_new_person_signs_up_and_is_signed_in_with_one_code(site: Site, browser: Browser) -> None:
    seen = await browser.get("/auth/sign-up")
    seen = await browser.send(seen.page.form("/auth/sign-up"), email=NEW, organization_name="Nordlys", name="Nora Lie")
    assert seen.path == "/auth/sign-up/code"
    assert NEW in seen.page.text
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
    assert seen.path == "/auth/onboarding"
    assert "Nordlys" in seen.page.text
    person = await site.service.store.read(find_by_address, address=NEW)
    assert person is not None
    [member] = await site.service.store.read(memberships_of, person=person)
    assert (member.name, member.role, member.tier) == ("Nordlys", "admin", "free")
    assert await trail(site, "sign_in") == [TrailRow("sign_in", member.organisation_id, person, "web", "ok")]


async def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(browser: Browser) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    seen = await browser.send(form, email="nobody", organization_name="Nordlys", name="Nora")
    assert seen.status == 400
    assert seen.page.wrong("email") == (
        'Got "nobody"; must be one e-mail address such as ada@example.com, without a name and of at most 254 characters. '
        "E-mail address, at most 254 characters."
    )
    assert seen.page.form("/auth/sign-up").fields["organization_name"] == "Nordlys"
    seen = await browser.send(seen.page.form("/auth/sign-up"), email=NEW, organization_name="")
    assert seen.page.wrong("organization_name") == "Missing; it is required. Name of the organization, 1-200 characters."
    seen = await browser.send(seen.page.form("/auth/sign-up"), organization_name="Nordlys", referral_code="NOSUCH00")
    assert "no affiliate has this code" in (seen.page.wrong("referral_code") or "").lower()


async def test_a_referral_link_fills_its_code_in_and_credits_who_sent_them(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/session-token")).page
    shown = (await hers.send(page.form("/auth/session-token"))).page.text
    headers = {"Authorization": "Bearer " + re.findall(r"eyJ[\w.-]+", shown)[0]}
    link = (await hers.http.post("/v1/affiliates/me", headers=headers)).json()["link"]
    async with site.browser() as browser:
        seen = await browser.get(link)
        form = seen.page.form("/auth/sign-up")
        assert form.fields["referral_code"] and link.endswith(form.fields["referral_code"])
        seen = await browser.send(form, email=NEW, organization_name="Nordlys")
        assert (await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())).path == "/auth/onboarding"
    assert (await hers.http.get("/v1/affiliates/me", headers=headers)).json()["referral_count"] == 1


async def test_a_referral_that_is_no_code_is_left_out(browser: Browser) -> None:
    for strange in ("%22%3E", "a%20b", "x" * 33, "%C3%A4"):
        page = (await browser.get(f"/auth/sign-up?ref={strange}")).page
        assert page.form("/auth/sign-up").fields["referral_code"] == ""


async def test_a_wrong_code_can_be_mended_and_a_code_works_once(site: Site, browser: Browser) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    seen = await browser.send(form, email=NEW, organization_name="Nordlys")
    code, slip = await site.code(), browser.slip()
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code="1")
    assert seen.status == 400
    assert "That is not the code that was mailed for this page" in (seen.page.wrong("code") or "")
    old = seen.page.form("/auth/sign-up/code")
    assert (await browser.send(old, code=code)).path == "/auth/onboarding"
    page = (await browser.get("/auth/account")).page
    browser.http.cookies.set(*slip, domain="127.0.0.1", path="/")
    seen = await browser.post("/auth/sign-up/code", {"csrf": page.forms[0].fields["csrf"], "code": code})
    assert seen.path != "/auth/onboarding"


@pytest.mark.parametrize("spoiled", ["tries", "time"])
async def test_after_a_dead_code_a_new_one_is_had_without_typing_anything_again(site: Site, browser: Browser, spoiled: str) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    seen = await browser.send(form, email=NEW, organization_name="Nordlys", name="Nora Lie")
    dead = await site.code()
    if spoiled == "time":
        site.clock.advance(599)
    for _ in range(5 if spoiled == "tries" else 0):
        await browser.send(seen.page.form("/auth/sign-up/code"), code=f"{(int(dead) + 1) % 10**6:06}")
    site.clock.advance(1)
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code=dead)
    assert seen.status == 400 and "so get a new one" in (seen.page.wrong("code") or "")
    begun = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up").fields
    assert (begun["email"], begun["organization_name"], begun["name"]) == (NEW, "Nordlys", "Nora Lie"), "beginning again keeps it, too"
    seen = await browser.send(seen.page.form("/auth/sign-up"), "Get a new code")
    assert seen.path == "/auth/sign-up/code" and NEW in seen.page.text
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
    assert seen.path == "/auth/onboarding" and "Nordlys" in seen.page.text


async def test_the_longest_names_fit_what_the_browser_keeps(browser: Browser) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    long = "\U0001f600" * 200
    seen = await browser.send(form, email=NEW, organization_name=long, name=long)
    assert seen.path == "/auth/sign-up/code" and len(browser.slip()[1]) < 4000
    seen = await browser.send(seen.page.form("/auth/sign-up"))
    assert seen.path == "/auth/sign-up/code"


async def test_somebody_known_gets_a_further_organisation_and_acts_for_it(site: Site, hers: Browser, ada: str) -> None:
    seen = await hers.get("/auth/sign-up")
    assert "A further organisation" in seen.page.text
    before = hers.cookie("session")
    seen = await hers.send(seen.page.form("/auth/sign-up"), organization_name="Second")
    seen = await hers.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
    assert seen.path == "/auth/onboarding" and "Second" in seen.page.text
    assert hers.cookie("session") != before
    assert [one.name for one in await site.service.store.read(memberships_of, person=ada)] == ["Fjord", "Second"]
    page = (await hers.get("/auth/account")).page
    assert "signed in with this browser alone" in page.text, "the session before has ended"


async def test_six_digits_open_no_account_that_was_there_before(site: Site, browser: Browser, ada: str) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    seen = await browser.send(form, email=ADA_ADDRESS, organization_name="Second")
    seen = await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
    assert seen.path == "/auth/sign-in" and browser.cookie("session") is None
    assert [one.name for one in await site.service.store.read(memberships_of, person=ada)] == ["Fjord", "Second"]


async def test_too_many_sign_ups_are_told_on_the_page(site: Site, browser: Browser) -> None:
    form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
    answers = [await browser.send(form, email=NEW, organization_name="Nordlys") for _ in range(4)]
    assert [seen.status for seen in answers] == [200, 200, 200, 429]
    assert "Too many tries; try again in 60 minutes." in answers[-1].page.text
    assert answers[-1].page.form("/auth/sign-up").fields["organization_name"] == "Nordlys"


async def test_the_pages_are_the_same_for_known_and_unknown_addresses(site: Site, ada: str) -> None:
    texts: list[str] = []
    for address in (ADA_ADDRESS, NEW):
        async with site.browser() as browser:
            form = (await browser.get("/auth/sign-up")).page.form("/auth/sign-up")
            seen = await browser.send(form, email=address, organization_name="Nordlys")
            fields = seen.page.forms[0].fields
            texts.append(seen.answer.text.replace(fields["csrf"], "-").replace(fields["request"], "-").replace(address, "-"))
    assert texts[0] == texts[1]
