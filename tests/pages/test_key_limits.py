"""The page of API keys shows the most that a key with limits can do before the key is made; the consent page of a login does, too."""

import re

import pytest

from tests.pages.asking import consent_token
from tests.pages.browser import Browser
from tests.pages.site import Site

SECRET = re.compile(r"ak_[A-Za-z0-9]{46}")


async def test_a_key_with_limits_is_made_only_after_its_worst_case_was_shown(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    asked = {"name": "agent", "calls_per_day": "50", "spend_per_day": "40 EUR", "approval": "irreversible"}
    seen = await hers.send(page.form("/auth/api-keys", "create"), **asked)
    assert seen.status == 200 and SECRET.search(seen.page.text) is None
    assert "The most that it can do" in seen.page.text and "In a UTC day at most 50 calls" in seen.page.text
    made = await hers.send(seen.page.form("/auth/api-keys", "create"))
    assert SECRET.search(made.page.text) is not None
    assert "agent" in made.page.text and "restricted" in made.page.text


async def test_what_was_shown_counts_for_just_these_limits(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="agent", calls_per_day="50", spend_per_day="40 EUR")
    again = await hers.send(seen.page.form("/auth/api-keys", "create"), calls_per_day="60")
    assert SECRET.search(again.page.text) is None and "at most 60 calls" in again.page.text


async def test_an_amount_that_is_none_is_told_at_its_field(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="agent", spend_per_day="forty")
    assert SECRET.search(seen.page.text) is None
    assert 'id="spend_per_day-wrong"' in seen.page.html


async def test_every_limit_of_a_key_can_be_asked_for_on_the_page(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/api-keys")).page
    limits = {
        "tags": "berlin, vans",
        "times": "create_connectivity_intent = 12, clean_all_packages=0",
        "spend_per_call": "10.00 EUR",
        "approve_above": "5.00 EUR",
        "another_person": "on",
    }
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="agent", **limits)
    assert SECRET.search(seen.page.text) is None and "The most that it can do" in seen.page.text
    assert "clean_all_packages" not in seen.page.text.partition("The most that it can do")[2].partition("Keys there are")[0]
    made = await hers.send(seen.page.form("/auth/api-keys", "create"))
    secret = SECRET.search(made.page.text)
    assert secret is not None
    answer = await hers.http.get("/v1/api-keys/explanation", headers={"Authorization": f"Bearer {secret[0]}"})
    held = answer.json()["restrictions"]
    assert held["tags"] == ["berlin", "vans"] and held["another_person"] is True
    assert held["times"] == {"clean_all_packages": 0, "create_connectivity_intent": 12}
    assert held["approve_above"] == {"amount": 500, "currency": "EUR"}
    assert held["spend_per_call"] == {"amount": 1000, "currency": "EUR"}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("times", "create_connectivity_intent", "“create_connectivity_intent” is no operation with a number."),
        ("times", "clean_all_packages=1, clean_all_packages=2", "“clean_all_packages=2” names an operation a second time."),
        ("times", "make_coffee=1", "Got make_coffee; there is no such operation."),
        ("times", "clean_all_packages=999999", "Got 999999; must be &lt;= 100000"),
        ("tags", "Berlin", "in lower case"),
        ("approve_above", "five", "“five” is no amount."),
        ("spend_per_month", "5 euros", "“5 euros” is no amount."),
    ],
)
async def test_a_limit_that_cannot_be_is_told_at_its_field(site: Site, hers: Browser, field: str, typed: str, told: str) -> None:
    page = (await hers.get("/auth/api-keys")).page
    seen = await hers.send(page.form("/auth/api-keys", "create"), name="agent", approval="irreversible", **{field: typed})
    assert SECRET.search(seen.page.text) is None
    beside = seen.page.html.partition(f'id="{field}-wrong"')[2].partition("</p>")[0]
    assert told in beside, seen.page.html
    assert f'value="{typed}"' in seen.page.html  # what was typed is there to be mended


async def test_the_consent_page_says_the_most_that_a_login_can_do(site: Site, hers: Browser) -> None:
    token = await consent_token(site)
    seen = await hers.get(f"/auth/consent?request={token}")
    assert "With all of this it can do at most: in a UTC day at most" in seen.page.text
