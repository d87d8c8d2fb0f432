"""A PostgreSQL server that starts, or recovers after a crash: it takes no connections yet (57P03), and will."""

import asyncio
from collections.abc import Callable

from storage.address import is_sqlite

WAIT_SECONDS, PAUSE_SECONDS = 60.0, 0.5


async def wait_for_start(url: str, report: Callable[[str], None]) -> None:
    """Wait, a minute at most, for a server that is starting. One that is not there at all is not waited for: its address may be wrong.

    Afterwards it takes connections, or whoever connects is told why it does not.
    """
    if is_sqlite(url):
        return
    from psycopg.pq import Ping  # only where PostgreSQL is used

    if await asyncio.to_thread(ping, url) != Ping.REJECT:
        return
    report("PostgreSQL is starting or recovering (57P03); waiting for it, for a minute at most")
    loop = asyncio.get_running_loop()
    ends = loop.time() + WAIT_SECONDS
    while loop.time() < ends:
        await asyncio.sleep(PAUSE_SECONDS)
        if await asyncio.to_thread(ping, url) == Ping.OK:
            return


def ping(url: str) -> int:
    """Whether the server takes connections, as libpq tells it; an address that cannot be read is judged by whoever connects."""
    from psycopg import ProgrammingError
    from psycopg.pq import PGconn, Ping

    from storage.conninfo import START, conninfo

    try:
        return PGconn.ping(conninfo(url, **START).encode())
    except ProgrammingError:
        return Ping.NO_ATTEMPT
