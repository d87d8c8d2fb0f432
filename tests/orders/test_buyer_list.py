"""list_storefront_buyer_orders: one address, one published shop, and the storefront key always."""

import pytest
from inline_snapshot import snapshot

from tests.orders.stage import ADA_MAIL, SLUG, OrdersShop
from tests.stage import without_request_id

LIST = "/api/orders"
MINE = {"storefront": SLUG, "email": ADA_MAIL}


async def test_a_buyer_s_paid_orders_are_listed_newest_first(shop: OrdersShop) -> None:
    first = await shop.ready()
    shop.world.clock.advance(60)
    second = await shop.failed()
    await shop.order()
    await shop.paid(email="bo@example.com")
    await shop.paid(shop=await shop.open_another("fjell-travel"))
    await shop.paid(top_up_of=first)
    body = (await shop.server.get(LIST, params=MINE)).json()
    assert body == {"object": "list", "data": [await shop.read(second), await shop.read(first)], "has_more": False}
    assert (await shop.server.get(LIST, params={**MINE, "email": "Ada@EXAMPLE.com"})).json() == body
    one = (await shop.server.get(LIST, params={**MINE, "limit": 1})).json()
    assert ([order["id"] for order in one["data"]], one["has_more"]) == ([second], True)
    rest = (await shop.server.get(LIST, params={**MINE, "starting_after": second})).json()
    assert [order["id"] for order in rest["data"]] == [first]


async def test_a_stranger_has_bought_nothing(shop: OrdersShop) -> None:
    await shop.ready()
    said = await shop.server.get(LIST, params={**MINE, "email": "ad@example.com"})
    assert said.json() == {"object": "list", "data": [], "has_more": False}


@pytest.mark.rule("4.6.9")
async def test_an_address_alone_opens_nothing(shop: OrdersShop) -> None:
    await shop.ready()
    for http in (shop.buyer, shop.http):
        assert (await http.get(LIST, params=MINE)).status_code == 401
    for missing in ("storefront", "email"):
        given = {name: value for name, value in MINE.items() if name != missing}
        said = await shop.server.get(LIST, params=given)
        assert (said.status_code, said.json()["param"]) == (400, missing)


async def test_a_draft_is_no_shop(shop: OrdersShop) -> None:
    draft = await shop.open_another("draft-travel", status="draft")
    await shop.paid(shop=draft)
    said, unknown = [await shop.server.get(LIST, params={**MINE, "storefront": slug}) for slug in ("draft-travel", "none-such")]
    assert (said.status_code, without_request_id(said)) == (404, without_request_id(unknown))
    assert without_request_id(said) == snapshot(
        {
            "error": "There is no published storefront with this slug",
            "code": "not_found",
            "param": "storefront",
            "hint": "Name the slug in the shop's address",
        }
    )
