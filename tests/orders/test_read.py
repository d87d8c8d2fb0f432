"""get_storefront_order: the order itself, and nothing to whoever guesses."""

import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from tests.network_facts import DRAW
from tests.orders.stage import OrdersShop
from tests.stage import without_request_id


async def test_a_ready_order_holds_its_esim(shop: OrdersShop) -> None:
    id = await shop.ready()
    order = await shop.read(id)
    assert order.pop("id") == id
    assert order == snapshot(
        {
            "object": "storefront.order",
            "number": "onr_01mcckg2g0000000000000000c",
            "storefront": "fjord-travel",
            "plan": {"slug": "nordic-1gb", "name": "Nordic 1 GB", "data_mb": 1000, "validity_days": 30, "countries": ["DK", "NO", "SE"]},
            "status": "ready",
            "amount": 900,
            "currency": "EUR",
            "error": None,
            "esim": {
                "iccid": "8988303700000101276",
                "activation_code": "LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F",
                "qr_code": "LPA:1$smdp.spx-roaming.test$K2-EEHCUZ3-CKVPNUS278F",
                "smdp_address": "smdp.spx-roaming.test",
                "matching_id": "K2-EEHCUZ3-CKVPNUS278F",
            },
            "refund": None,
            "top_ups": [],
            "created": "2027-01-15T12:00:00Z",
            "paid_at": "2027-01-15T12:00:00Z",
            "ready_at": "2027-01-15T12:00:00Z",
            "cancelled_at": None,
        }
    )


async def test_an_order_that_is_not_paid_holds_nothing(shop: OrdersShop) -> None:
    order = await shop.read(await shop.order())
    assert (order["status"], order["esim"], order["paid_at"], order["ready_at"]) == ("pending_payment", None, None, None)


async def test_a_failed_order_says_why_and_what_goes_back(shop: OrdersShop) -> None:
    order = await shop.read(await shop.failed())
    assert (order["status"], order["error"], order["refund"], order["esim"]) == snapshot(
        (
            "failed",
            {"code": "no_inventory", "message": "The shop had no eSIM left, so what was paid is given back"},
            {"status": "pending", "amount": 900},
            None,
        )
    )


async def test_an_unknown_outcome_needs_review_and_shows_no_esim(shop: OrdersShop) -> None:
    id = await shop.paid()
    shop.trouble(NetworkFault(DRAW, drop_after=True))
    await shop.fulfil(id)
    order = await shop.read(id)
    assert (order["status"], order["error"], order["refund"], order["esim"]) == snapshot(
        (
            "needs_review",
            {"code": "OUTCOME_UNKNOWN", "message": "Whether the eSIM was issued is being found out; it is never issued twice"},
            None,
            None,
        )
    )


async def test_top_ups_that_were_paid_for_are_part_of_their_order(shop: OrdersShop) -> None:
    id = await shop.ready()
    await shop.order(top_up_of=id)
    top_up = await shop.paid(top_up_of=id)
    (shown,) = (await shop.read(id))["top_ups"]
    assert shown.pop("id") == top_up
    assert shown == snapshot(
        {
            "plan": {"slug": "nordic-1gb", "name": "Nordic 1 GB", "data_mb": 1000, "validity_days": 30, "countries": ["DK", "NO", "SE"]},
            "status": "paid",
            "amount": 900,
            "currency": "EUR",
            "created": "2027-01-15T12:00:00Z",
        }
    )


async def test_the_answer_is_for_nobody_s_cache(shop: OrdersShop) -> None:
    said = await shop.server.get(f"/api/orders/{await shop.order()}")
    assert said.headers["Cache-Control"] == "no-store"


async def test_the_id_is_in_no_log(open_door: OrdersShop) -> None:
    id = await open_door.opener(await open_door.ready())
    for way in ("", "/usage", "/top-up-options"):
        assert (await open_door.buyer.get(f"/api/orders/{id}{way}")).status_code == 200
    assert len(open_door.world.lines) > 3 and id not in str(open_door.world.lines)


@pytest.mark.rule("4.6.10")
async def test_without_a_key_the_id_is_all_that_is_asked_for(open_door: OrdersShop) -> None:
    id = await open_door.opener(await open_door.ready())
    assert (await open_door.buyer.get(f"/api/orders/{id}")).json()["status"] == "ready"


@pytest.mark.parametrize("way", ["", "/usage", "/top-up-options"])
async def test_whatever_is_no_order_s_id_is_answered_alike(open_door: OrdersShop, way: str) -> None:
    number = await open_door.ready()
    top_up, id = await open_door.paid(top_up_of=number), await open_door.opener(number)
    answers = [
        await open_door.buyer.get(f"/api/orders/{guess}{way}")
        for guess in ("ord_" + "0" * 26, "x", number, top_up, id.upper(), f"{id}%0A", f"{id}%20", "%F0%9F%98%80", "ord_" + "0" * 3000)
    ]
    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert len({str(without_request_id(answer)) for answer in answers}) == 1
    assert len({answer.headers["content-length"] for answer in answers}) == 1
    assert without_request_id(answers[0]) == snapshot(
        {
            "error": "There is no order with this id",
            "code": "not_found",
            "param": "orderId",
            "hint": "Take it from the link that the buyer got by mail",
        }
    )
