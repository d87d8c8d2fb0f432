"""Notifications of queued deliveries between processes: PostgreSQL sends one when the transaction commits, SQLite cannot.

The listener has one connection of its own, beside the pool, and connects again when it breaks. It only hastens: whoever listens goes on
polling, so a connection that is broken, or a pooler that swallows notifications, loses nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import sqlalchemy as sa

from storage.engine.connection import Connection
from storage.engine.database_url import is_sqlite_url
from storage.engine.statement import Query

if TYPE_CHECKING:
    import psycopg


LISTENER_CHECK_SECONDS = 5

FIRST_PAUSE = 0.5

LONGEST_PAUSE = 30.0

# A connection whose other end vanished without a word is found out by the question asked this often.
ALIVE_SECONDS = 30.0

LISTENER_NAME = "reseller listener"


class Listener:
    """Called with what to do on news; listens until it is cancelled."""

    def __init__(self, url: str, report: Callable[[str], None]) -> None:
        self._url, self._report = url, report
        self._broken, self._pause = False, FIRST_PAUSE

    async def __call__(self, heard: Callable[[], None]) -> None:
        """Call `heard` for every notification, and once for each new connection: what was said before it went unheard."""
        import psycopg  # only where the address names PostgreSQL

        while True:
            try:
                async with open_listening(self._url) as connection:
                    self._mended()
                    heard()
                    await hear_notifications(connection, heard)
            except (psycopg.Error, TimeoutError):
                self._break()
            await anyio.sleep(self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _break(self) -> None:
        """Said once, not with every attempt, and without the server's text, which names hosts and users."""
        if not self._broken:
            self._report("worker: not listening to the database; new deliveries are found by polling meanwhile")
        self._broken = True

    def _mended(self) -> None:
        if self._broken:
            self._report("worker: listening to the database again")
        self._broken, self._pause = False, FIRST_PAUSE


def open_listener(url: str, report: Callable[[str], None]) -> Listener | None:
    """A listener where the database can notify; SQLite cannot."""
    return None if is_sqlite_url(url) else Listener(url, report)


@asynccontextmanager
async def open_listening(url: str) -> AsyncGenerator[psycopg.AsyncConnection]:
    """A connection that listens."""
    import psycopg

    from storage.engine.conninfo import conninfo  # brings psycopg

    connection = await psycopg.AsyncConnection.connect(conninfo(url, application_name=LISTENER_NAME), autocommit=True)
    try:
        await connection.execute(f"listen {DELIVERY_CHANNEL}".encode())
        yield connection
    finally:
        with anyio.CancelScope(shield=True):
            await connection.close()


async def hear_notifications(connection: psycopg.AsyncConnection, heard: Callable[[], None]) -> None:
    """Until the connection breaks."""
    while True:
        async for _ in connection.notifies(timeout=ALIVE_SECONDS):
            heard()
        with anyio.fail_after(LISTENER_CHECK_SECONDS):
            await connection.execute(b"select 1")


DELIVERY_CHANNEL = "reseller_delivery"


# Equal notifications of one transaction are one. While nobody listens it costs a statement.
NOTIFY_DELIVERY = Query(
    str,
    sa.select(sa.cast(sa.func.pg_notify(sa.literal_column(f"'{DELIVERY_CHANNEL}'"), sa.literal_column("''")), sa.Text).label("said")),
)


def notify_deliveries(connection: Connection, *, queued: int) -> None:
    """Say it, if anything was queued. On SQLite the worker of the same process is woken in memory, and others poll."""
    if queued and connection.dialect_name == "postgresql":
        connection.first(NOTIFY_DELIVERY)
