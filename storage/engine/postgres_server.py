"""What a PostgreSQL server says before there is a store: whether it is starting (57P03), and how many connections it has for us."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from storage.engine.database_url import (
    SERVER_STARTING,
    START_OPTIONS,
    UNKNOWN_CAUSE,
    brief_connection,
    conninfo,
    failure_cause,
    is_sqlite_url,
    load_psycopg,
)

START_WAIT_SECONDS = 60.0
START_PAUSE_SECONDS = 0.5


async def wait_for_start(url: str, report: Callable[[str], None]) -> None:
    """Wait, a minute at most, for a server that is starting. One that is not there at all is not waited for: its address may be wrong.

    Afterwards it takes connections, or whoever connects is told why it does not.
    """
    if is_sqlite_url(url):
        return
    if await asyncio.to_thread(start_refusal, url) != SERVER_STARTING:
        return
    report("PostgreSQL is starting or recovering (57P03); waiting for it, for a minute at most")
    loop = asyncio.get_running_loop()
    ends = loop.time() + START_WAIT_SECONDS
    while loop.time() < ends:
        await asyncio.sleep(START_PAUSE_SECONDS)
        if await asyncio.to_thread(start_refusal, url) is None:
            return


def start_refusal(url: str) -> str | None:
    """Why the server takes no connection, as a class; None when it does. An address that cannot be read is judged by whoever connects."""
    psycopg = load_psycopg()
    try:
        psycopg.connect(conninfo(url, **START_OPTIONS)).close()
    except psycopg.ProgrammingError:
        return UNKNOWN_CAUSE
    except psycopg.OperationalError as error:
        found = failure_cause(str(error).lower())
        # In another language than English only libpq knows; asked that way, it holds up every thread, so not at once.
        return SERVER_STARTING if found == UNKNOWN_CAUSE and is_server_starting(url) else found
    return None


def is_server_starting(url: str) -> bool:
    """Whether the server says that it takes no connections yet, whatever its language."""
    from psycopg.pq import PGconn, Ping  # only where PostgreSQL is used

    return PGconn.ping(conninfo(url).encode()) == Ping.REJECT


CAPACITY_QUERY = """
select current_setting('max_connections')::int,
    case when r.rolsuper then 0 else current_setting('superuser_reserved_connections')::int end,
    coalesce(current_setting('reserved_connections', true), '0')::int,
    r.rolconnlimit, d.datconnlimit, r.rolsuper,
    (select count(*) from pg_stat_activity where backend_type = 'client backend')::int
from pg_roles r, pg_database d
where r.rolname = current_user and d.datname = current_database()"""
BESIDE_POOL = 1
"""For the probe of a process that suspects an outage."""
BESIDE_POOL_OF_WORKER = 2
"""The same, and the listener."""


class ConnectionLimits(NamedTuple):
    """What the server says; a limit of -1 is none. `reserved` is for superusers, `kept` for a group of users that are not."""

    most: int
    reserved: int
    kept: int
    of_role: int
    of_database: int
    is_superuser: bool
    used: int


class ServerCapacity(NamedTuple):
    """Connections: `room` for this user and database altogether, and `used` at the server by anybody."""

    room: int
    used: int

    def processes(self, pool: int) -> int:
        """How many workers, or servers, of that pool have room at the same time."""
        return self.room // (pool + BESIDE_POOL_OF_WORKER)


def server_capacity(url: str) -> ServerCapacity:
    """Ask the server at `url`. Raises StoreUnavailable; waits for the network."""
    with brief_connection(url) as connection:
        row = connection.execute(CAPACITY_QUERY).fetchone()
    assert row is not None  # we are a user of a database
    found = ConnectionLimits(*cast("tuple[int, int, int, int, int, bool, int]", row))
    limits = [] if found.is_superuser else [limit for limit in (found.of_role, found.of_database) if limit >= 0]
    return ServerCapacity(min([found.most - found.reserved - found.kept, *limits]), found.used)
