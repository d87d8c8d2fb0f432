"""A service, a browser, and Ada, who is the admin of Fjord and signed in."""

from collections.abc import AsyncGenerator

import pytest

from tests.pages.browser import Browser
from tests.pages.site import Site, open_site
from tests.stage import opened

ADA_ADDRESS = "ada@fjord.example"


site = opened(open_site)


@pytest.fixture
async def browser(site: Site) -> AsyncGenerator[Browser]:
    async with site.browser() as browser:
        yield browser


@pytest.fixture
async def ada(site: Site) -> str:
    person = await site.person(ADA_ADDRESS, name="Ada Berg")
    await site.organisation(person, "Fjord")
    return person


@pytest.fixture
async def hers(site: Site, browser: Browser, ada: str) -> Browser:
    assert (await site.sign_in(browser, ADA_ADDRESS)).status == 200
    return browser
