"""One driver connection inside one transaction, the only thing that a storage function sees; and the mark of functions that take long."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from storage.engine.statement import Command, Dialect, Query, R, Value


class DriverCursor(Protocol):
    """What sqlite3 and psycopg cursors share."""

    @property
    def rowcount(self) -> int: ...
    def executemany(self, sql: str, rows: Iterable[Mapping[str, Value]], /) -> object: ...
    def fetchone(self) -> tuple[Value, ...] | None: ...
    def fetchall(self) -> list[tuple[Value, ...]]: ...
    def fetchmany(self, size: int, /) -> list[tuple[Value, ...]]: ...
    def close(self) -> None: ...


class DriverConnection(Protocol):
    """What sqlite3 and psycopg connections share."""

    def cursor(self) -> DriverCursor: ...
    def execute(self, sql: str, values: Mapping[str, Value], /) -> DriverCursor: ...


class Connection:
    """Runs statements. Transactions are the store's: nothing here begins, commits or rolls back."""

    __slots__ = ("_dialect", "_driver")

    def __init__(self, driver: DriverConnection, dialect: Dialect) -> None:
        self._driver = driver
        self._dialect = dialect

    @property
    def dialect_name(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._dialect.name

    def all(self, query: Query[R], **binds: Value) -> list[R]:
        """Every row."""
        text = query.text(self._dialect)
        cursor = self._driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return list(map(query.make, cursor.fetchall()))

    def slices(self, query: Query[R], size: int, **binds: Value) -> Iterator[list[R]]:
        """Every row of one statement, at most `size` at a time, so that no more of them are objects at once."""
        text = query.text(self._dialect)
        cursor = self._driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        try:
            while rows := cursor.fetchmany(size):
                yield list(map(query.make, rows))
        finally:
            cursor.close()

    def first(self, query: Query[R], **binds: Value) -> R | None:
        """The first row, or nothing."""
        text = query.text(self._dialect)
        cursor = self._driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        row = cursor.fetchone()
        # An unfinished statement would hold its snapshot open.
        cursor.close()
        return None if row is None else query.make(row)

    def run(self, command: Command, **binds: Value) -> int:
        """Run a write; returns the number of rows it changed."""
        text = command.text(self._dialect)
        cursor = self._driver.execute(text.sql, {**text.literals, **binds} if text.literals else binds)
        return cursor.rowcount

    def run_many(self, command: Command, rows: Sequence[Mapping[str, Value]]) -> int:
        """Run a write once per row; returns the number of rows changed."""
        if not rows:
            return 0
        text = command.text(self._dialect)
        cursor = self._driver.cursor()
        cursor.executemany(text.sql, [{**text.literals, **row} for row in rows] if text.literals else rows)
        return cursor.rowcount


P = ParamSpec("P")

T = TypeVar("T")


class runs_in_thread(Generic[P, T]):
    """A storage function that is marked so; it is called like any other."""

    def __init__(self, fn: Callable[Concatenate[Connection, P], T]) -> None:
        self._fn = fn

    def __call__(self, connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._fn(connection, *args, **kwargs)


def is_run_in_thread(fn: object) -> bool:
    """Whether it is marked so."""
    return isinstance(fn, runs_in_thread)


def runs_in_thread_like(write: object, fn: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Connection, P], T]:
    """A function that runs another one in its transaction takes as long as that one."""
    return runs_in_thread(fn) if is_run_in_thread(write) else fn
