"""Change counters: a cache is good while its counter stands still."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, StatementBuild, TableDescription, table_of, value_or, writes


class ChangeTable(TableDescription, table=True):
    """Counters that caches compare: `callers` moves with every key, membership, tier and connection."""

    name: str = Field(primary_key=True)
    value: BigInt


CHANGE = table_of(ChangeTable)

CALLERS = "callers"


@value_or(0)
def read_change_count(*, name: str) -> sa.Executable:
    """The counter's value; 0 before the first change."""
    return sa.select(CHANGE.c.value).where(CHANGE.c.name == name)


@writes
def count_change(*, name: str) -> StatementBuild:
    """Move the counter `name`, in the transaction that changes what caches hold."""
    return lambda dialect: (
        dialect.insert(CHANGE).values(name=name, value=1).on_conflict_do_update(index_elements=["name"], set_={"value": CHANGE.c.value + 1})
    )
