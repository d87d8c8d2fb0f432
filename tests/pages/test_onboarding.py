"""The five steps on one page."""

import unicodedata

import pytest

from operations.vocabulary import COUNTRY_CODES
from registry.caller import Tier
from storage.organisations import list_organisations
from storage.upstream_connections import set_connection
from tests.pages.browser import Browser
from tests.pages.site import Site
from transports.web.pages.onboarding import operator_countries

DETAILS = {"name": "Fjord Mobile", "website": "https://fjord.example", "country": "NO", "operator_type": "travel_esim"}


@pytest.mark.long
async def test_from_nothing_to_all_set_up(hers: Browser) -> None:
    page = (await hers.get("/auth/onboarding")).page
    seen = await hers.send(page.form("/auth/onboarding", "org"), **DETAILS)
    assert seen.way[-1].endswith("/auth/onboarding#ocs")
    assert "Fjord Mobile · Norway · Travel eSIMs" in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "managed"))
    assert "Connected to your managed account 8102" in seen.page.text
    form = seen.page.form("/auth/onboarding", "plan")
    assert form.choices["template_id"]
    seen = await hers.send(form, display_name="Nordic starter")
    assert "You begin with Nordic starter" in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "preview"))
    assert "ICCID 89" in seen.page.text and "exists nowhere" not in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "complete"))
    assert "All set up" in seen.page.text


async def test_steps_can_be_skipped_and_a_look_without_a_connection_is_a_demo(hers: Browser) -> None:
    page = (await hers.get("/auth/onboarding")).page
    seen = await hers.send(page.form("/auth/onboarding", "skip"))
    assert "Starting plan skipped" in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "preview"))
    assert "A demo line, since nothing is connected yet." in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "complete"))
    assert seen.status == 409
    assert seen.page.html.count('role="alert"') == 1
    assert "Save step 1 first" in seen.page.text and "onboarding_" not in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "org"), **DETAILS)
    seen = await hers.send(seen.page.form("/auth/onboarding", "complete"))
    assert seen.status == 409 and "Choose a connection in step 2 first" in seen.page.text


def test_every_country_has_a_name_and_they_are_in_order() -> None:
    countries = operator_countries()
    assert {code for code, _ in countries} == COUNTRY_CODES and len(countries) == len(COUNTRY_CODES)
    assert dict(countries)["DE"] == "Germany" and dict(countries)["GE"] == "Georgia"
    names = [unicodedata.normalize("NFKD", name).replace("\u0301", "").encode("ascii", "ignore") for _, name in countries]
    assert names == sorted(names) and len(set(names)) == len(names)


async def test_a_country_is_chosen_by_its_name_and_of_two_wrong_fields_the_second_is_not_hidden(hers: Browser) -> None:
    form = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "org")
    assert set(form.choices["country"]) == COUNTRY_CODES | {""}
    seen = await hers.send(form, **{**DETAILS, "country": "", "operator_type": ""})
    wrong = seen.page.wrong("country") or ""
    assert "Another field is to be mended, too." in wrong and "more)" not in wrong
    seen = await hers.send(form, **{**DETAILS, "country": "DE"})
    assert "Fjord Mobile · Germany" in seen.page.text


@pytest.mark.long
async def test_a_token_of_ones_own_is_checked_and_never_shown(site: Site, hers: Browser) -> None:
    form = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "own")
    seen = await hers.send(form, token="not-a-token-of-anybody")
    assert seen.status == 400
    assert "does not accept it" in (seen.page.wrong("token") or "")
    assert "not-a-token-of-anybody" not in seen.answer.text
    seen = await hers.send(form, token="")
    assert seen.page.wrong("token") is not None
    seen = await hers.send(form, token="sandbox-7002-token")
    assert "Connected with a token of your own" in seen.page.text
    assert "sandbox-7002-token" not in seen.answer.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "managed"))
    assert "Change to the managed account?" in seen.page.text and "enter the token again" in seen.page.text
    seen = await hers.send(seen.page.form("/auth/onboarding", "managed"))
    assert "Connected to your managed account" in seen.page.text


@pytest.mark.long
async def test_a_live_connection_is_replaced_after_a_question_and_a_token_goes_through_it_sealed(site: Site, hers: Browser) -> None:
    form = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "own")
    await hers.send(form, token="sandbox-7002-token")
    asked = await hers.send(form, token="sandbox-7001-token")
    assert (asked.status, asked.page.text.count("Connect with this token?")) == (200, 1)
    assert "sandbox-7001-token" not in asked.answer.text and "onboarding_" not in asked.page.text
    question = asked.page.form("/auth/onboarding", "own")
    other = {**question.fields, "sealed_token": question.fields["sealed_token"][:-4] + "AAAA"}
    assert (await hers.post("/auth/onboarding", other)).status == 400
    seen = await hers.send(question)
    assert "Connected with a token of your own" in seen.page.text
    assert (await hers.send(question)).status == 200  # nothing is left to be changed
    asked = await hers.send(seen.page.form("/auth/onboarding", "restore"))
    assert "from the reseller 7001 to the reseller 7002" in asked.page.text
    seen = await hers.send(asked.page.form("/auth/onboarding", "restore"))
    assert "Go back to the former token" not in seen.page.text and "Connected with a token of your own" in seen.page.text


@pytest.mark.long
async def test_a_member_is_told_who_may_replace_a_live_connection(site: Site, browser: Browser, hers: Browser) -> None:
    form = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "own")
    await hers.send(form, token="sandbox-7002-token")
    person = await site.person("bo@fjord.example")
    organisation = (await site.service.store.read(list_organisations))[-1].id
    await site.join(person, organisation)
    async with site.browser("203.0.113.8") as his:
        await site.sign_in(his, "bo@fjord.example")
        form = (await his.get("/auth/onboarding")).page.form("/auth/onboarding", "own")
        seen = await his.send(form, token="sandbox-7001-token")
        assert seen.status == 403 and "Only admins of your organisation may do this" in seen.page.text


@pytest.mark.long
async def test_what_is_pending_is_explained(site: Site, hers: Browser) -> None:
    for account in (8102, 8103, 8104):
        other = await site.organisation(await site.person(f"p{account}@fjord.example"), tier=Tier.PRO)
        await site.service.store.write(set_connection, organisation=other, mode="managed", account_id=account, own_token=None)
    page = (await hers.get("/auth/onboarding")).page
    seen = await hers.send(page.form("/auth/onboarding", "managed"))
    assert seen.status == 200
    assert "Your managed account is not there yet. No account was opened for your organisation yet." in seen.page.text
    assert "Connection waiting" in seen.page.text
    assert seen.page.form("/auth/onboarding", "managed").buttons[0][0] == "Try again"


async def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(hers: Browser) -> None:
    form = (await hers.get("/auth/onboarding")).page.form("/auth/onboarding", "org")
    for field, value in (("name", ""), ("website", "no address"), ("country", "zz"), ("country", ""), ("operator_type", "")):
        seen = await hers.send(form, **{**DETAILS, field: value})
        assert seen.status == 400
        assert seen.page.wrong(field) is not None, field
        typed = seen.page.form("/auth/onboarding", "org").fields
        assert typed["name" if field != "name" else "country"] == ("Fjord Mobile" if field != "name" else "NO")


@pytest.mark.long
async def test_a_template_that_is_none_is_refused(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/onboarding")).page
    seen = await hers.send(page.form("/auth/onboarding", "managed"))
    form = seen.page.form("/auth/onboarding", "plan")
    for given in ("999999999", "abc", "", "9" * 30, "-1", "1.5"):
        form.fields["template_id"] = given
        seen = await hers.send(form)
        assert seen.status in (400, 404), given
        assert seen.page.wrong("template_id") is not None, given


async def test_without_an_organisation_the_page_says_how_to_get_one(site: Site, browser: Browser) -> None:
    await site.person("alone@fjord.example")
    seen = await site.sign_in(browser, "alone@fjord.example", "/auth/onboarding")
    assert seen.status == 409
    assert "You belong to no organisation yet" in seen.page.text
