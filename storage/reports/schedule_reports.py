"""Reports of schedules: begun once per boundary, made under a lease by whichever replica takes them, the newest 30 kept.

`due_ms` is also the visibility timeout: a report whose maker died is due again when the lease ends. Ended reports are never due.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.reports.intelligence_tables import IntelligenceReportTable, IntelligenceScheduleTable
from storage.reports.schedule_endpoints import forget_events, tell
from storage.reports.schedules import enable_webhook, hold_schedule
from storage.schema import OrganisationTable
from storage.statement import Command, Query, table
from storage.webhooks.events import NewEvent

REPORT, SCHEDULE = table(IntelligenceReportTable), table(IntelligenceScheduleTable)
ORGANISATION = table(OrganisationTable)
REPORTS_KEPT = 30
RUNS_PER_HOUR = 6
HOUR = 3600
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


class Taken(NamedTuple):
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


class Ended(NamedTuple):
    """How a report ended: `body` when it was made, `error` as JSON text when not."""

    id: str
    schedule: str
    token: str
    state: str
    body: str | None
    error: str | None
    finished: float


class Due(NamedTuple):
    """A report that may be taken."""

    id: str


class Count(NamedTuple):
    """How many."""

    held: int


THIS = sa.bindparam("schedule", type_=sa.Text)
NOW = sa.bindparam("now_ms", type_=sa.BigInteger)
HELD = (REPORT.c.id == sa.bindparam("report")) & (REPORT.c.lease == sa.bindparam("held"))
OF_SCHEDULE = REPORT.c.schedule == THIS
HAS_ENDED = REPORT.c.state.in_(("done", "failed"))

OTHER = REPORT.alias("other")
# Choice: one report of an organisation at a time, so that nobody's fifty schedules keep everybody else's waiting.
BUSY = sa.exists().where(OTHER.c.organisation == REPORT.c.organisation, OTHER.c.lease.is_not(None), OTHER.c.due_ms > NOW)
FREE = sa.select(REPORT.c.id).where(REPORT.c.due_ms <= NOW, ~BUSY).order_by(REPORT.c.due_ms).limit(sa.literal_column("1"))
ANY = Query(Due, FREE)
# PostgreSQL skips the row while another replica holds it; on SQLite the clause renders nothing, and the write lock excludes.
PICK = FREE.with_for_update(skip_locked=True).scalar_subquery()
TAKE = Command(
    sa.update(REPORT)
    .where(REPORT.c.id == PICK)
    .values(state="running", lease=sa.bindparam("token"), due_ms=sa.bindparam("lease_end", type_=sa.BigInteger), tries=REPORT.c.tries + 1)
)
READ_TAKEN = Query(
    Taken,
    sa.select(
        *(REPORT.c[name] for name in ("id", "schedule", "organisation", "fire_ms", "tries", "created")),
        *(SCHEDULE.c[name] for name in ("composite", "input", "created_by", "made_with")),
    )
    .join_from(REPORT, SCHEDULE, SCHEDULE.c.id == REPORT.c.schedule)
    .where(REPORT.c.lease == sa.bindparam("token"), REPORT.c.due_ms == sa.bindparam("lease_end", type_=sa.BigInteger)),
)
AGAIN = Command(
    sa.update(REPORT)
    .where(HELD)
    .values(
        state="waiting",
        lease=None,
        due_ms=sa.bindparam("again_ms", type_=sa.BigInteger),
        tries=REPORT.c.tries - sa.bindparam("uncounted", type_=sa.Integer),
    )
)
END = Command(
    sa.update(REPORT)
    .where(HELD)
    .values(
        state=sa.bindparam("ended"),
        body=sa.bindparam("found"),
        error=sa.bindparam("why"),
        finished=sa.bindparam("at", type_=sa.Double),
        lease=None,
        due_ms=None,
    )
)
KEPT = sa.select(REPORT.c.id).where(OF_SCHEDULE, HAS_ENDED).order_by(REPORT.c.id.desc()).limit(sa.literal_column(str(REPORTS_KEPT)))
TRIM = Command(sa.delete(REPORT).where(OF_SCHEDULE, HAS_ENDED, REPORT.c.id.not_in(KEPT)))
ASK = Command(
    sa.insert(REPORT)
    .values({name: sa.bindparam(name) for name in ("id", "schedule", "organisation", "due_ms", "created")})
    .values(state="waiting", tries=0)
)
ASKED = Query(
    Count,
    sa.select(sa.func.count().label("held"))
    .select_from(REPORT)
    .where(OF_SCHEDULE, REPORT.c.fire_ms.is_(None), REPORT.c.created > sa.bindparam("since", type_=sa.Double)),
)
COLUMNS: Sequence[sa.ColumnElement[object]] = tuple((SCHEDULE if name == "composite" else REPORT).c[name] for name in ReportRow._fields)
OWN = (
    sa.select(*COLUMNS)
    .join_from(REPORT, SCHEDULE, SCHEDULE.c.id == REPORT.c.schedule)
    .where(OF_SCHEDULE, SCHEDULE.c.organisation == sa.bindparam("organisation"))
)
NEWEST = Query(ReportRow, OWN.where(HAS_ENDED).order_by(REPORT.c.id.desc()).limit(sa.literal_column("1")))
NAMED = Query(ReportRow, OWN.where(REPORT.c.id == sa.bindparam("report")))
UNDER_WAY = Query(ReportRow, OWN.where(~HAS_ENDED).order_by(REPORT.c.id.desc()).limit(sa.literal_column("1")))
SHARED = Query(
    SharedReportRow,
    sa.select(ORGANISATION.c.name.label("organisation"), SCHEDULE.c.composite, REPORT.c.body, REPORT.c.finished)
    .join_from(SCHEDULE, REPORT, REPORT.c.schedule == SCHEDULE.c.id)
    .join(ORGANISATION, ORGANISATION.c.id == SCHEDULE.c.organisation)
    .where(SCHEDULE.c.share_digest == sa.bindparam("digest", type_=sa.LargeBinary), REPORT.c.state == "done")
    .order_by(REPORT.c.id.desc())
    .limit(sa.literal_column("1")),
)


def any_due(connection: Connection, *, now_ms: int) -> bool:
    """Whether there is a report to take; a read, so that an idle worker never takes the write lock."""
    return connection.first(ANY, now_ms=now_ms) is not None


def take_report(connection: Connection, *, token: str, now_ms: int, lease_ms: int) -> Taken | None:
    """Take the report that has waited longest, or whose lease has ended, for the length of a lease."""
    end = now_ms + lease_ms
    if connection.run(TAKE, token=token, now_ms=now_ms, lease_end=end) == 0:
        return None
    return connection.first(READ_TAKEN, token=token, lease_end=end)


def put_back(connection: Connection, *, report: str, token: str, again_ms: int, counted: bool) -> bool:
    """Make it later, by whoever takes it then; `counted`: it was tried. False when the lease was lost meanwhile."""
    return connection.run(AGAIN, report=report, held=token, again_ms=again_ms, uncounted=0 if counted else 1) == 1


def finish_report(connection: Connection, *, ended: Ended, event: NewEvent, ids: Ids) -> bool:
    """Keep how a report ended, tell the schedule's webhook, drop what is too old; False when the lease or the schedule is gone."""
    held = hold_schedule(connection, schedule=ended.schedule)
    if held is None or not end(connection, ended):
        return False
    if held.endpoint is not None:
        tell(connection, endpoint=held.endpoint, event=event, ids=ids)
    connection.run(TRIM, schedule=ended.schedule)
    forget_events(connection, schedule=ended.schedule, before=int(ended.finished) - EVENTS_KEPT_SECONDS)
    return True


def end(connection: Connection, ended: Ended) -> bool:
    """The report's end, if its lease is still held."""
    found = {"ended": ended.state, "found": ended.body, "why": ended.error, "at": ended.finished}
    return connection.run(END, report=ended.id, held=ended.token, **found) == 1


def ask_report(connection: Connection, *, id: str, schedule: str, organisation: str, now: float) -> bool | None:
    """Begin a report beside the boundaries, and send to a disabled webhook again. False: the hour has no more, None: no such schedule."""
    held = hold_schedule(connection, schedule=schedule, organisation=organisation)
    if held is None:
        return None
    asked = connection.first(ASKED, schedule=schedule, since=now - HOUR)
    if asked is not None and asked.held >= RUNS_PER_HOUR:
        return False
    connection.run(ASK, id=id, schedule=schedule, organisation=organisation, due_ms=int(now * 1000), created=now)
    enable_webhook(connection, held)
    return True


def newest_report(connection: Connection, *, schedule: str, organisation: str) -> ReportRow | None:
    """The newest report that has ended; before the first has, the newest that is under way."""
    binds = {"schedule": schedule, "organisation": organisation}
    return connection.first(NEWEST, **binds) or connection.first(UNDER_WAY, **binds)


def read_report(connection: Connection, *, schedule: str, organisation: str, report: str) -> ReportRow | None:
    """One report."""
    return connection.first(NAMED, schedule=schedule, organisation=organisation, report=report)


def newest_shared(connection: Connection, *, digest: bytes) -> SharedReportRow | None:
    """The newest report that was made of the schedule with this share link; None when there is none, or no such link."""
    return connection.first(SHARED, digest=digest)
