"""Lists of problems: the lines that have any, worst money first, and sums by cause; within what a credential may see."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import Connection, Dialect, Query, bound_list, pack_rows, runs_in_thread
from storage.fleet_lines import BOUND_FLEET, FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleet_search import NOTHING_KNOWN, FleetBounds, FleetKnowledge, bound_values, knowledge_within, within_bounds


class TroubledLine(NamedTuple):
    """A line with open problems: what they cost the operator a month in all, micro-euro, and the place of its first cause."""

    subscriber_id: int
    money: int
    place: int


class ProblemSum(NamedTuple):
    """How many lines have an open problem of a cause, and what that costs a month, micro-euro."""

    cause: str
    lines: int
    money: int


class ListedProblem(NamedTuple):
    """An open problem of a line that is listed."""

    subscriber_id: int
    iccid: str
    account_id: int
    status: str
    country: str
    cause: str
    since: float
    money: int
    evidence: str
    opened: float
    seen: float


class ProblemFilter(NamedTuple):
    """Which problems; None: whatever it is."""

    cause: str | None = None
    account: int | None = None


class ProblemPlace(NamedTuple):
    """Where a page begins: behind this line."""

    money: int
    place: int
    subscriber_id: int


OPEN_ON_LINE = FLEET_PROBLEM.join(
    FLEET_LINE, sa.and_(FLEET_LINE.c.fleet == FLEET_PROBLEM.c.fleet, FLEET_LINE.c.subscriber_id == FLEET_PROBLEM.c.subscriber_id)
)


LINES_THAT_LEFT = sa.select(FLEET_LINE.c.subscriber_id).where(FLEET_LINE.c.fleet == BOUND_FLEET, FLEET_LINE.c.gone > 0)
OF_LINES = frozenset({"account", *FleetBounds._fields})
"""Filters that look at the line itself: without one problems are counted without a look at their lines, but for the few that have left."""


def problems_asked(names: frozenset[str]) -> sa.FromClause:
    """Where to look for open problems with the filters `names`."""
    return FLEET_PROBLEM if OF_LINES.isdisjoint(names) else OPEN_ON_LINE


def conditions(dialect: Dialect, names: frozenset[str]) -> list[sa.ColumnElement[bool]]:
    """What an open problem must be like: of this fleet and a line that is there, and as the filters `names` say."""
    possible = {
        "account": FLEET_LINE.c.account_id == sa.bindparam("account", type_=sa.BigInteger),
        **within_bounds(dialect),
    }
    there = FLEET_PROBLEM.c.subscriber_id.not_in(LINES_THAT_LEFT) if OF_LINES.isdisjoint(names) else LINE_IS_THERE
    always = [FLEET_PROBLEM.c.fleet == BOUND_FLEET, FLEET_PROBLEM.c.closed == 0, there]
    return [*always, *(condition for name, condition in possible.items() if name in names)]


@lru_cache(maxsize=64)
def troubled_page(names: frozenset[str], *, further: bool) -> Query[TroubledLine]:
    """The lines with problems, worst money first."""

    def build(dialect: Dialect) -> sa.Executable:
        number = FLEET_PROBLEM.c.subscriber_id
        found = (
            sa.select(
                number.label("subscriber_id"),
                sa.func.sum(FLEET_PROBLEM.c.money).label("money"),
                sa.func.min(FLEET_PROBLEM.c.place).label("place"),
                sa.func.max(sa.case((FLEET_PROBLEM.c.cause == sa.bindparam("cause", type_=sa.Text), 1), else_=0)).label("has"),
            )
            .select_from(problems_asked(names))
            .where(*conditions(dialect, names))
            .group_by(number)
            .subquery("found")
        )
        page = sa.select(found.c.subscriber_id, sa.cast(found.c.money, sa.BigInteger).label("money"), found.c.place)
        if "cause" in names:
            page = page.where(found.c.has == 1)
        if further:
            money, place = sa.bindparam("after_money", type_=sa.BigInteger), sa.bindparam("after_place", type_=sa.Integer)
            last = sa.bindparam("after_line", type_=sa.BigInteger)
            same = found.c.money == money
            behind = sa.or_(found.c.place > place, sa.and_(found.c.place == place, found.c.subscriber_id > last))
            page = page.where(sa.or_(found.c.money < money, sa.and_(same, behind)))
        order = (found.c.money.desc(), found.c.place, found.c.subscriber_id)
        return page.order_by(*order).limit(sa.bindparam("most", type_=sa.Integer))

    return Query(TroubledLine, build)


@lru_cache(maxsize=64)
def problem_sums(names: frozenset[str]) -> Query[ProblemSum]:
    """Lines and money by cause."""
    return Query(
        ProblemSum,
        lambda dialect: (
            sa.select(
                FLEET_PROBLEM.c.cause,
                sa.func.count().label("lines"),
                sa.cast(sa.func.sum(FLEET_PROBLEM.c.money), sa.BigInteger).label("money"),
            )
            .select_from(problems_asked(names))
            .where(*conditions(dialect, names))
            .group_by(FLEET_PROBLEM.c.cause, FLEET_PROBLEM.c.place)
            .order_by(FLEET_PROBLEM.c.place)
        ),
    )


@lru_cache(maxsize=64)
def count_troubled(names: frozenset[str]) -> Query[int]:
    """How many lines have problems."""

    def build(dialect: Dialect) -> sa.Executable:
        cause = [FLEET_PROBLEM.c.cause == sa.bindparam("cause", type_=sa.Text)] if "cause" in names else []
        lines = sa.select(FLEET_PROBLEM.c.subscriber_id).distinct().select_from(problems_asked(names))
        return sa.select(sa.func.count().label("lines")).select_from(lines.where(*conditions(dialect, names), *cause).subquery("found"))

    return Query(int, build)


OF_THE_LINE = ("iccid", "account_id", "status", "country")

LISTED_PROBLEMS = Query(
    ListedProblem,
    lambda dialect: (
        sa.select(*((FLEET_LINE if name in OF_THE_LINE else FLEET_PROBLEM).c[name] for name in ListedProblem._fields))
        .select_from(OPEN_ON_LINE)
        .where(
            FLEET_PROBLEM.c.fleet == BOUND_FLEET,
            FLEET_PROBLEM.c.closed == 0,
            FLEET_PROBLEM.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        )
        .order_by(FLEET_PROBLEM.c.subscriber_id, FLEET_PROBLEM.c.place)
    ),
)


class ProblemList(NamedTuple):
    """A page of lines with their problems, what there is in all, and how far the fleet has been read."""

    page: list[TroubledLine]
    problems: list[ListedProblem]
    sums: list[ProblemSum]
    lines: int
    known: FleetKnowledge


@runs_in_thread
def list_problems(
    connection: Connection,
    *,
    fleet: int,
    bounds: FleetBounds,
    wanted: ProblemFilter,
    after: ProblemPlace | None,
    most: int,
    first: int,
    now: float,
) -> ProblemList:
    """At most `most` lines behind the place `after`, worst money first. `now`: Unix seconds; `first`: the oldest day that verdicts look at,
    an ordinal. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return ProblemList([], [], [], 0, NOTHING_KNOWN)
    values: dict[str, Value] = {"fleet": fleet, **bound_values(bounds)}
    if wanted.account is not None:
        values["account"] = wanted.account
    names = frozenset([*values, *([] if wanted.cause is None else ["cause"])])
    cause: dict[str, Value] = {"cause": wanted.cause or ""}
    place: dict[str, Value] = {}
    if after is not None:
        place = {"after_money": after.money, "after_place": after.place, "after_line": after.subscriber_id}
    page = connection.all(troubled_page(names, further=after is not None), **values, **cause, **place, most=most)
    numbers: Sequence[Sequence[Value]] = [[line.subscriber_id] for line in page]
    counted = {**values, **(cause if wanted.cause is not None else {})}
    return ProblemList(
        page,
        connection.all(LISTED_PROBLEMS, fleet=fleet, numbers=pack_rows(numbers)),
        connection.all(problem_sums(names), **values),
        connection.first(count_troubled(names), **counted) or 0,
        knowledge_within(connection, fleet=fleet, bounds=bounds, first=first, now=now),
    )
