"""Schedules: composites that run by cron, which of them work, their webhooks and share links."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.caller import Role, Tier
from registry.errors import Conflict
from registry.ids import Ids
from registry.operation import Scope
from registry.policy import scopes_of
from storage.access_grants import ACCESS_GRANT
from storage.api_keys import API_KEY
from storage.deliveries import DELIVERY, DELIVERY_ATTEMPT, drop_pending, enqueue_event_for
from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, all_rows, first_row, or_last, row_exists, writes
from storage.events import EVENT, NewEvent, record_event
from storage.organisations import MEMBERSHIP, ORGANISATION, lock_organisation
from storage.schedule_mails import remove_schedule_mail
from storage.webhook_endpoints import WEBHOOK_ENDPOINT


class NewSchedule(NamedTuple):
    """A schedule to be. `input` is JSON text."""

    id: Key
    organisation: str
    composite: str
    input: str
    cron: str
    timezone: str
    endpoint: str | None
    share_digest: Annotated[bytes, Field(unique=True)] | None
    created_by: str
    next_ms: BigInt
    created: BigInt
    made_with: str | None = None


class IntelligenceScheduleTable(TableDescription, row=NewSchedule, table=True):
    """A composite that is run by cron. `input` is JSON text, `share_digest` the SHA-256 of the share link's token.

    `endpoint` is the webhook endpoint that reports are delivered to: a row of that table that names this schedule and no list shows.
    `next_ms` is the next boundary; `created_by` the principal who made it, `made_with` the key or grant that they showed: its runs count
    for that one, and rest when it has ended. None: made without one, or before it was kept; then they count for the person alone.
    """

    __table_args__ = (
        sa.Index("intelligence_schedule_organisation", "organisation", "id"),
        sa.Index("intelligence_schedule_due", "next_ms"),
    )


class IntelligenceReportTable(TableDescription, table=True):
    """One run of a schedule. `fire_ms` is its boundary, null when somebody asked for it; one row per boundary, whatever the replicas.

    `state`: waiting, running, done or failed. `body` is the finding and its sheet as JSON text, `error` a sentence of ours.
    """

    id: str = Field(primary_key=True)
    schedule: str
    organisation: str
    fire_ms: BigInt | None
    state: str
    body: str | None
    error: str | None
    lease: str | None
    due_ms: BigInt | None
    tries: int
    created: float
    finished: float | None
    __table_args__ = (
        sa.UniqueConstraint("schedule", "fire_ms", name="intelligence_report_once"),
        sa.Index("intelligence_report_newest", "schedule", "id"),
        sa.Index("intelligence_report_due", "due_ms"),
    )


class ScheduleEndpoint(NamedTuple):
    """A new endpoint; `secret` is sealed."""

    id: str
    organisation: str
    url: str
    secret: str
    schedule: str
    created: int


FIND_OPEN_ENDPOINT = Query(
    str,
    sa.select(WEBHOOK_ENDPOINT.c.id).where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint"), WEBHOOK_ENDPOINT.c.status == "enabled"),
)

REMOVE_SCHEDULE_ENDPOINT = Command(lambda _: sa.delete(WEBHOOK_ENDPOINT).where(WEBHOOK_ENDPOINT.c.id == sa.bindparam("endpoint")))

# What happened to a schedule stands where the intent of other events does, so one index finds both.
OLD_SCHEDULE_EVENTS = sa.select(EVENT.c.id).where(
    EVENT.c.intent == sa.bindparam("schedule", type_=sa.Text), EVENT.c.created < sa.bindparam("before", type_=sa.BigInteger)
)

OLD_SCHEDULE_DELIVERIES = sa.select(DELIVERY.c.id).where(DELIVERY.c.event_id.in_(OLD_SCHEDULE_EVENTS))

FORGET_ATTEMPTS = Command(lambda _: sa.delete(DELIVERY_ATTEMPT).where(DELIVERY_ATTEMPT.c.delivery_id.in_(OLD_SCHEDULE_DELIVERIES)))

FORGET_DELIVERIES = Command(lambda _: sa.delete(DELIVERY).where(DELIVERY.c.event_id.in_(OLD_SCHEDULE_EVENTS)))

FORGET_EVENTS = Command(lambda _: sa.delete(EVENT).where(EVENT.c.id.in_(OLD_SCHEDULE_EVENTS)))


@writes
def insert_schedule_endpoint(*, endpoint: ScheduleEndpoint) -> sa.Executable:
    """Insert the endpoint that the reports of a new schedule go to."""
    return sa.insert(WEBHOOK_ENDPOINT).values(endpoint._asdict()).values(status="enabled", replay_minute=0, replay_count=0, proven=0)


def remove_schedule_endpoint(connection: Connection, *, endpoint: str) -> None:
    """Delete the endpoint of a schedule that is gone, and what waits for it."""
    connection.run(REMOVE_SCHEDULE_ENDPOINT, endpoint=endpoint)
    drop_pending(connection, endpoint=endpoint)


@writes
def enable_schedule_endpoint(*, endpoint: str) -> sa.Executable:
    """Send to an endpoint again, with a clean record."""
    return sa.update(WEBHOOK_ENDPOINT).where(WEBHOOK_ENDPOINT.c.id == endpoint).values(status="enabled", failing_since=None, proven=0)


def emit_report(connection: Connection, *, endpoint: str, event: NewEvent, ids: Ids) -> None:
    """Record a report's event and queue it for its schedule's endpoint, unless that is disabled."""
    if connection.first(FIND_OPEN_ENDPOINT, endpoint=endpoint) is not None and record_event(connection, event=event):
        enqueue_event_for(
            connection,
            event=event.id,
            type=event.type,
            endpoint=endpoint,
            organisation=event.organisation,
            now_ms=event.created * 1000,
            ids=ids,
        )


def forget_schedule_events(connection: Connection, *, schedule: str, before: int) -> None:
    """Drop a schedule's events from before then, with their deliveries."""
    connection.run(FORGET_ATTEMPTS, schedule=schedule, before=before)
    connection.run(FORGET_DELIVERIES, schedule=schedule, before=before)
    connection.run(FORGET_EVENTS, schedule=schedule, before=before)


INTELLIGENCE_SCHEDULE = IntelligenceScheduleTable.table

INTELLIGENCE_REPORT = IntelligenceReportTable.table

MOST_SCHEDULES = 50

SCHEDULES_AT_ONCE = 100

# The last second of the year 9999: later than any boundary.
END_OF_TIME_MS = 253_402_300_799_000


class ScheduleRow(NamedTuple):
    """A schedule as its organisation sees it, with its newest report that has ended."""

    id: str
    composite: str
    input: str
    cron: str
    timezone: str
    next_ms: int
    url: str | None
    status: str | None
    shared: int
    created: int
    created_by: str
    made_with: str | None
    works: int
    ends: float | None
    report: str | None
    report_state: str | None
    report_finished: float | None


class DueSchedule(NamedTuple):
    """A schedule whose boundary has come."""

    id: str
    cron: str
    timezone: str
    next_ms: int


class ScheduleFire(NamedTuple):
    """One boundary: `seen_ms` is what the schedule waited for, `next_ms` what it waits for from now on."""

    schedule: str
    seen_ms: int
    fire_ms: int
    next_ms: int
    report: str


class HeldSchedule(NamedTuple):
    """A schedule that stays as it is until the transaction ends."""

    id: str
    organisation: str
    endpoint: str | None


SCHEDULE_OWNER = sa.bindparam("organisation", type_=sa.Text)

THIS_SCHEDULE = sa.bindparam("schedule", type_=sa.Text)

COUNT_SCHEDULES = Query(
    int,
    sa.select(sa.func.count().label("held"))
    .select_from(INTELLIGENCE_SCHEDULE)
    .where(INTELLIGENCE_SCHEDULE.c.organisation == SCHEDULE_OWNER),
)

INSERT_SCHEDULE = Command(lambda _: sa.insert(INTELLIGENCE_SCHEDULE).values({name: sa.bindparam(name) for name in NewSchedule._fields}))

LAST_ENDED_REPORT = (
    sa.select(sa.func.max(INTELLIGENCE_REPORT.c.id))
    .where(INTELLIGENCE_REPORT.c.schedule == INTELLIGENCE_SCHEDULE.c.id, INTELLIGENCE_REPORT.c.state.in_(("done", "failed")))
    .correlate(INTELLIGENCE_SCHEDULE)
    .scalar_subquery()
)

LAST_REPORT = INTELLIGENCE_REPORT.alias("last")


def schedule_has(*conditions: sa.ColumnElement[bool]) -> sa.Exists:
    """That a row of another table meets these conditions beside the schedule's."""
    return sa.exists().where(*conditions).correlate(INTELLIGENCE_SCHEDULE)


WRITING_TIERS = [tier.value for tier in Tier if Scope.WRITE in scopes_of(tier, Role.MEMBER)]

# Choice: without the scope that schedules are made with nobody in the organisation could delete one, so none runs and no link leads
# anywhere, until the tier carries it again.
TIER_CARRIES = schedule_has(ORGANISATION.c.id == INTELLIGENCE_SCHEDULE.c.organisation, ORGANISATION.c.tier.in_(WRITING_TIERS))

MAKER_IS_MEMBER = schedule_has(
    MEMBERSHIP.c.person_id == INTELLIGENCE_SCHEDULE.c.created_by, MEMBERSHIP.c.organisation_id == INTELLIGENCE_SCHEDULE.c.organisation
)

WORKS_AT = sa.bindparam("now", type_=sa.Double)

KEY_LIVES = schedule_has(
    API_KEY.c.id == INTELLIGENCE_SCHEDULE.c.made_with,
    API_KEY.c.revoked_at.is_(None),
    API_KEY.c.expires_at.is_(None) | (API_KEY.c.expires_at > WORKS_AT),
)

GRANT_LIVES = schedule_has(
    ACCESS_GRANT.c.id == INTELLIGENCE_SCHEDULE.c.made_with, ACCESS_GRANT.c.revoked_at.is_(None), ACCESS_GRANT.c.expires_at > WORKS_AT
)

# Choice: what a schedule was made with ends it in any way that it ends itself, as it ends the keys that were made with it: a program that
# lost its access keeps nothing.
SCHEDULE_WORKS = TIER_CARRIES & MAKER_IS_MEMBER & (INTELLIGENCE_SCHEDULE.c.made_with.is_(None) | KEY_LIVES | GRANT_LIVES)
"""Whether a schedule works at `moment`, Unix seconds; a condition on its row."""

MOVE_SCHEDULE = Command(
    sa.update(INTELLIGENCE_SCHEDULE)
    .where(INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE, INTELLIGENCE_SCHEDULE.c.next_ms == sa.bindparam("seen_ms", type_=sa.BigInteger))
    .values(next_ms=sa.bindparam("later_ms", type_=sa.BigInteger))
)

# Where its organisation may not have schedules any more, or whoever made it may not act for it any more, nothing begins.
# The schedule that is named lends the report its organisation: when it is gone, there is no report.
FIRE_SCHEDULE = Command(
    lambda dialect: (
        dialect.insert(INTELLIGENCE_REPORT)
        .from_select(
            ["id", "schedule", "organisation", "fire_ms", "state", "due_ms", "tries", "created"],
            sa.select(
                sa.bindparam("report", type_=sa.Text),
                INTELLIGENCE_SCHEDULE.c.id,
                INTELLIGENCE_SCHEDULE.c.organisation,
                sa.bindparam("fire_ms", type_=sa.BigInteger),
                sa.literal_column("'waiting'", sa.Text),
                sa.bindparam("now_ms", type_=sa.BigInteger),
                sa.literal_column("0", sa.Integer),
                sa.bindparam("now", type_=sa.Double),
            ).where(INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE, SCHEDULE_WORKS),
        )
        .on_conflict_do_nothing(index_elements=["schedule", "fire_ms"])
    )
)

# Whatever ends, begins or tells of a schedule holds its row first, so that no two of them wait for each other.
HOLD_SCHEDULE = Query(
    HeldSchedule,
    sa.select(INTELLIGENCE_SCHEDULE.c.id, INTELLIGENCE_SCHEDULE.c.organisation, INTELLIGENCE_SCHEDULE.c.endpoint)
    .where(INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE)
    .with_for_update(),
)

DELETE_SCHEDULE = Command(lambda _: sa.delete(INTELLIGENCE_SCHEDULE).where(INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE))

DELETE_REPORTS_OF_SCHEDULE = Command(lambda _: sa.delete(INTELLIGENCE_REPORT).where(INTELLIGENCE_REPORT.c.schedule == THIS_SCHEDULE))


def insert_schedule(connection: Connection, *, schedule: NewSchedule, endpoint: ScheduleEndpoint | None) -> None:
    """A new schedule with its endpoint. Raises Conflict when the organisation has as many as it may have."""
    lock_organisation(connection, organisation=schedule.organisation)
    count = connection.first(COUNT_SCHEDULES, organisation=schedule.organisation)
    if count is not None and count >= MOST_SCHEDULES:
        raise Conflict(
            f"An organisation has at most {MOST_SCHEDULES} schedules, and this one has {count}; nothing was created",
            code="intelligence_schedule_limit",
            hint="Delete one that is not needed with DELETE /v1/intelligence/schedules/{id}",
        )
    connection.run(INSERT_SCHEDULE, **schedule._asdict())
    if endpoint is not None:
        insert_schedule_endpoint(connection, endpoint=endpoint)


@all_rows(ScheduleRow)
def list_schedules(*, organisation: str, after: Annotated[str | None, or_last("sch_")], most: int, now: float) -> sa.Executable:
    """Newest first, with whether each works at `now`, Unix seconds, and when what it was made with expires."""
    return (
        sa.select(
            *(INTELLIGENCE_SCHEDULE.c[name] for name in ("id", "composite", "input", "cron", "timezone", "next_ms")),
            WEBHOOK_ENDPOINT.c.url,
            WEBHOOK_ENDPOINT.c.status,
            sa.case((INTELLIGENCE_SCHEDULE.c.share_digest.is_(None), 0), else_=1).label("shared"),
            *(INTELLIGENCE_SCHEDULE.c[name] for name in ("created", "created_by", "made_with")),
            sa.case((SCHEDULE_WORKS, 1), else_=0).label("works"),
            sa.func.coalesce(sa.cast(API_KEY.c.expires_at, sa.Double), ACCESS_GRANT.c.expires_at).label("ends"),
            LAST_REPORT.c.id.label("report"),
            LAST_REPORT.c.state.label("report_state"),
            LAST_REPORT.c.finished.label("report_finished"),
        )
        .join_from(INTELLIGENCE_SCHEDULE, WEBHOOK_ENDPOINT, WEBHOOK_ENDPOINT.c.id == INTELLIGENCE_SCHEDULE.c.endpoint, isouter=True)
        .join(LAST_REPORT, LAST_REPORT.c.id == LAST_ENDED_REPORT, isouter=True)
        .join(API_KEY, API_KEY.c.id == INTELLIGENCE_SCHEDULE.c.made_with, isouter=True)
        .join(ACCESS_GRANT, ACCESS_GRANT.c.id == INTELLIGENCE_SCHEDULE.c.made_with, isouter=True)
        .where(INTELLIGENCE_SCHEDULE.c.organisation == SCHEDULE_OWNER, INTELLIGENCE_SCHEDULE.c.id < after)
        .order_by(INTELLIGENCE_SCHEDULE.c.id.desc())
        .limit(most)
    )


@row_exists
def schedule_works(*, schedule: str, now: float) -> sa.Executable:
    """Whether reports of a schedule are made at `now`, Unix seconds."""
    return sa.select(INTELLIGENCE_SCHEDULE.c.id).where(INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE, SCHEDULE_WORKS)


@row_exists
def has_schedule(*, schedule: str, organisation: str) -> sa.Executable:
    return sa.select(INTELLIGENCE_SCHEDULE.c.id).where(
        INTELLIGENCE_SCHEDULE.c.id == THIS_SCHEDULE, INTELLIGENCE_SCHEDULE.c.organisation == SCHEDULE_OWNER
    )


def hold_schedule(connection: Connection, *, schedule: str, organisation: str | None = None) -> HeldSchedule | None:
    """The schedule, which nobody deletes until this transaction ends; None when there is none, or it is another organisation's."""
    found = connection.first(HOLD_SCHEDULE, schedule=schedule)
    return None if found is None or organisation not in (None, found.organisation) else found


def delete_schedule(connection: Connection, *, schedule: str, organisation: str) -> bool:
    """Remove a schedule with all that it has: share link, webhook, reports, and what is on its way. False when there is none."""
    held = hold_schedule(connection, schedule=schedule, organisation=organisation)
    if held is None:
        return False
    connection.run(DELETE_SCHEDULE, schedule=schedule)
    connection.run(DELETE_REPORTS_OF_SCHEDULE, schedule=schedule)
    remove_schedule_mail(connection, schedule=schedule)
    if held.endpoint is not None:
        remove_schedule_endpoint(connection, endpoint=held.endpoint)
    forget_schedule_events(connection, schedule=schedule, before=END_OF_TIME_MS)
    return True


@first_row(int)
def next_boundary() -> sa.Executable:
    """When the next boundary of any schedule comes; a read, so that an idle worker never takes the write lock."""
    return sa.select(sa.func.min(INTELLIGENCE_SCHEDULE.c.next_ms).label("next_ms"))


@all_rows(DueSchedule)
def due_schedules(*, now_ms: int) -> sa.Executable:
    """Schedules whose boundary has come, those first that have waited longest. `now_ms`: Unix milliseconds."""
    return (
        sa.select(*(INTELLIGENCE_SCHEDULE.c[name] for name in DueSchedule._fields))
        .where(INTELLIGENCE_SCHEDULE.c.next_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
        .order_by(INTELLIGENCE_SCHEDULE.c.next_ms, INTELLIGENCE_SCHEDULE.c.id)
        .limit(sa.literal_column(str(SCHEDULES_AT_ONCE)))
    )


def fire_schedules(connection: Connection, *, fires: Sequence[ScheduleFire], now: float) -> int:
    """Move each schedule on and begin the report of its boundary, which one replica does and no other; how many began here."""
    begun = 0
    for fire in fires:
        if connection.run(MOVE_SCHEDULE, schedule=fire.schedule, seen_ms=fire.seen_ms, later_ms=fire.next_ms):
            begun += connection.run(
                FIRE_SCHEDULE, schedule=fire.schedule, report=fire.report, fire_ms=fire.fire_ms, now_ms=int(now * 1000), now=now
            )
    return begun


def enable_webhook(connection: Connection, held: HeldSchedule) -> None:
    """Send to the schedule's webhook again, if it has one that was disabled."""
    if held.endpoint is not None:
        enable_schedule_endpoint(connection, endpoint=held.endpoint)
