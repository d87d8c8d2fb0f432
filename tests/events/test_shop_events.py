"""Events of orders and top-ups: each true change of one is one event, whoever makes it and however often it is told."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from operations.ledger.payment_intake import sync_payments
from operations.ledger.reconciliation import IssuanceSettlement
from simulators.network.faults import NetworkFault
from simulators.processor.disputes import open_dispute
from storage.order_queue import retry_refund
from storage.package_adaptations import set_adapted
from tests.events.event_rows import Data, logged_rows
from tests.fulfilment.floor import BUYER, HOUR, MINUTE, Floor, open_floor
from tests.fulfilment.test_payment import on_the_wire, order_session, tell
from tests.fulfilment.test_settling import ESIM, decided, late
from tests.issuance.test_adaptation import SET_LIMITS
from tests.stage import opened, opened_on_both
from tests.top_ups.counter import ADD

floor = opened(open_floor)
on_both = opened_on_both(open_floor)


async def happened(floor: Floor, family: str = "order.") -> list[tuple[str, Data]]:
    """The events of a family, after all of it was told again: by events of the processor, by its lists, and by the worker."""
    world = floor.shop.world
    for id in list(world.payments.state.events):
        await world.ask_payments("POST", "hooks", {"redeliver": id})
    await world.ask_payments("POST", "hooks", {"double": True})
    await floor.shop.told()
    await sync_payments(floor.deps, organisation=floor.shop.me.organisation, account=floor.shop.payee)
    await floor.work(2, every=1)
    rows = [row for row in await logged_rows(world.store, floor.shop.me.organisation) if row.type.startswith(family)]
    for row in rows:
        assert row.livemode == 0 and not any(secret in row.data for secret in (BUYER, "B. Uyer", "ord_", "LPA:"))
    return [(row.type.removeprefix(family), orjson.loads(row.data)) for row in rows]


def sold(order: str, top_up: str | None = None, **more: Any) -> Mapping[str, Any]:
    return {"order": order, "top_up": top_up, "storefront": "fjord", "plan": "nordic", "amount": 1000, "currency": "EUR", **more}


@pytest.mark.long
async def test_an_order_and_its_top_up_are_told_from_the_beginning_to_the_end_once(on_both: Floor) -> None:
    floor = on_both
    order = await floor.paid()
    await floor.work(2)
    top_up = await floor.shop.top_up(order)
    await floor.work(2)
    iccid = (await floor.row(order)).iccid
    assert await happened(floor) == [
        ("created", sold(order)),
        ("paid", sold(order, paid_amount=1000)),
        ("ready", sold(order, iccid=iccid)),
        ("created", sold(order, top_up)),
        ("paid", sold(order, top_up, paid_amount=1000)),
        ("top_up_ready", sold(order, top_up, iccid=iccid)),
    ]


async def test_an_order_that_nobody_pays_is_created_and_no_more(floor: Floor) -> None:
    begun = await floor.shop.begin()
    assert await happened(floor) == [("created", sold(begun.order))]
    await floor.at_processor("error", "/v1/checkout/sessions", times=20)
    with pytest.raises(Exception, match="processor"):
        await floor.shop.begin()
    await floor.calm()
    assert await happened(floor) == [("created", sold(begun.order))]


@pytest.mark.long
async def test_an_order_that_fails_is_refunded_and_each_is_told_once(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(code=6)
    await floor.work(3, every=1)
    assert (await happened(floor))[2:] == [("failed", sold(order, code="no_inventory")), ("refunded", sold(order))]
    [(type, data)] = await happened(floor, "payment.")
    assert (type, data["order"], data["amount"], data["charge"]) == ("refund_done", order, 1000, await floor.charge(order))


@pytest.mark.long
@pytest.mark.parametrize("way", ["event", "worker"])
async def test_a_refund_whose_answer_was_lost_is_told_by_whoever_learns_of_it_first(floor: Floor, way: str) -> None:
    order = await floor.paid()
    floor.strike(code=6)
    await floor.at_processor("closed", after=True, times=99)
    await floor.work(2, every=1)
    assert (await floor.row(order)).refund == "unknown"
    await floor.calm()
    await (floor.shop.told() if way == "event" else floor.work(2, every=MINUTE))
    assert (await happened(floor))[2:] == [("failed", sold(order, code="no_inventory")), ("refunded", sold(order))]
    assert [type for type, _ in await happened(floor, "payment.")] == ["refund_done"]


async def test_a_refund_that_the_processor_refuses_is_told_and_again_only_when_a_person_had_it_tried(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(code=6)
    async with floor.shop.world.payments.turn(writes=True) as state:
        open_dispute(state, floor.shop.payee, await floor.charge(order))
    await floor.work(3, every=HOUR)
    assert (await floor.row(order)).refund == "failed"
    refused, opened = sorted(await happened(floor, "payment."), key=lambda event: event[0], reverse=True)
    assert refused[0] == "refund_failed" and (refused[1]["refund"], refused[1]["order"], refused[1]["status"]) == (None, order, "refused")
    assert opened[0] == "dispute_opened" and opened[1]["order"] == order
    assert await floor.deps.store.write(retry_refund, order=order, now=floor.shop.world.clock.now())
    await floor.work(2, every=1)
    assert sorted(type for type, _ in await happened(floor, "payment.")) == ["dispute_opened", "refund_failed", "refund_failed"]
    assert [type for type, _ in await happened(floor)][2:] == ["failed"]


async def test_what_was_paid_otherwise_than_agreed_failed_and_was_not_paid(floor: Floor) -> None:
    order = (await floor.shop.begin()).order
    await floor.shop.pay(order)
    row, real = await floor.row(order), await order_session(floor, order)
    page = on_the_wire(row.session or "", payment_intent=real.payment_intent, currency="sek")
    assert await tell(floor, "evt_1", "checkout.session.completed", page) == 200
    await floor.shop.told()
    await floor.work(2, every=1)
    assert (await happened(floor))[1:] == [("failed", sold(order, code="payment_mismatch")), ("refunded", sold(order))]


@pytest.mark.long
async def test_an_order_of_unknown_outcome_needs_review_once_and_is_told_what_came_of_it(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(drop_before=True)
    await floor.work()
    await floor.mourn()
    assert (await happened(floor))[2:] == [("needs_review", sold(order, code="OUTCOME_UNKNOWN"))]
    await decided(floor, order, IssuanceSettlement("failed", "ann"))
    await late(floor, order)
    await decided(floor, order, IssuanceSettlement("issued", "ann", ESIM))
    assert [type for type, _ in await happened(floor)][2:] == ["needs_review", "failed", "needs_review", "ready"]
    assert (await happened(floor))[-1] == ("ready", sold(order, iccid=ESIM.iccid))


async def test_a_top_up_of_unknown_outcome_needs_review_once_and_is_ready_when_it_is_seen(floor: Floor) -> None:
    order, top_up = await floor.shop.buy_both()
    floor.shop.trouble(NetworkFault(ADD, drop_after=True))
    await floor.work()
    floor.shop.world.sandbox.faults.clear()
    for _ in range(3):
        await floor.shop.live_on(31)
    iccid = (await floor.row(order)).iccid
    assert (await happened(floor))[5:] == [
        ("needs_review", sold(order, top_up, code="OUTCOME_UNKNOWN")),
        ("top_up_ready", sold(order, top_up, iccid=iccid)),
    ]


@pytest.mark.long
async def test_a_top_up_that_is_not_set_to_what_was_sold_needs_review_once(floor: Floor) -> None:
    order = await floor.shop.buy()
    await floor.shop.world.store.write(set_adapted, offer=floor.shop.plans["nordic"].id, adapt=True)
    top_up = await floor.shop.top_up(order)
    floor.shop.trouble(NetworkFault(SET_LIMITS, drop_before=True), NetworkFault(SET_LIMITS, code=14, times=None))
    for _ in range(4):
        await floor.work(every=600)
    assert (await happened(floor))[5:] == [("needs_review", sold(order, top_up, code="package_not_adapted"))]
    floor.shop.world.sandbox.faults.clear()
    await floor.work(2, every=HOUR)
    assert [type for type, _ in await happened(floor)][5:] == ["needs_review", "top_up_ready"]
