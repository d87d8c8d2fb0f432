"""Problems of a fleet's lines: one row for a line and a cause, from the day it was found until it was over, and a while beyond."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import CLUSTERED, BigInt, Command, Connection, Query, TableDescription, bound_list, pack_rows


class ProblemState(NamedTuple):
    """A cause that holds for a line. `money`: micro-euro a month that it costs the operator, as far as that can be said.

    `evidence`: a small JSON object without names; `place`: the cause's place in the order of causes, 0 first.
    """

    cause: str
    place: int
    since: float
    money: BigInt
    evidence: str


class ProblemTimes(NamedTuple):
    """When a problem was found, last found, and over: Unix seconds, `closed` 0 while it is open."""

    opened: float
    seen: float
    closed: float


class FleetProblemTable(TableDescription, row=(ProblemState, ProblemTimes), table=True):
    """A line and a cause."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (
        sa.PrimaryKeyConstraint("fleet", "subscriber_id", "cause"),
        sa.Index("fleet_problem_open", "fleet", "closed", "cause", "place", "money"),
        sa.Index("fleet_problem_lines", "fleet", "closed", "subscriber_id", "cause", "place", "money"),
        CLUSTERED,
    )


FLEET_PROBLEM = FleetProblemTable.table

OF_PROBLEM_LINE = sa.and_(
    FLEET_PROBLEM.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
    FLEET_PROBLEM.c.subscriber_id == sa.bindparam("subscriber_id", type_=sa.BigInteger),
)


class OpenProblem(NamedTuple):
    """An open problem of one line."""

    cause: str
    place: int
    since: float
    money: int
    evidence: str
    opened: float


OPEN_PROBLEMS_OF_LINE = Query(
    OpenProblem,
    sa.select(*(FLEET_PROBLEM.c[name] for name in OpenProblem._fields))
    .where(OF_PROBLEM_LINE, FLEET_PROBLEM.c.closed == 0)
    .order_by(FLEET_PROBLEM.c.place),
)


def lines_with_problem(fleet: sa.ColumnElement[int], cause: sa.ColumnElement[str]) -> sa.Select[int]:
    """The subscriber ids of the lines of a fleet that have an open problem of this cause."""
    return sa.select(FLEET_PROBLEM.c.subscriber_id).where(
        FLEET_PROBLEM.c.fleet == fleet, FLEET_PROBLEM.c.closed == 0, FLEET_PROBLEM.c.cause == cause
    )


class ProblemOfLine(NamedTuple):
    """A cause that is open for a line."""

    subscriber_id: int
    cause: str


PROBLEMS_OF_LINES = Query(
    ProblemOfLine,
    lambda dialect: (
        sa.select(FLEET_PROBLEM.c.subscriber_id, FLEET_PROBLEM.c.cause)
        .where(
            FLEET_PROBLEM.c.fleet == sa.bindparam("fleet", type_=sa.BigInteger),
            FLEET_PROBLEM.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
            FLEET_PROBLEM.c.closed == 0,
        )
        .order_by(FLEET_PROBLEM.c.subscriber_id, FLEET_PROBLEM.c.place)
    ),
)


def problems_of_lines(connection: Connection, *, fleet: int, numbers: Sequence[int]) -> list[ProblemOfLine]:
    """The open causes of some lines, each line's in the order of causes."""
    return connection.all(PROBLEMS_OF_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))


PUT_PROBLEM = Command(
    lambda dialect: (
        dialect.insert(FLEET_PROBLEM)
        .values(
            {name: sa.bindparam(name, type_=FLEET_PROBLEM.c[name].type) for name in ("fleet", "subscriber_id", *ProblemState._fields)}
            | {"opened": sa.bindparam("now", type_=sa.Double), "seen": sa.bindparam("now", type_=sa.Double), "closed": 0.0}
        )
        .on_conflict_do_update(
            index_elements=["fleet", "subscriber_id", "cause"],
            set_={
                **{name: sa.bindparam(name) for name in ("place", "since", "money", "evidence")},
                "opened": sa.case((FLEET_PROBLEM.c.closed > 0, sa.bindparam("now", type_=sa.Double)), else_=FLEET_PROBLEM.c.opened),
                "seen": sa.bindparam("now", type_=sa.Double),
                "closed": 0.0,
            },
        )
    )
)

CLOSE_PROBLEM = Command(
    sa.update(FLEET_PROBLEM)
    .where(OF_PROBLEM_LINE, FLEET_PROBLEM.c.cause == sa.bindparam("cause", type_=sa.Text), FLEET_PROBLEM.c.closed == 0)
    .values(closed=sa.bindparam("now", type_=sa.Double))
)


def open_problems_of_line(connection: Connection, *, fleet: int, subscriber_id: int) -> list[OpenProblem]:
    """The open problems of a line, in the order of causes."""
    return connection.all(OPEN_PROBLEMS_OF_LINE, fleet=fleet, subscriber_id=subscriber_id)


class ProblemChanges(NamedTuple):
    """The problems of a line that were opened, and those that were closed."""

    opened: list[ProblemState]
    closed: list[OpenProblem]


def record_problems(connection: Connection, *, fleet: int, subscriber_id: int, found: Sequence[ProblemState], now: float) -> ProblemChanges:
    """Opens the problems that were found, and closes those that were not. `now`: Unix seconds."""
    named = {"fleet": fleet, "subscriber_id": subscriber_id}
    known = {each.cause: each for each in connection.all(OPEN_PROBLEMS_OF_LINE, **named)}
    opened = [problem for problem in found if problem.cause not in known]
    for problem in found:
        before = known.pop(problem.cause, None)
        if before is None or before[:5] != tuple(problem):
            connection.run(PUT_PROBLEM, **named, **problem._asdict(), now=now)
    for cause in known:
        connection.run(CLOSE_PROBLEM, **named, cause=cause, now=now)
    return ProblemChanges(opened, list(known.values()))
