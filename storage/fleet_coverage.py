"""Where the lines of a fleet are: verdicts and networks, counted; the order of those that are not covered, and the details of a page."""

from array import array
from collections.abc import Sequence
from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, bound_list, pack_rows, runs_in_thread
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_judgements import JUDGED_LINES, JudgedLine
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_packages import FleetPackageRow, packages_of_lines
from storage.fleet_scores import WITH_FIGURES
from storage.fleet_usage import FleetNetworkRow, FleetUsageRow, networks_of_fleet, usage_of_lines
from storage.fleets import NEVER_READ

UncoveredVerdict = Literal["mis_steered", "outside_zone", "no_package", "unknown"]
UNCOVERED_VERDICTS: tuple[UncoveredVerdict, ...] = ("mis_steered", "outside_zone", "no_package", "unknown")
"""Verdicts on lines that no package covers where they are, in the order in which they are shown."""

ASKED_ACCOUNT = sa.bindparam("account", type_=sa.BigInteger)
IN_ACCOUNT = sa.or_(ASKED_ACCOUNT < 0, FLEET_LINE.c.account_id == ASKED_ACCOUNT)
"""Lines of the account that is bound; of all accounts where it is below 0."""

IS_ACTIVE = FLEET_LINE.c.status == "ACTIVE"

LATELY = sa.bindparam("since", type_=sa.Double)
# Time alone makes a line one that was not seen lately, and a line may not have been judged since.
SEEN_LATELY = sa.or_(FLEET_LINE.c.last_used >= LATELY, FLEET_LINE.c.sighted >= LATELY)
STORED_VERDICT = sa.func.coalesce(FLEET_FIGURE.c.coverage, "")
# A SIM in stock costs no call: it has no figures, and none are waited for.
IS_NOT_READ = sa.and_(STORED_VERDICT == "", FLEET_LINE.c.rank != NEVER_READ, FLEET_LINE.c.judge_due == 0)
PLACE_VERDICT: sa.Label[str] = sa.case(
    (sa.and_(IS_NOT_READ, FLEET_LINE.c.mcc == 0, FLEET_LINE.c.last_used == 0), "never_seen"),
    (sa.and_(STORED_VERDICT.in_(("covered", *UNCOVERED_VERDICTS)), ~SEEN_LATELY), "not_seen_lately"),
    else_=STORED_VERDICT,
).label("verdict")
IS_UNCOVERED = sa.and_(FLEET_FIGURE.c.coverage.in_(UNCOVERED_VERDICTS), SEEN_LATELY)


def total_of_column(column: sa.ColumnElement[int], name: str) -> sa.Label[int]:
    return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), sa.BigInteger).label(name)


class CoverageGroup(NamedTuple):
    """Active lines with the same verdict on the same network, and what they used there without a package in 28 days, micro-euro.

    `verdict`: '' for lines that were not judged yet; `mcc` is 0 where no network saw them.
    """

    verdict: str
    mcc: int
    mnc: int
    lines: int
    data_bytes: int
    network_cost: int
    usage_income: int


NETWORK_OF_LINE = tuple(sa.func.coalesce(FLEET_FIGURE.c[name], 0).label(name) for name in ("mcc", "mnc"))

COVERAGE_GROUPS = Query(
    CoverageGroup,
    sa.select(
        PLACE_VERDICT,
        *NETWORK_OF_LINE,
        sa.func.count().label("lines"),
        total_of_column(FLEET_FIGURE.c.outside_bytes, "data_bytes"),
        total_of_column(FLEET_FIGURE.c.outside_cost, "network_cost"),
        total_of_column(FLEET_FIGURE.c.outside_income, "usage_income"),
    )
    .select_from(FLEET_LINE.outerjoin(FLEET_FIGURE, WITH_FIGURES.onclause))
    .where(OF_FLEET, LINE_IS_THERE, IN_ACCOUNT, IS_ACTIVE)
    .group_by(PLACE_VERDICT, FLEET_FIGURE.c.mcc, FLEET_FIGURE.c.mnc)
    .order_by(FLEET_FIGURE.c.mcc, FLEET_FIGURE.c.mnc, PLACE_VERDICT),
)

COUNT_INACTIVE = Query(int, lambda _: sa.select(sa.func.count().label("lines")).where(OF_FLEET, LINE_IS_THERE, IN_ACCOUNT, ~IS_ACTIVE))


class UncoveredPlace(NamedTuple):
    """The place of a line in the order of those that are not covered.

    `verdict`: index of UNCOVERED_VERDICTS; `weight`: what its use there cost anybody, micro-euro.
    """

    verdict: int
    weight: int
    subscriber_id: int


def not_below_zero(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.case((column > 0, column), else_=0)


VERDICT_INDEX = sa.case(*((FLEET_FIGURE.c.coverage == word, place) for place, word in enumerate(UNCOVERED_VERDICTS)), else_=0).label(
    "verdict"
)
OUTSIDE_WEIGHT = (not_below_zero(FLEET_FIGURE.c.outside_cost) + not_below_zero(FLEET_FIGURE.c.outside_income)).label("weight")

UNCOVERED_ORDER = Query(
    UncoveredPlace,
    sa.select(VERDICT_INDEX, OUTSIDE_WEIGHT, FLEET_LINE.c.subscriber_id)
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, LINE_IS_THERE, IN_ACCOUNT, IS_ACTIVE, IS_UNCOVERED)
    .order_by(VERDICT_INDEX, OUTSIDE_WEIGHT.desc(), FLEET_LINE.c.subscriber_id),
)


ORDERED_AT_ONCE = 2_000


class UncoveredOrder(NamedTuple):
    """The lines that are not covered, worst first, each at its place in all three; see UncoveredPlace. There may be tens of thousands."""

    verdicts: Sequence[int]
    weights: Sequence[int]
    numbers: Sequence[int]


class FleetCoverage(NamedTuple):
    """Active lines by verdict and network, how many lines are not active, and the order of those that are not covered, worst first."""

    groups: list[CoverageGroup]
    inactive: int
    order: UncoveredOrder


@runs_in_thread
def fleet_coverage(connection: Connection, *, fleet: int, account: int | None, since: float) -> FleetCoverage:
    """Where the lines of `account` (None: all) are that were seen at `since` (Unix seconds) or later. Nothing of a fleet that has ended."""
    verdicts, weights, numbers = array("b"), array("q"), array("q")
    order = UncoveredOrder(verdicts, weights, numbers)
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetCoverage([], 0, order)
    named = {"fleet": fleet, "account": -1 if account is None else account}
    groups, inactive = connection.all(COVERAGE_GROUPS, **named, since=since), connection.first(COUNT_INACTIVE, **named) or 0
    for part in connection.slices(UNCOVERED_ORDER, ORDERED_AT_ONCE, **named, since=since):
        for place in part:
            verdicts.append(place.verdict)
            weights.append(place.weight)
            numbers.append(place.subscriber_id)
    return FleetCoverage(groups, inactive, order)


class CoverageFigure(NamedTuple):
    """The stored verdict on a line that is not covered; see LineFigures."""

    subscriber_id: int
    coverage: str
    mcc: int
    mnc: int
    outside_bytes: int
    outside_cost: int
    outside_income: int
    coverage_signs: str


UNCOVERED_FIGURES = Query(
    CoverageFigure,
    lambda dialect: (
        sa.select(*(FLEET_FIGURE.c[name] for name in CoverageFigure._fields))
        .select_from(WITH_FIGURES)
        .where(
            OF_FLEET,
            LINE_IS_THERE,
            IN_ACCOUNT,
            FLEET_FIGURE.c.coverage.in_(UNCOVERED_VERDICTS),
            FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        )
    ),
)

LINES_OF_PAGE = Query(
    JudgedLine,
    lambda dialect: JUDGED_LINES.where(IN_ACCOUNT, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))),
)


class StoredUncovered(NamedTuple):
    """What is stored of lines that are not covered, by subscriber id, and the networks of their fleet."""

    figures: dict[int, CoverageFigure]
    lines: dict[int, JudgedLine]
    packages: dict[int, list[FleetPackageRow]]
    usage: dict[int, list[FleetUsageRow]]
    networks: list[FleetNetworkRow]


@runs_in_thread
def stored_uncovered(
    connection: Connection, *, fleet: int, account: int | None, numbers: Sequence[int], first: int, last: int
) -> StoredUncovered:
    """The lines with these subscriber ids as far as they are not covered, with their use from day `first` to `last` (ordinals)."""
    if not numbers or connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return StoredUncovered({}, {}, {}, {}, [])
    named = {"fleet": fleet, "account": -1 if account is None else account, "numbers": pack_rows([[number] for number in numbers])}
    figures = {row.subscriber_id: row for row in connection.all(UNCOVERED_FIGURES, **named)}
    lines = {row.subscriber_id: row for row in connection.all(LINES_OF_PAGE, **named) if row.subscriber_id in figures}
    packages = packages_of_lines(connection, fleet=fleet, numbers=list(lines))
    usage = usage_of_lines(connection, fleet=fleet, numbers=list(lines), first=first, last=last)
    return StoredUncovered(figures, lines, packages, usage, networks_of_fleet(connection, fleet=fleet))
