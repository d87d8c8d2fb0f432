"""Invoices with their numbers and documents: their figures are written once, and their states change by conditional statements alone.

Numbers are one count per organisation and year, without gaps. The PDF of an invoice is stored once, when it leaves draft.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids, id_bounds
from storage.engine.drivers import Value
from storage.engine.sql import (
    CLUSTERED,
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    StatementBuild,
    TableDescription,
    all_rows,
    bound_list,
    changes_one,
    first_row,
    insert_once,
    one_row,
    pack_rows,
    unindexed,
    writes,
)


class Invoice(NamedTuple):
    """An invoice, whole. `sending`, `processor_invoice` and `revision`: see the table."""

    id: Key
    organisation: str
    period: Annotated[str, Field(index=True)]
    number: str
    status: str
    sending: int
    revision: int
    discarded: int
    currency: str
    price_per_gb_cents: BigInt
    platform_fee_bps: int
    subtotal_cents: BigInt
    tax_cents: BigInt
    platform_fee_cents: BigInt
    total_cents: BigInt
    lines: int
    selected: int
    connect_account: str | None
    processor_invoice: Annotated[str, Field(unique=True)] | None
    pay_url: str | None
    recipient_name: str | None
    recipient_email: str | None
    notes: str | None
    document: int
    issued_at: BigInt | None
    due_at: BigInt | None
    paid_at: BigInt | None
    created: BigInt
    updated: BigInt


class InvoiceTable(TableDescription, row=Invoice, table=True):
    """An invoice. Its figures never change. `sending`: it is being handed to the processor, or nobody knows whether it was.

    `processor_invoice` is the processor's id for it, in `connect_account`: known before it is sent there. `pay_url` is where its
    recipient pays. `revision` counts what changed of a draft, so that what is sent is what was read; `discarded` the tries
    at the processor that were given up for good. `selected` is 1 where it bills some of the month's SIMs: what such an invoice bills
    is on no other one.
    """

    __table_args__ = (
        sa.Index("invoice_organisation", "organisation", "id", unique=True),
        sa.Index("invoice_of_status", "organisation", "status", "id"),
        sa.Index("invoice_of_period", "organisation", "period", "id"),
        sa.Index("invoice_due", "due_at", sqlite_where=sa.text("status = 'sent'")),
    )


class InvoiceDocumentTable(TableDescription, table=True):
    """The PDF of an invoice, made once when it left draft."""

    invoice: str = Field(primary_key=True)
    content: bytes
    sha256: str
    created: BigInt


class InvoiceNumberTable(TableDescription, table=True):
    """The last number an organisation gave in a year; taken in the transaction of the invoice, so that none is left out."""

    organisation: str = Field(primary_key=True)
    year: int = Field(primary_key=True)
    last: int


class OverdueInvoiceTable(TableDescription, table=True):
    """An invoice whose day to pay by passed while it was sent and not paid, and when that was told, Unix seconds. Once, for ever."""

    invoice: str = Field(primary_key=True)
    told: BigInt
    __table_args__ = CLUSTERED


class InvoicePeriodRow(NamedTuple):
    """A month, YYYYMM in UTC. `invoiced`: see the table."""

    id: Key
    organisation: str
    month: int
    invoiced: int
    created: BigInt


class InvoicePeriodTable(TableDescription, row=InvoicePeriodRow, table=True):
    """A month of an organisation that has records. Open or closed is the clock's to say.

    `invoiced` is 0 until an invoice was made for it, and 2 while all that were made are of the whole month. 1: there may be others, which
    bill some of its SIMs; an older program wrote 1 for every invoice.
    """

    __table_args__ = (sa.Index("invoice_period_month", "organisation", "month", unique=True),)


INVOICE = InvoiceTable.table

ColumnValues: TypeAlias = dict[str, object]

INVOICE_COLUMNS = tuple(INVOICE.c[name] for name in Invoice._fields)

THIS_INVOICE = INVOICE.c.id == sa.bindparam("invoice")

OWN_INVOICE = THIS_INVOICE & (INVOICE.c.organisation == sa.bindparam("organisation"))

INVOICE_CHANGE: ColumnValues = {"revision": INVOICE.c.revision + 1, "updated": sa.bindparam("now")}

KNOWN_PROCESSOR_INVOICE = sa.func.coalesce(INVOICE.c.processor_invoice, "")

FIND_BY_PROCESSOR = Query(
    Invoice,
    lambda _: sa.select(*INVOICE_COLUMNS).where(
        INVOICE.c.processor_invoice == sa.bindparam("named"), INVOICE.c.connect_account == sa.bindparam("account")
    ),
)

FIND_SENDING = Query(
    Invoice,
    lambda _: sa.select(*INVOICE_COLUMNS).where(
        THIS_INVOICE, INVOICE.c.connect_account == sa.bindparam("account"), INVOICE.c.sending == 1, INVOICE.c.processor_invoice.is_(None)
    ),
)


@writes
def insert_invoice(*, row: Invoice) -> sa.Executable:
    return sa.insert(INVOICE).values(row._asdict())


@first_row(Invoice)
def find_invoice(*, invoice: str, organisation: str) -> sa.Executable:
    return sa.select(*INVOICE_COLUMNS).where(THIS_INVOICE, INVOICE.c.organisation == organisation)


@first_row(Invoice)
def hold_invoice(*, invoice: str, organisation: str) -> sa.Executable:
    """The same, for a transaction that goes on to change it: nobody else does so meanwhile."""
    return sa.select(*INVOICE_COLUMNS).where(THIS_INVOICE, INVOICE.c.organisation == organisation).with_for_update(key_share=True)


class InvoiceFilter(NamedTuple):
    """Which invoices; None: whatever it is. `since` is included, `until` is not: when they were made, Unix seconds.

    `recipient`: a part of the name or the address of who is billed, in any case of its letters.
    """

    status: str | None = None
    period: str | None = None
    since: float | None = None
    until: float | None = None
    recipient: str | None = None


class BilledCustomer(NamedTuple):
    """Whom an invoice is to."""

    id: str
    recipient_name: str | None
    recipient_email: str | None


CUSTOMERS_AT_ONCE = 1000


def filtered_invoices(columns: Sequence[sa.ColumnElement[object]], names: frozenset[str]) -> sa.Executable:
    """The newest invoices with ids from one to before another that have what `names` says, of `status` and `period`. An index has those of
    each status, and of each month, in this order; of one month there are few, so that both together are looked up by the month."""
    bounds = [INVOICE.c.id >= sa.bindparam("above", type_=sa.Text), INVOICE.c.id < sa.bindparam("below", type_=sa.Text)]
    if "period" in names:
        bounds.append(INVOICE.c.period == sa.bindparam("period", type_=sa.Text))
    if "status" in names:
        status = INVOICE.c.status if "period" not in names else unindexed(INVOICE.c.status)
        bounds.append(status == sa.bindparam("status", type_=sa.Text))
    asked = sa.select(*columns).where(INVOICE.c.organisation == sa.bindparam("organisation", type_=sa.Text), *bounds)
    return asked.order_by(INVOICE.c.id.desc()).limit(sa.bindparam("most", type_=sa.Integer))


@lru_cache
def invoice_page(names: frozenset[str]) -> Query[Invoice]:
    return Query(Invoice, filtered_invoices(INVOICE_COLUMNS, names))


@lru_cache
def billed_customers(names: frozenset[str]) -> Query[BilledCustomer]:
    return Query(BilledCustomer, filtered_invoices([INVOICE.c[name] for name in BilledCustomer._fields], names))


INVOICES_NAMED = Query(
    Invoice,
    lambda dialect: (
        sa.select(*INVOICE_COLUMNS)
        .where(INVOICE.c.id.in_(bound_list(dialect, "ids")), INVOICE.c.organisation == sa.bindparam("organisation"))
        .order_by(INVOICE.c.id.desc())
    ),
)


def list_invoices(connection: Connection, *, organisation: str, asked: InvoiceFilter, after: str | None, most: int) -> list[Invoice]:
    """At most `most` invoices that fit, behind the id `after`, newest first."""
    above, below = id_bounds("inv_", asked.since, asked.until, after)
    given: dict[str, Value] = {name: value for name in ("status", "period") if (value := getattr(asked, name)) is not None}
    if asked.recipient is None:
        return connection.all(invoice_page(frozenset(given)), **given, organisation=organisation, above=above, below=below, most=most)
    found, part = list[str](), asked.recipient.casefold()
    # Choice: names and addresses are looked through, newest first: no index finds a part of a text, in both databases and any letters.
    while len(found) < most:
        query = billed_customers(frozenset(given))
        rows = connection.all(query, **given, organisation=organisation, above=above, below=below, most=CUSTOMERS_AT_ONCE)
        found += [row.id for row in rows if part in f"{row.recipient_name or ''}\n{row.recipient_email or ''}".casefold()]
        if len(rows) < CUSTOMERS_AT_ONCE:
            break
        below = rows[-1].id
    return connection.all(INVOICES_NAMED, organisation=organisation, ids=pack_rows([[id] for id in found[:most]])) if found else []


@all_rows(Invoice)
def invoices_numbered(*, organisation: str, named: Annotated[str, str.upper], most: int) -> sa.Executable:
    """The organisation's invoices with this number, in any case of its letters, newest first."""
    is_named = sa.func.upper(INVOICE.c.number) == named
    return sa.select(*INVOICE_COLUMNS).where(INVOICE.c.organisation == organisation, is_named).order_by(INVOICE.c.id.desc()).limit(most)


def update_draft(row: Invoice) -> sa.Update:
    """A change of the draft that was read as `row`, with the texts of `row`: a call that has read an older revision changes nothing."""
    texts = {"recipient_name": row.recipient_name, "recipient_email": row.recipient_email, "notes": row.notes, "due_at": row.due_at}
    is_same = (INVOICE.c.id == row.id, INVOICE.c.organisation == row.organisation, INVOICE.c.revision == row.revision)
    return sa.update(INVOICE).where(*is_same, INVOICE.c.status == "draft", INVOICE.c.sending == 0).values(**texts, **INVOICE_CHANGE)


def update_sending(row: Invoice) -> sa.Update:
    """A change of the invoice whose handing over to the processor `row` shows; of another handing over it changes nothing."""
    is_same = (INVOICE.c.id == row.id, INVOICE.c.revision == row.revision)
    return sa.update(INVOICE).where(*is_same, INVOICE.c.status == "draft", INVOICE.c.sending == 1)


def processor_name(row: Invoice) -> sa.ColumnElement[str]:
    """The processor's id of an invoice, or an empty text."""
    return sa.func.coalesce(sa.cast(row.processor_invoice, sa.Text), "")


@first_row(Invoice)
def edit_invoice(*, row: Invoice, now: Annotated[float, int]) -> sa.Executable:
    """Give a draft the texts of `row`; None when it is no draft any more, or not the one that was read. `now`: Unix seconds."""
    return update_draft(row)


@first_row(Invoice)
def issue_invoice(*, row: Invoice, now: Annotated[float, int]) -> sa.Executable:
    """A draft becomes sent with the texts of `row`, without the processor; None when it was not as it was read. `now`: Unix seconds."""
    return update_draft(row).values(status="sent", issued_at=now, document=1)


@first_row(Invoice)
def begin_invoice_sending(*, row: Invoice, account: str, now: Annotated[float, int]) -> sa.Executable:
    """A draft is about to be handed to the processor, with the texts of `row`; None when it was not as it was read. `now`: Unix seconds."""
    return update_draft(row).values(sending=1, connect_account=account)


@changes_one
def record_processor_invoice(*, row: Invoice, named: str, now: Annotated[float, int]) -> sa.Executable:
    """Keep the processor's id `named` before anything is sent to anybody. False: this handing over was called off; nothing may be sent."""
    return update_sending(row).where(KNOWN_PROCESSOR_INVOICE.in_(["", named])).values(processor_invoice=named, updated=now)


@first_row(Invoice)
def finish_invoice_sending(*, row: Invoice, now: Annotated[float, int]) -> sa.Executable:
    """The processor has sent it, at the moment that its document says. None when this handing over was ended: by another call, or
    the payment. `now`: Unix seconds.
    """
    found = {"processor_invoice": row.processor_invoice, "pay_url": row.pay_url, "issued_at": row.issued_at}
    return update_sending(row).values(**INVOICE_CHANGE, **found, status="sent", sending=0, document=1)


@first_row(Invoice)
def mark_invoice_documented(*, invoice: str) -> sa.Executable:
    """The invoice after its document was stored; None where there is none such."""
    return sa.update(INVOICE).where(THIS_INVOICE).values(document=1)


@changes_one
def cancel_invoice_sending(*, row: Invoice, now: Annotated[float, int], removed: Annotated[bool, int] = False) -> sa.Executable:
    """The processor surely sent nothing: a draft as before. Only for the handing over that `row` shows.

    `removed`: this try is given up for good, so that the next one makes another draft at the processor. `now`: Unix seconds.
    """
    discarded = INVOICE.c.discarded + sa.bindparam("removed", type_=sa.Integer)
    draft: ColumnValues = {"sending": 0, "connect_account": None, "processor_invoice": None, "discarded": discarded}
    return update_sending(row).where(processor_name(row) == KNOWN_PROCESSOR_INVOICE).values(**INVOICE_CHANGE, **draft)


@first_row(Invoice)
def void_invoice(*, invoice: str, organisation: str, now: Annotated[float, int]) -> sa.Executable:
    """Void one that the processor has nothing of; nothing when it has, or when there is nothing to void. `now`: Unix seconds."""
    return (
        sa.update(INVOICE)
        .where(OWN_INVOICE, INVOICE.c.status.in_(["draft", "sent"]), INVOICE.c.sending == 0, INVOICE.c.processor_invoice.is_(None))
        .values(**INVOICE_CHANGE, status="void")
    )


@first_row(Invoice)
def void_withdrawn_invoice(*, row: Invoice, now: Annotated[float, int]) -> sa.Executable:
    """Void one whose invoice at the processor was taken back; None when it has another there by now, or is paid. `now`: Unix seconds."""
    is_it = (INVOICE.c.id == row.id, INVOICE.c.organisation == row.organisation, INVOICE.c.status.in_(["draft", "sent"]))
    void = sa.update(INVOICE).where(*is_it, KNOWN_PROCESSOR_INVOICE.in_(["", processor_name(row)]))
    return void.values(**INVOICE_CHANGE, status="void", sending=0)


def find_invoice_at_processor(connection: Connection, *, account: str, processor_invoice: str, invoice: str) -> Invoice | None:
    """The invoice that an account's invoice at the processor is: by the processor's id, or by ours while it is being handed over."""
    return connection.first(FIND_BY_PROCESSOR, named=processor_invoice, account=account) or connection.first(
        FIND_SENDING, invoice=invoice, account=account
    )


@first_row(Invoice)
def note_invoice_arrival(*, invoice: str, processor_invoice: str, issued_at: int, now: Annotated[float, int]) -> sa.Executable:
    """The processor sent one that nobody heard was sent; None where that was known, or it is no draft under way. `now`: Unix seconds."""
    return (
        sa.update(INVOICE)
        .where(THIS_INVOICE, INVOICE.c.status == "draft", INVOICE.c.sending == 1)
        .values(**INVOICE_CHANGE, status="sent", sending=0, issued_at=issued_at, processor_invoice=processor_invoice)
    )


@first_row(Invoice)
def pay_invoice(*, invoice: str, processor_invoice: str, pay_url: str | None, paid_at: int, now: Annotated[float, int]) -> sa.Executable:
    """Mark it paid; None when it is paid or void already, or is a draft. `now`: Unix seconds."""
    return (
        sa.update(INVOICE)
        .where(THIS_INVOICE, INVOICE.c.status == "sent")
        .values(
            **INVOICE_CHANGE,
            status="paid",
            sending=0,
            paid_at=paid_at,
            issued_at=sa.func.coalesce(INVOICE.c.issued_at, paid_at),
            processor_invoice=processor_invoice,
            pay_url=sa.func.coalesce(INVOICE.c.pay_url, sa.cast(pay_url, sa.Text)),
        )
    )


OVERDUE_INVOICE = OverdueInvoiceTable.table

# In the words of the index of just these rows.
SENT_STATUS: sa.ColumnElement[str] = sa.literal_column("'sent'", sa.Text)


@all_rows(Invoice)
def list_overdue_invoices(*, since: int, until: int, most: int) -> sa.Executable:
    """Sent invoices that were due between the two moments (Unix seconds) and were not told of yet, those first that were due first."""
    return (
        sa.select(*INVOICE_COLUMNS)
        .where(
            INVOICE.c.status == SENT_STATUS,
            INVOICE.c.due_at > since,
            INVOICE.c.due_at < until,
            ~sa.exists().where(OVERDUE_INVOICE.c.invoice == INVOICE.c.id),
        )
        .order_by(INVOICE.c.due_at)
        .limit(most)
    )


@changes_one
def note_overdue_invoice(*, invoice: str, now: Annotated[float, int]) -> StatementBuild:
    """Whether it is this very call that tells that the invoice is overdue. `now`: Unix seconds."""
    return insert_once(OVERDUE_INVOICE, key=["invoice"], invoice=invoice, told=now)


INVOICE_DOCUMENT = InvoiceDocumentTable.table


class InvoicePdf(NamedTuple):
    """The bytes, and their SHA-256 in hexadecimal."""

    content: bytes
    sha256: str


@writes
def insert_invoice_document(*, invoice: str, content: bytes, sha256: str, now: Annotated[float, int]) -> StatementBuild:
    """Keep a document; the first one of an invoice stays. `now`: Unix seconds."""
    return insert_once(INVOICE_DOCUMENT, key=["invoice"], invoice=invoice, content=content, sha256=sha256, created=now)


@first_row(InvoicePdf)
def find_invoice_document(*, invoice: str) -> sa.Executable:
    """The document of an invoice that has left draft."""
    return sa.select(INVOICE_DOCUMENT.c.content, INVOICE_DOCUMENT.c.sha256).where(INVOICE_DOCUMENT.c.invoice == invoice)


INVOICE_NUMBER = InvoiceNumberTable.table


@one_row(int)
def take_invoice_number(*, organisation: str, year: int) -> StatementBuild:
    """The organisation's next number of the year, whatever its prefix; to be called in the transaction that keeps the invoice."""
    # The row stays locked until the transaction ends: a number whose invoice is not kept is given again.
    return lambda dialect: (
        dialect.insert(INVOICE_NUMBER)
        .values(organisation=organisation, year=year, last=1)
        .on_conflict_do_update(index_elements=["organisation", "year"], set_={"last": INVOICE_NUMBER.c.last + 1})
        .returning(INVOICE_NUMBER.c.last)
    )


class SentInvoice(NamedTuple):
    """Our id, and the processor's."""

    id: str
    processor_invoice: str


@all_rows(SentInvoice)
def sent_invoices(*, organisation: str, account: str, most: int) -> sa.Executable:
    """The sent invoices of `organisation` in the processor's `account`, newest first."""
    return (
        sa.select(INVOICE.c.id, INVOICE.c.processor_invoice)
        .where(
            INVOICE.c.organisation == organisation,
            INVOICE.c.connect_account == account,
            INVOICE.c.status == "sent",
            INVOICE.c.processor_invoice.is_not(None),
        )
        .order_by(INVOICE.c.id.desc())
        .limit(most)
    )


INVOICE_PERIOD = InvoicePeriodTable.table

DAY_SECONDS = 86_400

# Comes after every month.
AFTER_ALL_MONTHS = 999_999

PERIOD_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(INVOICE_PERIOD.c[name] for name in InvoicePeriodRow._fields)

OWN_PERIOD = INVOICE_PERIOD.c.organisation == sa.bindparam("organisation")

THIS_PERIOD = INVOICE_PERIOD.c.id == sa.bindparam("period")

INVOICED, INVOICED_WHOLE = 1, 2

OPEN_PERIOD = Command(insert_once(INVOICE_PERIOD, InvoicePeriodRow._fields, key=["organisation", "month"]))


def month_of_moment(moment: int) -> int:
    """The month of a moment in Unix seconds: YYYYMM in UTC."""
    return month_of_day(moment // DAY_SECONDS)


def month_text(month: int) -> str:
    """YYYYMM as YYYY-MM."""
    return f"{month // 100}-{month % 100:02}"


@lru_cache(maxsize=4096)
def month_of_day(day: int) -> int:
    """The month (YYYYMM in UTC) of a day since the epoch; records of one batch share few."""
    date = datetime.fromtimestamp(day * DAY_SECONDS, UTC)
    return date.year * 100 + date.month


def open_periods(connection: Connection, *, organisation: str, months: Iterable[int], now: float, ids: Ids) -> None:
    """Open those that are not there yet, in the order of the months, so that no two transactions wait for each other."""
    rows = [InvoicePeriodRow(ids.new("per_"), organisation, month, 0, int(now))._asdict() for month in sorted(set(months))]
    connection.run_many(OPEN_PERIOD, rows)


@first_row(InvoicePeriodRow)
def find_period(*, period: str, organisation: str) -> sa.Executable:
    return sa.select(*PERIOD_COLUMNS).where(THIS_PERIOD, OWN_PERIOD)


@all_rows(InvoicePeriodRow)
def list_periods(*, organisation: str, most: int, before: int = AFTER_ALL_MONTHS) -> sa.Executable:
    """At most `most` periods of the months before the month `before` (YYYYMM), newest first."""
    return sa.select(*PERIOD_COLUMNS).where(OWN_PERIOD, INVOICE_PERIOD.c.month < before).order_by(INVOICE_PERIOD.c.month.desc()).limit(most)


@first_row(InvoicePeriodRow)
def mark_period_invoiced(*, period: str, organisation: str, whole: Annotated[bool, int]) -> sa.Executable:
    """The period, for which an invoice is made: of the `whole` month, or of some SIMs. None where the organisation has none such.

    The row stays locked until the transaction ends, so that invoices of one month are made one by one.
    """
    is_whole = (sa.bindparam("whole", type_=sa.Integer) == 1) & (INVOICE_PERIOD.c.invoiced != INVOICED)
    invoiced = sa.case((is_whole, INVOICED_WHOLE), else_=INVOICED)
    return sa.update(INVOICE_PERIOD).where(THIS_PERIOD, OWN_PERIOD).values(invoiced=invoiced)
