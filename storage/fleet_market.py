"""The issued lines of a fleet with how each was used in four weeks, and the packages of some of them."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, bound_list, pack_rows, runs_in_thread
from storage.fleet_coverage import IN_ACCOUNT
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_packages import FleetPackageRow, packages_of_lines
from storage.fleet_scores import WITH_FIGURES

IS_IN_STOCK = FLEET_LINE.c.sim_status == "FREE"
BOUND_FIRST, BOUND_END = sa.bindparam("first", type_=sa.Double), sa.bindparam("end", type_=sa.Double)
IS_STEERED_WRONGLY = sa.or_(FLEET_FIGURE.c.coverage == "mis_steered", FLEET_FIGURE.c.plan == "mis_steered")


class MarketRow(NamedTuple):
    """An issued line. `active`, `mis_steered`: 1 or 0; `profile`: JSON of how it was used in 28 days, '' where it was not."""

    subscriber_id: int
    active: int
    mis_steered: int
    profile: str


MARKET_ROWS = (
    sa.select(
        FLEET_LINE.c.subscriber_id,
        sa.case((FLEET_LINE.c.status == "ACTIVE", 1), else_=0).label("active"),
        sa.case((IS_STEERED_WRONGLY, 1), else_=0).label("mis_steered"),
        # A line that has ended is not judged each day: what it used before these days is none of them.
        sa.case((FLEET_LINE.c.last_used >= BOUND_FIRST, FLEET_FIGURE.c.profile), else_="").label("profile"),
    )
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, LINE_IS_THERE, IN_ACCOUNT, ~IS_IN_STOCK)
)

NEXT_MARKET_LINES = Query(
    MarketRow,
    MARKET_ROWS.where(FLEET_LINE.c.subscriber_id > sa.bindparam("after", type_=sa.BigInteger))
    .order_by(FLEET_LINE.c.subscriber_id)
    .limit(sa.bindparam("most", type_=sa.Integer)),
)

NUMBERED_MARKET_LINES = Query(
    MarketRow, lambda dialect: MARKET_ROWS.where(FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)))
)


class MarketDays(NamedTuple):
    """Days of use, from `first` until before `end`: Unix seconds of whole UTC days."""

    first: float
    end: float


class MarketCounts(NamedTuple):
    """Lines in stock, issued ones, and those that were issued in some days and in as many days before."""

    stock: int
    issued: int
    issued_now: int
    issued_before: int


def counted_lines(condition: sa.ColumnElement[bool], name: str) -> sa.Label[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0).label(name)


ISSUED_AT = sa.case((FLEET_LINE.c.issued > 0, FLEET_LINE.c.issued), else_=FLEET_LINE.c.activated)
BEFORE = BOUND_FIRST - (BOUND_END - BOUND_FIRST)

MARKET_COUNTS = Query(
    MarketCounts,
    lambda _: sa.select(
        counted_lines(IS_IN_STOCK, "stock"),
        counted_lines(~IS_IN_STOCK, "issued"),
        counted_lines(sa.and_(~IS_IN_STOCK, ISSUED_AT >= BOUND_FIRST, ISSUED_AT < BOUND_END), "issued_now"),
        counted_lines(sa.and_(~IS_IN_STOCK, ISSUED_AT >= BEFORE, ISSUED_AT < BOUND_FIRST), "issued_before"),
    ).where(OF_FLEET, LINE_IS_THERE, IN_ACCOUNT),
)


@runs_in_thread
def market_counts(connection: Connection, *, fleet: int, account: int | None, days: MarketDays) -> MarketCounts:
    """The lines of `account` (None: all), counted. None of a fleet that has ended."""
    none = MarketCounts(0, 0, 0, 0)
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return none
    return connection.first(MARKET_COUNTS, fleet=fleet, account=bound_account(account), **days._asdict()) or none


def bound_account(account: int | None) -> int:
    return -1 if account is None else account


@runs_in_thread
def market_lines(connection: Connection, *, fleet: int, account: int | None, days: MarketDays, after: int, most: int) -> list[MarketRow]:
    """At most `most` issued lines that were judged, in the order of their subscriber ids, behind the one with the id `after`.

    Nothing of a fleet that has ended.
    """
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    named = {"fleet": fleet, "account": bound_account(account), "first": days.first}
    return connection.all(NEXT_MARKET_LINES, **named, after=after, most=most)


class MarketSample(NamedTuple):
    """Some lines, and the packages of each by subscriber id."""

    lines: list[MarketRow]
    packages: dict[int, list[FleetPackageRow]]


@runs_in_thread
def market_sample(connection: Connection, *, fleet: int, account: int | None, days: MarketDays, numbers: Sequence[int]) -> MarketSample:
    """The lines with these subscriber ids, with their packages. Nothing of a fleet that has ended."""
    if not numbers or connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return MarketSample([], {})
    packed = pack_rows([[number] for number in numbers])
    named = {"fleet": fleet, "account": bound_account(account), "first": days.first, "numbers": packed}
    return MarketSample(connection.all(NUMBERED_MARKET_LINES, **named), packages_of_lines(connection, fleet=fleet, numbers=numbers))
