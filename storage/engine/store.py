"""The storage door: a function, one transaction."""

from collections.abc import Callable
from typing import Concatenate, Protocol

from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.database_url import is_sqlite_url, sqlite_path
from storage.engine.sql import Connection, P, T
from storage.engine.sqlite import SqliteStore


class Store(Protocol):
    """Runs plain synchronous functions of a connection, each in one transaction: they cannot await, so none waits for a network."""

    @property
    def dialect_name(self) -> str:
        """`sqlite` or `postgresql`."""
        ...

    @property
    def signals(self) -> DatabaseSignals:
        """How long its calls take."""
        ...

    @property
    def pool_load(self) -> PoolLoad:
        """How many connections it has, and who uses them now."""
        ...

    @property
    def snapshot(self) -> int | None:
        """Which snapshot short reads of this moment share: what one has read, the next one would read too. None: none is shared now."""
        ...

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads; all its statements see one snapshot."""
        ...

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function and commit; returns once the commit is durable. An error in the function undoes all of it."""
        ...

    async def aclose(self) -> None:
        """Take no more work, finish what is under way, close the connections."""
        ...


def open_store(url: str, *, pool: int = 16, report: Callable[[str], None] = lambda text: None) -> Store:
    """The store at an address. `pool` is the number of PostgreSQL connections (and threads); SQLite needs none.

    `report` is told when a PostgreSQL server is away, and when it is back. Without one the callers of the store are told alone.
    """
    if is_sqlite_url(url):
        return SqliteStore(sqlite_path(url))
    from storage.engine.postgres import PostgresStore

    return PostgresStore(url, pool, report)
