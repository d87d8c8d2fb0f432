"""Usage: what developers report for test intents, what the network metered, and the thresholds that an intent crosses.

Each threshold is told once, whoever reports the usage and however often.
Choice: two figures are kept apart, the sum of what was added (`used_bytes`: metered lines, a test intent's usage records) and the highest
total that somebody else counted (`reported_bytes`: package notifications and observations). Both tell of the same use, so the larger one
counts and never their sum: use that is reported both ways counts once, and no order of arrival changes what is told in the end.
The update that moves the figure locks the intent's row, so what it returns is what nobody else can move until the commit.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, cast

import orjson
import sqlalchemy as sa
from sqlmodel import Field

from registry.ids import Ids
from storage.engine.sql import BigInt, Command, Connection, Key, Query, TableDescription, all_rows, insert_once, or_last
from storage.events import NewEvent, emit_event
from storage.intents import INTENT, USAGE_RECORD
from storage.line_owners import CLOCKS_DIFFER_SECONDS, line_subject, lock_subject, owner_at


class MeteredLine(NamedTuple):
    ref: Key
    iccid: Annotated[str, Field(index=True)]
    bytes: BigInt
    usage_type: str
    mcc: str | None
    mnc: str | None
    occurred_at: float


class MeteredLineTable(TableDescription, row=MeteredLine, table=True):
    """Usage the network metered, as the bridge reported it; `ref` makes a repeated line have no effect."""

    intent: str | None
    stored: BigInt


METERED_LINE = MeteredLineTable.table


class UsageRecordRow(NamedTuple):
    id: str
    organisation: str
    intent: str
    quantity_mb: float
    livemode: int
    created: int


class ClaimedUsage(NamedTuple):
    """A line that turned out to be an intent's."""

    bytes: int
    usage_type: str


USAGE_RECORD_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(USAGE_RECORD.c[name] for name in UsageRecordRow._fields)

INSERT_USAGE_RECORD = Command(lambda _: sa.insert(USAGE_RECORD).values({name: sa.bindparam(name) for name in UsageRecordRow._fields}))

INSERT_METERED_LINE = Command(insert_once(METERED_LINE, METERED_LINE.c.keys(), key=["ref"]))

CLAIM_METERED_LINES = Query(
    ClaimedUsage,
    sa.update(METERED_LINE)
    .where(
        METERED_LINE.c.iccid == sa.bindparam("line"), METERED_LINE.c.intent.is_(None), METERED_LINE.c.occurred_at >= sa.bindparam("since")
    )
    .values(intent=sa.bindparam("owner")),
)


def insert_usage_record(connection: Connection, *, row: UsageRecordRow, bytes: int, ids: Ids) -> None:
    connection.run(INSERT_USAGE_RECORD, **row._asdict())
    add_usage(connection, intent=row.intent, bytes=bytes, now=row.created, ids=ids)


@all_rows(UsageRecordRow)
def list_usage_records(*, intent: str, organisation: str, after: Annotated[str | None, or_last("ur_")], most: int) -> sa.Executable:
    """At most `most` records of an intent behind the id `after`, newest first."""
    return (
        sa.select(*USAGE_RECORD_COLUMNS)
        .where(
            USAGE_RECORD.c.intent == intent,
            USAGE_RECORD.c.organisation == organisation,
            USAGE_RECORD.c.id < after,
        )
        .order_by(USAGE_RECORD.c.id.desc())
        .limit(most)
    )


def insert_metered_line(connection: Connection, *, line: MeteredLine, counts: bool, now: float, ids: Ids) -> bool:
    """Keep a line and count it where it counts; False when its `ref` was there already. A line of nobody's SIM is kept as well."""
    holder = owner_at(connection, iccid=line.iccid, at=line.occurred_at)
    if holder is None:
        lock_subject(connection, subject=line_subject(line.iccid))
        holder = owner_at(connection, iccid=line.iccid, at=line.occurred_at)
    if connection.run(INSERT_METERED_LINE, **line._asdict(), intent=holder.id if holder else None, stored=int(now)) == 0:
        return False
    if holder is not None and counts:
        add_usage(connection, intent=holder.id, bytes=line.bytes, now=now, ids=ids)
    return True


def claim_metered_lines(connection: Connection, *, intent: str, iccid: str, since: float, now: float, ids: Ids) -> None:
    """Lines that were nobody's when they came, and happened since the intent's eSIM was sent for, count for the intent."""
    claimed = connection.all(CLAIM_METERED_LINES, line=iccid, owner=intent, since=since - CLOCKS_DIFFER_SECONDS)
    used = sum(line.bytes for line in claimed if line.usage_type == "data")
    if used > 0:
        add_usage(connection, intent=intent, bytes=min(used, MOST_BYTES), now=now, ids=ids)


USAGE_THRESHOLDS = (50, 80, 100)

BYTES_PER_MB = 1_000_000

# What a JSON number holds exactly; the figure stays there rather than overflow.
MOST_BYTES = 2**53 - 1


class IntentUsage(NamedTuple):
    """An intent after its figure moved."""

    id: str
    organisation: str
    livemode: int
    plan_id: str | None
    plan: str | None
    iccid: str | None
    used_bytes: int
    reported_bytes: int
    notified_percent: int

    @property
    def figure(self) -> int:
        return max(self.used_bytes, self.reported_bytes)


USAGE_SUM = sa.case((INTENT.c.used_bytes > sa.bindparam("room"), MOST_BYTES), else_=INTENT.c.used_bytes + sa.bindparam("more"))

ADD_USAGE = Query(IntentUsage, lambda _: sa.update(INTENT).where(INTENT.c.id == sa.bindparam("intent")).values(used_bytes=USAGE_SUM))

RAISE_USAGE = Query(
    IntentUsage,
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.reported_bytes < sa.bindparam("total"))
    .values(reported_bytes=sa.bindparam("total")),
)

NOTE_NOTIFIED = Command(
    sa.update(INTENT)
    .where(INTENT.c.id == sa.bindparam("intent"), INTENT.c.notified_percent < sa.bindparam("percent"))
    .values(notified_percent=sa.bindparam("percent"))
)


def add_usage(connection: Connection, *, intent: str, bytes: int, now: float, ids: Ids) -> None:
    """Add `bytes` to what was used. `now`: Unix seconds."""
    metered = connection.first(ADD_USAGE, intent=intent, more=bytes, room=MOST_BYTES - bytes)
    if metered is not None:
        emit_thresholds(connection, metered, now, ids)


def raise_usage(connection: Connection, *, intent: str, total: int, now: float, ids: Ids) -> None:
    """A total that somebody else counted: it moves the figure up, never down, since reports may arrive out of order."""
    metered = connection.first(RAISE_USAGE, intent=intent, total=total)
    if metered is not None:
        emit_thresholds(connection, metered, now, ids)


def emit_thresholds(connection: Connection, metered: IntentUsage, now: float, ids: Ids) -> None:
    """Emit one event for each threshold that was crossed just now. `now`: Unix seconds."""
    plan = cast(dict[str, object], orjson.loads(metered.plan or "{}"))
    data_mb = cast(int, plan.get("data_mb", 0))
    if data_mb <= 0:  # an unlimited plan
        return
    reached = metered.figure * 100 // (data_mb * BYTES_PER_MB)
    crossed = [percent for percent in USAGE_THRESHOLDS if metered.notified_percent < percent <= reached]
    if not crossed or connection.run(NOTE_NOTIFIED, intent=metered.id, percent=crossed[-1]) == 0:
        return
    for percent in crossed:
        emit_event(connection, event=threshold_event(metered, percent, data_mb, now, ids), ids=ids)


def threshold_event(metered: IntentUsage, percent: int, data_mb: int, now: float, ids: Ids) -> NewEvent:
    """usage.threshold_reached; its name in `dedup` is a second lock behind `notified_percent`. `now`: Unix seconds."""
    data = {
        "intent": metered.id,
        "iccid": metered.iccid,
        "plan": metered.plan_id,
        "threshold_percent": percent,
        "used_mb": metered.figure / BYTES_PER_MB,
        "data_mb": data_mb,
    }
    return NewEvent(
        ids.new("evt_"),
        metered.organisation,
        metered.id,
        "usage.threshold_reached",
        metered.livemode,
        orjson.dumps(data).decode(),
        f"threshold|{metered.id}|{percent}",
        int(now),
    )
