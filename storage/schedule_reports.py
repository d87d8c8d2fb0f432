"""Reports of schedules: begun once per boundary, made under a lease by whichever replica takes them, the newest 30 kept.

`due_ms` is also the visibility timeout: a report whose maker died is due again when the lease ends. Ended reports are never due.
A share link leads to the newest report of its schedule.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.engine.sql import Command, Connection, Query, changes_one, first_row, row_exists, value_or
from storage.event_log import LogEntry, log_event
from storage.events import NewEvent
from storage.organisations import ORGANISATION
from storage.schedules import (
    INTELLIGENCE_REPORT,
    INTELLIGENCE_SCHEDULE,
    SCHEDULE_WORKS,
    emit_report,
    enable_webhook,
    forget_schedule_events,
    hold_schedule,
)

REPORTS_KEPT = 30

RUNS_PER_HOUR = 6

RUNS_HOUR_SECONDS = 3600

EVENTS_KEPT_SECONDS = 30 * 86_400


class SharedReportRow(NamedTuple):
    """The newest report behind a share link. `body` is JSON text: {"finding": ..., "sheet": ...}."""

    organisation: str
    composite: str
    body: str
    finished: float


class ReportRow(NamedTuple):
    """A report as its organisation sees it."""

    id: str
    schedule: str
    composite: str
    fire_ms: int | None
    state: str
    body: str | None
    error: str | None
    created: float
    finished: float | None


class LeasedReport(NamedTuple):
    """A report to be made, under a lease."""

    id: str
    schedule: str
    organisation: str
    fire_ms: int | None
    tries: int
    created: float
    composite: str
    input: str
    created_by: str
    made_with: str | None


class EndedReport(NamedTuple):
    """How a report ended: `body` when it was made, `error` as JSON text when not."""

    id: str
    schedule: str
    token: str
    state: str
    body: str | None
    error: str | None
    finished: float


REPORT_NOW = sa.bindparam("now_ms", type_=sa.BigInteger)

REPORT_IS_HELD = (INTELLIGENCE_REPORT.c.id == sa.bindparam("report")) & (INTELLIGENCE_REPORT.c.lease == sa.bindparam("held"))

IS_OF_SCHEDULE = INTELLIGENCE_REPORT.c.schedule == sa.bindparam("schedule", type_=sa.Text)

REPORT_HAS_ENDED = INTELLIGENCE_REPORT.c.state.in_(("done", "failed"))

OTHER_REPORT = INTELLIGENCE_REPORT.alias("other")

# Choice: one report of an organisation at a time, so that nobody's fifty schedules keep everybody else's waiting.
REPORT_IS_BUSY = sa.exists().where(
    OTHER_REPORT.c.organisation == INTELLIGENCE_REPORT.c.organisation, OTHER_REPORT.c.lease.is_not(None), OTHER_REPORT.c.due_ms > REPORT_NOW
)

FREE_REPORTS = (
    sa.select(INTELLIGENCE_REPORT.c.id)
    .where(INTELLIGENCE_REPORT.c.due_ms <= REPORT_NOW, ~REPORT_IS_BUSY)
    .order_by(INTELLIGENCE_REPORT.c.due_ms)
    .limit(sa.literal_column("1"))
)

# PostgreSQL skips the row while another replica holds it; on SQLite the clause renders nothing, and the write lock excludes.
PICK_REPORT = FREE_REPORTS.with_for_update(skip_locked=True).scalar_subquery()

TAKE_REPORT = Command(
    sa.update(INTELLIGENCE_REPORT)
    .where(INTELLIGENCE_REPORT.c.id == PICK_REPORT)
    .values(
        state="running",
        lease=sa.bindparam("token"),
        due_ms=sa.bindparam("lease_end", type_=sa.BigInteger),
        tries=INTELLIGENCE_REPORT.c.tries + 1,
    )
)

READ_LEASED_REPORT = Query(
    LeasedReport,
    sa.select(
        *(INTELLIGENCE_REPORT.c[name] for name in ("id", "schedule", "organisation", "fire_ms", "tries", "created")),
        *(INTELLIGENCE_SCHEDULE.c[name] for name in ("composite", "input", "created_by", "made_with")),
    )
    .join_from(INTELLIGENCE_REPORT, INTELLIGENCE_SCHEDULE, INTELLIGENCE_SCHEDULE.c.id == INTELLIGENCE_REPORT.c.schedule)
    .where(
        INTELLIGENCE_REPORT.c.lease == sa.bindparam("token"), INTELLIGENCE_REPORT.c.due_ms == sa.bindparam("lease_end", type_=sa.BigInteger)
    ),
)

RETURN_REPORT = Command(
    sa.update(INTELLIGENCE_REPORT)
    .where(REPORT_IS_HELD)
    .values(
        state="waiting",
        lease=None,
        due_ms=sa.bindparam("again_ms", type_=sa.BigInteger),
        tries=INTELLIGENCE_REPORT.c.tries - sa.bindparam("uncounted", type_=sa.Integer),
    )
)

REPORTS_TO_KEEP = (
    sa.select(INTELLIGENCE_REPORT.c.id)
    .where(IS_OF_SCHEDULE, REPORT_HAS_ENDED)
    .order_by(INTELLIGENCE_REPORT.c.id.desc())
    .limit(sa.literal_column(str(REPORTS_KEPT)))
)

TRIM_REPORTS = Command(
    lambda _: sa.delete(INTELLIGENCE_REPORT).where(IS_OF_SCHEDULE, REPORT_HAS_ENDED, INTELLIGENCE_REPORT.c.id.not_in(REPORTS_TO_KEEP))
)

ASK_REPORT = Command(
    sa.insert(INTELLIGENCE_REPORT)
    .values({name: sa.bindparam(name) for name in ("id", "schedule", "organisation", "due_ms", "created")})
    .values(state="waiting", tries=0)
)

COUNT_ASKED = Query(
    int,
    sa.select(sa.func.count().label("held"))
    .select_from(INTELLIGENCE_REPORT)
    .where(IS_OF_SCHEDULE, INTELLIGENCE_REPORT.c.fire_ms.is_(None), INTELLIGENCE_REPORT.c.created > sa.bindparam("since", type_=sa.Double)),
)

REPORT_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(
    (INTELLIGENCE_SCHEDULE if name == "composite" else INTELLIGENCE_REPORT).c[name] for name in ReportRow._fields
)

OWN_REPORTS = (
    sa.select(*REPORT_COLUMNS)
    .join_from(INTELLIGENCE_REPORT, INTELLIGENCE_SCHEDULE, INTELLIGENCE_SCHEDULE.c.id == INTELLIGENCE_REPORT.c.schedule)
    .where(IS_OF_SCHEDULE, INTELLIGENCE_SCHEDULE.c.organisation == sa.bindparam("organisation"))
)

FIND_NEWEST_REPORT = Query(
    ReportRow, lambda _: OWN_REPORTS.where(REPORT_HAS_ENDED).order_by(INTELLIGENCE_REPORT.c.id.desc()).limit(sa.literal_column("1"))
)

FIND_REPORT_UNDER_WAY = Query(
    ReportRow, lambda _: OWN_REPORTS.where(~REPORT_HAS_ENDED).order_by(INTELLIGENCE_REPORT.c.id.desc()).limit(sa.literal_column("1"))
)


@row_exists
def any_report_due(*, now_ms: int) -> sa.Executable:
    """Whether there is a report to take; a read, so that an idle worker never takes the write lock. `now_ms`: Unix milliseconds."""
    return FREE_REPORTS


def take_report(connection: Connection, *, token: str, now_ms: int, lease_ms: int) -> LeasedReport | None:
    """Take the report that has waited longest, or whose lease has ended, for the length of a lease. `now_ms`: Unix milliseconds."""
    end = now_ms + lease_ms
    if connection.run(TAKE_REPORT, token=token, now_ms=now_ms, lease_end=end) == 0:
        return None
    return connection.first(READ_LEASED_REPORT, token=token, lease_end=end)


def return_report(connection: Connection, *, report: str, token: str, again_ms: int, counted: bool) -> bool:
    """Make it later, by whoever takes it then; `counted`: it was tried. False when the lease was lost meanwhile."""
    return connection.run(RETURN_REPORT, report=report, held=token, again_ms=again_ms, uncounted=0 if counted else 1) == 1


def finish_report(connection: Connection, *, ended: EndedReport, event: NewEvent, ready: LogEntry, ids: Ids) -> bool:
    """Keep how a report ended, tell the schedule's webhook, drop what is too old; False when the lease or the schedule is gone.

    `ready`: the event of the log.
    """
    held = hold_schedule(connection, schedule=ended.schedule)
    if held is None or not end_report(connection, ended=ended):
        return False
    log_event(connection, event=ready)
    if held.endpoint is not None:
        emit_report(connection, endpoint=held.endpoint, event=event, ids=ids)
    connection.run(TRIM_REPORTS, schedule=ended.schedule)
    forget_schedule_events(connection, schedule=ended.schedule, before=int(ended.finished) - EVENTS_KEPT_SECONDS)
    return True


@changes_one
def end_report(*, ended: EndedReport) -> sa.Executable:
    """The report's end; False where its lease is not held any more."""
    found = {"state": ended.state, "body": ended.body, "error": ended.error, "finished": ended.finished}
    return (
        sa.update(INTELLIGENCE_REPORT)
        .where(INTELLIGENCE_REPORT.c.id == ended.id, INTELLIGENCE_REPORT.c.lease == ended.token)
        .values(**found, lease=None, due_ms=None)
    )


def ask_report(connection: Connection, *, id: str, schedule: str, organisation: str, now: float) -> bool | None:
    """Begin a report beside the boundaries, and send to a disabled webhook again. False: the hour has no more, None: no such schedule."""
    held = hold_schedule(connection, schedule=schedule, organisation=organisation)
    if held is None:
        return None
    asked = connection.first(COUNT_ASKED, schedule=schedule, since=now - RUNS_HOUR_SECONDS)
    if asked is not None and asked >= RUNS_PER_HOUR:
        return False
    connection.run(ASK_REPORT, id=id, schedule=schedule, organisation=organisation, due_ms=int(now * 1000), created=now)
    enable_webhook(connection, held)
    return True


def newest_report(connection: Connection, *, schedule: str, organisation: str) -> ReportRow | None:
    """The newest report that has ended; before the first has, the newest that is under way."""
    binds = {"schedule": schedule, "organisation": organisation}
    return connection.first(FIND_NEWEST_REPORT, **binds) or connection.first(FIND_REPORT_UNDER_WAY, **binds)


@first_row(ReportRow)
def read_report(*, schedule: str, organisation: str, report: str) -> sa.Executable:
    return OWN_REPORTS.where(INTELLIGENCE_REPORT.c.id == report)


@value_or("")
def schedule_of_report(*, report: str) -> sa.Executable:
    """The schedule that a report is of; empty where the report is gone."""
    return sa.select(INTELLIGENCE_REPORT.c.schedule).where(INTELLIGENCE_REPORT.c.id == report)


@first_row(SharedReportRow)
def newest_shared(*, digest: bytes) -> sa.Executable:
    """The newest report that was made of the schedule with this share link; None when there is none, or no such link."""
    return (
        sa.select(
            ORGANISATION.c.name.label("organisation"),
            INTELLIGENCE_SCHEDULE.c.composite,
            INTELLIGENCE_REPORT.c.body,
            INTELLIGENCE_REPORT.c.finished,
        )
        .join_from(INTELLIGENCE_SCHEDULE, INTELLIGENCE_REPORT, INTELLIGENCE_REPORT.c.schedule == INTELLIGENCE_SCHEDULE.c.id)
        .join(ORGANISATION, ORGANISATION.c.id == INTELLIGENCE_SCHEDULE.c.organisation)
        .where(INTELLIGENCE_SCHEDULE.c.share_digest == sa.bindparam("digest", type_=sa.LargeBinary), INTELLIGENCE_REPORT.c.state == "done")
        .order_by(INTELLIGENCE_REPORT.c.id.desc())
        .limit(sa.literal_column("1"))
    )


class ShareLink(NamedTuple):
    """A link that is right, and whose it is."""

    organisation: str
    name: str
    composite: str


class SharedLink(NamedTuple):
    """What a link leads to; no report before the first is made."""

    link: ShareLink
    report: SharedReportRow | None


FIND_SHARE_LINK = Query(
    ShareLink,
    sa.select(INTELLIGENCE_SCHEDULE.c.organisation, ORGANISATION.c.name, INTELLIGENCE_SCHEDULE.c.composite)
    .join_from(INTELLIGENCE_SCHEDULE, ORGANISATION, ORGANISATION.c.id == INTELLIGENCE_SCHEDULE.c.organisation)
    .where(INTELLIGENCE_SCHEDULE.c.share_digest == sa.bindparam("digest", type_=sa.LargeBinary), SCHEDULE_WORKS),
)


def shared_by(connection: Connection, *, digest: bytes, now: float) -> SharedLink | None:
    """What the link with this digest leads to; None: there is no such link, or not any more. `now`: Unix seconds."""
    link = connection.first(FIND_SHARE_LINK, digest=digest, now=now)
    return None if link is None else SharedLink(link, newest_shared(connection, digest=digest))
