"""Going from one value of an indexed column to the next, past the rows between: what a million rows of one owner cost is one step."""

from collections.abc import Callable

import sqlalchemy as sa

Rows = Callable[[sa.FromClause], sa.ColumnElement[bool]]


def next_values(table: sa.Table, column: str, rows: Rows, name: str) -> sa.CTE:
    """The values, each once, of a text column that begins an index over just these rows. `value` is null in the last one."""
    first, following = table.alias("first"), table.alias("following")
    begin = sa.select(sa.func.min(first.c[column]).label("value")).where(rows(first))
    found = begin.cte(name, recursive=True)
    after = sa.select(sa.func.min(following.c[column])).where(rows(following), following.c[column] > found.c.value)
    return found.union_all(sa.select(after.correlate(found).scalar_subquery()).where(found.c.value.is_not(None)))
