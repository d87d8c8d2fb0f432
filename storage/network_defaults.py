"""Which networks an organisation's new assignments are to use: its one stored choice."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of


class NetworkDefaultTable(TableDescription, table=True):
    """Which networks an organisation's new assignments use: cheapest_available, all, or custom with a steering list."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    mode: str = Field(sa_type=sa.Text)
    list_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)


NETWORK_DEFAULT = table_of(NetworkDefaultTable)


class NetworkDefault(NamedTuple):
    """The mode, and the steering list of the mode custom."""

    mode: str
    list_id: int | None


PUT_NETWORK_DEFAULT = Command(
    lambda dialect: (
        dialect.insert(NETWORK_DEFAULT)
        .values({name: sa.bindparam(name) for name in ("organisation", "mode", "list_id", "updated")})
        .on_conflict_do_update(index_elements=["organisation"], set_={name: sa.bindparam(name) for name in ("mode", "list_id", "updated")})
    )
)

FIND_NETWORK_DEFAULT = Query(
    NetworkDefault,
    sa.select(NETWORK_DEFAULT.c.mode, NETWORK_DEFAULT.c.list_id).where(NETWORK_DEFAULT.c.organisation == sa.bindparam("organisation")),
)


def put_network_default(connection: Connection, *, organisation: str, mode: str, list_id: int | None, now: float) -> None:
    """Replace the choice."""
    connection.run(PUT_NETWORK_DEFAULT, organisation=organisation, mode=mode, list_id=list_id, updated=int(now))


def find_network_default(connection: Connection, *, organisation: str) -> NetworkDefault | None:
    """The choice; nothing when none was ever made."""
    return connection.first(FIND_NETWORK_DEFAULT, organisation=organisation)
