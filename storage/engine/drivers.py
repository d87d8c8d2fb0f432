"""What the database drivers share, and what a connection asks of them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

Value: TypeAlias = str | int | float | bytes | None


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


class DeferredCommand(NamedTuple):
    """A rendered write and its values. `after`: it is carried out behind the COMMIT, by itself, and may be lost with its process."""

    sql: str
    values: Mapping[str, Value]
    after: bool = False
