"""What the lines of a fleet cost and bring in between two days: sums of each line, of networks and kinds of use, and of packages.

Days are ordinals, moments Unix seconds, money is whole micro-euro.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Dialect, Query, bound_list, pack_rows, runs_in_thread
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_judgements import JUDGED_LINES, JudgedLine
from storage.fleet_line_money import COSTS, FLEET_LINE_MONEY, HOLDS_DAYS, INCOMES, BlockSpan, blocks_of_days, sum_of_days
from storage.fleet_lines import BOUND_FLEET, FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET, THERE_IN_TABLE_ORDER
from storage.fleet_packages import FLEET_PACKAGE, FleetPackageRow, packages_of_lines
from storage.fleet_plans import total
from storage.fleet_scores import WITH_FIGURES
from storage.fleet_usage import FLEET_DAY, FleetNetworkRow, FleetUsageRow, networks_of_fleet, usage_of_lines

FIRST_DAY, LAST_DAY = sa.bindparam("first", type_=sa.Integer), sa.bindparam("last", type_=sa.Integer)

BEGIN, END = sa.bindparam("begin", type_=sa.BigInteger), sa.bindparam("end", type_=sa.BigInteger)

LARGEST_USUAL_PRICE = 1_000_000_000
"""Micro-euro. The database multiplies prices with seconds in 64 bits; what is dearer is left to whole numbers of any length."""


HAS_LEFT = FLEET_LINE.c.gone > 0
IS_NOT_ISSUED = sa.or_(HAS_LEFT, FLEET_LINE.c.sim_status == "FREE")


def is_none_of(dialect: Dialect, number: sa.ColumnElement[int], condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether the line `number` does not fulfil `condition`. SQLite reads the few lines that do so once, instead of a line for each row."""
    found = sa.select(FLEET_LINE.c.subscriber_id).where(OF_FLEET, condition)
    return number.not_in(found) if dialect.name == "sqlite" else ~found.where(FLEET_LINE.c.subscriber_id == number).exists()


class LineMoney(NamedTuple):
    """What a line's use cost the operator, and what the customer was charged for it outside packages."""

    subscriber_id: int
    network_cost: int
    usage_income: int


@lru_cache(maxsize=256)
def money_of_lines(*, before_first: int, last_place: int) -> Query[LineMoney]:
    """The money of the days of a `BlockSpan` with these places, of each line with any, dearest first."""
    cost, income = (sum_of_days(columns, before_first=before_first, last_place=last_place) for columns in (COSTS, INCOMES))
    line = FLEET_LINE_MONEY.c.subscriber_id
    # Each line's rows are one piece of the table, so that lines are summed in its order and nothing is sorted but the sums.
    return Query(
        LineMoney,
        lambda dialect: (
            sa.select(line, sa.cast(cost, sa.BigInteger).label("network_cost"), sa.cast(income, sa.BigInteger).label("usage_income"))
            .where(FLEET_LINE_MONEY.c.fleet == BOUND_FLEET, HOLDS_DAYS, is_none_of(dialect, line, HAS_LEFT))
            .group_by(FLEET_LINE_MONEY.c.fleet, line)
            .having(sa.or_(cost != 0, income != 0))
            .order_by(sa.desc("network_cost"), sa.desc("usage_income"), line)
        ),
    )


class NetworkMoney(NamedTuple):
    """What use of one kind in one network cost and brought in: of how many rows of lines, and how many of them the network gave for
    nothing."""

    mcc: int
    mnc: int
    kind: int
    uses: int
    free: int
    network_cost: int
    usage_income: int


MONEY_OF_NETWORKS = Query(
    NetworkMoney,
    sa.select(
        FLEET_DAY.c.mcc,
        FLEET_DAY.c.mnc,
        FLEET_DAY.c.kind,
        total(FLEET_DAY.c.uses, "uses"),
        total(FLEET_DAY.c.free, "free"),
        total(FLEET_DAY.c.network_cost, "network_cost"),
        total(FLEET_DAY.c.usage_income, "usage_income"),
    )
    .where(FLEET_DAY.c.fleet == BOUND_FLEET, FLEET_DAY.c.day >= FIRST_DAY, FLEET_DAY.c.day <= LAST_DAY)
    .group_by(FLEET_DAY.c.mcc, FLEET_DAY.c.mnc, FLEET_DAY.c.kind)
    .having(sa.func.sum(FLEET_DAY.c.uses) != 0)
    .order_by(FLEET_DAY.c.mcc, FLEET_DAY.c.mnc, FLEET_DAY.c.kind),
)


class PackageLife(NamedTuple):
    """A package that runs in the days: of which template, its price, 0: not told, and the whole seconds of its life."""

    template_id: int
    price: int
    starts: int
    ends: int


IS_ISSUED = sa.and_(OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.sim_status != "FREE")

HAS_USUAL_PRICE = sa.and_(FLEET_PACKAGE.c.price > 0, FLEET_PACKAGE.c.price <= LARGEST_USUAL_PRICE)


def package_lives(dialect: Dialect, *conditions: sa.ColumnElement[bool]) -> sa.Select[int, int, int, int]:
    """The packages of issued lines that run in the days and for which the conditions hold."""
    seconds = [FLEET_PACKAGE.c[name] if dialect.name == "sqlite" else sa.func.floor(FLEET_PACKAGE.c[name]) for name in ("starts", "ends")]
    starts, ends = (sa.cast(each, sa.BigInteger) for each in seconds)  # SQLite's cast cuts, PostgreSQL's rounds
    return sa.select(FLEET_PACKAGE.c.template_id, FLEET_PACKAGE.c.price, starts.label("starts"), ends.label("ends")).where(
        FLEET_PACKAGE.c.fleet == BOUND_FLEET,
        FLEET_PACKAGE.c.series == 0,
        FLEET_PACKAGE.c.starts > 0,
        FLEET_PACKAGE.c.starts < END,
        FLEET_PACKAGE.c.ends > BEGIN,
        ends > starts,
        is_none_of(dialect, FLEET_PACKAGE.c.subscriber_id, IS_NOT_ISSUED),
        *conditions,
    )


class PackageSums(NamedTuple):
    """What packages with a usual price brought in, and how many others there are."""

    income: int
    others: int


def package_sums_query(dialect: Dialect) -> sa.Executable:
    """Of each usual price the part of the package's life in the days, rounded to a whole number, halves to the even one; added up."""
    life = package_lives(dialect).subquery("life")
    begin = sa.case((life.c.starts > BEGIN, life.c.starts), else_=BEGIN)
    end = sa.case((life.c.ends < END, life.c.ends), else_=END)
    usual = sa.and_(life.c.price > 0, life.c.price <= LARGEST_USUAL_PRICE)
    # Choice: a price that is not usual has no value here, since it is looked at by itself where there is one.
    value = sa.case((usual, life.c.price * (end - begin)), else_=0).label("value")
    parts = sa.select(value, (life.c.ends - life.c.starts).label("whole"), sa.case((usual, 0), else_=1).label("other")).subquery("parts")
    quotient, rest = parts.c.value // parts.c.whole, 2 * (parts.c.value % parts.c.whole)
    up = sa.case((rest > parts.c.whole, 1), (sa.and_(rest == parts.c.whole, quotient % 2 == 1), 1), else_=0)
    return sa.select(total(quotient + up, "income"), total(parts.c.other, "others"))


PACKAGE_SUMS = Query(PackageSums, package_sums_query)

OTHER_PACKAGES = Query(PackageLife, lambda dialect: package_lives(dialect, ~HAS_USUAL_PRICE))

COUNT_UNREAD_PACKAGES = Query(
    int, lambda _: sa.select(sa.func.count().label("lines")).select_from(FLEET_LINE).where(IS_ISSUED, FLEET_LINE.c.read == 0)
)

KNOWN_SPONSORS = sa.select(FLEET_FIGURE.c.sponsor).distinct().where(FLEET_FIGURE.c.fleet == BOUND_FLEET).subquery("known")

# Few sponsors have all SIMs: they are read off the narrow table alone, and of each the first line that is there is looked for.
SPONSORS_OF_LINES = Query(
    int,
    lambda _: sa.select(KNOWN_SPONSORS.c.sponsor).where(
        sa.select(FLEET_LINE.c.subscriber_id)
        .select_from(WITH_FIGURES)
        .where(OF_FLEET, THERE_IN_TABLE_ORDER, FLEET_FIGURE.c.sponsor == KNOWN_SPONSORS.c.sponsor)
        .exists()
    ),
)


class UsageMoney(NamedTuple):
    """What use in some days cost and brought in. `lines`: those that did either, dearest first."""

    lines: list[LineMoney]
    uses: list[NetworkMoney]
    networks: list[FleetNetworkRow]


@runs_in_thread
def usage_money(connection: Connection, *, fleet: int, first: int, last: int) -> UsageMoney:
    """The money of use in the days from `first` to `last`. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return UsageMoney([], [], [])
    return UsageMoney(
        lines_with_money(connection, fleet=fleet, days=blocks_of_days(first, last)) if first <= last else [],
        connection.all(MONEY_OF_NETWORKS, fleet=fleet, first=first, last=last),
        networks_of_fleet(connection, fleet=fleet),
    )


def lines_with_money(connection: Connection, *, fleet: int, days: BlockSpan) -> list[LineMoney]:
    """The lines that cost or brought in something in these days, dearest first."""
    query = money_of_lines(before_first=days.before_first, last_place=days.last_place)
    return connection.all(query, fleet=fleet, **days.bound)


class PackageMoney(NamedTuple):
    """What packages brought in in some days.

    `income`: of packages with a usual price; `packages`: the others; `unread`: issued lines whose packages were never read; `sponsors`:
    whose SIMs the lines have, -1: not known.
    """

    income: int
    packages: list[PackageLife]
    unread: int
    sponsors: list[int]


@runs_in_thread
def package_money(connection: Connection, *, fleet: int, begin: int, end: int) -> PackageMoney:
    """The money of packages from `begin` until before `end`. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return PackageMoney(0, [], 0, [])
    moments = {"fleet": fleet, "begin": begin, "end": end}
    sums = connection.first(PACKAGE_SUMS, **moments) or PackageSums(0, 0)
    return PackageMoney(
        sums.income,
        connection.all(OTHER_PACKAGES, **moments) if sums.others else [],
        connection.first(COUNT_UNREAD_PACKAGES, fleet=fleet) or 0,
        connection.all(SPONSORS_OF_LINES, fleet=fleet),
    )


class UsedLine(NamedTuple):
    """A line with its packages, and what it used in some days."""

    line: JudgedLine
    packages: list[FleetPackageRow]
    usage: list[FleetUsageRow]


NUMBERED_LINES_OF_FLEET = Query(
    JudgedLine, lambda dialect: JUDGED_LINES.where(FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)))
)


@runs_in_thread
def used_lines(connection: Connection, *, fleet: int, numbers: Sequence[int], first: int, last: int) -> list[UsedLine]:
    """The lines with these subscriber ids that are there, and their use from day `first` to `last`. A few hundred lines at most."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    lines = connection.all(NUMBERED_LINES_OF_FLEET, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))
    there = [line.subscriber_id for line in lines]
    packages = packages_of_lines(connection, fleet=fleet, numbers=there)
    usage = usage_of_lines(connection, fleet=fleet, numbers=there, first=first, last=last)
    return [UsedLine(line, packages[line.subscriber_id], usage[line.subscriber_id]) for line in lines]
