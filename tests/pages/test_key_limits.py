"""The page of API keys shows the most that a key with limits can do before the key is made; the consent page of a login does, too."""

import re

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


async def test_the_consent_page_says_the_most_that_a_login_can_do(site: Site, hers: Browser) -> None:
    token = await consent_token(site)
    seen = await hers.get(f"/auth/consent?request={token}")
    assert "With all of this it can do at most: in a UTC day at most" in seen.page.text
