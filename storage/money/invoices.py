"""Invoices: their figures are written once, and what becomes of them is decided by conditional statements alone."""

from typing import NamedTuple, TypeAlias

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import InvoiceTable
from storage.statement import Command, Query, table

INVOICE = table(InvoiceTable)
Values: TypeAlias = dict[str, sa.ColumnElement[object]]
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "inv_" + "z" * 27


class Invoice(NamedTuple):
    """An invoice, whole. `sending`, `processor_invoice` and `revision`: see the table."""

    id: str
    organisation: str
    period: str
    number: str
    status: str
    sending: int
    revision: int
    discarded: int
    currency: str
    price_per_gb_cents: int
    platform_fee_bps: int
    subtotal_cents: int
    tax_cents: int
    platform_fee_cents: int
    total_cents: int
    lines: int
    selected: int
    connect_account: str | None
    processor_invoice: str | None
    pay_url: str | None
    recipient_name: str | None
    recipient_email: str | None
    notes: str | None
    document: int
    issued_at: int | None
    due_at: int | None
    paid_at: int | None
    created: int
    updated: int


COLUMNS = tuple(INVOICE.c[name] for name in Invoice._fields)
THIS = INVOICE.c.id == sa.bindparam("invoice")
OWN = THIS & (INVOICE.c.organisation == sa.bindparam("of"))
# What the recipient reads is given whole: a call that has read an older revision changes nothing.
UNCHANGED = (INVOICE.c.status == "draft") & (INVOICE.c.sending == 0) & (INVOICE.c.revision == sa.bindparam("seen"))
TEXTS: Values = {name: sa.bindparam(name) for name in ("recipient_name", "recipient_email", "notes", "due_at")}
CHANGED: Values = {"revision": INVOICE.c.revision + 1, "updated": sa.bindparam("now")}
UNDER_WAY = (INVOICE.c.status == "draft") & (INVOICE.c.sending == 1) & (INVOICE.c.revision == sa.bindparam("seen"))
KNOWN = sa.func.coalesce(INVOICE.c.processor_invoice, "")

INSERT = Command(sa.insert(INVOICE).values({name: sa.bindparam(name) for name in Invoice._fields}))
FIND = Query(Invoice, sa.select(*COLUMNS).where(THIS, INVOICE.c.organisation == sa.bindparam("organisation")))
LIST = Query(
    Invoice,
    sa.select(*COLUMNS)
    .where(INVOICE.c.organisation == sa.bindparam("organisation"), INVOICE.c.id < sa.bindparam("after"))
    .order_by(INVOICE.c.id.desc())
    .limit(sa.bindparam("most")),
)
EDIT = Query(Invoice, sa.update(INVOICE).where(OWN, UNCHANGED).values(**TEXTS, **CHANGED).returning(*COLUMNS))
ISSUE = Query(
    Invoice,
    sa.update(INVOICE)
    .where(OWN, UNCHANGED)
    .values(**TEXTS, **CHANGED, status="sent", issued_at=sa.bindparam("now"), document=1)
    .returning(*COLUMNS),
)
BEGIN = Query(
    Invoice,
    sa.update(INVOICE)
    .where(OWN, UNCHANGED)
    .values(**TEXTS, **CHANGED, sending=1, connect_account=sa.bindparam("account"))
    .returning(*COLUMNS),
)
RECORD = Command(
    sa.update(INVOICE)
    .where(THIS, UNDER_WAY, KNOWN.in_(["", sa.bindparam("named")]))
    .values(processor_invoice=sa.bindparam("named"), updated=sa.bindparam("now"))
)
FINISH = Query(
    Invoice,
    sa.update(INVOICE)
    .where(THIS, UNDER_WAY)
    .values(
        **CHANGED,
        status="sent",
        sending=0,
        issued_at=sa.bindparam("issued"),
        document=1,
        processor_invoice=sa.bindparam("named"),
        pay_url=sa.bindparam("pay_url"),
    )
    .returning(*COLUMNS),
)
CALL_OFF = Command(
    sa.update(INVOICE)
    .where(THIS, UNDER_WAY, sa.bindparam("named") == KNOWN)
    .values(
        **CHANGED,
        sending=0,
        connect_account=None,
        processor_invoice=None,
        discarded=INVOICE.c.discarded + sa.bindparam("removed", type_=sa.Integer),
    )
)
VOID = Query(
    Invoice,
    sa.update(INVOICE)
    .where(OWN, INVOICE.c.status.in_(["draft", "sent"]), INVOICE.c.sending == 0, INVOICE.c.processor_invoice.is_(None))
    .values(**CHANGED, status="void")
    .returning(*COLUMNS),
)
VOID_TAKEN_BACK = Query(
    Invoice,
    sa.update(INVOICE)
    .where(OWN, INVOICE.c.status.in_(["draft", "sent"]), KNOWN.in_(["", sa.bindparam("named")]))
    .values(**CHANGED, status="void", sending=0)
    .returning(*COLUMNS),
)
DOCUMENTED = Query(Invoice, sa.update(INVOICE).where(THIS).values(document=1).returning(*COLUMNS))
BY_PROCESSOR = Query(
    Invoice,
    sa.select(*COLUMNS).where(INVOICE.c.processor_invoice == sa.bindparam("named"), INVOICE.c.connect_account == sa.bindparam("account")),
)
HANDED_OVER = Query(
    Invoice,
    sa.select(*COLUMNS).where(
        THIS, INVOICE.c.connect_account == sa.bindparam("account"), INVOICE.c.sending == 1, INVOICE.c.processor_invoice.is_(None)
    ),
)
PAY = Query(
    Invoice,
    sa.update(INVOICE)
    .where(THIS, (INVOICE.c.status == "sent") | ((INVOICE.c.status == "draft") & (INVOICE.c.sending == 1)))
    .values(
        **CHANGED,
        status="paid",
        sending=0,
        paid_at=sa.bindparam("paid"),
        issued_at=sa.func.coalesce(INVOICE.c.issued_at, sa.bindparam("paid")),
        processor_invoice=sa.bindparam("named"),
        pay_url=sa.func.coalesce(INVOICE.c.pay_url, sa.cast(sa.bindparam("url"), sa.Text)),
    )
    .returning(*COLUMNS),
)


def insert_invoice(connection: Connection, *, row: Invoice) -> None:
    """Keep a new invoice."""
    connection.run(INSERT, **row._asdict())


def find_invoice(connection: Connection, *, invoice: str, organisation: str) -> Invoice | None:
    """One invoice of an organisation."""
    return connection.first(FIND, invoice=invoice, organisation=organisation)


def list_invoices(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[Invoice]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)


def texts_of(row: Invoice) -> dict[str, str | int | None]:
    """What a draft may still change."""
    return {"recipient_name": row.recipient_name, "recipient_email": row.recipient_email, "notes": row.notes, "due_at": row.due_at}


def edit_invoice(connection: Connection, *, row: Invoice, now: float) -> Invoice | None:
    """Give a draft the texts of `row`; nothing when it is no draft any more, or not the one that was read."""
    return connection.first(EDIT, invoice=row.id, of=row.organisation, seen=row.revision, **texts_of(row), now=int(now))


def issue_invoice(connection: Connection, *, row: Invoice, now: float) -> Invoice | None:
    """A draft becomes sent with the texts of `row`, without the processor; nothing when it was not as it was read."""
    return connection.first(ISSUE, invoice=row.id, of=row.organisation, seen=row.revision, **texts_of(row), now=int(now))


def begin_sending(connection: Connection, *, row: Invoice, account: str, now: float) -> Invoice | None:
    """A draft is about to be handed to the processor, with the texts of `row`; nothing when it was not as it was read."""
    return connection.first(BEGIN, invoice=row.id, of=row.organisation, seen=row.revision, **texts_of(row), account=account, now=int(now))


def record_processor_invoice(connection: Connection, *, row: Invoice, named: str, now: float) -> bool:
    """Keep the processor's id before anything is sent to anybody; False: this handing over was called off, so nothing may be sent."""
    return connection.run(RECORD, invoice=row.id, seen=row.revision, named=named, now=int(now)) == 1


def finish_sending(connection: Connection, *, row: Invoice, now: float) -> Invoice | None:
    """The processor has sent it, at the moment that its document says. Nothing when this handing over was ended: by another call, or
    the payment.
    """
    came = {"named": row.processor_invoice, "pay_url": row.pay_url, "issued": row.issued_at}
    return connection.first(FINISH, invoice=row.id, seen=row.revision, **came, now=int(now))


def mark_documented(connection: Connection, *, invoice: str) -> Invoice | None:
    """Its document is stored."""
    return connection.first(DOCUMENTED, invoice=invoice)


def call_off_sending(connection: Connection, *, row: Invoice, now: float, removed: bool = False) -> bool:
    """The processor surely sent nothing: a draft as before. Only for the handing over that `row` shows.

    `removed`: this try is given up for good, so that the next one makes another draft at the processor.
    """
    named = row.processor_invoice or ""
    return connection.run(CALL_OFF, invoice=row.id, seen=row.revision, named=named, removed=int(removed), now=int(now)) == 1


def void_invoice(connection: Connection, *, invoice: str, organisation: str, now: float) -> Invoice | None:
    """Void one that the processor has nothing of; nothing when it has, or when there is nothing to void."""
    return connection.first(VOID, invoice=invoice, of=organisation, now=int(now))


def void_taken_back(connection: Connection, *, row: Invoice, now: float) -> Invoice | None:
    """Void one whose invoice at the processor was taken back; nothing when it has another there by now, or is paid."""
    return connection.first(VOID_TAKEN_BACK, invoice=row.id, of=row.organisation, named=row.processor_invoice or "", now=int(now))


def find_at_processor(connection: Connection, *, account: str, processor_invoice: str, invoice: str) -> Invoice | None:
    """The invoice that an account's invoice at the processor is: by the processor's id, or by ours while it is being handed over."""
    found = connection.first(BY_PROCESSOR, named=processor_invoice, account=account)
    return found or connection.first(HANDED_OVER, invoice=invoice, account=account)


def pay_invoice(
    connection: Connection, *, invoice: str, processor_invoice: str, pay_url: str | None, paid_at: int, now: float
) -> Invoice | None:
    """Mark it paid; nothing when it is paid or void already. One that nobody heard was sent has been sent as well."""
    return connection.first(PAY, invoice=invoice, named=processor_invoice, url=pay_url, paid=paid_at, now=int(now))
