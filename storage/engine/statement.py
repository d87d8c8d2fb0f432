"""Statements: built once with SQLAlchemy Core, rendered once per dialect to text, executed by the driver itself."""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

Value: TypeAlias = str | int | float | bytes | None

R = TypeVar("R")

ARGUMENT = "__argument"
"""Ends the name of a bound value that would otherwise be a column's: SQLAlchemy keeps those for the columns that a write sets."""

LITERAL = "__literal"

BOUND_NAME = re.compile(r"(?<=%\()\w+|(?<=(?<!:):)\w+")


class Dialect:
    """One kind of SQL: how it is spelled, and its INSERT with an ON CONFLICT clause."""

    __slots__ = ("_grammar", "_insert", "name")

    def __init__(self, name: str, grammar: sa.Dialect, insert: Callable[[sa.Table], sqlite.Insert]) -> None:
        self.name = name
        self._grammar = grammar
        self._insert = insert

    def insert(self, table: sa.Table) -> sqlite.Insert:
        """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
        return self._insert(table)

    def compile(self, statement: sa.Executable) -> SQLCompiler:
        """The statement in this dialect's words."""
        # for_executemany: SQLAlchemy adds no RETURNING of its own to fetch generated keys.
        return cast(SQLCompiler, cast(sa.ClauseElement, statement).compile(dialect=self._grammar, for_executemany=True))


class StatementText(NamedTuple):
    """A rendered statement, the values that are bound in every call, and the names of those that the caller gives."""

    sql: str
    literals: Mapping[str, Value]
    required: frozenset[str]


StatementBuild: TypeAlias = sa.Executable | Callable[[Dialect], sa.Executable]


class Statement:
    """A statement and its renderings. Renderings are made on first use and never change."""

    __slots__ = ("_build", "_rendered")

    def __init__(self, build: StatementBuild) -> None:
        self._build = build
        self._rendered: dict[str, StatementText] = {}

    def text(self, dialect: Dialect) -> StatementText:
        """This statement in the dialect's words."""
        rendered = self._rendered.get(dialect.name)
        if rendered is None:
            rendered = self._rendered[dialect.name] = self._render(dialect)
        return rendered

    def _render(self, dialect: Dialect) -> StatementText:
        statement = self._build if isinstance(self._build, sa.Executable) else self._build(dialect)
        self._check(statement)
        return render(statement, dialect)

    def _check(self, statement: sa.Executable) -> None:
        """What a kind of statement must look like; checked once per dialect."""


class Query(Statement, Generic[R]):
    """A statement with rows: a select, or a write with RETURNING. A row is a named tuple, whose fields are exactly the columns in order,
    or the value of the one column."""

    __slots__ = ("_row", "make")

    def __init__(self, row: type[R], build: StatementBuild) -> None:
        super().__init__(build)
        self._row = row
        self.make = row_maker(row)

    def _check(self, statement: sa.Executable) -> None:
        check_columns(statement, self._row)


class Command(Statement):
    """A write without rows."""

    __slots__ = ()


def row_maker(row: type[R]) -> Callable[[tuple[Value, ...]], R]:
    """What makes a row of the driver's tuple: the named tuple `row`, or the one value."""
    return cast("Callable[[tuple[Value, ...]], R]", getattr(row, "_make", itemgetter(0)))


def check_columns(statement: sa.Executable, row: type[object]) -> None:
    """TypeError unless the columns of `statement` are the fields of `row`, in their order; one column where `row` is no named tuple."""
    if not isinstance(statement, sa.sql.expression.ReturnsRows):
        raise TypeError(f"a Query needs a statement with rows, not {type(statement).__name__}; a write without rows is a Command")
    columns = tuple(statement.exported_columns.keys())
    fields = cast("tuple[str, ...]", getattr(row, "_fields", columns[:1]))
    if columns != fields:
        raise TypeError(f"the statement gives the columns {columns}, the row has the fields {fields}: name and order must agree")


def render(statement: sa.Executable, dialect: Dialect) -> StatementText:
    """The text of a statement, and the literals to bind beside the caller's values."""
    compiled = dialect.compile(statement)
    defaults = [column.name for column in (*compiled.insert_prefetch, *compiled.update_prefetch)]
    if defaults:
        raise TypeError(f"the columns {defaults} have Python defaults, which rendered text would skip: give their values in the statement")
    required = {name for name, bind in compiled.binds.items() if bind.required}
    lists = [name for name in required if compiled.binds[name].expanding]
    if lists:
        raise TypeError(f"the parameters {lists} are lists, which text cannot bind: run the statement once per value")
    # Lists known when the statement was built are spelled out here, and types act on literals here and nowhere else.
    state = compiled.construct_expanded_state(dict.fromkeys(required))
    literals = {name: value for name, value in state.parameters.items() if name not in required}
    for name, process in state.processors.items():
        if name in literals and callable(process):
            literals[name] = process(literals[name])
    # An argument loses the end of its name; a literal that has the name then gets another.
    names = {name: name.removesuffix(ARGUMENT) for name in required}
    names |= {name: name + LITERAL for name in literals if name + ARGUMENT in required}
    sql = BOUND_NAME.sub(lambda found: names.get(found[0], found[0]), state.statement)
    return StatementText(
        sql, {names.get(name, name): value for name, value in literals.items()}, frozenset(names[name] for name in required)
    )


def sqlite_dialect() -> Dialect:
    """SQLite with named parameters."""
    return Dialect("sqlite", sqlite.dialect(paramstyle="named"), sqlite.insert)


def postgresql_dialect() -> Dialect:
    """PostgreSQL as psycopg takes it. Imported only where it is used: it costs start-up time."""
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    # Typed as SQLite's INSERT: what both share is what a portable statement may use.
    insert = cast(Callable[[sa.Table], sqlite.Insert], postgresql.insert)
    return Dialect("postgresql", PGDialect_psycopg(), insert)


def returning(write: sa.Update | sa.Delete, columns: Iterable[sa.ColumnElement[object]]) -> sa.Executable:
    """The write, with these columns of the rows that it changed."""
    # SQLAlchemy's own types end where the number of columns is not known.
    return cast("sa.Executable", write.returning(*columns))


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
