"""Programs that registered themselves (RFC 7591)."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import AuthorizationRequestTable, OauthClientTable
from storage.statement import Command, Query, table

CLIENT, REQUEST = table(OauthClientTable), table(AuthorizationRequestTable)


class OauthClient(NamedTuple):
    """A program as it registered; `secret` is sealed, None for a public one."""

    id: str
    metadata_json: str
    secret: str | None
    created: float


class Origin(NamedTuple):
    """Where somebody registers from, as digests: a network, and one address in it."""

    network: str
    address: str


class Count(NamedTuple):
    """How many registrations of a network nobody has consented to."""

    unused: int


FIND = Query(OauthClient, sa.select(*(CLIENT.c[name] for name in OauthClient._fields)).where(CLIENT.c.id == sa.bindparam("client")))
INSERT = Command(sa.insert(CLIENT).values({name: sa.bindparam(name) for name in (*OauthClient._fields, *Origin._fields)}))
UNUSED = (CLIENT.c.network == sa.bindparam("of_network"), CLIENT.c.used.is_(None))
COUNT = Query(Count, sa.select(sa.func.count().label("unused")).select_from(CLIENT).where(*UNUSED))
CROWD = sa.select(CLIENT.c.address, sa.func.count().label("registrations")).where(*UNUSED).group_by(CLIENT.c.address).subquery("crowd")
AT_CONSENT = CLIENT.c.id.in_(sa.select(REQUEST.c.client_id).where(REQUEST.c.expires_at > sa.bindparam("now")))
# Of the address that has most, first what no person is being asked about, and of that the oldest.
FIRST_TO_GO = (
    sa.select(CLIENT.c.id)
    .join_from(CLIENT, CROWD, CROWD.c.address == CLIENT.c.address)
    .where(*UNUSED)
    .order_by(CROWD.c.registrations.desc(), sa.case((AT_CONSENT, 1), else_=0), CLIENT.c.created, CLIENT.c.id)
    .limit(sa.bindparam("too_many", type_=sa.Integer))
)
GIVE_WAY = Command(sa.delete(CLIENT).where(CLIENT.c.id.in_(FIRST_TO_GO)))
TOUCH = Command(sa.update(CLIENT).where(CLIENT.c.id == sa.bindparam("client")).values(used=sa.bindparam("now")))
SWEEP = Command(sa.delete(CLIENT).where(CLIENT.c.used.is_(None), CLIENT.c.created < sa.bindparam("before")))


def insert_client(connection: Connection, *, client: OauthClient, origin: Origin, most: int, now: float) -> None:
    """Keep a registration. Its network keeps `most` that nobody has consented to; beyond it the oldest of the address that has the most
    of them give way, and nobody is refused. `now`: Unix seconds."""
    count = connection.first(COUNT, of_network=origin.network)
    too_many = 0 if count is None else count.unused - most + 1
    if too_many > 0:
        connection.run(GIVE_WAY, of_network=origin.network, too_many=too_many, now=now)
    connection.run(INSERT, **client._asdict(), **origin._asdict())


def find_client(connection: Connection, *, client: str) -> OauthClient | None:
    """A registration."""
    return connection.first(FIND, client=client)


def note_use(connection: Connection, *, client: str, now: float) -> None:
    """A person let it do something: its registration is kept."""
    connection.run(TOUCH, client=client, now=now)


def sweep_clients(connection: Connection, *, before: float) -> int:
    """Forget registrations that nobody ever consented to."""
    return connection.run(SWEEP, before=before)
