"""A processor with an account that takes payments."""

from collections.abc import AsyncGenerator

import pytest

from tests.payments_pages.shop import Shop, open_shop


@pytest.fixture
async def shop() -> AsyncGenerator[Shop]:
    async with open_shop() as shop:
        await shop.told()
        shop.post.taken.clear()
        yield shop
