"""Schedules: composites that run by cron, their webhooks and share links."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.connection import Connection
from storage.reports.intelligence_tables import IntelligenceReportTable, IntelligenceScheduleTable
from storage.reports.schedule_endpoints import (
    ScheduleEndpoint,
    enable_of_schedule,
    forget_events,
    insert_for_schedule,
    remove_of_schedule,
)
from storage.reports.schedule_tiers import WORKS
from storage.schema import AccessGrantTable, ApiKeyTable, WebhookEndpointTable
from storage.statement import Command, Query, table
from storage.webhooks.endpoints import LOCK

SCHEDULE, REPORT, ENDPOINT = table(IntelligenceScheduleTable), table(IntelligenceReportTable), table(WebhookEndpointTable)
KEY, GRANT = table(ApiKeyTable), table(AccessGrantTable)
MOST_SCHEDULES = 50
DUE_AT_ONCE = 100
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "sch_" + "z" * 27
# The last second of the year 9999: later than any boundary.
EVER = 253_402_300_799_000


class NewSchedule(NamedTuple):
    """A schedule to be. `input` is JSON text."""

    id: str
    organisation: str
    composite: str
    input: str
    cron: str
    timezone: str
    endpoint: str | None
    share_digest: bytes | None
    created_by: str
    next_ms: int
    created: int
    made_with: str | None = None


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


class Fire(NamedTuple):
    """One boundary: `seen_ms` is what the schedule waited for, `next_ms` what it waits for from now on."""

    schedule: str
    seen_ms: int
    fire_ms: int
    next_ms: int
    report: str


class Locked(NamedTuple):
    """A schedule that stays as it is until the transaction ends."""

    id: str
    organisation: str
    endpoint: str | None


class Seen(NamedTuple):
    """A schedule that is there."""

    id: str


class Count(NamedTuple):
    """How many."""

    held: int


class Next(NamedTuple):
    """When the next boundary comes."""

    next_ms: int | None


OWNER = sa.bindparam("organisation", type_=sa.Text)
THIS = sa.bindparam("schedule", type_=sa.Text)
COUNT = Query(Count, sa.select(sa.func.count().label("held")).select_from(SCHEDULE).where(SCHEDULE.c.organisation == OWNER))
INSERT = Command(sa.insert(SCHEDULE).values({name: sa.bindparam(name) for name in NewSchedule._fields}))
ENDED = (
    sa.select(sa.func.max(REPORT.c.id))
    .where(REPORT.c.schedule == SCHEDULE.c.id, REPORT.c.state.in_(("done", "failed")))
    .correlate(SCHEDULE)
    .scalar_subquery()
)
LAST = REPORT.alias("last")
LIST = Query(
    ScheduleRow,
    sa.select(
        *(SCHEDULE.c[name] for name in ("id", "composite", "input", "cron", "timezone", "next_ms")),
        ENDPOINT.c.url,
        ENDPOINT.c.status,
        sa.case((SCHEDULE.c.share_digest.is_(None), 0), else_=1).label("shared"),
        *(SCHEDULE.c[name] for name in ("created", "created_by", "made_with")),
        sa.case((WORKS, 1), else_=0).label("works"),
        sa.func.coalesce(sa.cast(KEY.c.expires_at, sa.Double), GRANT.c.expires_at).label("ends"),
        LAST.c.id.label("report"),
        LAST.c.state.label("report_state"),
        LAST.c.finished.label("report_finished"),
    )
    .join_from(SCHEDULE, ENDPOINT, ENDPOINT.c.id == SCHEDULE.c.endpoint, isouter=True)
    .join(LAST, LAST.c.id == ENDED, isouter=True)
    .join(KEY, KEY.c.id == SCHEDULE.c.made_with, isouter=True)
    .join(GRANT, GRANT.c.id == SCHEDULE.c.made_with, isouter=True)
    .where(SCHEDULE.c.organisation == OWNER, SCHEDULE.c.id < sa.bindparam("after"))
    .order_by(SCHEDULE.c.id.desc())
    .limit(sa.bindparam("most")),
)
NEXT = Query(Next, sa.select(sa.func.min(SCHEDULE.c.next_ms).label("next_ms")))
DUE = Query(
    DueSchedule,
    sa.select(*(SCHEDULE.c[name] for name in DueSchedule._fields))
    .where(SCHEDULE.c.next_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))
    .order_by(SCHEDULE.c.next_ms, SCHEDULE.c.id)
    .limit(sa.literal_column(str(DUE_AT_ONCE))),
)
MOVE = Command(
    sa.update(SCHEDULE)
    .where(SCHEDULE.c.id == THIS, SCHEDULE.c.next_ms == sa.bindparam("seen_ms", type_=sa.BigInteger))
    .values(next_ms=sa.bindparam("later_ms", type_=sa.BigInteger))
)
# Where its organisation may not have schedules any more, or whoever made it may not act for it any more, nothing begins.
# The schedule that is named lends the report its organisation: when it is gone, there is no report.
FIRE = Command(
    lambda dialect: (
        dialect.insert(REPORT)
        .from_select(
            ["id", "schedule", "organisation", "fire_ms", "state", "due_ms", "tries", "created"],
            sa.select(
                sa.bindparam("report", type_=sa.Text),
                SCHEDULE.c.id,
                SCHEDULE.c.organisation,
                sa.bindparam("fire_ms", type_=sa.BigInteger),
                sa.literal_column("'waiting'", sa.Text),
                sa.bindparam("now_ms", type_=sa.BigInteger),
                sa.literal_column("0", sa.Integer),
                sa.bindparam("now", type_=sa.Double),
            ).where(SCHEDULE.c.id == THIS, WORKS),
        )
        .on_conflict_do_nothing(index_elements=["schedule", "fire_ms"])
    )
)
SEEN = Query(Seen, sa.select(SCHEDULE.c.id).where(SCHEDULE.c.id == THIS, SCHEDULE.c.organisation == OWNER))
WORKING = Query(Seen, sa.select(SCHEDULE.c.id).where(SCHEDULE.c.id == THIS, WORKS))
# Whatever ends, begins or tells of a schedule holds its row first, so that no two of them wait for each other.
HOLD = Query(Locked, sa.select(SCHEDULE.c.id, SCHEDULE.c.organisation, SCHEDULE.c.endpoint).where(SCHEDULE.c.id == THIS).with_for_update())
DELETE = Command(sa.delete(SCHEDULE).where(SCHEDULE.c.id == THIS))
DELETE_REPORTS = Command(sa.delete(REPORT).where(REPORT.c.schedule == THIS))


def insert_schedule(connection: Connection, *, schedule: NewSchedule, endpoint: ScheduleEndpoint | None) -> None:
    """A new schedule with its endpoint; refused when the organisation has as many as it may have."""
    connection.first(LOCK, organisation=schedule.organisation)
    count = connection.first(COUNT, organisation=schedule.organisation)
    if count is not None and count.held >= MOST_SCHEDULES:
        raise Conflict(
            f"An organisation has at most {MOST_SCHEDULES} schedules, and this one has {count.held}; nothing was created",
            code="intelligence_schedule_limit",
            hint="Delete one that is not needed with DELETE /v1/intelligence/schedules/{id}",
        )
    connection.run(INSERT, **schedule._asdict())
    if endpoint is not None:
        insert_for_schedule(connection, endpoint=endpoint)


def list_schedules(connection: Connection, *, organisation: str, after: str | None, most: int, now: float) -> list[ScheduleRow]:
    """Newest first, with whether each works at `now`, Unix seconds, and when what it was made with expires."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most, moment=now)


def schedule_works(connection: Connection, *, schedule: str, now: float) -> bool:
    """Whether reports of a schedule are made at `now`, Unix seconds."""
    return connection.first(WORKING, schedule=schedule, moment=now) is not None


def has_schedule(connection: Connection, *, schedule: str, organisation: str) -> bool:
    """Whether the organisation has this schedule."""
    return connection.first(SEEN, schedule=schedule, organisation=organisation) is not None


def hold_schedule(connection: Connection, *, schedule: str, organisation: str | None = None) -> Locked | None:
    """The schedule, which nobody deletes until this transaction ends; None when there is none, or it is another organisation's."""
    found = connection.first(HOLD, schedule=schedule)
    return None if found is None or organisation not in (None, found.organisation) else found


def delete_schedule(connection: Connection, *, schedule: str, organisation: str) -> bool:
    """Remove a schedule with all that it has: share link, webhook, reports, and what is on its way. False when there is none."""
    held = hold_schedule(connection, schedule=schedule, organisation=organisation)
    if held is None:
        return False
    connection.run(DELETE, schedule=schedule)
    connection.run(DELETE_REPORTS, schedule=schedule)
    if held.endpoint is not None:
        remove_of_schedule(connection, endpoint=held.endpoint)
    forget_events(connection, schedule=schedule, before=EVER)
    return True


def next_boundary(connection: Connection) -> int | None:
    """When the next boundary of any schedule comes; a read, so that an idle worker never takes the write lock."""
    row = connection.first(NEXT)
    return row.next_ms if row else None


def due_schedules(connection: Connection, *, now_ms: int) -> list[DueSchedule]:
    """Schedules whose boundary has come, those first that have waited longest."""
    return connection.all(DUE, now_ms=now_ms)


def fire_schedules(connection: Connection, *, fires: Sequence[Fire], now: float) -> int:
    """Move each schedule on and begin the report of its boundary, which one replica does and no other; how many began here."""
    begun = 0
    for fire in fires:
        if connection.run(MOVE, schedule=fire.schedule, seen_ms=fire.seen_ms, later_ms=fire.next_ms):
            begun += connection.run(
                FIRE, schedule=fire.schedule, report=fire.report, fire_ms=fire.fire_ms, now_ms=int(now * 1000), now=now, moment=now
            )
    return begun


def enable_webhook(connection: Connection, held: Locked) -> None:
    """Send to the schedule's webhook again, if it has one that was disabled."""
    if held.endpoint is not None:
        enable_of_schedule(connection, endpoint=held.endpoint)
