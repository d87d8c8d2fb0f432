"""The lines of invoices, copied when an invoice was made; nothing changes them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.listed import listed, packed
from storage.money.money_tables import InvoiceLineTable
from storage.statement import Command, Dialect, Query, table

LINE = table(InvoiceLineTable)


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


def insert_lines(connection: Connection, *, rows: Sequence[InvoiceLineRow]) -> None:
    """Keep the lines of a new invoice."""
    connection.run(INSERT, rows=packed([tuple(row) for row in rows]))  # orjson takes no named tuples


def lines_of(connection: Connection, *, invoice: str) -> list[InvoiceLineRow]:
    """The lines of an invoice, in its order."""
    return connection.all(LIST, invoice=invoice)
