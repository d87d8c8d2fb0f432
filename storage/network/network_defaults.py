"""Which networks an organisation's new assignments are to use: its one stored choice."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import NetworkDefaultTable
from storage.statement import Command, Query, table

CHOICE = table(NetworkDefaultTable)


class NetworkDefault(NamedTuple):
    """The mode, and the steering list of the mode custom."""

    mode: str
    list_id: int | None


PUT = Command(
    lambda dialect: (
        dialect.insert(CHOICE)
        .values({name: sa.bindparam(name) for name in ("organisation", "mode", "list_id", "updated")})
        .on_conflict_do_update(index_elements=["organisation"], set_={name: sa.bindparam(name) for name in ("mode", "list_id", "updated")})
    )
)
FIND = Query(NetworkDefault, sa.select(CHOICE.c.mode, CHOICE.c.list_id).where(CHOICE.c.organisation == sa.bindparam("organisation")))


def put_network_default(connection: Connection, *, organisation: str, mode: str, list_id: int | None, now: float) -> None:
    """Replace the choice."""
    connection.run(PUT, organisation=organisation, mode=mode, list_id=list_id, updated=int(now))


def find_network_default(connection: Connection, *, organisation: str) -> NetworkDefault | None:
    """The choice; nothing when none was ever made."""
    return connection.first(FIND, organisation=organisation)
