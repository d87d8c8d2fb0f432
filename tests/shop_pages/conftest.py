"""A market, and a buyer's browser."""

from collections.abc import AsyncGenerator

import pytest

from tests.pages.browser import Browser
from tests.shop_pages.market import PagesMarket, open_market
from tests.stage import opened

market = opened(open_market)


@pytest.fixture
async def browser(market: PagesMarket) -> AsyncGenerator[Browser]:
    async with market.browser() as browser:
        yield browser
