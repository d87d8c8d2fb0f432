"""list_storefront_orders: what an operator's shops sold, without what would open an eSIM or name a buyer."""

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.orders.stage import ADA_MAIL, SLUG, OrdersShop
from tests.stage import without_request_id

LIST = "/v1/storefronts/orders"


@pytest.mark.rule("4.6.5")
async def test_orders_are_listed_newest_first_without_the_unpaid_ones(shop: OrdersShop) -> None:
    ids: list[str] = []
    for make in (shop.ready, shop.failed, shop.order):
        ids.append(await make())
        shop.world.clock.advance(60)
    await shop.paid(top_up_of=ids[0])
    await shop.order(top_up_of=ids[0])
    body = (await shop.http.get(LIST)).json()
    failed, ready = body["data"]
    assert (failed.pop("id"), ready.pop("id"), body["has_more"]) == (ids[1], ids[0], False)
    assert failed == snapshot(
        {
            "object": "storefront.order",
            "storefront": "fjord-travel",
            "plan": "nordic-1gb",
            "plan_name": "Nordic 1 GB",
            "status": "failed",
            "amount": 900,
            "currency": "EUR",
            "refund": "pending",
            "top_ups": 0,
            "created": "2027-01-15T12:01:00Z",
            "paid_at": "2027-01-15T12:01:00Z",
            "ready_at": None,
            "cancelled_at": None,
        }
    )
    noon = "2027-01-15T12:00:00Z"
    assert ready == {**failed, "status": "ready", "refund": None, "top_ups": 1, "created": noon, "paid_at": noon, "ready_at": noon}
    (pending,) = (await shop.http.get(f"{LIST}?status=pending_payment")).json()["data"]
    assert pending["id"] == ids[2]


@pytest.mark.rule("4.6.5")
async def test_nothing_in_the_list_opens_an_esim_or_names_a_buyer(shop: OrdersShop) -> None:
    order = await shop.read(await shop.ready())
    text = (await shop.http.get(LIST)).text
    assert order["id"] in text
    assert [secret for secret in (*order["esim"].values(), ADA_MAIL) if secret in text] == []


async def test_the_list_is_read_page_by_page(shop: OrdersShop) -> None:
    ids = [await shop.paid() for _ in range(5)]
    seen: list[str] = []
    after = ""
    for most, more in ((2, True), (2, True), (2, False)):
        body = (await shop.http.get(f"{LIST}?limit={most}{after}")).json()
        assert body["has_more"] is more
        seen += [entry["id"] for entry in body["data"]]
        after = f"&starting_after={seen[-1]}"
    assert sorted(seen) == sorted(ids) and seen == sorted(ids, reverse=True)  # all of one moment: by id
    said = await shop.http.get(f"{LIST}?starting_after=ord_{'0' * 26}")
    assert (said.status_code, said.json()["param"]) == (400, "starting_after")


async def test_orders_are_found_by_shop_status_and_buyer(shop: OrdersShop) -> None:
    other = await shop.open_another("fjell-travel", status="draft")
    mine, bo, there = await shop.ready(email=ADA_MAIL), await shop.paid(email="bo@example.com"), await shop.paid(shop=other)

    async def found(**query: str) -> set[str]:
        return {entry["id"] for entry in (await shop.http.get(LIST, params=query)).json()["data"]}

    assert await found() == {mine, bo, there}
    assert await found(storefront="fjell-travel") == {there} and await found(storefront=SLUG) == {mine, bo}
    assert await found(email="ADA@Example.com") == {mine, there}
    assert await found(status="ready") == {mine} and await found(status="paid", storefront=SLUG) == {bo}


async def test_a_roll_back_shows_in_the_list(shop: OrdersShop) -> None:
    id = await shop.ready()
    shop.world.clock.advance(3600)
    await shop.take_back(id)
    (entry,) = (await shop.http.get(LIST)).json()["data"]
    assert (entry["status"], entry["cancelled_at"]) == ("rolled_back", "2027-01-15T13:00:00Z")
    assert (await shop.http.get(f"{LIST}?status=ready")).json()["data"] == []


async def test_another_organisation_sees_none_of_them_and_no_shop(shop: OrdersShop) -> None:
    id = await shop.ready()
    other = await shop.world.caller(Tier.ENTERPRISE)
    async with shop.world.client(other.secret) as http:
        assert (await http.get(LIST)).json()["data"] == []
        foreign, unknown = await http.get(f"{LIST}?storefront={SLUG}"), await http.get(f"{LIST}?storefront=none-such")
        assert (foreign.status_code, without_request_id(foreign)) == (404, without_request_id(unknown))
        assert (await http.get(f"{LIST}?starting_after={id}")).status_code == 400
