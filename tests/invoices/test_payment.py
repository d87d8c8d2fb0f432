"""What the processor says of a payment: believed of the account that it is about, once, and to the cent."""

import asyncio
from dataclasses import replace

import pytest

from clients.payments.records import ProcessorInvoice
from operations.ledger.payment_intake import take_invoice_payment
from storage.invoices import begin_invoice_sending, find_invoice
from tests.invoices.billing import Billing
from tests.invoices.test_sending import TO

NOW = 1_800_014_400


@pytest.fixture
async def account(bill: Billing) -> str:
    return await bill.world.connect_payments(bill.who)


@pytest.fixture
async def payment(bill: Billing, account: str) -> ProcessorInvoice:
    """An invoice that was sent, as the processor tells of it once it is paid."""
    made = await bill.draft()
    sent = (await bill.send(made["id"], **TO)).json()
    id, metadata = sent["payments_invoice_id"], {"invoice": made["id"]}
    return ProcessorInvoice(id, "paid", 1010, 1010, "USD", sent["payment_url"], NOW + 5, metadata)


async def take(bill: Billing, account: str, payment: ProcessorInvoice) -> bool:
    world = bill.world
    return await world.store.write(take_invoice_payment, deps=world.pipeline.deps, account=account, invoice=payment, now=world.clock.now())


async def status(bill: Billing, payment: ProcessorInvoice) -> str:
    return (await bill.read(payment.metadata["invoice"]))["status"]


async def test_a_payment_makes_the_invoice_paid(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    assert await take(bill, account, payment)
    found = await bill.read(payment.metadata["invoice"])
    assert (found["status"], found["paid_at"], found["issued_at"]) == ("paid", NOW + 5, NOW)


async def test_told_again_and_at_the_same_time_it_counts_once(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    assert await asyncio.gather(*(take(bill, account, payment) for _ in range(8))) == [True] * 8
    bill.world.clock.advance(60)
    assert await take(bill, account, replace(payment, paid_at=NOW + 60))
    found = await bill.read(payment.metadata["invoice"])
    assert (found["paid_at"], found["updated_at"]) == (NOW + 5, NOW)


@pytest.mark.cases
@pytest.mark.parametrize(
    "change",
    [
        {"total": 1009},
        {"total": 1011},
        {"currency": "EUR"},
        {"status": "open"},
        {"status": "void"},
        {"status": "uncollectible"},
        {"id": "in_another", "metadata": {}},
        {"id": "in_another"},
    ],
)
async def test_a_payment_of_something_else_pays_nothing(
    bill: Billing, account: str, payment: ProcessorInvoice, change: dict[str, object]
) -> None:
    assert not await take(bill, account, replace(payment, **change))
    assert await status(bill, payment) == "sent"


async def test_the_word_of_another_account_pays_nothing(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    other = await bill.world.connect_payments(await bill.world.caller())
    for stranger in (other, "acct_unknown", ""):
        assert not await take(bill, stranger, payment)
    assert (await status(bill, payment), account == other) == ("sent", False)


async def test_what_is_void_stays_void(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    await bill.void(payment.metadata["invoice"])
    assert not await take(bill, account, payment)
    assert await status(bill, payment) == "void"


async def test_a_draft_that_was_never_handed_over_cannot_be_paid(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    drafted = (await bill.create(price_per_gb_cents=250)).json()
    assert not await take(bill, account, replace(payment, id="in_forged", metadata={"invoice": drafted["id"]}))
    assert (await bill.read(drafted["id"]))["status"] == "draft"


async def test_one_that_is_being_handed_over_is_found_by_the_id_it_carries(bill: Billing, account: str, payment: ProcessorInvoice) -> None:
    store, drafted = bill.world.store, (await bill.create(price_per_gb_cents=250)).json()
    row = await store.read(find_invoice, invoice=drafted["id"], organisation=bill.who.organisation)
    assert row is not None
    row = await store.write(begin_invoice_sending, row=row, account=account, now=NOW)
    assert row is not None
    told = replace(payment, id="in_next", metadata={"invoice": drafted["id"]})
    assert not await take(bill, "acct_other", told)
    assert await take(bill, account, told)
    found = await bill.read(drafted["id"])
    assert (found["status"], found["payments_invoice_id"], found["issued_at"]) == ("paid", "in_next", NOW + 5)
