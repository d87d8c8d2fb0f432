"""Reading the lines of a fleet: which are to be read now and how far each has been read, and storing what was read of them.

A reading is made for one version of a line's row: where another writer has changed the row meanwhile, it is not stored.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Query, bound_list, pack_rows, runs_in_thread, writes
from storage.fleet_erasure import lines_without_names, listed_customer, without_names
from storage.fleet_line_money import add_line_money
from storage.fleet_line_news import USE_THRESHOLDS, FleetBaseline, LineNews, UseNews, baseline_of_fleet, note_crossing
from storage.fleet_lines import (
    FLEET_IS_CURRENT,
    FLEET_LINE,
    HOLD_CURRENT_FLEET,
    LINE_IS_THERE,
    OF_FLEET,
    OF_FLEET_LINE,
    PUT_LINE_DETAIL,
    LineDetail,
    LineFacts,
    LineReadState,
    LineSight,
    LineWrite,
    ListedLine,
    bound_columns,
    end_tags_of_told,
    facts_of_lines,
    issued_among,
    news_of_lines,
)
from storage.fleet_packages import FleetPackageRow, packages_to_come, replace_packages
from storage.fleet_usage import FleetDayRow, FleetNetworkRow, FleetUsageRow, change_days, know_networks, replace_usage
from storage.fleets import BACKFILL, FINISH_DAY, RADIO
from storage.line_owners import owner_at
from storage.sealing import Keyring


class LineWork(NamedTuple):
    """A line that something is to be read of, and how far it has been read."""

    subscriber_id: int
    iccid: str
    version: int
    rank: int
    due: float
    account_id: int
    status: str
    sim_status: str
    issued: float
    activated: float
    last_used: float
    written: float
    read: float
    usage_first: int
    usage_last: int
    usage_read: float
    mcc: int
    mnc: int
    package_state: str
    package_ends: float
    data_left: int
    data_limit: int
    sighted: float
    asked: float
    radio: str


LINE_WORK_COLUMNS = tuple(FLEET_LINE.c[name] for name in LineWork._fields)

NEXT_LINES = Query(
    LineWork,
    sa.select(*LINE_WORK_COLUMNS)
    .where(
        OF_FLEET,
        LINE_IS_THERE,
        FLEET_LINE.c.rank == sa.bindparam("rank", type_=sa.Integer),
        FLEET_LINE.c.due > 0,
        FLEET_LINE.c.due <= sa.bindparam("now", type_=sa.Double),
    )
    .order_by(FLEET_LINE.c.due)
    .limit(sa.bindparam("most", type_=sa.Integer)),
)

NUMBERED_LINES = Query(
    LineWork,
    lambda dialect: sa.select(*LINE_WORK_COLUMNS).where(
        OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)

RANKS = 7

WITHOUT_PACKAGES = (FINISH_DAY, BACKFILL, RADIO)
"""Ranks of lines whose packages are not read: what is stored of them says when the next one begins."""


class LinesToRead(NamedTuple):
    """Lines to read, the most pressing first, and what their packages as they are stored hold for later: series, and what begins then."""

    lines: list[LineWork]
    waiting: dict[int, list[FleetPackageRow]]


@runs_in_thread
def next_lines(connection: Connection, *, fleet: int, now: float, most: int) -> LinesToRead:
    """At most `most` lines to read at `now` (Unix seconds). None of a fleet that has ended."""
    found: list[LineWork] = []
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return LinesToRead(found, {})
    for rank in range(RANKS):
        if len(found) < most:
            found += connection.all(NEXT_LINES, fleet=fleet, rank=rank, now=now, most=most - len(found))
    numbers = [line.subscriber_id for line in found if line.rank in WITHOUT_PACKAGES]
    return LinesToRead(found, packages_to_come(connection, fleet=fleet, numbers=numbers, now=now) if numbers else {})


@runs_in_thread
def work_of_lines(connection: Connection, *, fleet: int, numbers: Collection[int]) -> list[LineWork]:
    """The lines with these subscriber ids that are there, whether anything is to be read of them or not."""
    return connection.all(NUMBERED_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))


NEXT_LINE_DUE = Query(
    float,
    lambda _: sa.select(sa.func.min(FLEET_LINE.c.due).label("due")).where(
        OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.rank == sa.bindparam("rank", type_=sa.Integer), FLEET_LINE.c.due > 0
    ),
)


def next_line_due(connection: Connection, *, fleet: int) -> float | None:
    """When the next line of the fleet is to be read, Unix seconds; None where none waits."""
    found = [connection.first(NEXT_LINE_DUE, fleet=fleet, rank=rank) for rank in range(RANKS)]
    return min((due for due in found if due is not None), default=None)


class LineReading(NamedTuple):
    """What was read of a line, for the version `seen` of its row. None: that part was not read.

    `line`: its own row; `packages`: all that it has; `usage`: all of the days from `first` to `last`; `state`: how far it has been read
    with this; where its `judged` and `judge_due` are -1, those of the row stay.
    """

    subscriber_id: int
    seen: int
    state: LineReadState
    line: tuple[ListedLine, LineDetail] | None = None
    packages: Sequence[FleetPackageRow] | None = None
    usage: Sequence[FleetUsageRow] | None = None
    first: int = 0
    last: int = 0
    networks: Sequence[FleetNetworkRow] = ()


LINE_READING_COLUMNS = bound_columns(LineReadState._fields)


def kept_below_zero(name: str) -> sa.ColumnElement[float]:
    """The value that is bound under the column's name; the row's own where that is below 0."""
    given = sa.bindparam(name, type_=sa.Double)
    return sa.case((given < 0, FLEET_LINE.c[name]), else_=given)


NOTE_READING = Command(
    sa.update(FLEET_LINE)
    .where(OF_FLEET_LINE, LINE_IS_THERE, FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer))
    .values(
        {**LINE_READING_COLUMNS, **{name: kept_below_zero(name) for name in ("judged", "judge_due")}, "version": FLEET_LINE.c.version + 1}
    )
)

NOTE_LINE = Command(
    sa.update(FLEET_LINE)
    .where(OF_FLEET_LINE)
    .values(**{name: sa.bindparam(name) for name in ListedLine._fields}, written=sa.bindparam("now", type_=sa.Double))
)


class ReadingChanges(NamedTuple):
    """What a reading adds to the days of the fleet, and the packages that the line had before; None: they were not read."""

    days: list[FleetDayRow]
    packages: list[FleetPackageRow] | None
    line: ListedLine | None


def store_reading(connection: Connection, fleet: int, reading: LineReading, now: float, nameless: Collection[int]) -> ReadingChanges | None:
    """Stores what was read of a line; None where nothing was stored. `nameless`: lines (subscriber ids) whose names are not kept."""
    named = {"fleet": fleet, "subscriber_id": reading.subscriber_id}
    if connection.run(NOTE_READING, **named, **reading.state._asdict(), seen=reading.seen) == 0:
        return None
    line, packages = None, None
    if reading.line is not None:
        line, detail = reading.line
        if reading.subscriber_id in nameless:
            line, detail = without_names(line, detail)
        told = [LineWrite(reading.subscriber_id, reading.seen, line, detail, reading.state.rank, reading.state.due)]
        issued = issued_among(connection, fleet=fleet, lines=told)
        connection.run(NOTE_LINE, **named, **line._asdict(), now=now)
        end_tags_of_told(connection, fleet=fleet, lines=told, issued=issued)
        connection.run(PUT_LINE_DETAIL, **named, **detail._asdict())
    if reading.packages is not None:
        packages = replace_packages(connection, **named, packages=reading.packages)
    if reading.networks:
        know_networks(connection, fleet=fleet, networks=reading.networks)
    if reading.usage is None:
        return ReadingChanges([], packages, line)
    days = replace_usage(connection, **named, first=reading.first, last=reading.last, usage=reading.usage)
    return ReadingChanges(days, packages, line)


def used_percent(row: FleetPackageRow) -> int:
    return row.data_used * 100 // row.data_limit if row.data_limit > 0 else 0


def use_news(
    connection: Connection,
    *,
    fleet: int,
    baseline: FleetBaseline,
    line: LineFacts,
    former: Sequence[FleetPackageRow],
    packages: Sequence[FleetPackageRow],
    now: float,
) -> list[LineNews]:
    """The thresholds that packages of a line crossed since they were `former`. `now`: Unix seconds.

    Of a line that is an intent's of the same organisation the intent tells them.
    """
    if not baseline.tells(now) or line.read <= 0 or line.read < baseline.began:
        return []
    known = {row.id: used_percent(row) for row in former if not row.series}
    crossed = [
        (row, percent)
        for row in packages
        if not row.series
        for percent in USE_THRESHOLDS
        if known.get(row.id, 0) < percent <= used_percent(row)
    ]
    if not crossed:
        return []
    holder = owner_at(connection, iccid=line.iccid, at=now, account=line.account_id)
    if holder is not None and holder.organisation == baseline.organisation:
        return []
    return [
        UseNews(baseline.organisation, line.iccid, row.id, row.template_id, percent, row.data_used, row.data_limit)
        for row, percent in crossed
        if note_crossing(connection, fleet=fleet, subscriber_id=line.subscriber_id, package=row.id, percent=percent)
    ]


def news_of_reading(
    connection: Connection,
    *,
    fleet: int,
    baseline: FleetBaseline,
    facts: LineFacts,
    reading: LineReading,
    stored: ReadingChanges,
    now: float,
) -> list[LineNews]:
    """What is new of a line that was read: `facts` are what was known before, `stored` is what was written. `now`: Unix seconds."""
    news = list[LineNews]()
    if stored.line is not None:
        sight = LineSight(facts, stored.line, reading.state.sighted)
        news += news_of_lines(connection, fleet=fleet, baseline=baseline, lines=[sight], now=now)
    if stored.packages is not None and reading.packages is not None:
        news += use_news(connection, fleet=fleet, baseline=baseline, line=facts, former=stored.packages, packages=reading.packages, now=now)
    return news


class TimedReading(NamedTuple):
    """What was read of a line, and when: Unix seconds."""

    reading: LineReading
    at: float


class ReadingsStored(NamedTuple):
    """Of how many lines what was read was stored, and what is new of them."""

    stored: int
    news: list[LineNews]


@runs_in_thread
def record_readings(connection: Connection, *, fleet: int, readings: Sequence[TimedReading], keyring: Keyring) -> ReadingsStored:
    """Stores what was read of some lines, each unless its row has changed since, or the fleet has ended."""
    # Asked here, since what a turn knew of names when it began may be minutes old. Who has names to store holds the fleet before: an
    # erasure that does not know the line yet is then either seen, or finds what is stored now.
    named = [
        listed_customer(reading.subscriber_id, *reading.line)
        for reading, _ in readings
        if reading.line is not None and reading.line[0].search
    ]
    if connection.first(HOLD_CURRENT_FLEET if named else FLEET_IS_CURRENT, fleet=fleet) is None:
        return ReadingsStored(0, [])
    nameless = lines_without_names(connection, fleet=fleet, lines=named, keyring=keyring)
    baseline = baseline_of_fleet(connection, fleet=fleet)
    numbers = [reading.subscriber_id for reading, _ in readings if reading.line is not None or reading.packages is not None]
    facts = {} if baseline is None else facts_of_lines(connection, fleet=fleet, numbers=numbers)
    stored, added, news = 0, list[FleetDayRow](), list[LineNews]()
    for reading, at in sorted(readings, key=lambda each: each.reading.subscriber_id):
        changes = store_reading(connection, fleet, reading, at, nameless)
        if changes is None:
            continue
        stored += 1
        added += changes.days
        add_line_money(connection, fleet=fleet, subscriber_id=reading.subscriber_id, changes=changes.days)
        before = facts.get(reading.subscriber_id)
        if baseline is not None and before is not None:
            news += news_of_reading(connection, fleet=fleet, baseline=baseline, facts=before, reading=reading, stored=changes, now=at)
    change_days(connection, fleet=fleet, changes=added)
    return ReadingsStored(stored, news)


@writes
def postpone_line(*, fleet: int, subscriber_id: int, seen: int, due: float) -> sa.Executable:
    """A line that could not be read is read at `due`, Unix seconds, unless it was written to since."""
    return sa.update(FLEET_LINE).where(OF_FLEET_LINE, LINE_IS_THERE, FLEET_LINE.c.version == seen).values(due=due)
