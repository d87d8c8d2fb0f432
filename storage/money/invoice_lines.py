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


INSERT = Command(inserting)
LIST = Query(
    InvoiceLineRow,
    sa.select(*(LINE.c[name] for name in InvoiceLineRow._fields))
    .where(LINE.c.invoice == sa.bindparam("invoice"))
    .order_by(LINE.c.position),
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
    """Keep the lines of a new invoice."""
    connection.run(INSERT, rows=packed([tuple(row) for row in rows]))  # orjson takes no named tuples


def lines_of(connection: Connection, *, invoice: str) -> list[InvoiceLineRow]:
    """The lines of an invoice, in its order."""
    return connection.all(LIST, invoice=invoice)


def billed_of(connection: Connection, *, period: str, selected: bool) -> dict[str, Billed]:
    """What a period's invoices bill by SIM, void ones left out. `selected`: only those that were made of some of its SIMs."""
    return {row.iccid: row for row in connection.all(BILLED, period=period, least=int(selected))}
