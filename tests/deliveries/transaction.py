"""One transaction over a database, of which nothing is kept: as many examples as a test wants, at little cost."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, cast

from storage.engine.drivers import DriverConnection, Value
from storage.engine.sql import Connection, postgresql_dialect, sqlite_dialect

Opened = Callable[[], AbstractContextManager[Connection]]


@contextmanager
def on_sqlite(path: str) -> Generator[Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("begin")
        yield Connection(raw, sqlite_dialect())


@contextmanager
def on_postgresql(url: str) -> Generator[Connection]:
    import psycopg

    with closing(psycopg.connect(url)) as raw:
        yield Connection(cast(DriverConnection, raw), postgresql_dialect())


def fetched(connection: Connection, sql: str, **binds: Value) -> list[tuple[Any, ...]]:
    return connection.driver.execute(sql, binds).fetchall()


def committed_event(connection: Connection, sql: str) -> None:
    connection.driver.execute(sql, {})
