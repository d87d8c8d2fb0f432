"""What the service keeps is counted once, when the processor says that it collected it, and whatever a payment says about itself."""

from itertools import permutations
from typing import Any

import pytest
from inline_snapshot import snapshot

from storage.engine.sql import Connection
from storage.invoices import Invoice, insert_invoice
from tests.billing_money.stage import PAYEE, START, MoneyStage, PlatformFee, charge_json, event_json, fee_json, with_account

KEPT_INVOICE: dict[str, Any] = {
    "revision": 0,
    "discarded": 0,
    "period": "per_1",
    "number": "INV-2027-000001",
    "status": "sent",
    "sending": 0,
    "currency": "EUR",
    "price_per_gb_cents": 300,
    "platform_fee_bps": 100,
    "subtotal_cents": 10_000,
    "tax_cents": 0,
    "platform_fee_cents": 100,
    "total_cents": 10_100,
    "lines": 1,
    "document": 0,
    "issued_at": START - 60,
    "created": START - 60,
    "updated": START - 60,
}


def keep_invoice(connection: Connection, *, organisation: str, account: str, id: str, at: str | None = None) -> None:
    """A sent invoice of ours that the processor collects."""
    own: dict[str, Any] = {"id": id, "organisation": organisation, "connect_account": account, "processor_invoice": at or f"in_{id}"}
    insert_invoice(connection, row=Invoice._make(({"selected": 0} | KEPT_INVOICE | own).get(name) for name in Invoice._fields))


async def test_a_fee_is_earned_once_whatever_is_told_first_and_however_often(stage: MoneyStage) -> None:
    for number, order in enumerate(permutations(range(2))):
        account, kept = f"acct_1Order{number}", f"fee_{number}"
        await with_account(stage.world, account)
        events = [
            event_json("charge.succeeded", charge_json(application_fee=kept, metadata={"order": "ord_1"}), account=account),
            event_json("application_fee.created", fee_json(kept, account=account), account=None),
        ]
        await stage.tell(*(events[place] for place in (*order, *order)))
    assert [(row.ref, row.month, row.currency, row.amount) for row in await stage.platform_fees()] == snapshot(
        [("fee_0", "2027-01", "EUR", 100), ("fee_1", "2027-01", "EUR", 100)]
    )


@pytest.mark.cases
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_an_invoices_fee_is_earned_once_whatever_its_payment_says(stage: MoneyStage, order: tuple[int, ...]) -> None:
    await stage.world.store.write(keep_invoice, organisation=stage.who.organisation, account=PAYEE, id="inv_1")
    paid = {"id": "in_inv_1", "object": "invoice", "status": "paid", "total": 10_100, "amount_paid": 10_100, "currency": "eur"}
    paid |= {"metadata": {"invoice": "inv_1"}, "status_transitions": {"paid_at": START}}
    events = [
        event_json("invoice.paid", paid),
        # The owner of a Standard account may write this onto it.
        event_json("charge.succeeded", charge_json(amount=10_100, application_fee="fee_1", metadata={"order": "ord_1"})),
        event_json("application_fee.created", fee_json(), account=None),
    ]
    await stage.tell(*(events[place] for place in order))
    assert await stage.platform_fees() == [PlatformFee("fee_1", stage.who.organisation, "2027-01", "EUR", 100)]


async def test_an_invoice_that_was_paid_past_the_processor_earns_no_fee(stage: MoneyStage) -> None:
    await stage.world.store.write(keep_invoice, organisation=stage.who.organisation, account=PAYEE, id="inv_1")
    paid = {"id": "in_inv_1", "object": "invoice", "status": "paid", "total": 10_100, "amount_paid": 0, "currency": "eur"}
    await stage.tell(event_json("invoice.paid", {**paid, "metadata": {"invoice": "inv_1"}}))
    assert await stage.platform_fees() == []


async def test_an_invoice_that_another_account_says_was_paid_is_not(stage: MoneyStage) -> None:
    await with_account(stage.world, "acct_1Alpine")
    await stage.world.store.write(keep_invoice, organisation=stage.who.organisation, account=PAYEE, id="inv_1")
    paid = {"id": "in_inv_1", "object": "invoice", "status": "paid", "total": 10_100, "amount_paid": 10_100, "currency": "eur"}
    await stage.tell(event_json("invoice.paid", {**paid, "metadata": {"invoice": "inv_1"}}, account="acct_1Alpine"))
    assert await stage.platform_fees() == []


@pytest.mark.cases
@pytest.mark.parametrize("backs", [(40, 100), (100, 40), (40, 40, 100), (100,)])
async def test_what_is_given_back_of_a_fee_is_taken_back_once(stage: MoneyStage, backs: tuple[int, ...]) -> None:
    sold = charge_json(application_fee="fee_1", metadata={"order": "ord_1"})
    await stage.tell(event_json("charge.succeeded", sold), event_json("application_fee.created", fee_json(), account=None))
    for number, back in enumerate(backs):
        told = event_json(
            "application_fee.refunded", fee_json(amount_refunded=back), account=None, created=START + back, id=f"evt_{number}"
        )
        await stage.tell(told)
    amounts = [row.amount for row in await stage.platform_fees()]
    assert sum(amounts) == 0
    assert all(row.ref.startswith("fee_1") for row in await stage.platform_fees())


async def test_what_a_connected_account_keeps_of_others_is_nothing_the_service_earned(stage: MoneyStage) -> None:
    """An account may be a platform itself, and the accounts that pay it may be connected to us as well."""
    await with_account(stage.world, "acct_1Platform")
    sold = charge_json(application_fee="fee_1", metadata={"order": "ord_1"})
    await stage.tell(
        event_json("charge.succeeded", sold), event_json("application_fee.created", fee_json(amount=5000), account="acct_1Platform")
    )
    assert (await stage.platform_fees(), (await stage.listed("fees"))["data"]) == ([], [])
