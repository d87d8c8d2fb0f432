"""Looks at an account's stock: which eSIMs were free just before something was drawn from it."""

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import StockTable
from storage.statement import Command, Query, table

STOCK = table(StockTable)


class Look(NamedTuple):
    """When it was, whether every line could be read, and which ICCIDs were free."""

    id: str
    account_id: int
    taken: float
    complete: int
    iccids: str

    @property
    def free(self) -> frozenset[str]:
        """The ICCIDs."""
        return frozenset(self.iccids.split("\n")) - {""}


KEEP = Command(sa.insert(STOCK).values({name: sa.bindparam(name) for name in Look._fields}))
READ = Query(Look, sa.select(*(STOCK.c[name] for name in Look._fields)).where(STOCK.c.id == sa.bindparam("stock")))


def look_of(*, id: str, account_id: int, taken: float, complete: bool, iccids: Iterable[str]) -> Look:
    """A look as it is kept."""
    return Look(id, account_id, taken, int(complete), "\n".join(sorted(iccids)))


def keep_look(connection: Connection, *, look: Look) -> None:
    """Remember it."""
    connection.run(KEEP, **look._asdict())


def read_look(connection: Connection, *, stock: str) -> Look | None:
    """The look before a dispatch."""
    return connection.first(READ, stock=stock)


def was_free(connection: Connection, *, stock: str, iccid: str, since: float) -> bool:
    """Whether an ICCID was seen free in a look that was taken after a moment."""
    look = read_look(connection, stock=stock)
    return look is not None and look.taken > since and iccid in look.free
