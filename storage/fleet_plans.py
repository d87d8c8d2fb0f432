"""The plans of packages of a fleet's lines: their order, and what they are together. Micro-euro in thirty days."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Query, runs_in_thread
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_scores import WITH_FIGURES


class PlanSum(NamedTuple):
    """Lines with a verdict: how many, how many of them cost more than they bring in, and their sums."""

    plan: str
    lines: int
    losing: int
    now: int
    income: int
    cost: int
    saving: int


def total(column: sa.ColumnElement[int], name: str) -> sa.Label[int]:
    return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), sa.BigInteger).label(name)


MARGIN = FLEET_FIGURE.c.plan_now - FLEET_FIGURE.c.plan_cost

IS_ALIVE = FLEET_LINE.c.status != "END_OF_LIFE"
"""A line that has ended for good pays for nothing any more, and nothing can be saved on it."""

PLAN_SUMS = Query(
    PlanSum,
    sa.select(
        FLEET_FIGURE.c.plan,
        sa.func.count().label("lines"),
        total(sa.case((MARGIN < 0, 1), else_=0), "losing"),
        total(FLEET_FIGURE.c.plan_now, "now"),
        total(FLEET_FIGURE.c.plan_income, "income"),
        total(FLEET_FIGURE.c.plan_cost, "cost"),
        total(FLEET_FIGURE.c.plan_saving, "saving"),
    )
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, LINE_IS_THERE, IS_ALIVE)
    .group_by(FLEET_FIGURE.c.plan)
    .order_by(FLEET_FIGURE.c.plan),
)

# A line that used nothing and has nothing is counted, and not listed.
PLANS_IN_ORDER = Query(
    int,
    sa.select(FLEET_LINE.c.subscriber_id)
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, LINE_IS_THERE, IS_ALIVE, sa.or_(FLEET_FIGURE.c.plan != "unused", FLEET_FIGURE.c.plan_now != 0))
    .order_by(
        FLEET_FIGURE.c.plan_saving.desc(), sa.case((MARGIN < 0, MARGIN), else_=0), FLEET_FIGURE.c.plan_now.desc(), FLEET_LINE.c.iccid
    ),
)


class SeenNetwork(NamedTuple):
    """A network that lines are on for the most part, and how many they are."""

    mcc: int
    mnc: int
    lines: int


MAIN_NETWORKS = Query(
    SeenNetwork,
    sa.select(FLEET_FIGURE.c.main_mcc.label("mcc"), FLEET_FIGURE.c.main_mnc.label("mnc"), sa.func.count().label("lines"))
    .select_from(WITH_FIGURES)
    .where(OF_FLEET, LINE_IS_THERE, IS_ALIVE, FLEET_FIGURE.c.main_mcc != 0)
    .group_by(FLEET_FIGURE.c.main_mcc, FLEET_FIGURE.c.main_mnc),
)


class FleetPlans(NamedTuple):
    """The subscriber ids of lines by their plans, largest saving first; sums by verdict; and the networks that lines are on."""

    numbers: list[int]
    sums: list[PlanSum]
    networks: list[SeenNetwork]


@runs_in_thread
def fleet_plans(connection: Connection, *, fleet: int) -> FleetPlans:
    """The plans of a fleet's lines: largest saving first, then the largest loss, then the highest payment."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return FleetPlans([], [], [])
    order, sums = connection.all(PLANS_IN_ORDER, fleet=fleet), connection.all(PLAN_SUMS, fleet=fleet)
    return FleetPlans(order, sums, connection.all(MAIN_NETWORKS, fleet=fleet))
