"""Events of invoices and of the payment account: each true change is one event, whoever tells of it first, and in whatever order."""

from collections.abc import AsyncGenerator
from functools import partial
from random import Random
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from operations.ledger.payment_intake import sync_payments
from registry.caller import Tier
from registry.clock import DAY_SECONDS
from registry.limits import Limits
from simulators.processor.disputes import open_dispute
from tests.billing_money.stage import (
    PAYEE,
    START,
    MoneyStage,
    Object,
    charge_json,
    dispute_json,
    event_json,
    open_money_stage,
    payout_json,
    refund_json,
)
from tests.events.event_rows import Data, logged_rows
from tests.invoices.billing import INVOICES, Billing
from tests.invoices.test_sending import TO, fail, mend
from tests.stage import opened, opened_on_both
from tests.world import World, open_world
from transports.worker.chores import overdue_chore

ORDER = "onr_01k0a8w7zv6q4k3m2n1p0r9s8t"

stage = opened_on_both(open_money_stage)
shop = opened(open_money_stage, connected=True)
world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


@pytest.fixture
async def bill(world: World) -> AsyncGenerator[Billing]:
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        yield Billing(world, caller, http)


async def happened(world: World, organisation: str, family: str, *, live: bool = False) -> list[tuple[str, Data]]:
    """The events of a family; none of them has anything of whoever pays."""
    rows = [row for row in await logged_rows(world.store, organisation) if row.type.startswith(family)]
    for row in rows:
        assert row.livemode == int(live)
        assert not any(private in row.data for private in ("@", "Fjord Ferries", "http", "ord_", "visa"))
    return [(row.type.removeprefix(family), orjson.loads(row.data)) for row in rows]


async def told(stage: MoneyStage) -> list[tuple[str, Data]]:
    return await happened(stage.world, stage.who.organisation, "payment.")


def word(type: str, about: Object, second: int) -> Object:
    return event_json(type, about, created=START + second)


@pytest.mark.long
async def test_refunds_disputes_and_payouts_are_told_when_they_change_and_not_when_they_are_told_again(stage: MoneyStage) -> None:
    charge = charge_json(metadata={"order": ORDER}, billing_details={"email": "ada@home.test"})
    foreign = charge_json("ch_2", metadata={"order": "ada@home.test"})
    words = [
        word("charge.succeeded", charge, 0),
        word("charge.succeeded", foreign, 0),
        word("refund.created", refund_json(status="pending"), 1),
        word("refund.updated", refund_json(), 2),
        word("refund.updated", refund_json(reason="duplicate"), 3),
        word("refund.failed", refund_json(status="failed", failure_reason="declined"), 4),
        word("refund.failed", refund_json("re_2", charge="ch_2", status="canceled"), 4),
        word("charge.dispute.created", dispute_json(status="warning_needs_response"), 5),
        word("charge.dispute.updated", dispute_json(), 6),
        word("charge.dispute.updated", dispute_json(status="under_review"), 7),
        word("charge.dispute.closed", dispute_json(status="lost"), 8),
        word("payout.created", payout_json(), 9),
        word("payout.paid", payout_json(status="paid"), 10),
        word("payout.failed", payout_json(status="failed", failure_code="account_closed"), 11),
    ]
    await stage.tell(*words)
    first = await told(stage)
    assert [(type, data["status"]) for type, data in first] == [
        ("refund_done", "succeeded"),
        ("refund_failed", "failed"),
        ("refund_failed", "canceled"),
        ("dispute_opened", "warning_needs_response"),
        ("dispute_opened", "needs_response"),
        ("dispute_closed", "lost"),
        ("payout_paid", "paid"),
        ("payout_failed", "failed"),
    ]
    named: Object = {"charge": "ch_1", "order": ORDER, "currency": "EUR"}
    assert first[0][1] == {"refund": "re_1", "amount": 1000, "status": "succeeded", "failure_reason": None, **named}
    assert (first[1][1]["failure_reason"], first[2][1]["order"]) == ("declined", None)
    disputed = {"dispute": "du_1", "amount": 10_000, "status": "lost", "reason": "fraudulent", "evidence_due_by": START + 604_800}
    assert first[5][1] == {**disputed, **named}
    paid = {"payout": "po_1", "amount": 5000, "currency": "EUR", "status": "failed", "automatic": False}
    assert first[7][1] == {**paid, "arrival_date": START + 86_400, "failure_code": "account_closed"}
    again = [{**each, "id": f"evt_again{place}"} for place, each in enumerate(words)] + words
    Random(7).shuffle(again)
    await stage.tell(*again)
    assert await told(stage) == first


async def test_an_account_that_takes_no_payments_any_more_is_told_once_each_time(stage: MoneyStage) -> None:
    def said(able: bool, second: int) -> Object:
        about = {"id": PAYEE, "object": "account", "type": "express", "charges_enabled": able, "payouts_enabled": able}
        return word("account.updated", {**about, "details_submitted": True, "default_currency": "eur"}, second)

    await stage.tell(said(True, 1), said(False, 2), {**said(False, 3), "id": "evt_3"}, said(True, 1), said(False, 2))
    assert await told(stage) == [("account_restricted", {"account": PAYEE})]
    await stage.tell(said(False, 0), said(True, 4), said(False, 3))
    assert len(await told(stage)) == 1
    await stage.tell(said(False, 5), word("account.application.deauthorized", {"id": "ca_1", "object": "application"}, 6))
    assert [type for type, _ in await told(stage)] == ["account_restricted"] * 2


async def test_a_refund_and_a_payout_of_our_own_are_told_once_by_answer_event_and_list(shop: MoneyStage) -> None:
    world = shop.world
    charge = await world.charge(shop.account, 10_000, "EUR", outcome="available")
    for _ in range(2):
        assert (await shop.refund("key", charge=charge, amount=1000)).status_code == 201
        assert (await shop.pay_out("monday", amount=2500, currency="EUR")).status_code == 201
    [payout] = shop.at_processor("payouts")
    assert [type for type, _ in await told(shop)] == ["refund_done"]
    await world.settle_payments()
    await world.ask_payments("POST", f"payouts/{payout.id}", {"account": shop.account, "status": "paid"})
    async with world.payments.turn(writes=True) as state:
        open_dispute(state, shop.account, charge)
        state.pending.clear()
        state.hooks.waiting.clear()
    for _ in range(2):
        await shop.sync()  # nobody told of the payout's end, and of the dispute
        world.clock.advance(60)
    assert sorted(type for type, _ in await told(shop)) == ["dispute_opened", "payout_paid", "refund_done"]


async def test_what_an_account_did_before_it_was_connected_or_long_ago_is_no_event(shop: MoneyStage) -> None:
    world = shop.world
    charges = [await world.charge(shop.account, 10_000, "EUR", outcome="available") for _ in range(2)]
    async with world.payments.turn(writes=True) as state:
        open_dispute(state, shop.account, charges[0])
        state.pending.clear()
        state.hooks.waiting.clear()
    await sync_payments(world.pipeline.deps, organisation=shop.who.organisation, account=shop.account, baseline=True)
    assert [len((await shop.listed(what))["data"]) for what in ("disputes", "charges")] == [1, 2] and await told(shop) == []
    async with world.payments.turn(writes=True) as state:
        open_dispute(state, shop.account, charges[1])
        state.pending.clear()
        state.hooks.waiting.clear()
    world.clock.advance(91 * DAY_SECONDS)
    await shop.sync()
    assert len((await shop.listed("disputes"))["data"]) == 2 and await told(shop) == []


def billed(made: Object, **more: Any) -> Data:
    named = {"invoice": made["id"], "number": made["invoice_number"], "period": made["period_id"]}
    return {**named, "total_cents": made["total_cents"], "currency": made["currency"], **more}


@pytest.mark.long
async def test_an_invoice_without_the_processor_is_created_sent_overdue_and_voided_once(bill: Billing) -> None:
    events = partial(happened, bill.world, bill.who.organisation, "invoice.", live=True)
    overdue, clock = overdue_chore(bill.world.pipeline.deps), bill.world.clock
    await bill.use(4_000_000_000)
    made, _ = [(await bill.create(key="bill", price_per_gb_cents=250)).json() for _ in range(2)]
    other = (await bill.create(price_per_gb_cents=250, **TO)).json()
    sent, *_ = [(await bill.send(made["id"], key=key)).json() for key in ("send", "send", "again")]
    assert await events() == [
        ("created", billed(made)),
        ("created", billed(other)),
        ("sent", billed(made, issued_at=sent["issued_at"], due_at=sent["due_at"])),
    ]
    clock.advance(30 * DAY_SECONDS)
    await overdue.run()
    assert len(await events()) == 3
    clock.advance(1)
    for _ in range(3):
        await overdue.run()
        clock.advance(60)
    assert (await events())[3:] == [("overdue", billed(made, due_at=sent["due_at"]))]
    for invoice in (made["id"], other["id"], made["id"]):
        path = f"{INVOICES}/{invoice}"
        token = (await bill.http.delete(path)).json().get("confirm_token", "")
        assert (await bill.http.delete(path, headers={"X-Confirm-Token": token})).json()["status"] == "void"
    assert (await events())[4:] == [("voided", billed(made)), ("voided", billed(other))]


@pytest.mark.long
async def test_an_invoice_of_the_processor_is_sent_and_paid_once_and_is_not_overdue(bill: Billing) -> None:
    world, events = bill.world, partial(happened, bill.world, bill.who.organisation, "invoice.")
    account = await world.connect_payments(bill.who)
    made = await bill.draft()
    await fail(world, "error", "*/send", after=True)
    assert (await bill.send(made["id"], **TO)).json()["code"] == "OUTCOME_UNKNOWN"
    await mend(world)
    sent, _ = [(await bill.send(made["id"], **TO)).json() for _ in range(2)]
    due = {"issued_at": sent["issued_at"], "due_at": sent["due_at"]}
    assert await events() == [("created", billed(made)), ("sent", billed(made, **due))]
    await world.ask_payments("POST", f"invoices/{sent['payments_invoice_id']}", {})
    await world.ask_payments("POST", "hooks", {"double": True})
    await world.settle_payments()
    await sync_payments(world.pipeline.deps, organisation=bill.who.organisation, account=account)
    paid = await bill.read(made["id"])
    world.clock.advance(31 * DAY_SECONDS)
    await overdue_chore(world.pipeline.deps).run()
    assert (await events())[2:] == [("paid", billed(made, paid_at=paid["paid_at"]))]


async def test_an_invoice_that_was_paid_before_anybody_heard_that_it_was_sent_is_both(bill: Billing) -> None:
    world, events = bill.world, partial(happened, bill.world, bill.who.organisation, "invoice.")
    await world.connect_payments(bill.who)
    made = await bill.draft()
    await fail(world, "error", "*/send", after=True)
    assert (await bill.send(made["id"], **TO)).json()["code"] == "OUTCOME_UNKNOWN"
    await mend(world)
    [invoice] = [row for book in world.payments.state.books.values() for row in book.invoices.values()]
    await world.ask_payments("POST", f"invoices/{invoice.id}", {})
    await world.settle_payments()
    assert [type for type, _ in await events()] == ["created", "sent", "paid"]
    assert (await bill.send(made["id"], **TO)).json()["code"] == "invoice_not_editable"
    assert [type for type, _ in await events()] == ["created", "sent", "paid"]


async def test_an_invoice_that_was_due_long_ago_is_not_told_of_now(bill: Billing) -> None:
    made = await bill.draft()
    await bill.send(made["id"])
    bill.world.clock.advance(61 * DAY_SECONDS)
    await overdue_chore(bill.world.pipeline.deps).run()
    assert [type for type, _ in await happened(bill.world, bill.who.organisation, "invoice.", live=True)] == ["created", "sent"]
