"""A PostgreSQL server that starts, or recovers after a crash: it takes no connections yet (57P03), and will."""

import asyncio
from collections.abc import Callable

from storage.address import is_sqlite
from storage.unreachable import STARTING, UNKNOWN, cause

WAIT_SECONDS, PAUSE_SECONDS = 60.0, 0.5


async def wait_for_start(url: str, report: Callable[[str], None]) -> None:
    """Wait, a minute at most, for a server that is starting. One that is not there at all is not waited for: its address may be wrong.

    Afterwards it takes connections, or whoever connects is told why it does not.
    """
    if is_sqlite(url):
        return
    if await asyncio.to_thread(refusal, url) != STARTING:
        return
    report("PostgreSQL is starting or recovering (57P03); waiting for it, for a minute at most")
    loop = asyncio.get_running_loop()
    ends = loop.time() + WAIT_SECONDS
    while loop.time() < ends:
        await asyncio.sleep(PAUSE_SECONDS)
        if await asyncio.to_thread(refusal, url) is None:
            return


def refusal(url: str) -> str | None:
    """Why the server takes no connection, as a class; None when it does. An address that cannot be read is judged by whoever connects."""
    import psycopg  # only where PostgreSQL is used

    from storage.conninfo import START, conninfo

    try:
        psycopg.connect(conninfo(url, **START)).close()
    except psycopg.ProgrammingError:
        return UNKNOWN
    except psycopg.OperationalError as error:
        found = cause(str(error).lower())
        # In another language than English only libpq knows; asked that way, it holds up every thread, so not at once.
        return STARTING if found == UNKNOWN and is_starting(url) else found
    return None


def is_starting(url: str) -> bool:
    """Whether the server says that it takes no connections yet, whatever its language."""
    from psycopg.pq import PGconn, Ping

    from storage.conninfo import conninfo

    return PGconn.ping(conninfo(url).encode()) == Ping.REJECT
