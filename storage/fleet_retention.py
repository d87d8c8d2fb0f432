"""What goes of the read model when its time is over: fleets that have ended, lines that left, problems that were solved, days of use.

Everything goes in steps, since there may be millions of rows. Days of use become months, so that their sums stay.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import sqlalchemy as sa

from registry.clock import DAY_SECONDS
from storage.engine.sql import Command, Connection, Dialect, Query, runs_in_thread
from storage.engine.store import Store
from storage.engine.sweep import SWEEP_STEPS, SWEPT_AT_ONCE, sweep_in_steps
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_line_money import BLOCK_DAYS, FLEET_LINE_MONEY
from storage.fleet_line_news import forget_line_news, sweep_fleet_news
from storage.fleet_lines import BOUND_FLEET, BOUND_LINE, FLEET_LINE, FLEET_LINE_DETAIL, FORGET_GONE_LINE, FORGET_LINE_ROWS
from storage.fleet_packages import FLEET_PACKAGE
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleet_usage import FLEET_DAY, FLEET_MONTH, FLEET_NETWORK, FLEET_USAGE, KEPT_USAGE_DAYS, KEPT_USAGE_MONTHS, FleetUsageRow
from storage.fleets import FLEET, ended_fleets, forget_fleet, note_sweep

GONE_LINES_SECONDS = CLOSED_PROBLEMS_SECONDS = 30 * DAY_SECONDS
LATE_WRITES_SECONDS = 3600.0
"""What was being written to a fleet while it ended is there by then."""
FLEETS_AT_ONCE = 20
LINES_AT_ONCE = 100
TABLES_OF_FLEET = (
    FLEET_LINE_MONEY,
    FLEET_USAGE,
    FLEET_DAY,
    FLEET_MONTH,
    FLEET_PACKAGE,
    FLEET_PROBLEM,
    FLEET_FIGURE,
    FLEET_LINE_DETAIL,
    FLEET_LINE,
    FLEET_NETWORK,
)
BOUND_BEFORE = sa.bindparam("before", type_=sa.Double)
BOUND_MOST = sa.bindparam("most", type_=sa.Integer)
EPOCH_DAY = date(1970, 1, 1).toordinal()


def removing(table: sa.Table, condition: sa.ColumnElement[bool]) -> Command:
    """Removes at most `most` of the rows for which the condition holds."""
    key = tuple(table.primary_key.columns)
    return Command(sa.delete(table).where(sa.tuple_(*key).in_(sa.select(*key).where(condition).limit(BOUND_MOST)), condition))


ROWS_OF_FLEET = tuple(removing(table, table.c.fleet == BOUND_FLEET) for table in TABLES_OF_FLEET)


@runs_in_thread
def sweep_fleet_rows(connection: Connection, *, fleet: int, most: int) -> int:
    """Removes at most `most` rows of a fleet; how many they were."""
    gone = 0
    for command in ROWS_OF_FLEET:
        if gone < most:
            gone += connection.run(command, fleet=fleet, most=most - gone)
    return gone + (sweep_fleet_news(connection, fleet=fleet, most=most - gone) if gone < most else 0)


async def sweep_ended_fleets(store: Store, now: float) -> None:
    """Removes the rows of fleets that have ended; an hour later what was written late, and then the fleets themselves. Unix seconds."""
    steps = SWEEP_STEPS
    for fleet in await store.read(ended_fleets, most=FLEETS_AT_ONCE):
        if fleet.due and now - fleet.due < LATE_WRITES_SECONDS:
            continue
        while steps > 0 and await store.write(sweep_fleet_rows, fleet=fleet.id, most=SWEPT_AT_ONCE) == SWEPT_AT_ONCE:
            steps -= 1
        if steps <= 0:
            return
        if fleet.due:
            await store.write(forget_fleet, fleet=fleet.id)
        else:
            await store.write(note_sweep, fleet=fleet.id, now=now)


class LineOfFleet(NamedTuple):
    """A line, by its fleet and its number."""

    fleet: int
    subscriber_id: int


LONG_GONE_LINES = Query(
    LineOfFleet,
    sa.select(FLEET_LINE.c.fleet, FLEET_LINE.c.subscriber_id)
    .where(FLEET_LINE.c.gone > 0, FLEET_LINE.c.gone < BOUND_BEFORE)
    .limit(BOUND_MOST),
)


@runs_in_thread
def long_gone_lines(connection: Connection, *, before: float, most: int) -> list[LineOfFleet]:
    """Lines that left before `before`, Unix seconds."""
    return connection.all(LONG_GONE_LINES, before=before, most=most)


@runs_in_thread
def forget_lines(connection: Connection, *, lines: Sequence[LineOfFleet]) -> None:
    """Removes lines that have left, unless they have come back, and everything that was known of them."""
    for line in lines:
        if connection.run(FORGET_GONE_LINE, fleet=line.fleet, subscriber_id=line.subscriber_id):
            for command in FORGET_LINE_ROWS:
                connection.run(command, fleet=line.fleet, subscriber_id=line.subscriber_id)
            forget_line_news(connection, fleet=line.fleet, subscriber_id=line.subscriber_id)


CLOSED_PROBLEMS = removing(FLEET_PROBLEM, sa.and_(FLEET_PROBLEM.c.closed > 0, FLEET_PROBLEM.c.closed < BOUND_BEFORE))


@runs_in_thread
def sweep_closed_problems(connection: Connection, *, before: float, most: int) -> int:
    """Removes problems that were over before `before`, Unix seconds; how many they were."""
    return connection.run(CLOSED_PROBLEMS, before=before, most=most)


BOUND_DAY = sa.bindparam("day", type_=sa.Integer)

# A line whose last use is older than the days that are known of it has no rows there any more.
AGED_LINES = Query(
    LineOfFleet,
    sa.select(FLEET_LINE.c.fleet, FLEET_LINE.c.subscriber_id)
    .where(
        FLEET_LINE.c.usage_first > 0,
        FLEET_LINE.c.usage_first < BOUND_DAY,
        FLEET_LINE.c.last_used >= (FLEET_LINE.c.usage_first - EPOCH_DAY) * float(DAY_SECONDS),
    )
    .limit(BOUND_MOST),
)


@runs_in_thread
def aged_lines(connection: Connection, *, day: int, most: int) -> list[LineOfFleet]:
    """Lines with days of use before `day`, an ordinal."""
    return connection.all(AGED_LINES, day=day, most=most)


OF_AGED_LINE = sa.and_(FLEET_USAGE.c.fleet == BOUND_FLEET, FLEET_USAGE.c.subscriber_id == BOUND_LINE, FLEET_USAGE.c.day < BOUND_DAY)

AGED_USAGE = Query(FleetUsageRow, lambda _: sa.select(*(FLEET_USAGE.c[name] for name in FleetUsageRow._fields)).where(OF_AGED_LINE))

DROP_AGED_USAGE = Command(lambda _: sa.delete(FLEET_USAGE).where(OF_AGED_LINE))

DROP_AGED_MONEY = Command(
    lambda _: sa.delete(FLEET_LINE_MONEY).where(
        FLEET_LINE_MONEY.c.fleet == BOUND_FLEET,
        FLEET_LINE_MONEY.c.subscriber_id == BOUND_LINE,
        FLEET_LINE_MONEY.c.block < sa.bindparam("block", type_=sa.Integer),
    )
)

FIGURES = ("quantity", "covered", "network_cost", "usage_income")

MONTH_COLUMNS = ("fleet", "subscriber_id", *FleetUsageRow._fields)


def add_to_month(dialect: Dialect) -> sa.Executable:
    given = {name: sa.bindparam(name, type_=FLEET_MONTH.c[name].type) for name in MONTH_COLUMNS}
    return (
        dialect.insert(FLEET_MONTH)
        .values(given)
        .on_conflict_do_update(
            index_elements=["fleet", "subscriber_id", "day", "mcc", "mnc", "kind"],
            set_={name: FLEET_MONTH.c[name] + given[name] for name in FIGURES},
        )
    )


ADD_TO_MONTH = Command(add_to_month)

KNOW_DAYS_FROM = Command(
    sa.update(FLEET_LINE)
    .where(FLEET_LINE.c.fleet == BOUND_FLEET, FLEET_LINE.c.subscriber_id == BOUND_LINE, FLEET_LINE.c.usage_first < BOUND_DAY)
    .values(usage_first=BOUND_DAY)
)


@runs_in_thread
def roll_up_usage(connection: Connection, *, lines: Sequence[LineOfFleet], day: int) -> None:
    """Adds the days of use of `lines` before `day`, an ordinal, to their months, and removes them."""
    for fleet, number in sorted(lines):
        named = {"fleet": fleet, "subscriber_id": number}
        rows = connection.all(AGED_USAGE, **named, day=day)
        if rows:
            connection.run_many(ADD_TO_MONTH, [{**named, **row._asdict()} for row in months_of_days(rows)])
            connection.run(DROP_AGED_USAGE, **named, day=day)
            connection.run(DROP_AGED_MONEY, **named, block=day // BLOCK_DAYS)
        connection.run(KNOW_DAYS_FROM, **named, day=day)


def months_of_days(rows: Sequence[FleetUsageRow]) -> list[FleetUsageRow]:
    """The sums of `rows` for each month, network and kind."""
    sums = defaultdict[tuple[int, int, int, int], list[int]](lambda: [0, 0, 0, 0])
    for row in rows:
        figures = sums[date.fromordinal(row.day).replace(day=1).toordinal(), row.mcc, row.mnc, row.kind]
        for place, figure in enumerate((row.quantity, row.covered, row.network_cost, row.usage_income)):
            figures[place] += figure
    return [FleetUsageRow(*key, *sums[key]) for key in sorted(sums)]


class MonthKey(NamedTuple):
    """A row of a month."""

    fleet: int
    subscriber_id: int
    day: int
    mcc: int
    mnc: int
    kind: int


OLD_MONTHS = Query(
    MonthKey, sa.select(*(FLEET_MONTH.c[name] for name in MonthKey._fields)).where(FLEET_MONTH.c.day < BOUND_DAY).limit(BOUND_MOST)
)

DROP_MONTH = Command(lambda _: sa.delete(FLEET_MONTH).where(*(FLEET_MONTH.c[name] == sa.bindparam(name) for name in MonthKey._fields)))


@runs_in_thread
def old_months(connection: Connection, *, day: int, most: int) -> list[MonthKey]:
    """Rows of months that began before `day`, an ordinal."""
    return connection.all(OLD_MONTHS, day=day, most=most)


@runs_in_thread
def drop_months(connection: Connection, *, months: Sequence[MonthKey]) -> None:
    """Removes rows of months."""
    connection.run_many(DROP_MONTH, [month._asdict() for month in months])


OLD_FLEET_DAYS = removing(FLEET_DAY, sa.and_(FLEET_DAY.c.fleet.in_(sa.select(FLEET.c.id)), FLEET_DAY.c.day < BOUND_DAY))


@runs_in_thread
def sweep_fleet_days(connection: Connection, *, day: int, most: int) -> int:
    """Removes at most `most` rows of what all lines used before `day`, an ordinal; how many they were."""
    return connection.run(OLD_FLEET_DAYS, day=day, most=most)


def first_kept_day(now: float) -> int:
    """The oldest day of use that is kept as a day at `now`, Unix seconds: an ordinal. A reading that began yesterday still writes it."""
    return EPOCH_DAY + int(now // DAY_SECONDS) - KEPT_USAGE_DAYS


def first_kept_month(now: float) -> int:
    """The first day of the oldest month that is kept at `now`, Unix seconds, as an ordinal."""
    today = date.fromordinal(EPOCH_DAY + int(now // DAY_SECONDS))
    years, month = divmod(today.year * 12 + today.month - 1 - KEPT_USAGE_MONTHS, 12)
    return date(years, month + 1, 1).toordinal()


async def sweep_fleet_history(store: Store, now: float) -> None:
    """Removes lines that left and problems that were solved thirty days ago, and makes months of old days of use. `now`: Unix seconds.

    What is to go is looked for by reads, so that nobody's write waits for a look through a large table.
    """
    day, month = first_kept_day(now), first_kept_month(now)
    for _ in range(SWEEP_STEPS):
        lines = await store.read(long_gone_lines, before=now - GONE_LINES_SECONDS, most=LINES_AT_ONCE)
        if not lines:
            break
        await store.write(forget_lines, lines=lines)
    await sweep_in_steps(store, sweep_closed_problems, before=now - CLOSED_PROBLEMS_SECONDS)
    for _ in range(SWEEP_STEPS):
        lines = await store.read(aged_lines, day=day, most=LINES_AT_ONCE)
        if not lines:
            break
        await store.write(roll_up_usage, lines=lines, day=day)
    for _ in range(SWEEP_STEPS):
        if await store.write(sweep_fleet_days, day=day, most=SWEPT_AT_ONCE) < SWEPT_AT_ONCE:
            break
    for _ in range(SWEEP_STEPS):
        months = await store.read(old_months, day=month, most=SWEPT_AT_ONCE)
        if not months:
            break
        await store.write(drop_months, months=months)
