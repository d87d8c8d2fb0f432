"""A shop for each test, with the storefront key set, and one where it is not."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.orders.stage import Shop, open_shop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with open_shop(tmp_path) as shop:
        yield shop


@pytest.fixture
async def open_door(tmp_path: Path) -> AsyncGenerator[Shop]:
    """The order's id is the only secret."""
    async with open_shop(tmp_path, key="") as shop:
        yield shop
