"""What is told of invoices: events, written in the transaction of what they tell.

That the day to pay by has passed is a transaction of its own, once per invoice, by the worker.
"""

from typing import TypeVar

from operations.deps import Deps
from operations.event_types.declaration import EventType, new_event
from operations.event_types.invoice import INVOICE_CREATED, INVOICE_OVERDUE, INVOICE_PAID, INVOICE_SENT, INVOICE_VOIDED, InvoiceEventData
from registry.clock import DAY_SECONDS
from storage.connect_accounts import find_connect_account
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.invoices import Invoice, list_overdue_invoices, note_overdue_invoice

InvoiceDataT = TypeVar("InvoiceDataT", bound=InvoiceEventData)


def log_invoice_event(connection: Connection, deps: Deps, event_type: EventType[InvoiceDataT], data: InvoiceDataT, row: Invoice) -> None:
    """Writes an event of the invoice `row` in the transaction that makes it true."""
    write_invoice_event(connection, deps, event_type, data, row, live=is_live_invoice(connection, deps, row))


def write_invoice_event(
    connection: Connection, deps: Deps, event_type: EventType[InvoiceDataT], data: InvoiceDataT, row: Invoice, *, live: bool
) -> None:
    event = new_event(event_type, data, organisation=row.organisation, ids=deps.ids, now=deps.clock.now(), livemode=live)
    log_event(connection, event=event)


def is_live_invoice(connection: Connection, deps: Deps, row: Invoice) -> bool:
    """Choice: an invoice of an organisation without an account at the payment processor is never a test: it bills somebody."""
    if deps.payments.live:
        return True
    return row.connect_account is None and find_connect_account(connection, organisation=row.organisation) is None


def invoice_event_data(row: Invoice) -> InvoiceEventData:
    """What every event of the invoice `row` says; whom it is made out to is no part of it."""
    return {
        "invoice": row.id,
        "number": row.number,
        "period": row.period,
        "total_cents": row.total_cents,
        "currency": row.currency,
    }


def log_invoice_created(connection: Connection, deps: Deps, row: Invoice, *, account: str | None) -> None:
    """Logs that the draft `row` was made. `account`: its organisation's at the payment processor, which a draft does not name."""
    live = deps.payments.live or account is None
    write_invoice_event(connection, deps, INVOICE_CREATED, invoice_event_data(row), row, live=live)


def log_invoice_sent(connection: Connection, deps: Deps, row: Invoice) -> None:
    """Logs that `row` has left draft; told where its state changed."""
    data = invoice_event_data(row)
    log_invoice_event(
        connection, deps, INVOICE_SENT, {**data, "issued_at": row.issued_at or int(deps.clock.now()), "due_at": row.due_at}, row
    )


def log_invoice_paid(connection: Connection, deps: Deps, row: Invoice) -> None:
    """Logs that the payment processor calls `row` paid."""
    data = invoice_event_data(row)
    log_invoice_event(connection, deps, INVOICE_PAID, {**data, "paid_at": row.paid_at or int(deps.clock.now())}, row)


def log_invoice_voided(connection: Connection, deps: Deps, row: Invoice) -> None:
    """Logs that nobody owes `row` any more."""
    log_invoice_event(connection, deps, INVOICE_VOIDED, invoice_event_data(row), row)


OVERDUE_NEWS_SECONDS = 30 * DAY_SECONDS
"""Choice: an invoice that was due longer ago is no news, such as all that were never paid when this was first looked for."""
OVERDUE_INVOICES_AT_ONCE = 100


async def tell_overdue_invoices(deps: Deps) -> int:
    """Logs invoice.overdue for sent invoices that were due before now; how many. At most 100 a call, and each for once.

    Choice: an invoice that is sent has a day to pay by always, 30 days after it was sent where nobody said otherwise. It is overdue from
    the second after that moment. It is looked at by the clock alone, without asking the payment processor: what was paid there and not
    told of yet may be called overdue, and is called paid a moment later.
    """
    if not await deps.store.read(overdue_invoices, now=deps.clock.now()):
        return 0
    return await deps.store.write(log_overdue_invoices, deps=deps, now=deps.clock.now())


def overdue_invoices(connection: Connection, *, now: float) -> list[Invoice]:
    since, until = int(now) - OVERDUE_NEWS_SECONDS, int(now)
    return list_overdue_invoices(connection, since=since, until=until, most=OVERDUE_INVOICES_AT_ONCE)


def log_overdue_invoices(connection: Connection, *, deps: Deps, now: float) -> int:
    told = 0
    for row in overdue_invoices(connection, now=now):
        if note_overdue_invoice(connection, invoice=row.id, now=now):
            log_invoice_event(connection, deps, INVOICE_OVERDUE, {**invoice_event_data(row), "due_at": row.due_at or 0}, row)
            told += 1
    return told
