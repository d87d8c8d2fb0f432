"""The numbers of invoices: one count per organisation and year, without gaps."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import InvoiceNumberTable
from storage.statement import Dialect, Query, table

NUMBER = table(InvoiceNumberTable)


class Last(NamedTuple):
    """The number that was just given."""

    last: int


def counting(dialect: Dialect) -> sa.Executable:
    """The row stays locked until the transaction ends: a number whose invoice is not kept is given again."""
    insert = dialect.insert(NUMBER).values(organisation=sa.bindparam("organisation"), year=sa.bindparam("year"), last=1)
    return insert.on_conflict_do_update(index_elements=["organisation", "year"], set_={"last": NUMBER.c.last + 1}).returning(NUMBER.c.last)


NEXT = Query(Last, counting)


def take_number(connection: Connection, *, organisation: str, year: int) -> int:
    """The organisation's next number of the year, whatever its prefix; to be called in the transaction that keeps the invoice."""
    taken = connection.first(NEXT, organisation=organisation, year=year)
    if taken is None:
        raise RuntimeError("an upsert returned no row")
    return taken.last
