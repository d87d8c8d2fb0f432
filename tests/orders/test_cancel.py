"""cancel_storefront_order: recorded once, and nothing else changes."""

import httpx
import pytest
from inline_snapshot import snapshot

from tests.issuance.stage import at_once
from tests.orders.stage import OrdersShop
from tests.stage import without_request_id


async def cancel(shop: OrdersShop, id: str, http: httpx.AsyncClient | None = None) -> httpx.Response:
    return await (http or shop.server).post(f"/api/orders/{id}/cancel", json={})


@pytest.mark.rule("3.6.8")
@pytest.mark.rule("4.6.12")
async def test_a_second_call_answers_with_the_first_one_s_time(shop: OrdersShop) -> None:
    id = await shop.ready()
    before, asked = await shop.read(id), len(shop.world.sandbox.calls)
    shop.world.clock.advance(90)
    first = await cancel(shop, id)
    assert (first.status_code, first.json()) == (200, {**before, "cancelled_at": "2027-01-15T12:01:30Z"})
    shop.world.clock.advance(90)
    assert (await cancel(shop, id)).content == first.content
    assert shop.methods(asked) == [] and (await shop.stored(id)).refund is None
    assert (await shop.server.get(f"/api/orders/{id}/top-up-options")).json() == []


@pytest.mark.long
@pytest.mark.rule("3.6.8")
async def test_of_32_calls_at_once_one_is_recorded(shop: OrdersShop) -> None:
    id = await shop.ready()

    async def later() -> httpx.Response:
        shop.world.clock.advance(1)
        return await cancel(shop, id)

    answers = await at_once([later] * 32)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["cancelled_at"] == (await shop.read(id))["cancelled_at"]


@pytest.mark.parametrize("state", ["paid", "failed"])
async def test_any_paid_order_is_cancelled(shop: OrdersShop, state: str) -> None:
    id = await (shop.paid() if state == "paid" else shop.failed())
    said = await cancel(shop, id)
    assert (said.status_code, said.json()["status"], said.json()["cancelled_at"]) == (200, state, "2027-01-15T12:00:00Z")


async def test_an_unpaid_order_is_not_cancelled(shop: OrdersShop) -> None:
    id = await shop.order()
    said = await cancel(shop, id)
    assert said.status_code == 409
    assert without_request_id(said) == snapshot(
        {
            "error": "This order was not paid for, so there is nothing to cancel",
            "code": "order_not_paid",
            "hint": "Leave it: what is not paid for is not delivered, and is forgotten after 30 days",
        }
    )
    assert (await shop.stored(id)).cancelled_at is None


async def test_an_order_that_was_rolled_back_was_cancelled_by_that(shop: OrdersShop) -> None:
    id = await shop.ready()
    shop.world.clock.advance(60)
    back = (await shop.take_back(id)).json()
    shop.world.clock.advance(60)
    said = await cancel(shop, id)
    assert (said.status_code, said.json(), back["cancelled_at"]) == (200, back, "2027-01-15T12:01:00Z")


async def test_a_cancelled_order_may_be_rolled_back_and_keeps_its_time(shop: OrdersShop) -> None:
    id = await shop.ready()
    first = (await cancel(shop, id)).json()["cancelled_at"]
    shop.world.clock.advance(60)
    said = await shop.take_back(id)
    assert (said.json()["status"], said.json()["cancelled_at"]) == ("rolled_back", first)
