"""Looks at an account's stock: which eSIMs were free just before something was drawn from it."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Connection, Key, TableDescription, changes_rows, delete_oldest, first_row, writes
from storage.issuance import ISSUANCE, OPEN_ISSUANCE_STATES, IssuanceHolder


class StockSnapshot(NamedTuple):
    """When it was, whether every line could be read, and which ICCIDs were free.

    `returned`: ICCIDs that a row of the ledger had before the look began and that were free all the same, with that row:
    `iccid organisation key`, one per line. Whoever had them had lost them; no clock is needed to tell.
    """

    id: Key
    account_id: BigInt
    taken: Annotated[float, Field(index=True)]
    complete: int
    iccids: str
    returned: str

    @property
    def free(self) -> frozenset[str]:
        return frozenset(self.iccids.split("\n")) - {""}


class StockTable(TableDescription, row=StockSnapshot, table=True):
    """The free eSIMs of an account as they were just before a dispatch: ICCIDs, one per line; `complete` 0: some could not be read.

    `returned` names those that a row of the ledger had before, with the row.
    """


STOCK = StockTable.table

COMPARED_SNAPSHOTS = sa.select(ISSUANCE.c.stock).where(ISSUANCE.c.state.in_(OPEN_ISSUANCE_STATES))


def make_stock_snapshot(
    *, id: str, account_id: int, taken: float, complete: bool, iccids: Iterable[str], returned: Iterable[IssuanceHolder]
) -> StockSnapshot:
    """The row of a look at an account's stock; `taken`: Unix seconds."""
    lost = "\n".join(f"{holder.held} {holder.organisation} {holder.key}" for holder in returned)
    return StockSnapshot(id, account_id, taken, int(complete), "\n".join(sorted(iccids)), lost)


@writes
def insert_stock_snapshot(*, look: StockSnapshot) -> sa.Executable:
    return sa.insert(STOCK).values(look._asdict())


@first_row(StockSnapshot)
def read_stock_snapshot(*, stock: str) -> sa.Executable:
    return sa.select(*(STOCK.c[name] for name in StockSnapshot._fields)).where(STOCK.c.id == stock)


def was_returned(connection: Connection, *, stock: str, holder: IssuanceHolder) -> bool:
    """Whether the look `stock` shows that the row of `holder` had lost its ICCID."""
    look = read_stock_snapshot(connection, stock=stock)
    return look is not None and f"{holder.held} {holder.organisation} {holder.key}" in look.returned.split("\n")


@changes_rows
def sweep_stock_snapshots(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest looks that no open row compares with; returns how many. `before`: Unix seconds."""
    return delete_oldest(STOCK, (STOCK.c.taken < before) & STOCK.c.id.not_in(COMPARED_SNAPSHOTS), STOCK.c.taken, most)
