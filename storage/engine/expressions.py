"""Expressions that the planner of one of the two databases needs another form of."""

from collections.abc import Callable, Sequence
from typing import cast

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from storage.engine.sql import Dialect


class Unindexed(FunctionElement[str]):
    """See `unindexed`."""

    name = "unindexed"
    type = sa.Text()
    inherit_cache = True


@compiles(Unindexed)
def compile_plain(element: Unindexed, compiler: SQLCompiler, **how: object) -> str:
    """PostgreSQL knows how many rows have which value."""
    return compiler.process(element.clauses, **how)


@compiles(Unindexed, "sqlite")
def compile_hidden(element: Unindexed, compiler: SQLCompiler, **how: object) -> str:
    """No index is over this."""
    return f"({compiler.process(element.clauses, **how)} || '')"


def unindexed(column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A text column to compare with, but not to search by.

    SQLite keeps no statistics here: it takes an equality for better than a range, and would read every finished row to find what is due.
    """
    return Unindexed(column)


def selective(dialect: Dialect, condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """A condition that few rows meet.

    SQLite keeps no statistics here: of an index with this condition and one without it takes the one without, and reads what is left.
    """
    if dialect.name != "sqlite":
        return condition
    # Without a type: SQLAlchemy would compare a truth value with 1, and nothing would be looked up.
    return cast(sa.ColumnElement[bool], sa.func.likelihood(condition, sa.literal_column("0.001")))


RowCondition = Callable[[sa.FromClause], sa.ColumnElement[bool]]


def distinct_values(table: sa.Table, column: str, rows: RowCondition, name: str) -> sa.CTE:
    """The values, each once, of a text column that begins an index over just these rows. `value` is null in the last one."""
    first, following = table.alias("first"), table.alias("following")
    begin = sa.select(sa.func.min(first.c[column]).label("value")).where(rows(first))
    found = begin.cte(name, recursive=True)
    after = sa.select(sa.func.min(following.c[column])).where(rows(following), following.c[column] > found.c.value)
    return found.union_all(sa.select(after.correlate(found).scalar_subquery()).where(found.c.value.is_not(None)))


def in_id_range(dialect: Dialect, column: sa.ColumnElement[str]) -> list[sa.ColumnElement[bool]]:
    """That an id of a list is between the ends of it (`ends`), which tells PostgreSQL the partitions. SQLite would take another index."""
    return (
        []
        if dialect.name == "sqlite"
        else [column >= sa.bindparam("lowest", type_=sa.Text), column <= sa.bindparam("highest", type_=sa.Text)]
    )


def id_range(ids: Sequence[str]) -> dict[str, str]:
    """The first and the last of some ids."""
    return {"lowest": min(ids), "highest": max(ids)}
