"""The lines of invoices, copied when an invoice was made; nothing changes them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.money.money_tables import InvoiceLineTable, InvoiceTable
from storage.statement import Command, Dialect, Query, table

LINE, INVOICE = table(InvoiceLineTable), table(InvoiceTable)


class InvoiceLineRow(NamedTuple):
    """One SIM's usage on an invoice; `position` counts from 1."""

    invoice: str
    position: int
    id: str
    iccid: str
    bytes_up: int
    bytes_down: int
    amount_cents: int
    network: str | None
    country: str | None


class Billed(NamedTuple):
    """What invoices that are not void bill of one SIM in a month."""

    iccid: str
    bytes_up: int
    bytes_down: int


KINDS = {
    **dict.fromkeys(("invoice", "id", "iccid", "network", "country"), sa.Text),
    "position": sa.Integer,
    **dict.fromkeys(("bytes_up", "bytes_down", "amount_cents"), sa.BigInteger),
}


def inserting(dialect: Dialect) -> sa.Executable:
    """Thousands of rows as one statement."""
    given = listed(dialect, "rows", "given", **{name: KINDS[name] for name in InvoiceLineRow._fields})
    return dialect.insert(LINE).from_select(list(InvoiceLineRow._fields), sa.select(*given.c))


class LinePosition(NamedTuple):
    """Where a line stands on its invoice."""

    position: int


class LineSums(NamedTuple):
    """What several lines of an invoice add up to."""

    lines: int
    bytes_up: int
    bytes_down: int
    amount_cents: int


INSERT = Command(inserting)
OF_INVOICE = LINE.c.invoice == sa.bindparam("invoice")
BEHIND = LINE.c.position > sa.bindparam("after")
LIST = Query(
    InvoiceLineRow,
    sa.select(*(LINE.c[name] for name in InvoiceLineRow._fields))
    .where(OF_INVOICE, BEHIND)
    .order_by(LINE.c.position)
    .limit(sa.bindparam("most")),
)
POSITION = Query(LinePosition, sa.select(LINE.c.position).where(OF_INVOICE, LINE.c.id == sa.bindparam("line")))
SUMS = Query(
    LineSums,
    sa.select(
        sa.func.count().label("lines"),
        *(sa.func.coalesce(sa.func.sum(LINE.c[name]), 0).label(name) for name in LineSums._fields[1:]),
    ).where(OF_INVOICE, BEHIND),
)
BILLED = Query(
    Billed,
    sa.select(
        LINE.c.iccid,
        sa.cast(sa.func.sum(LINE.c.bytes_up), sa.BigInteger).label("bytes_up"),
        sa.cast(sa.func.sum(LINE.c.bytes_down), sa.BigInteger).label("bytes_down"),
    )
    .join(INVOICE, INVOICE.c.id == LINE.c.invoice)
    .where(INVOICE.c.period == sa.bindparam("period"), INVOICE.c.status != "void", INVOICE.c.selected >= sa.bindparam("least"))
    .group_by(LINE.c.iccid),
)


def insert_lines(connection: Connection, *, rows: Sequence[InvoiceLineRow]) -> None:
    """Insert lines of a new invoice. Rows in the thousands are written out in one step that no other thread runs beside."""
    connection.run(INSERT, rows=packed([tuple(row) for row in rows]))  # orjson takes no named tuples


def read_lines(connection: Connection, *, invoice: str, after: int, most: int) -> list[InvoiceLineRow]:
    """At most `most` lines of an invoice behind the position `after`, in its order; 0 begins with the first."""
    return connection.all(LIST, invoice=invoice, after=after, most=most)


def find_position(connection: Connection, *, invoice: str, line: str) -> int | None:
    """The position of the line with this id; None where the invoice has no such line. All lines before it are looked at."""
    found = connection.first(POSITION, invoice=invoice, line=line)
    return None if found is None else found.position


def sum_lines(connection: Connection, *, invoice: str, after: int) -> LineSums:
    """The sums of all lines behind the position `after`; zeros where there are none."""
    sums = connection.first(SUMS, invoice=invoice, after=after)
    return sums or LineSums(0, 0, 0, 0)


def billed_of(connection: Connection, *, period: str, selected: bool, size: int) -> dict[str, Billed]:
    """What a period's invoices bill by SIM, void ones left out. `selected`: only those that were made of some of its SIMs.

    `size`: the rows that are read in one step.
    """
    slices = connection.slices(BILLED, size, period=period, least=int(selected))
    return {row.iccid: row for rows in slices for row in rows}
