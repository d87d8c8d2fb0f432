"""How the history of a PostgreSQL database is divided, for whoever operates it."""

from typing import NamedTuple, cast

from storage.connection import Connection, Driver
from storage.partitions import HISTORIES, is_partitioned, partitions_of, rows_in_default
from storage.statement import postgresql_dialect
from storage.unreachable import unreachable

MOST_COUNTED = 10_000


class PartitionState(NamedTuple):
    """The tables that are still whole; rows without a partition, of each table that has any (MOST_COUNTED or more is that); and the
    moment up to which each divided table has partitions (Unix seconds).
    """

    whole: list[str]
    without: dict[str, int]
    until: dict[str, float]


def partition_state(url: str) -> PartitionState:
    """Ask the server. Raises StoreUnavailable."""
    import psycopg  # only where PostgreSQL is used

    from storage.conninfo import brief_connection

    found = PartitionState([], {}, {})
    try:
        with brief_connection(url) as raw:
            connection = Connection(cast("Driver", raw), postgresql_dialect())
            for history in HISTORIES:
                if not is_partitioned(connection, history=history):
                    found.whole.append(history.name)
                    continue
                if rows := rows_in_default(connection, history=history, most=MOST_COUNTED):
                    found.without[history.name] = rows
                found.until[history.name] = history.moment(partitions_of(connection, history=history)[-1].upper)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise unreachable(error) from error
    return found
