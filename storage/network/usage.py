"""Usage: what developers report for test intents, and what the network metered."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.ids import Ids
from storage.connection import Connection
from storage.network.line_owner import CLOCKS_DIFFER_SECONDS, hold, line_subject, owner_at
from storage.network.metering import MOST_BYTES, add_usage
from storage.network.network_tables import MeteredLineTable
from storage.schema import UsageRecordTable
from storage.statement import Command, Query, table

RECORD, LINE = table(UsageRecordTable), table(MeteredLineTable)
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "ur_" + "z" * 27


class RecordRow(NamedTuple):
    """A usage record."""

    id: str
    organisation: str
    intent: str
    quantity_mb: float
    livemode: int
    created: int


class MeteredLine(NamedTuple):
    """A line of the network's metering."""

    ref: str
    iccid: str
    bytes: int
    usage_type: str
    mcc: str | None
    mnc: str | None
    occurred_at: float


class Ref(NamedTuple):
    """A line that was kept."""

    ref: str


class Claimed(NamedTuple):
    """A line that turned out to be an intent's."""

    bytes: int
    usage_type: str


COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(RECORD.c[name] for name in RecordRow._fields)
INSERT_RECORD = Command(sa.insert(RECORD).values({name: sa.bindparam(name) for name in RecordRow._fields}))
LIST = Query(
    RecordRow,
    sa.select(*COLUMNS)
    .where(
        RECORD.c.intent == sa.bindparam("intent"),
        RECORD.c.organisation == sa.bindparam("organisation"),
        RECORD.c.id < sa.bindparam("after"),
    )
    .order_by(RECORD.c.id.desc())
    .limit(sa.bindparam("most")),
)
INSERT_LINE = Query(
    Ref,
    lambda dialect: (
        dialect.insert(LINE)
        .values({name: sa.bindparam(name) for name in (*MeteredLine._fields, "intent", "stored")})
        .on_conflict_do_nothing(index_elements=["ref"])
        .returning(LINE.c.ref)
    ),
)

CLAIM = Query(
    Claimed,
    sa.update(LINE)
    .where(LINE.c.iccid == sa.bindparam("line"), LINE.c.intent.is_(None), LINE.c.occurred_at >= sa.bindparam("since"))
    .values(intent=sa.bindparam("owner"))
    .returning(LINE.c.bytes, LINE.c.usage_type),
)


def insert_record(connection: Connection, *, row: RecordRow, bytes: int, ids: Ids) -> None:
    """Keep a record and count it."""
    connection.run(INSERT_RECORD, **row._asdict())
    add_usage(connection, intent=row.intent, bytes=bytes, now=row.created, ids=ids)


def list_records(connection: Connection, *, intent: str, organisation: str, after: str | None, most: int) -> list[RecordRow]:
    """Newest first."""
    return connection.all(LIST, intent=intent, organisation=organisation, after=after or AFTER_ALL, most=most)


def insert_line(connection: Connection, *, line: MeteredLine, counts: bool, now: float, ids: Ids) -> bool:
    """Keep a line and count it where it counts; False when its `ref` was there already. A line of nobody's SIM is kept as well."""
    holder = owner_at(connection, iccid=line.iccid, at=line.occurred_at)
    if holder is None:
        hold(connection, subject=line_subject(line.iccid))
        holder = owner_at(connection, iccid=line.iccid, at=line.occurred_at)
    kept = connection.first(INSERT_LINE, **line._asdict(), intent=holder.id if holder else None, stored=int(now))
    if kept is None:
        return False
    if holder is not None and counts:
        add_usage(connection, intent=holder.id, bytes=line.bytes, now=now, ids=ids)
    return True


def claim_lines(connection: Connection, *, intent: str, iccid: str, since: float, now: float, ids: Ids) -> None:
    """Lines that were nobody's when they came, and happened since the intent's eSIM was sent for, count for the intent."""
    claimed = connection.all(CLAIM, line=iccid, owner=intent, since=since - CLOCKS_DIFFER_SECONDS)
    used = sum(line.bytes for line in claimed if line.usage_type == "data")
    if used > 0:
        add_usage(connection, intent=intent, bytes=min(used, MOST_BYTES), now=now, ids=ids)
