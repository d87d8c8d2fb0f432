"""How the lines of a fleet stand, counted by account and status, and what accounts were charged for use in some days."""

from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import Connection, Query, runs_in_thread
from storage.fleet_line_money import FLEET_LINE_MONEY, HOLDS_DAYS, INCOMES, blocks_of_days, sum_of_days
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleets import BACKFILL


class HealthMoments(NamedTuple):
    """When the days begin that lines are counted from, Unix seconds; and the days of spending, ordinals, with the moment of the first."""

    week: float
    month: float
    silent: float
    first: int
    last: int
    spending: float


class LineStanding(NamedTuple):
    """Lines of an account with one status, in stock or issued, and how many of them were used when.

    `esims`: those that are eSIMs; `fresh_esims`: and were issued within the month. `paying`: were used in the days of spending, and the
    account pays for them; `known`: those of them whose use in these days is known.
    """

    account_id: int
    status: str
    in_stock: int
    lines: int
    used_week: int
    used_month: int
    used_silent: int
    never_used: int
    esims: int
    fresh_esims: int
    paying: int
    known: int


IN_STOCK = sa.case((FLEET_LINE.c.sim_status == "FREE", 1), else_=0)

IS_FRESH = sa.case((FLEET_LINE.c.issued > 0, FLEET_LINE.c.issued), else_=FLEET_LINE.c.activated) >= sa.bindparam("month", type_=sa.Double)

IS_PAYING = sa.and_(FLEET_LINE.c.pays == "account", FLEET_LINE.c.last_used >= sa.bindparam("spending", type_=sa.Double))

IS_UNKNOWN = sa.or_(
    FLEET_LINE.c.usage_first == 0,
    sa.and_(FLEET_LINE.c.rank == BACKFILL, FLEET_LINE.c.due > 0, FLEET_LINE.c.usage_first > sa.bindparam("first", type_=sa.Integer)),
)

OF_ACCOUNT = FLEET_LINE.c.account_id == sa.bindparam("account", type_=sa.BigInteger)


def counted(name: str, *conditions: sa.ColumnElement[bool]) -> sa.Label[int]:
    return sa.func.sum(sa.case((sa.and_(*conditions), 1), else_=0)).label(name)


def used_since(name: str) -> sa.ColumnElement[bool]:
    return FLEET_LINE.c.last_used >= sa.bindparam(name, type_=sa.Double)


LINE_STANDINGS = (
    sa.select(
        FLEET_LINE.c.account_id,
        FLEET_LINE.c.status,
        IN_STOCK.label("in_stock"),
        sa.func.count().label("lines"),
        counted("used_week", used_since("week")),
        counted("used_month", used_since("month")),
        counted("used_silent", used_since("silent")),
        counted("never_used", FLEET_LINE.c.last_used == 0),
        counted("esims", FLEET_LINE.c.esim == 1),
        counted("fresh_esims", FLEET_LINE.c.esim == 1, IS_FRESH),
        counted("paying", IS_PAYING),
        counted("known", IS_PAYING, ~IS_UNKNOWN),
    )
    .where(OF_FLEET, LINE_IS_THERE)
    .group_by(FLEET_LINE.c.account_id, FLEET_LINE.c.status, IN_STOCK)
    .order_by(FLEET_LINE.c.account_id, FLEET_LINE.c.status, IN_STOCK)
)

STANDINGS_OF_FLEET, STANDINGS_OF_ACCOUNT = Query(LineStanding, LINE_STANDINGS), Query(LineStanding, LINE_STANDINGS.where(OF_ACCOUNT))


class AccountCharges(NamedTuple):
    """What an account was charged in the days of spending for use of its lines outside packages, micro-euro."""

    account_id: int
    usage_income: int


LINES_WITH_MONEY = FLEET_LINE.join(
    FLEET_LINE_MONEY,
    sa.and_(FLEET_LINE_MONEY.c.fleet == FLEET_LINE.c.fleet, FLEET_LINE_MONEY.c.subscriber_id == FLEET_LINE.c.subscriber_id),
)


@lru_cache(maxsize=512)
def charges_query(*, before_first: int, last_place: int, whole: bool) -> Query[AccountCharges]:
    """The charges of the days of a `BlockSpan` with these places; `whole`: of all accounts."""
    income = sum_of_days(INCOMES, before_first=before_first, last_place=last_place)
    return Query(
        AccountCharges,
        sa.select(FLEET_LINE.c.account_id, sa.cast(income, sa.BigInteger).label("usage_income"))
        .select_from(LINES_WITH_MONEY)
        .where(OF_FLEET, LINE_IS_THERE, HOLDS_DAYS, IS_PAYING, ~IS_UNKNOWN, *([] if whole else [OF_ACCOUNT]))
        .group_by(FLEET_LINE.c.account_id),
    )


class FleetStanding(NamedTuple):
    """How the lines of a fleet stand, and what its accounts were charged."""

    lines: list[LineStanding]
    charges: list[AccountCharges]


@runs_in_thread
def fleet_standing(connection: Connection, *, fleet: int, account: int | None, moments: HealthMoments) -> FleetStanding:
    """How the lines of `account` (None: all) stand. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetStanding([], [])
    which: dict[str, Value] = {"fleet": fleet} if account is None else {"fleet": fleet, "account": account}
    counted_from = {name: getattr(moments, name) for name in ("week", "month", "silent", "first", "spending")}
    span = blocks_of_days(moments.first, moments.last)
    days = {"first": moments.first, "spending": moments.spending, **span.bound}
    standings = STANDINGS_OF_FLEET if account is None else STANDINGS_OF_ACCOUNT
    charges = charges_query(before_first=span.before_first, last_place=span.last_place, whole=account is None)
    return FleetStanding(connection.all(standings, **which, **counted_from), connection.all(charges, **which, **days))
