"""A processor with an account that takes payments."""

from collections.abc import AsyncGenerator

import pytest

from tests.payments_pages.shop import PagesShop, open_pages_shop


@pytest.fixture
async def shop() -> AsyncGenerator[PagesShop]:
    async with open_pages_shop() as shop:
        await shop.told()
        shop.post.taken.clear()
        yield shop
