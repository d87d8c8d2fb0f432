"""Webhook endpoints: where an organisation's events are sent, and with which sealed secrets they are signed."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import OrganisationTable, WebhookEndpointTable
from storage.statement import Command, Query, table
from storage.webhooks.deliveries import drop_pending, give_up

ENDPOINT, ORGANISATION = table(WebhookEndpointTable), table(OrganisationTable)
MOST_ENDPOINTS = 16
BOTH_SIGN_SECONDS = 86_400
FAILING_SECONDS = 120 * 3600


class EndpointRow(NamedTuple):
    """An endpoint without its secrets."""

    id: str
    url: str
    status: str
    created: int


class Id(NamedTuple):
    """Something that is there."""

    id: str


class Status(NamedTuple):
    """Enabled or disabled."""

    status: str


class Record(NamedTuple):
    """How an endpoint fares: since when it has only failed, if it has."""

    id: str
    status: str
    failing_since: int | None
    proven: int


class Count(NamedTuple):
    """How many."""

    held: int


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(ENDPOINT.c[name] for name in EndpointRow._fields)
# One that belongs to a schedule is the schedule's affair (schedule_endpoints.py): nothing here sees it.
LISTED = ENDPOINT.c.schedule.is_(None)
OWN = (ENDPOINT.c.id == sa.bindparam("endpoint")) & (ENDPOINT.c.organisation == sa.bindparam("owner")) & LISTED
# The organisation's row is the lock of its number of endpoints; on SQLite the write lock is.
LOCK = Query(Id, sa.select(ORGANISATION.c.id).where(ORGANISATION.c.id == sa.bindparam("organisation")).with_for_update(key_share=True))
COUNT = Query(
    Count,
    sa.select(sa.func.count().label("held")).select_from(ENDPOINT).where(ENDPOINT.c.organisation == sa.bindparam("organisation"), LISTED),
)
INSERT = Command(
    sa.insert(ENDPOINT)
    .values({name: sa.bindparam(name) for name in ("id", "organisation", "url", "secret", "created")})
    .values(status="enabled", replay_minute=0, replay_count=0, proven=0)
)
LIST = Query(
    EndpointRow, sa.select(*COLUMNS).where(ENDPOINT.c.organisation == sa.bindparam("organisation"), LISTED).order_by(ENDPOINT.c.id.desc())
)
READ = Query(EndpointRow, sa.select(*COLUMNS).where(OWN))
DELETE = Command(sa.delete(ENDPOINT).where(OWN))
ROTATE = Query(
    EndpointRow,
    sa.update(ENDPOINT)
    .where(OWN)
    .values(previous_secret=ENDPOINT.c.secret, previous_until=sa.bindparam("until"), secret=sa.bindparam("sealed"))
    .returning(*COLUMNS),
)
ENABLE = Query(EndpointRow, sa.update(ENDPOINT).where(OWN).values(status="enabled", failing_since=None, proven=0).returning(*COLUMNS))
# The limit stands in the statement: two replays at once cannot both be the tenth.
COUNT_REPLAY = Query(
    Id,
    sa.update(ENDPOINT)
    .where(OWN, (ENDPOINT.c.replay_minute != sa.bindparam("minute")) | (ENDPOINT.c.replay_count < sa.bindparam("most")))
    .values(
        replay_minute=sa.bindparam("minute"),
        replay_count=sa.case((ENDPOINT.c.replay_minute == sa.bindparam("minute"), ENDPOINT.c.replay_count + 1), else_=1),
    )
    .returning(ENDPOINT.c.id),
)
RECORDS = Query(
    Record,
    lambda dialect: (
        sa.select(*(ENDPOINT.c[name] for name in Record._fields))
        .where(ENDPOINT.c.id.in_(sa.select(listed(dialect, "endpoints", "asked", id=sa.Text).c.id)))
        .order_by(ENDPOINT.c.id)
    ),
)
SUCCEEDED = Command(
    sa.update(ENDPOINT)
    .where(ENDPOINT.c.id == sa.bindparam("endpoint"), ENDPOINT.c.failing_since.is_not(None) | (ENDPOINT.c.proven == 0))
    .values(failing_since=None, proven=1)
)
SINCE = sa.func.coalesce(ENDPOINT.c.failing_since, sa.bindparam("first", type_=sa.BigInteger))
PATIENCE_ENDS = sa.bindparam("patience_ends", type_=sa.BigInteger)
FAILED = Query(
    Status,
    sa.update(ENDPOINT)
    .where(ENDPOINT.c.id == sa.bindparam("endpoint"))
    .values(
        failing_since=SINCE,
        status=sa.case((PATIENCE_ENDS >= SINCE, "disabled"), else_=ENDPOINT.c.status),
    )
    .returning(ENDPOINT.c.status),
)
DISABLE = Command(sa.update(ENDPOINT).where(ENDPOINT.c.id == sa.bindparam("endpoint")).values(status="disabled"))


def insert_endpoint(connection: Connection, *, id: str, organisation: str, url: str, secret: str, now: float) -> None:
    """A new endpoint; refused when the organisation has as many as it may have."""
    connection.first(LOCK, organisation=organisation)
    count = connection.first(COUNT, organisation=organisation)
    if count is not None and count.held >= MOST_ENDPOINTS:
        raise Conflict(
            f"An organisation has at most {MOST_ENDPOINTS} webhook endpoints, and this one has {count.held}; nothing was created",
            code="webhook_endpoint_limit",
            hint="Delete one that is not needed with DELETE /v1/connectivity/webhook_endpoints/{id}",
        )
    connection.run(INSERT, id=id, organisation=organisation, url=url, secret=secret, created=int(now))


def list_endpoints(connection: Connection, *, organisation: str) -> list[EndpointRow]:
    """Newest first."""
    return connection.all(LIST, organisation=organisation)


def read_endpoint(connection: Connection, *, endpoint: str, organisation: str) -> EndpointRow | None:
    """One endpoint of an organisation."""
    return connection.first(READ, endpoint=endpoint, owner=organisation)


def delete_endpoint(connection: Connection, *, endpoint: str, organisation: str) -> bool:
    """Remove an endpoint and what waits for it; False when there is none."""
    if connection.run(DELETE, endpoint=endpoint, owner=organisation) == 0:
        return False
    drop_pending(connection, endpoint=endpoint)
    return True


def rotate_secret(connection: Connection, *, endpoint: str, organisation: str, sealed: str, now: float) -> EndpointRow | None:
    """A new secret; the one before signs as well for a day. Choice: of two rotations in a day the older secret ends at once."""
    return connection.first(ROTATE, endpoint=endpoint, owner=organisation, sealed=sealed, until=int(now) + BOTH_SIGN_SECONDS)


def enable_endpoint(connection: Connection, *, endpoint: str, organisation: str) -> EndpointRow | None:
    """Send to it again, with a clean record."""
    return connection.first(ENABLE, endpoint=endpoint, owner=organisation)


def count_replay(connection: Connection, *, endpoint: str, organisation: str, minute: int, most: int) -> bool:
    """Count one replay; False when the minute's allowance is used up."""
    return connection.first(COUNT_REPLAY, endpoint=endpoint, owner=organisation, minute=minute, most=most) is not None


def read_records(connection: Connection, *, endpoints: Sequence[str]) -> list[Record]:
    """How these endpoints fare, in the order of their ids; those that are gone are left out."""
    return connection.all(RECORDS, endpoints=packed([[endpoint] for endpoint in endpoints])) if endpoints else []


def note_success(connection: Connection, *, endpoint: str) -> None:
    """One success ends a series of failures, and proves that somebody there wants what is sent."""
    connection.run(SUCCEEDED, endpoint=endpoint)


def note_failure(connection: Connection, *, endpoint: str, first: int, last: int, gone: bool) -> None:
    """A 410, or 120 hours of nothing but failures, disables; what waits for a disabled endpoint has failed."""
    found = connection.first(FAILED, endpoint=endpoint, first=first, patience_ends=last - FAILING_SECONDS)
    if gone:
        connection.run(DISABLE, endpoint=endpoint)
    if found is not None and (gone or found.status == "disabled"):
        give_up(connection, endpoint=endpoint)
