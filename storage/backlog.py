"""What is late in a PostgreSQL database, and how many processes work on it, for whoever operates it."""

from typing import NamedTuple, cast

from storage.calls.replicas import running_keys
from storage.connection import Connection, Driver
from storage.depth import depth
from storage.statement import postgresql_dialect
from storage.unreachable import unreachable


class Backlog(NamedTuple):
    """`late`: seconds that the oldest of each kind has waited beyond its time."""

    processes: int
    late: dict[str, float]


def backlog(url: str, *, now: float) -> Backlog:
    """Ask the server. `now`: Unix seconds. Raises StoreUnavailable."""
    import psycopg  # only where PostgreSQL is used

    from storage.conninfo import brief_connection

    try:
        with brief_connection(url) as raw:
            connection = Connection(cast("Driver", raw), postgresql_dialect())
            found = depth(connection, now_ms=int(now * 1000))
            due = {
                "deliveries": found.waiting.oldest_due_ms,
                "mails": found.mails.next_due_ms,
                "reports": found.next_boundary_ms,
            }
            late = {kind: now - at / 1000 for kind, at in due.items() if at is not None}
            paid = [row.since for row in found.unfinished.values() if row.status != "needs_review" and row.since is not None]
            if paid:
                late["orders"] = now - min(paid)
            return Backlog(len(running_keys(connection, now=now)), {kind: seconds for kind, seconds in late.items() if seconds > 0})
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from error
