"""Looks at an account's stock: which eSIMs were free just before something was drawn from it."""

from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.issuing.issuance import ISSUANCE, OPEN, Holder
from storage.schema import StockTable
from storage.statement import Command, Query, table
from storage.sweep import oldest

STOCK = table(StockTable)


class Look(NamedTuple):
    """When it was, whether every line could be read, and which ICCIDs were free.

    `returned`: ICCIDs that a row of the ledger had before the look began and that were free all the same, with that row:
    `iccid organisation key`, one per line. Whoever had them had lost them; no clock is needed to tell.
    """

    id: str
    account_id: int
    taken: float
    complete: int
    iccids: str
    returned: str

    @property
    def free(self) -> frozenset[str]:
        """The ICCIDs."""
        return frozenset(self.iccids.split("\n")) - {""}


KEEP = Command(sa.insert(STOCK).values({name: sa.bindparam(name) for name in Look._fields}))
COMPARED = sa.select(ISSUANCE.c.stock).where(ISSUANCE.c.state.in_(OPEN))
SWEEP = oldest(STOCK, (STOCK.c.taken < sa.bindparam("before")) & STOCK.c.id.not_in(COMPARED), STOCK.c.taken)
READ = Query(Look, sa.select(*(STOCK.c[name] for name in Look._fields)).where(STOCK.c.id == sa.bindparam("stock")))


def look_of(*, id: str, account_id: int, taken: float, complete: bool, iccids: Iterable[str], returned: Iterable[Holder]) -> Look:
    """A look as it is kept."""
    lost = "\n".join(f"{holder.held} {holder.organisation} {holder.key}" for holder in returned)
    return Look(id, account_id, taken, int(complete), "\n".join(sorted(iccids)), lost)


def keep_look(connection: Connection, *, look: Look) -> None:
    """Remember it."""
    connection.run(KEEP, **look._asdict())


def read_look(connection: Connection, *, stock: str) -> Look | None:
    """The look before a dispatch."""
    return connection.first(READ, stock=stock)


def was_returned(connection: Connection, *, stock: str, holder: Holder) -> bool:
    """Whether the look shows that a row had lost its ICCID."""
    look = read_look(connection, stock=stock)
    return look is not None and f"{holder.held} {holder.organisation} {holder.key}" in look.returned.split("\n")


def sweep_looks(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest looks that no open row compares with."""
    return connection.run(SWEEP, before=before, most=most)
