"""One driver connection inside one transaction, the only thing that a storage function sees; and the mark of functions that take long."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter, signature
from typing import Annotated, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, cast, get_origin

import sqlalchemy as sa

from storage.engine.statement import (
    ARGUMENT,
    Command,
    Dialect,
    Query,
    R,
    Statement,
    StatementBuild,
    StatementText,
    Value,
    check_columns,
    row_maker,
)

P = ParamSpec("P")

T = TypeVar("T")


class DriverCursor(Protocol):
    """What sqlite3 and psycopg cursors share."""

    @property
    def rowcount(self) -> int: ...
    def executemany(self, sql: str, rows: Iterable[Mapping[str, object]], /) -> object: ...
    def fetchone(self) -> tuple[Value, ...] | None: ...
    def fetchall(self) -> list[tuple[Value, ...]]: ...
    def fetchmany(self, size: int, /) -> list[tuple[Value, ...]]: ...
    def close(self) -> None: ...


class DriverConnection(Protocol):
    """What sqlite3 and psycopg connections share."""

    def cursor(self) -> DriverCursor: ...
    def execute(self, sql: str, values: Mapping[str, object], /) -> DriverCursor: ...


class Connection:
    """Runs statements. Transactions are the store's: nothing here begins, commits or rolls back."""

    __slots__ = ("dialect", "driver")

    def __init__(self, driver: DriverConnection, dialect: Dialect) -> None:
        self.driver = driver
        self.dialect = dialect

    @property
    def dialect_name(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.dialect.name

    def all(self, query: Query[R], **binds: Value) -> list[R]:
        """Every row."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return list(map(query.make, cursor.fetchall()))

    def slices(self, query: Query[R], size: int, **binds: Value) -> Iterator[list[R]]:
        """Every row of one statement, at most `size` at a time, so that no more of them are objects at once."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        try:
            while rows := cursor.fetchmany(size):
                yield list(map(query.make, rows))
        finally:
            cursor.close()

    def first(self, query: Query[R], **binds: Value) -> R | None:
        """The first row, or nothing."""
        text = query.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        row = fetch_first(cursor)
        return None if row is None else query.make(row)

    def run(self, command: Command, **binds: Value) -> int:
        """Run a write; returns the number of rows it changed."""
        text = command.text(self.dialect)
        cursor = self.driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return cursor.rowcount

    def run_many(self, command: Command, rows: Sequence[Mapping[str, Value]]) -> int:
        """Run a write once per row; returns the number of rows changed."""
        if not rows:
            return 0
        text = command.text(self.dialect)
        cursor = self.driver.cursor()
        cursor.executemany(text.sql, [{**text.literals, **row} for row in rows] if text.literals else rows)
        return cursor.rowcount


class runs_in_thread(Generic[P, T]):
    """A storage function that is marked so; it is called like any other."""

    def __init__(self, fn: Callable[Concatenate[Connection, P], T]) -> None:
        self.__wrapped__ = fn

    def __call__(self, connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.__wrapped__(connection, *args, **kwargs)


def is_run_in_thread(fn: object) -> bool:
    """Whether it is marked so."""
    return isinstance(fn, runs_in_thread)


def runs_in_thread_like(write: object, fn: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Connection, P], T]:
    """A function that runs another one in its transaction takes as long as that one."""
    return runs_in_thread(fn) if is_run_in_thread(write) else fn


StorageFunction: TypeAlias = Callable[Concatenate[Connection, P], T]


class DeclaredStatement(Statement):
    """A statement that is written as a function with keyword-only parameters, which builds it once per dialect.

    While it is built, each argument is the value to bind, and that of a parameter which is a named tuple is a named tuple of such values;
    of those, only the fields that the statement uses are bound.
    `Annotated[float, int]`: the value is bound as `int` makes it.
    """

    __slots__ = ("_declare", "_row", "conversions", "rows")

    def __init__(self, declare: Callable[..., StatementBuild], row: type[object] | None) -> None:
        super().__init__(self._declared)
        self._declare, self._row = declare, row
        self.conversions: Sequence[tuple[str, Callable[[object], object]]] = ()
        self.rows: Sequence[str] = ()

    def _render(self, dialect: Dialect) -> StatementText:
        sql, literals, required = super()._render(dialect)
        parameters = signature(self._declare).parameters.values()
        rows = [each for each in parameters if hasattr(each.annotation, "_fields")]
        names = [each.name for each in parameters if each not in rows]
        given = [*names, *(field for row in rows for field in row.annotation._fields)]
        if len(set(given)) < len(given) or not set(names) <= required <= set(given):
            raise TypeError(f"{self._declare.__name__} is given {given}, and its statement needs {sorted(required)}")
        self.rows = [row.name for row in rows]
        self.conversions = [(each.name, each.annotation.__metadata__[0]) for each in parameters if get_origin(each.annotation) is Annotated]
        defaults: dict[str, object] = {each.name: each.default for each in parameters if each.default is not Parameter.empty}
        return StatementText(sql, {**literals, **self.bound(defaults)}, required)

    def bound(self, given: dict[str, object]) -> dict[str, Value]:
        """The values to bind for the arguments `given`, which become them."""
        for name, convert in self.conversions:
            if name in given:
                given[name] = convert(given[name])
        for name in self.rows:
            if name in given:
                given.update(cast("NamedTuple", given.pop(name))._asdict())
        return cast("dict[str, Value]", given)

    def _declared(self, dialect: Dialect) -> sa.Executable:
        build = self._declare(**{each.name: stand_in(each) for each in signature(self._declare).parameters.values()})
        return build if isinstance(build, sa.Executable) else build(dialect)

    def _check(self, statement: sa.Executable) -> None:
        if self._row is not None:
            check_columns(statement, self._row)


def statement_function(
    declare: Callable[P, StatementBuild], row: type[object] | None, read: Callable[[DriverCursor], T]
) -> StorageFunction[P, T]:
    """The storage function that is one statement: it binds its arguments, runs the statement, and returns what `read` makes of it."""
    statement = DeclaredStatement(declare, row)

    def run(connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        sql, literals, _ = statement.text(connection.dialect)
        values: dict[str, object] = kwargs
        if statement.conversions or statement.rows:
            statement.bound(values)
        return read(connection.driver.execute(sql, {**literals, **values} if literals else values))

    update_wrapper(run, declare)
    vars(run)["statement"] = statement  # for tests, which look at every statement
    return run


def stand_in(parameter: Parameter) -> object:
    """What stands for the value of a parameter while its statement is built."""
    assert parameter.kind is Parameter.KEYWORD_ONLY, f"{parameter.name} is not keyword-only"
    fields = cast("tuple[str, ...] | None", getattr(parameter.annotation, "_fields", None))
    if fields is None:
        return cast("object", sa.bindparam(parameter.name + ARGUMENT))
    return parameter.annotation(*(sa.bindparam(field + ARGUMENT) for field in fields))


def all_rows(row: type[R]) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, list[R]]]:
    """A function that returns every row: named tuples, or the values of the one column."""
    make = row_maker(row)
    return lambda declare: statement_function(declare, row, lambda cursor: list(map(make, cursor.fetchall())))


def first_row(row: type[R]) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, R | None]]:
    """A function that returns the first row, a named tuple or the value of the one column; None where there is none."""
    make = row_maker(row)

    def read(cursor: DriverCursor) -> R | None:
        found = fetch_first(cursor)
        return None if found is None else make(found)

    return lambda declare: statement_function(declare, row, read)


def value_or(default: R) -> Callable[[Callable[P, StatementBuild]], StorageFunction[P, R]]:
    """A function that returns the value of the one column of the first row; `default` where there is no row, or the value is null."""

    def read(cursor: DriverCursor) -> R:
        found = fetch_first(cursor)
        return default if found is None or found[0] is None else cast("R", found[0])

    return lambda declare: statement_function(declare, type(default), read)


def row_exists(declare: Callable[P, StatementBuild]) -> StorageFunction[P, bool]:
    """A function that returns whether there is a row."""
    return statement_function(declare, None, lambda cursor: fetch_first(cursor) is not None)


def changes_one(declare: Callable[P, StatementBuild]) -> StorageFunction[P, bool]:
    """A function that returns whether it changed one row."""
    return statement_function(declare, None, lambda cursor: cursor.rowcount == 1)


def changes_rows(declare: Callable[P, StatementBuild]) -> StorageFunction[P, int]:
    """A function that returns how many rows it changed."""
    return statement_function(declare, None, lambda cursor: cursor.rowcount)


def writes(declare: Callable[P, StatementBuild]) -> StorageFunction[P, None]:
    """A function that writes and returns nothing."""
    return statement_function(declare, None, lambda cursor: None)


def fetch_first(cursor: DriverCursor) -> tuple[Value, ...] | None:
    """The first row. An unfinished statement would hold its snapshot open, so it is ended."""
    row = cursor.fetchone()
    cursor.close()
    return row


def to_milliseconds(seconds: float) -> int:
    """Whole milliseconds, which is what is stored."""
    return int(seconds * 1000)


def or_last(prefix: str) -> Callable[[str | None], str]:
    """The id to bind for a page that goes backwards from an id; from behind every id with this prefix where none is given."""
    last = prefix + LAST_ID_LETTERS
    return lambda given: given or last


LAST_ID_LETTERS = "z" * 27
"""Sort behind every id: z is the last character of their alphabet."""
