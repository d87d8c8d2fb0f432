"""Programs that registered themselves (RFC 7591), and their requests that wait for a person's consent."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.access_grants import ACCESS_GRANT
from storage.engine.sql import Command, Connection, Key, Query, TableDescription, changes_one, changes_rows, first_row, writes


class AuthorizationRequestTable(TableDescription, table=True):
    """A program's request that waits for the person's consent; `details` are its checked parameters, JSON."""

    digest: bytes = Field(primary_key=True)
    client_id: str
    details: str
    expires_at: float = Field(index=True)


class OauthClient(NamedTuple):
    """A program as it registered; `secret` is sealed, None for a public one."""

    id: Key
    metadata_json: str
    secret: str | None
    created: Annotated[float, Field(index=True)]


class OauthClientTable(TableDescription, row=OauthClient, table=True):
    """A program that registered itself (RFC 7591). `secret` is sealed; public clients have none. `used`: when it last got a consent.

    `network` and `address` are digests of where it registered from; None where that was before they were kept.
    """

    used: float | None
    network: str | None = Field(index=True)
    address: str | None


OAUTH_CLIENT = OauthClientTable.table

AUTHORIZATION_REQUEST = AuthorizationRequestTable.table


class ClientOrigin(NamedTuple):
    """Where somebody registers from, as digests: a network, and one address in it."""

    network: str
    address: str


INSERT_CLIENT = Command(
    lambda _: sa.insert(OAUTH_CLIENT).values({name: sa.bindparam(name) for name in (*OauthClient._fields, *ClientOrigin._fields)})
)

CLIENT_IS_UNUSED = (OAUTH_CLIENT.c.network == sa.bindparam("of_network"), OAUTH_CLIENT.c.used.is_(None))

COUNT_UNUSED_CLIENTS = Query(int, lambda _: sa.select(sa.func.count().label("unused")).select_from(OAUTH_CLIENT).where(*CLIENT_IS_UNUSED))

UNUSED_BY_ADDRESS = (
    sa.select(OAUTH_CLIENT.c.address, sa.func.count().label("registrations"))
    .where(*CLIENT_IS_UNUSED)
    .group_by(OAUTH_CLIENT.c.address)
    .subquery("crowd")
)

AT_CONSENT = OAUTH_CLIENT.c.id.in_(
    sa.select(AUTHORIZATION_REQUEST.c.client_id).where(AUTHORIZATION_REQUEST.c.expires_at > sa.bindparam("now"))
)

# Of the address that has most, first what no person is being asked about, and of that the oldest.
FIRST_CLIENTS_TO_GO = (
    sa.select(OAUTH_CLIENT.c.id)
    .join_from(OAUTH_CLIENT, UNUSED_BY_ADDRESS, UNUSED_BY_ADDRESS.c.address == OAUTH_CLIENT.c.address)
    .where(*CLIENT_IS_UNUSED)
    .order_by(UNUSED_BY_ADDRESS.c.registrations.desc(), sa.case((AT_CONSENT, 1), else_=0), OAUTH_CLIENT.c.created, OAUTH_CLIENT.c.id)
    .limit(sa.bindparam("too_many", type_=sa.Integer))
)

REMOVE_FIRST_CLIENTS = Command(lambda _: sa.delete(OAUTH_CLIENT).where(OAUTH_CLIENT.c.id.in_(FIRST_CLIENTS_TO_GO)))


def insert_client(connection: Connection, *, client: OauthClient, origin: ClientOrigin, most: int, now: float) -> None:
    """Keep a registration. Its network keeps `most` that nobody has consented to; beyond it the oldest of the address that has the most
    of them give way, and nobody is refused. `now`: Unix seconds."""
    count = connection.first(COUNT_UNUSED_CLIENTS, of_network=origin.network)
    too_many = (count or 0) - most + 1
    if too_many > 0:
        connection.run(REMOVE_FIRST_CLIENTS, of_network=origin.network, too_many=too_many, now=now)
    connection.run(INSERT_CLIENT, **client._asdict(), **origin._asdict())


@first_row(OauthClient)
def find_client(*, client: str) -> sa.Executable:
    return sa.select(*(OAUTH_CLIENT.c[name] for name in OauthClient._fields)).where(OAUTH_CLIENT.c.id == client)


@writes
def note_client_use(*, client: str, now: float) -> sa.Executable:
    """A person consented to what the program asked, so its registration stays. `now`: Unix seconds."""
    return sa.update(OAUTH_CLIENT).where(OAUTH_CLIENT.c.id == client).values(used=now)


@changes_rows
def sweep_unconsented_clients(*, before: float) -> sa.Executable:
    """Delete registrations from before `before` (Unix seconds) that nobody ever consented to; returns how many."""
    return sa.delete(OAUTH_CLIENT).where(OAUTH_CLIENT.c.used.is_(None), OAUTH_CLIENT.c.created < before)


class AuthorizationRequest(NamedTuple):
    """A request that waits for consent; `details` can be read with its token alone."""

    client_id: str
    details: str


SWEEP_REQUESTS = Command(lambda _: sa.delete(AUTHORIZATION_REQUEST).where(AUTHORIZATION_REQUEST.c.expires_at < sa.bindparam("now")))


@writes
def insert_authorization_request(*, digest: bytes, client: str, details: str, expires_at: float) -> sa.Executable:
    """Store a program's request for consent; `details` is JSON text. `expires_at`: Unix seconds."""
    return sa.insert(AUTHORIZATION_REQUEST).values(digest=digest, client_id=client, details=details, expires_at=expires_at)


@first_row(AuthorizationRequest)
def find_authorization_request(*, digest: bytes, now: float) -> sa.Executable:
    """The request with this digest, unless it has expired at `now` (Unix seconds)."""
    return sa.select(AUTHORIZATION_REQUEST.c.client_id, AUTHORIZATION_REQUEST.c.details).where(
        AUTHORIZATION_REQUEST.c.digest == digest, AUTHORIZATION_REQUEST.c.expires_at > now
    )


@changes_one
def end_authorization_request(*, digest: bytes, now: float) -> sa.Executable:
    """Answer a request; False when somebody has, or it has expired. `now`: Unix seconds."""
    return sa.delete(AUTHORIZATION_REQUEST).where(AUTHORIZATION_REQUEST.c.digest == digest, AUTHORIZATION_REQUEST.c.expires_at > now)


LIVE_CLIENTS = sa.select(ACCESS_GRANT.c.client_id).where(
    ACCESS_GRANT.c.revoked_at.is_(None), ACCESS_GRANT.c.expires_at > sa.bindparam("now")
)


@changes_rows
def sweep_unused_clients(*, before: float, now: float) -> sa.Executable:
    """Forget registered programs that got their last consent before then, unless they still have one that counts."""
    return sa.delete(OAUTH_CLIENT).where(OAUTH_CLIENT.c.used <= before, OAUTH_CLIENT.c.id.not_in(LIVE_CLIENTS))
