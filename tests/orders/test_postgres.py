"""Lists, cancelling and erasing over PostgreSQL answer as over SQLite."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import migrated_postgres, required_database
from tests.orders.stage import ADA_MAIL, SLUG, OrdersShop, open_orders_shop
from tests.orders.test_cancel import cancel
from tests.orders.test_erase import erase

pytestmark = pytest.mark.postgres


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[OrdersShop]:
    with required_database(migrated_postgres()) as url:
        async with open_orders_shop(tmp_path, url) as shop:
            yield shop


@pytest.mark.long
async def test_orders_are_listed_cancelled_and_erased(shop: OrdersShop) -> None:
    first, second = await shop.ready(), await shop.failed()
    await shop.order()
    top_up = await shop.paid(top_up_of=first)

    async def found(**query: str) -> list[str]:
        said = await shop.http.get("/v1/storefronts/orders", params=query)
        assert said.status_code == 200, said.text
        return [entry["id"] for entry in said.json()["data"]]

    both = sorted([first, second], reverse=True)
    assert await found() == both and await found(storefront=SLUG, email=ADA_MAIL) == both
    assert await found(limit="1", starting_after=both[0]) == both[1:]
    assert await found(status="ready") == [first] and await found(status="failed", email=ADA_MAIL) == [second]
    mine = await shop.server.get("/api/orders", params={"storefront": SLUG, "email": ADA_MAIL})
    assert mine.json()["data"] == [await shop.read(id) for id in both]
    times = [(await cancel(shop, first)).json()["cancelled_at"] for _ in range(2)]
    assert times == ["2027-01-15T12:00:00Z"] * 2
    assert (await erase(shop)).json()["erased"] == 3
    assert [(await shop.stored(id)).email for id in (first, second, top_up)] == [None] * 3
    assert await shop.world.letters() == []
    assert (await shop.take_back(first)).json()["status"] == "rolled_back"
    assert await found(status="rolled_back") == [first]
