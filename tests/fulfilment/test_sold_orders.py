"""get_sold_order: the way of an order as its seller sees it, with what a worker and the mailer did."""

from typing import Any

import pytest

from registry.caller import Tier
from tests.fulfilment.floor import Floor
from tests.network_facts import HOUR, MINUTE
from tests.top_ups.counter import BUYER

NOON = "2027-01-15T12:00:00Z"


async def sold(floor: Floor, order: str) -> dict[str, Any]:
    async with floor.shop.world.client(floor.shop.me.secret) as http:
        said = await http.get(f"/v1/storefronts/orders/{order}")
    assert said.status_code == 200, said.text
    assert BUYER not in said.text and "ord_" not in said.text and "LPA" not in said.text
    return said.json()


def words(way: list[dict[str, Any]]) -> list[str]:
    return [step["step"] for step in way]


@pytest.mark.long
async def test_a_seller_sees_the_way_of_an_order_up_to_its_mail(on_both: Floor) -> None:
    floor, clock = on_both, on_both.shop.world.clock
    order = (await floor.shop.begin()).order
    assert words((await sold(floor, order))["way"]) == ["created"]
    clock.advance(MINUTE)
    await floor.shop.pay(order)
    await floor.shop.told()
    clock.advance(1)
    await floor.work()
    body, row = await sold(floor, order), await floor.row(order)
    waiting = {"step": "mail_ready", "at": "2027-01-15T12:01:01Z", "mail": {"status": "waiting", "sent_at": None}}
    assert [(step["step"], step["at"]) for step in body["way"]] == [
        ("created", NOON),
        ("paid", "2027-01-15T12:01:00Z"),
        ("esim_asked_for", "2027-01-15T12:01:01Z"),
        ("esim_issued", "2027-01-15T12:01:01Z"),
        ("ready", "2027-01-15T12:01:01Z"),
        ("mail_ready", "2027-01-15T12:01:01Z"),
    ]
    assert body["way"][-1] == waiting
    assert (body["id"], body["status"], body["iccid"], body["paid_amount"]) == (order, "ready", row.iccid, 1000)
    assert body["issuance"]["state"] == "issued" and body["issuance"]["package_id"] == row.package_id
    clock.advance(5)
    await floor.letters()
    assert (await sold(floor, order))["way"][-1] == {**waiting, "mail": {"status": "sent", "sent_at": "2027-01-15T12:01:06Z"}}
    top_up = await floor.shop.begin_top_up(order)
    await floor.shop.pay(top_up.order)
    await floor.shop.told()
    await floor.work()
    (added,) = (await sold(floor, order))["top_ups"]
    assert (added["id"], added["status"], words(added["way"])) == (top_up.order, "ready", ["created", "paid", "ready", "mail_added"])


async def test_a_seller_sees_when_an_order_failed_and_when_its_money_went_back(floor: Floor) -> None:
    order, clock = await floor.paid(), floor.shop.world.clock
    floor.strike(code=6)
    await floor.at_processor("error", times=1)
    await floor.work()
    clock.advance(HOUR)
    await floor.work()
    body = await sold(floor, order)
    assert (body["status"], body["error"]["code"], body["refund"]) == ("failed", "no_inventory", {"status": "succeeded", "amount": 1000})
    failed, mailed, refunded = body["way"][-3:]
    assert (failed["step"], mailed["step"], refunded["step"]) == ("failed", "mail_failed", "refunded")
    assert (failed["at"], refunded["at"]) == (NOON, "2027-01-15T13:00:00Z") and body["iccid"] is None


async def test_a_seller_sees_an_order_that_nobody_knows_the_outcome_of(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(drop_after=True)
    await floor.work(2)
    body = await sold(floor, order)
    assert (body["status"], body["issuance"]["state"]) == ("needs_review", "outcome_unknown")
    assert [word for word in words(body["way"]) if word == "needs_review"] == ["needs_review"]


async def test_another_seller_s_order_is_not_found_like_one_that_never_was(floor: Floor) -> None:
    order = await floor.paid()
    stranger = await floor.shop.world.caller(Tier.ENTERPRISE)
    async with floor.shop.world.client(stranger.secret) as http:
        answers = [await http.get(f"/v1/storefronts/orders/{number}") for number in (order, "onr_none")]
    foreign, unknown = [(said.status_code, {**said.json(), "request_id": ""}) for said in answers]
    assert foreign == unknown and foreign[0] == 404 and foreign[1]["param"] == "number"
