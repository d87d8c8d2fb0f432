"""How many connections a PostgreSQL server has for us, for whoever decides how many processes may run."""

from typing import NamedTuple, cast

from storage.unreachable import unreachable

QUERY = """
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


class Limits(NamedTuple):
    """What the server says; a limit of -1 is none. `reserved` is for superusers, `kept` for a group of users that are not."""

    most: int
    reserved: int
    kept: int
    of_role: int
    of_database: int
    is_superuser: bool
    used: int


class Capacity(NamedTuple):
    """Connections: `room` for this user and database altogether, and `used` at the server by anybody."""

    room: int
    used: int

    def processes(self, pool: int) -> int:
        """How many workers, or servers, of that pool have room at the same time."""
        return self.room // (pool + BESIDE_POOL_OF_WORKER)


def capacity(url: str) -> Capacity:
    """Ask the server. Raises StoreUnavailable."""
    import psycopg  # only where PostgreSQL is used

    from storage.conninfo import brief_connection

    try:
        with brief_connection(url) as connection:
            row = connection.execute(QUERY).fetchone()
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from error
    assert row is not None  # we are a user of a database
    found = Limits(*cast("tuple[int, int, int, int, int, bool, int]", row))
    limits = [] if found.is_superuser else [limit for limit in (found.of_role, found.of_database) if limit >= 0]
    return Capacity(min([found.most - found.reserved - found.kept, *limits]), found.used)
