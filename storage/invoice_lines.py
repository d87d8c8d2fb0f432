"""The lines of invoices, copied when an invoice was made; nothing changes them."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Dialect,
    Key,
    Query,
    TableDescription,
    all_rows,
    column_kinds,
    first_row,
    json_rows,
    one_row,
    pack_rows,
)
from storage.invoices import INVOICE


class InvoiceLineRow(NamedTuple):
    """One SIM's usage on an invoice; `position` counts from 1."""

    invoice: Key
    position: Annotated[int, Field(primary_key=True)]
    id: str
    iccid: str
    bytes_up: BigInt
    bytes_down: BigInt
    amount_cents: BigInt
    network: str | None
    country: str | None


class InvoiceLineTable(TableDescription, row=InvoiceLineRow, table=True):
    """One SIM's usage on an invoice, copied when the invoice was made. `position` counts from 1 in the order of the ICCIDs."""


INVOICE_LINE = InvoiceLineTable.table


class BilledUsage(NamedTuple):
    """What invoices that are not void bill of one SIM in a month."""

    iccid: str
    bytes_up: int
    bytes_down: int


def insert_lines_query(dialect: Dialect) -> sa.Executable:
    """Thousands of rows as one statement."""
    given = json_rows(dialect, "rows", "given", **column_kinds(INVOICE_LINE, InvoiceLineRow._fields))
    return dialect.insert(INVOICE_LINE).from_select(list(InvoiceLineRow._fields), sa.select(*given.c))


class LineSums(NamedTuple):
    """What several lines of an invoice add up to."""

    lines: int
    bytes_up: int
    bytes_down: int
    amount_cents: int


INSERT_INVOICE_LINES = Command(insert_lines_query)

OF_INVOICE = INVOICE_LINE.c.invoice == sa.bindparam("invoice")

INVOICE_LINE_IS_BEHIND = INVOICE_LINE.c.position > sa.bindparam("after")

BILLED_BY_SIM = Query(
    BilledUsage,
    sa.select(
        INVOICE_LINE.c.iccid,
        sa.cast(sa.func.sum(INVOICE_LINE.c.bytes_up), sa.BigInteger).label("bytes_up"),
        sa.cast(sa.func.sum(INVOICE_LINE.c.bytes_down), sa.BigInteger).label("bytes_down"),
    )
    .join(INVOICE, INVOICE.c.id == INVOICE_LINE.c.invoice)
    .where(INVOICE.c.period == sa.bindparam("period"), INVOICE.c.status != "void", INVOICE.c.selected >= sa.bindparam("least"))
    .group_by(INVOICE_LINE.c.iccid),
)


def insert_invoice_lines(connection: Connection, *, rows: Sequence[InvoiceLineRow]) -> None:
    """Insert lines of a new invoice. Rows in the thousands are written out in one step that no other thread runs beside."""
    connection.run(INSERT_INVOICE_LINES, rows=pack_rows([tuple(row) for row in rows]))  # orjson takes no named tuples


@all_rows(InvoiceLineRow)
def read_invoice_lines(*, invoice: str, after: int, most: int) -> sa.Executable:
    """At most `most` lines of an invoice behind the position `after`, in its order; 0 begins with the first."""
    return (
        sa.select(*(INVOICE_LINE.c[name] for name in InvoiceLineRow._fields))
        .where(OF_INVOICE, INVOICE_LINE_IS_BEHIND)
        .order_by(INVOICE_LINE.c.position)
        .limit(most)
    )


@first_row(int)
def find_line_position(*, invoice: str, line: str) -> sa.Executable:
    """The position of the line with this id; None where the invoice has no such line. All lines before it are looked at."""
    return sa.select(INVOICE_LINE.c.position).where(OF_INVOICE, INVOICE_LINE.c.id == line)


@one_row(LineSums)
def sum_invoice_lines(*, invoice: str, after: int) -> sa.Executable:
    """The sums of all lines behind the position `after`; zeros where there are none."""
    sums = (sa.func.coalesce(sa.func.sum(INVOICE_LINE.c[name]), 0).label(name) for name in LineSums._fields[1:])
    return sa.select(sa.func.count().label("lines"), *sums).where(OF_INVOICE, INVOICE_LINE_IS_BEHIND)


def billed_by_sim(connection: Connection, *, period: str, selected: bool, size: int) -> dict[str, BilledUsage]:
    """What a period's invoices bill by SIM, void ones left out. `selected`: only those that were made of some of its SIMs.

    `size`: the rows that are read in one step.
    """
    slices = connection.slices(BILLED_BY_SIM, size, period=period, least=int(selected))
    return {row.iccid: row for rows in slices for row in rows}
