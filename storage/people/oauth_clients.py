"""Programs that registered themselves (RFC 7591)."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import OauthClientTable
from storage.statement import Command, Query, table

CLIENT = table(OauthClientTable)


class OauthClient(NamedTuple):
    """A program as it registered; `secret` is sealed, None for a public one."""

    id: str
    metadata_json: str
    secret: str | None
    created: float


FIND = Query(OauthClient, sa.select(*(CLIENT.c[name] for name in OauthClient._fields)).where(CLIENT.c.id == sa.bindparam("client")))
INSERT = Command(sa.insert(CLIENT).values({name: sa.bindparam(name) for name in OauthClient._fields}))
TOUCH = Command(sa.update(CLIENT).where(CLIENT.c.id == sa.bindparam("client")).values(used=sa.bindparam("now")))
SWEEP = Command(sa.delete(CLIENT).where(CLIENT.c.used.is_(None), CLIENT.c.created < sa.bindparam("before")))


def insert_client(connection: Connection, client: OauthClient) -> None:
    """Keep a registration."""
    connection.run(INSERT, **client._asdict())


def find_client(connection: Connection, *, client: str) -> OauthClient | None:
    """A registration."""
    return connection.first(FIND, client=client)


def note_use(connection: Connection, *, client: str, now: float) -> None:
    """A person let it do something: its registration is kept."""
    connection.run(TOUCH, client=client, now=now)


def sweep_clients(connection: Connection, *, before: float) -> int:
    """Forget registrations that nobody ever consented to."""
    return connection.run(SWEEP, before=before)
