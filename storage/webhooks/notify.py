"""Telling the workers of other processes that deliveries were queued: PostgreSQL says it when the transaction commits, SQLite cannot."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.statement import Query

CHANNEL = "reseller_delivery"


class Said(NamedTuple):
    """Nothing."""

    said: str


# Equal notifications of one transaction are one. While nobody listens it costs a statement.
SAY = Query(Said, sa.select(sa.cast(sa.func.pg_notify(sa.literal_column(f"'{CHANNEL}'"), sa.literal_column("''")), sa.Text).label("said")))


def notify_deliveries(connection: Connection, *, queued: int) -> None:
    """Say it, if anything was queued. On SQLite the worker of the same process is woken in memory, and others poll."""
    if queued and connection.dialect_name == "postgresql":
        connection.first(SAY)
