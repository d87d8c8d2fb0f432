"""Webhook endpoints: where an organisation's events are sent, and with which sealed secrets they are signed."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import Conflict
from registry.ids import Ids
from storage.deliveries import DELIVERY, FAILED_STATE, IS_UNTAKEN, drop_pending, fail_waiting, queue_deliveries
from storage.endpoint_selections import ENDPOINT_SELECTION, forget_selection
from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    changes_one,
    first_row,
    pack_rows,
    row_exists,
    writes,
)
from storage.mcp_subscriptions import expired_subscriptions, forget_subscription
from storage.organisations import lock_organisation


class EndpointRow(NamedTuple):
    """An endpoint without its secrets."""

    id: Key
    url: str
    status: str
    created: BigInt


class WebhookEndpointTable(TableDescription, row=EndpointRow, table=True):
    """Where events are sent. Secrets are sealed; during a rotation the previous one signs as well.

    One with a `schedule` takes that schedule's reports and nothing else, and no list of endpoints shows it. `proven` is 1 once it has
    answered 2xx.
    """

    organisation: str = Field(index=True)
    secret: str
    previous_secret: str | None
    previous_until: BigInt | None
    failing_since: BigInt | None
    replay_minute: BigInt
    replay_count: int
    schedule: str | None
    proven: int


WEBHOOK_ENDPOINT = WebhookEndpointTable.table

MOST_ENDPOINTS = 16

BOTH_SIGN_SECONDS = 86_400

FAILING_SECONDS = 120 * 3600


class EndpointRecord(NamedTuple):
    """How an endpoint fares: since when it has only failed, if it has."""

    id: str
    status: str
    failing_since: int | None
    proven: int


ENDPOINT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(WEBHOOK_ENDPOINT.c[name] for name in EndpointRow._fields)

# One that belongs to a schedule of reports is read only by storage/schedules.py.
IS_LISTED_ENDPOINT = WEBHOOK_ENDPOINT.c.schedule.is_(None)

OWN_ENDPOINT = (
    (WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint"))
    & (WEBHOOK_ENDPOINT.c.organisation == sa.bindparam("organisation"))
    & IS_LISTED_ENDPOINT
)

COUNT_ENDPOINTS = Query(
    int,
    sa.select(sa.func.count().label("held"))
    .select_from(WEBHOOK_ENDPOINT)
    .where(WEBHOOK_ENDPOINT.c.organisation == sa.bindparam("organisation"), IS_LISTED_ENDPOINT),
)

INSERT_ENDPOINT = Command(
    sa.insert(WEBHOOK_ENDPOINT)
    .values({name: sa.bindparam(name) for name in ("id", "organisation", "url", "secret", "created")})
    .values(status="enabled", replay_minute=0, replay_count=0, proven=0)
)

DELETE_ENDPOINT = Command(lambda _: sa.delete(WEBHOOK_ENDPOINT).where(OWN_ENDPOINT))

ROTATE_ENDPOINT_SECRET = Query(
    EndpointRow,
    sa.update(WEBHOOK_ENDPOINT)
    .where(OWN_ENDPOINT)
    .values(previous_secret=WEBHOOK_ENDPOINT.c.secret, previous_until=sa.bindparam("until"), secret=sa.bindparam("sealed")),
)

LIST_ENDPOINT_RECORDS = Query(
    EndpointRecord,
    lambda dialect: (
        sa.select(*(WEBHOOK_ENDPOINT.c[name] for name in EndpointRecord._fields))
        .where(WEBHOOK_ENDPOINT.c.id.in_(bound_list(dialect, "endpoints")))
        .order_by(WEBHOOK_ENDPOINT.c.id)
    ),
)

FAILING_SINCE = sa.func.coalesce(WEBHOOK_ENDPOINT.c.failing_since, sa.bindparam("first", type_=sa.BigInteger))

PATIENCE_ENDS = sa.bindparam("patience_ends", type_=sa.BigInteger)


class EndpointState(NamedTuple):
    """Whose an endpoint is, and whether it is sent to."""

    organisation: str
    status: str


class DisabledEndpoint(NamedTuple):
    """An endpoint that was enabled, and is not any more. `gone`: it answered 410; else it has only failed for five days."""

    endpoint: str
    organisation: str
    gone: bool


NOTE_ENDPOINT_FAILURE = Query(
    EndpointState,
    sa.update(WEBHOOK_ENDPOINT)
    .where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint"))
    .values(
        failing_since=FAILING_SINCE,
        status=sa.case((PATIENCE_ENDS >= FAILING_SINCE, "disabled"), else_=WEBHOOK_ENDPOINT.c.status),
    )
    .returning(WEBHOOK_ENDPOINT.c.organisation, WEBHOOK_ENDPOINT.c.status),
)

ENDPOINT_STATE = Query(
    EndpointState,
    sa.select(WEBHOOK_ENDPOINT.c.organisation, WEBHOOK_ENDPOINT.c.status)
    .where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint"), IS_LISTED_ENDPOINT)
    .with_for_update(),
)


def insert_endpoint(connection: Connection, *, id: str, organisation: str, url: str, secret: str, now: float) -> None:
    """A new endpoint. Raises Conflict when the organisation has as many as it may have. `now`: Unix seconds."""
    lock_organisation(connection, organisation=organisation)
    count = connection.first(COUNT_ENDPOINTS, organisation=organisation)
    if count is not None and count >= MOST_ENDPOINTS:
        raise Conflict(
            f"An organisation has at most {MOST_ENDPOINTS} webhook endpoints, and this one has {count}; nothing was created",
            code="webhook_endpoint_limit",
            hint="Delete one that is not needed with DELETE /v1/connectivity/webhook_endpoints/{id}",
        )
    connection.run(INSERT_ENDPOINT, id=id, organisation=organisation, url=url, secret=secret, created=int(now))


@all_rows(EndpointRow)
def list_endpoints(*, organisation: str) -> sa.Executable:
    """The endpoints of `organisation`, newest first."""
    return (
        sa.select(*ENDPOINT_COLUMNS)
        .where(WEBHOOK_ENDPOINT.c.organisation == organisation, IS_LISTED_ENDPOINT)
        .order_by(WEBHOOK_ENDPOINT.c.id.desc())
    )


@first_row(EndpointRow)
def read_endpoint(*, endpoint: str, organisation: str) -> sa.Executable:
    return sa.select(*ENDPOINT_COLUMNS).where(OWN_ENDPOINT)


@first_row(EndpointRow)
def hold_endpoint(*, endpoint: str, organisation: str) -> sa.Executable:
    """The same, for a transaction that goes on to change it or what it has chosen: nobody else does so meanwhile."""
    return sa.select(*ENDPOINT_COLUMNS).where(OWN_ENDPOINT).with_for_update()


def delete_endpoint(connection: Connection, *, endpoint: str, organisation: str) -> bool:
    """Remove an endpoint and what waits for it; False when there is none."""
    if connection.run(DELETE_ENDPOINT, endpoint=endpoint, organisation=organisation) == 0:
        return False
    drop_pending(connection, endpoint=endpoint)
    forget_selection(connection, endpoint=endpoint)
    forget_subscription(connection, endpoint=endpoint)
    return True


def sweep_subscriptions(connection: Connection, *, before: float, most: int) -> int:
    """Remove the endpoints of MCP subscriptions that have ended. `before`: Unix seconds."""
    ended = expired_subscriptions(connection, before=before, most=most)
    for each in ended:
        delete_endpoint(connection, endpoint=each.endpoint, organisation=each.organisation)
        forget_subscription(connection, endpoint=each.endpoint)
    return len(ended)


@first_row(str)
def read_endpoint_secret(*, endpoint: str, organisation: str) -> sa.Executable:
    """The sealed secret of an endpoint."""
    return sa.select(WEBHOOK_ENDPOINT.c.secret).where(OWN_ENDPOINT)


def enabled_endpoints(connection: Connection, *, organisation: str) -> list[str]:
    """The ids of the endpoints of `organisation` that are sent to."""
    return connection.all(LIST_ENABLED_ENDPOINTS, organisation=organisation)


@changes_one
def disable_endpoint(*, endpoint: str) -> sa.Executable:
    """Send nothing more to an endpoint; False where it was disabled, or gone, already."""
    return (
        sa.update(WEBHOOK_ENDPOINT)
        .where(WEBHOOK_ENDPOINT.c.id == endpoint, WEBHOOK_ENDPOINT.c.status == "enabled")
        .values(status="disabled")
    )


@changes_one
def move_endpoint(*, endpoint: str, organisation: str, url: str) -> sa.Executable:
    """Send to another address from now on, also what waits; the secret stays, and the new receiver has no record."""
    return sa.update(WEBHOOK_ENDPOINT).where(OWN_ENDPOINT).values(url=url, failing_since=None, proven=0)


def rotate_endpoint_secret(connection: Connection, *, endpoint: str, organisation: str, sealed: str, now: float) -> EndpointRow | None:
    """A new secret; the one before signs as well for a day. Choice: of two rotations in a day the older secret ends at once."""
    return connection.first(
        ROTATE_ENDPOINT_SECRET, endpoint=endpoint, organisation=organisation, sealed=sealed, until=int(now) + BOTH_SIGN_SECONDS
    )


@first_row(EndpointRow)
def enable_endpoint(*, endpoint: str, organisation: str) -> sa.Executable:
    """Send to an endpoint again, with a clean record; None where there is none such."""
    return sa.update(WEBHOOK_ENDPOINT).where(OWN_ENDPOINT).values(status="enabled", failing_since=None, proven=0)


@row_exists
def count_endpoint_replay(*, endpoint: str, organisation: str, minute: int, most: int) -> sa.Executable:
    """Count one replay; False when the minute's allowance is used up."""
    # The limit stands in the statement: two replays at once cannot both be the tenth.
    return (
        sa.update(WEBHOOK_ENDPOINT)
        .where(
            OWN_ENDPOINT,
            (WEBHOOK_ENDPOINT.c.replay_minute != minute) | (WEBHOOK_ENDPOINT.c.replay_count < most),
        )
        .values(
            replay_minute=minute,
            replay_count=sa.case((WEBHOOK_ENDPOINT.c.replay_minute == minute, WEBHOOK_ENDPOINT.c.replay_count + 1), else_=1),
        )
        .returning(WEBHOOK_ENDPOINT.c.id)
    )


def read_endpoint_records(connection: Connection, *, endpoints: Sequence[str]) -> list[EndpointRecord]:
    """How these endpoints fare, in the order of their ids; those that are gone are left out."""
    return connection.all(LIST_ENDPOINT_RECORDS, endpoints=pack_rows([[endpoint] for endpoint in endpoints])) if endpoints else []


@writes
def note_endpoint_success(*, endpoint: str) -> sa.Executable:
    """One success ends a series of failures, and proves that somebody there wants what is sent."""
    return (
        sa.update(WEBHOOK_ENDPOINT)
        .where(WEBHOOK_ENDPOINT.c.id == endpoint, WEBHOOK_ENDPOINT.c.failing_since.is_not(None) | (WEBHOOK_ENDPOINT.c.proven == 0))
        .values(failing_since=None, proven=1)
    )


def note_endpoint_failure(connection: Connection, *, endpoint: str, first: int, last: int, gone: bool) -> DisabledEndpoint | None:
    """A 410, or 120 hours of nothing but failures, disables; what waits for a disabled endpoint has failed.

    Returns the endpoint where it was enabled and listed before: the one of a schedule is told of with its reports.
    """
    before = connection.first(ENDPOINT_STATE, endpoint=endpoint)
    found = connection.first(NOTE_ENDPOINT_FAILURE, endpoint=endpoint, first=first, patience_ends=last - FAILING_SECONDS)
    if gone:
        disable_endpoint(connection, endpoint=endpoint)
    if found is None or not (gone or found.status == "disabled"):
        return None
    fail_waiting(connection, endpoint=endpoint)
    return None if before is None or before.status != "enabled" else DisabledEndpoint(endpoint, before.organisation, gone)


ENABLED_ENDPOINTS = (
    sa.select(WEBHOOK_ENDPOINT.c.id)
    .where(
        WEBHOOK_ENDPOINT.c.organisation == sa.bindparam("organisation"),
        WEBHOOK_ENDPOINT.c.status == "enabled",
        WEBHOOK_ENDPOINT.c.schedule.is_(None),
    )
    .order_by(WEBHOOK_ENDPOINT.c.id)
)

LIST_ENABLED_ENDPOINTS = Query(str, ENABLED_ENDPOINTS)

HAS_CHOSEN = sa.exists().where(ENDPOINT_SELECTION.c.endpoint == WEBHOOK_ENDPOINT.c.id, ENDPOINT_SELECTION.c.types.is_not(None))

ENDPOINTS_WITHOUT_CHOICE = ENABLED_ENDPOINTS.where(sa.not_(HAS_CHOSEN))

LIST_ENDPOINTS_WITHOUT_CHOICE = Query(str, ENDPOINTS_WITHOUT_CHOICE)

DELIVERIES_OF_DISABLED = (
    sa.select(DELIVERY.c.id)
    .join_from(WEBHOOK_ENDPOINT, DELIVERY, DELIVERY.c.endpoint_id == WEBHOOK_ENDPOINT.c.id)
    .where(WEBHOOK_ENDPOINT.c.status == "disabled", IS_UNTAKEN)
    .limit(sa.bindparam("most"))
)

FAIL_WAITING_OF_DISABLED = Command(
    lambda _: sa.update(DELIVERY).where(DELIVERY.c.id.in_(DELIVERIES_OF_DISABLED), IS_UNTAKEN).values(state=FAILED_STATE)
)


def endpoints_without_choice(connection: Connection, *, organisation: str) -> list[str]:
    """The ids of the endpoints that get the three promised events."""
    return connection.all(LIST_ENDPOINTS_WITHOUT_CHOICE, organisation=organisation)


def enqueue_event(connection: Connection, *, event: str, type: str, organisation: str, now_ms: int, ids: Ids) -> None:
    """Queue one of the three promised events for every enabled endpoint that has chosen no types, each at the start of the schedule.

    Attempts keep their numbers.
    """
    endpoints = endpoints_without_choice(connection, organisation=organisation)
    queue_deliveries(connection, event=event, type=type, endpoints=endpoints, organisation=organisation, now_ms=now_ms, ids=ids)


def fail_waiting_of_disabled(connection: Connection, *, before: float, most: int) -> int:
    """What still waits for endpoints that are disabled has failed. `before` is not asked for: all of it has. `before`: Unix seconds."""
    del before
    return connection.run(FAIL_WAITING_OF_DISABLED, most=most)
