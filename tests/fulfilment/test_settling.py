"""What evidence and persons say of an order afterwards: late eSIMs, settled rows, and metrics that show what waits."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from operations.ledger.esims import DrawnEsim
from operations.ledger.issuance import record_issued_esim
from operations.ledger.issuance_targets import FULFIL_ORDER, OrderTarget
from operations.ledger.reconciliation import IssuanceSettlement, apply_issuance_settlement
from operations.storefronts.sales.order_fulfilment import OrderDecision, fulfil_by_decision
from registry.errors import Conflict, NotFound
from storage.order_queue import review_order
from storage.orders import OrderRow
from tests.fulfilment.floor import BUYER, Floor
from transports.metrics import Metrics
from transports.signals import WorkerTally

OPERATOR = "help@fjord.test"
ESIM = DrawnEsim("8988303000000999999", "smdp.test", "K2-CODE", "LPA:1$smdp.test$K2-CODE", 1, 2, 3, "x")


async def late(floor: Floor, order: str) -> None:
    """The answer of the draw comes after all."""
    target, now = OrderTarget(floor.deps, order, floor.shop.me.organisation), floor.shop.world.clock.now()
    of = floor.shop.me.organisation
    await floor.deps.store.write(record_issued_esim, target=target, organisation=of, key=order, esim=ESIM, now=now)


async def decided(floor: Floor, order: str, settlement: IssuanceSettlement) -> None:
    """What `reseller issuance settle` does."""
    named = {"organisation": floor.shop.me.organisation, "key": order}
    await floor.deps.store.write(
        apply_issuance_settlement, deps=floor.deps, **named, settlement=settlement, now=floor.shop.world.clock.now()
    )


async def by_hand(floor: Floor, order: str, decision: OrderDecision) -> OrderRow:
    """What `reseller storefront settle` does."""
    now = floor.shop.world.clock.now()
    return await floor.deps.store.write(fulfil_by_decision, deps=floor.deps, order=order, decision=decision, by="ann", now=now)


async def metrics(floor: Floor) -> dict[str, float]:
    text = (await Metrics(floor.deps.store, floor.shop.world.clock, WorkerTally()).text()).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {"|".join((one.name, *one.labels.values())): one.value for one in samples if one.name.startswith("reseller_order")}


@pytest.mark.long
@pytest.mark.rule("3.6.5")
async def test_an_unknown_order_is_settled_by_a_person_as_delivered_or_not(on_both: Floor) -> None:
    floor = on_both
    orders = [await floor.paid(), await floor.paid()]
    floor.strike(times=2, drop_before=True)
    await floor.work()
    await decided(floor, orders[0], IssuanceSettlement("issued", "ann", ESIM))
    await decided(floor, orders[1], IssuanceSettlement("failed", "ann"))
    await floor.work(2, every=1)
    assert [await floor.end(order) for order in orders] == [("ready", None, None), ("failed", "issuance_failed", "done")]
    assert [await floor.is_settled_well(order) for order in orders] == [True, True]
    assert (await floor.told(), floor.refunds()) == ([ESIM.iccid], [1000])
    assert sorted(letter.to for letter in await floor.letters()) == [BUYER, BUYER, OPERATOR, OPERATOR]


@pytest.mark.long
async def test_an_esim_that_is_named_before_the_refund_was_begun_stops_it_for_a_person(on_both: Floor) -> None:
    floor = on_both
    order = await floor.paid()
    floor.strike(drop_before=True)
    await floor.work()
    await decided(floor, order, IssuanceSettlement("failed", "ann"))
    assert (await floor.row(order)).refund == "owed"
    await late(floor, order)
    assert await floor.end(order) == ("needs_review", "MANUAL_RECONCILIATION_REQUIRED", None)
    await floor.work(3, every=3600)
    assert floor.refunds() == []
    await decided(floor, order, IssuanceSettlement("issued", "ann", ESIM))
    row = await floor.row(order)
    assert (row.status, row.iccid, await floor.told(), await floor.is_settled_well(order)) == ("ready", ESIM.iccid, [ESIM.iccid], True)


async def test_an_esim_that_is_named_after_the_refund_is_never_the_buyers(on_both: Floor) -> None:
    floor = on_both
    order = await floor.paid()
    floor.strike(drop_before=True)
    await floor.work()
    await decided(floor, order, IssuanceSettlement("failed", "ann"))
    await floor.work(2, every=1)
    assert await floor.end(order) == ("failed", "issuance_failed", "done")
    await late(floor, order)
    ledger = await floor.ledger(order)
    assert ledger is not None and (ledger.state, ledger.replied) == ("manual_reconciliation_required", ESIM.iccid)
    assert (await floor.letters(OPERATOR))[-1].subject == f"An eSIM came too late for an order: {order}"
    await decided(floor, order, IssuanceSettlement("issued", "ann", ESIM))
    ledger, row = await floor.ledger(order), await floor.row(order)
    assert ledger is not None and (ledger.state, ledger.held) == ("issued", ESIM.iccid)
    assert (row.status, row.refund, row.iccid, row.esim, await floor.told()) == ("failed", "done", None, None, [])
    assert all(ESIM.code not in letter.text for letter in await floor.letters() if ESIM.code)


async def test_what_a_dead_process_may_have_sent_needs_review_once(floor: Floor) -> None:
    order = await floor.paid()
    floor.strike(drop_after=True)
    await floor.work()
    await floor.mourn()
    await floor.mourn()
    assert len(await floor.letters(OPERATOR)) == 1
    assert FULFIL_ORDER == "fulfil_storefront_order" and (await floor.row(order)).status == "needs_review"


async def test_a_person_has_the_money_of_what_has_no_ledger_row_sent_back_and_nothing_else(floor: Floor) -> None:
    order, other = await floor.paid(), await floor.paid()
    now, store = floor.shop.world.clock.now(), floor.deps.store
    with pytest.raises(Conflict):
        await by_hand(floor, order, "refund")
    with pytest.raises(Conflict):
        await by_hand(floor, order, "added")
    with pytest.raises(NotFound):
        await by_hand(floor, "ord_none", "refund")
    await store.write(review_order, order=order, code="OUTCOME_UNKNOWN", now=now)
    assert (await by_hand(floor, order, "refund")).status == "failed"
    floor.strike(drop_after=True)
    await floor.work(2, every=1)
    assert (await floor.end(order), await floor.end(other)) == (
        ("failed", "settled_by_operator", "done"),
        ("needs_review", "OUTCOME_UNKNOWN", None),
    )
    with pytest.raises(Conflict, match="issuance settle"):
        await by_hand(floor, other, "refund")
    with pytest.raises(Conflict, match="refund is done"):
        await by_hand(floor, order, "refund")
    notes = await floor.shop.notes()
    assert [(note.operation, note.principal, note.outcome) for note in notes if note.operation == "settle_storefront_order"] == [
        ("settle_storefront_order", "ann", "settled_refund")
    ]


async def test_a_person_says_that_a_top_up_is_there_or_goes_back(floor: Floor) -> None:
    bought = await floor.shop.buy()
    there, gone = await floor.shop.top_up(bought), await floor.shop.top_up(bought)
    floor.strike(times=2, drop_before=True)
    await floor.work(1, every=1)
    assert (await by_hand(floor, there, "added")).status == "ready"
    await by_hand(floor, gone, "refund")
    await floor.work(2, every=1)
    assert [await floor.end(top_up) for top_up in (there, gone)] == [("ready", None, None), ("failed", "settled_by_operator", "done")]


async def test_metrics_show_what_was_paid_and_has_not_ended(floor: Floor) -> None:
    order = await floor.paid()
    assert (await metrics(floor))["reseller_orders_unfinished|paid"] == 1
    floor.strike(drop_before=True)
    await floor.work()
    floor.shop.world.clock.advance(90)
    found = await metrics(floor)
    assert (found["reseller_orders_unfinished|needs_review"], found["reseller_order_unfinished_age_seconds"]) == (1, 90)
    await decided(floor, order, IssuanceSettlement("failed", "ann"))
    found = await metrics(floor)
    assert (found["reseller_order_refunds|owed"], found["reseller_order_refunds|failed"]) == (1, 0)
    await floor.work(2, every=1)
    assert set((await metrics(floor)).values()) == {0.0}
