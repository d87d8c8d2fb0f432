"""Hearing of deliveries that other processes have queued: one connection of its own, beside the pool, connected again when it breaks.

It only hastens: whoever listens goes on polling, so a connection that is broken, or a pooler that swallows notifications, loses nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from storage.address import is_sqlite
from storage.webhooks.notify import CHANNEL

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# A connection whose other end vanished without a word is found out by the question asked this often.
ALIVE_SECONDS = 30.0
NAME = "reseller listener"


def open_listener(url: str, report: Callable[[str], None]) -> Listener | None:
    """A listener where the database can notify; SQLite cannot."""
    return None if is_sqlite(url) else Listener(url, report)


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
                async with listening(self._url) as connection:
                    self._mended()
                    heard()
                    await hear(connection, heard)
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


@asynccontextmanager
async def listening(url: str) -> AsyncGenerator[psycopg.AsyncConnection]:
    """A connection that listens."""
    import psycopg

    from storage.conninfo import conninfo  # brings psycopg

    connection = await psycopg.AsyncConnection.connect(conninfo(url, application_name=NAME), autocommit=True)
    try:
        await connection.execute(f"listen {CHANNEL}".encode())
        yield connection
    finally:
        with anyio.CancelScope(shield=True):
            await connection.close()


async def hear(connection: psycopg.AsyncConnection, heard: Callable[[], None]) -> None:
    """Until the connection breaks."""
    while True:
        async for _ in connection.notifies(timeout=ALIVE_SECONDS):
            heard()
        with anyio.fail_after(CONNECT_SECONDS):
            await connection.execute(b"select 1")
