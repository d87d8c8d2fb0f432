"""A market, and a buyer's browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.pages.browser import Browser
from tests.shop_pages.market import Market, open_market


@pytest.fixture
async def market(tmp_path: Path) -> AsyncGenerator[Market]:
    async with open_market(tmp_path) as market:
        yield market


@pytest.fixture
async def browser(market: Market) -> AsyncGenerator[Browser]:
    async with market.browser() as browser:
        yield browser
