"""Scores and anomalies of all lines of a fleet: the order of the lines, how many there are of each kind, and the details of a page."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, bound_list, pack_rows, runs_in_thread
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET, THERE_IN_TABLE_ORDER

WITH_FIGURES = FLEET_LINE.join(
    FLEET_FIGURE, sa.and_(FLEET_FIGURE.c.fleet == FLEET_LINE.c.fleet, FLEET_FIGURE.c.subscriber_id == FLEET_LINE.c.subscriber_id)
)
"""Lines with their figures; one that was not judged yet has none."""
FIRST_SECOND = sa.bindparam("first", type_=sa.Double)
IS_ENDED = FLEET_LINE.c.status.in_(("DISCONNECTED", "END_OF_LIFE"))
IS_IN_USE = sa.and_(~IS_ENDED, FLEET_LINE.c.last_used >= FIRST_SECOND)
STATE = sa.case(
    (IS_ENDED, "ended"),
    (sa.and_(FLEET_LINE.c.last_used == 0, FLEET_LINE.c.sim_status == "FREE"), "stock"),
    (FLEET_LINE.c.last_used == 0, "never_used"),
    (FLEET_LINE.c.last_used >= FIRST_SECOND, "in_use"),
    else_="lapsed",
).label("state")


class LinesInState(NamedTuple):
    """Lines in a state: in_use, stock, never_used, ended, lapsed."""

    state: str
    lines: int


COUNT_STATES = Query(
    LinesInState, sa.select(STATE, sa.func.count().label("lines")).select_from(FLEET_LINE).where(OF_FLEET, LINE_IS_THERE).group_by(STATE)
)


class ScoredNumber(NamedTuple):
    """A line in use, and its churn score in tenths of a point."""

    subscriber_id: int
    churn: int


CHURN_ORDER = Query(
    ScoredNumber,
    sa.select(FLEET_LINE.c.subscriber_id, FLEET_FIGURE.c.churn)
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, THERE_IN_TABLE_ORDER, IS_IN_USE, FLEET_FIGURE.c.churn >= 0)
    .order_by(FLEET_FIGURE.c.churn.desc(), FLEET_LINE.c.subscriber_id),
)


class ChurnOrder(NamedTuple):
    """Lines in use by their scores, highest first, and how many lines there are in each state."""

    lines: list[ScoredNumber]
    states: list[LinesInState]


@runs_in_thread
def churn_order(connection: Connection, *, fleet: int, first: float) -> ChurnOrder:
    """The scores of lines that were used at `first` (Unix seconds) or later. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return ChurnOrder([], [])
    named = {"fleet": fleet, "first": first}
    return ChurnOrder(connection.all(CHURN_ORDER, **named), connection.all(COUNT_STATES, **named))


class ScoredRow(NamedTuple):
    """The score of a line, and JSON of what it is made of."""

    subscriber_id: int
    iccid: str
    churn: int
    churn_signs: str


SCORES_OF_LINES = Query(
    ScoredRow,
    lambda dialect: (
        sa.select(FLEET_LINE.c.subscriber_id, FLEET_LINE.c.iccid, FLEET_FIGURE.c.churn, FLEET_FIGURE.c.churn_signs)
        .select_from(WITH_FIGURES)
        .where(
            OF_FLEET,
            LINE_IS_THERE,
            FLEET_FIGURE.c.churn >= 0,
            FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
        )
    ),
)


@runs_in_thread
def scores_of_lines(connection: Connection, *, fleet: int, numbers: list[int]) -> list[ScoredRow]:
    """The scores of the lines with these subscriber ids, as far as they are there."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    return connection.all(SCORES_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))


class AnomalousLine(NamedTuple):
    """A line in use: its days that could be compared, and JSON of what stands out."""

    iccid: str
    anomalies: str


ANOMALOUS_LINES = Query(
    AnomalousLine,
    sa.select(FLEET_LINE.c.iccid, FLEET_FIGURE.c.anomalies)
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, THERE_IN_TABLE_ORDER, IS_IN_USE, FLEET_FIGURE.c.anomalies != "")
    .order_by(FLEET_LINE.c.subscriber_id),
)


class ComparedLines(NamedTuple):
    """Lines in use that were looked into, and their days that could be compared."""

    lines: int
    line_days: int


COUNT_COMPARED = Query(
    ComparedLines,
    sa.select(
        sa.func.count().label("lines"),
        sa.cast(sa.func.coalesce(sa.func.sum(FLEET_FIGURE.c.line_days), 0), sa.BigInteger).label("line_days"),
    )
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, THERE_IN_TABLE_ORDER, IS_IN_USE),
)


class FleetAnomalies(NamedTuple):
    """What stands out in a fleet, how much was compared, and how many lines there are in each state."""

    found: list[AnomalousLine]
    compared: ComparedLines
    states: list[LinesInState]


@runs_in_thread
def fleet_anomalies(connection: Connection, *, fleet: int, first: float) -> FleetAnomalies:
    """The anomalies of lines that were used at `first` (Unix seconds) or later. Nothing of a fleet that has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetAnomalies([], ComparedLines(0, 0), [])
    named = {"fleet": fleet, "first": first}
    compared = connection.first(COUNT_COMPARED, **named) or ComparedLines(0, 0)
    return FleetAnomalies(connection.all(ANOMALOUS_LINES, **named), compared, connection.all(COUNT_STATES, **named))
