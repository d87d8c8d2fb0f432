"""A fleet of any size in a database of its own: one that was read from a simulated network, and as many copies of its rows as it takes.

The days, networks, packages, problems, money and figures of the lines are those of the simulated network; copies differ in their numbers
alone.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Query, runs_in_thread
from storage.engine.store import Store
from storage.fleet_figures import FLEET_FIGURE
from storage.fleet_line_money import FLEET_LINE_MONEY
from storage.fleet_lines import FLEET_LINE, FLEET_LINE_DETAIL
from storage.fleet_packages import FLEET_PACKAGE
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleet_usage import FLEET_DAY, FLEET_USAGE
from storage.fleets import FLEET

TABLES = (FLEET_LINE, FLEET_LINE_DETAIL, FLEET_PACKAGE, FLEET_USAGE, FLEET_PROBLEM, FLEET_FIGURE, FLEET_LINE_MONEY)
COPY_DISTANCE = 100_000_000
"""Subscriber ids of a copy lie so far beyond those of the one before."""
COPIES_AT_ONCE = 10
NEVER = 4e12

SHIFT = sa.bindparam("shift", type_=sa.BigInteger)
PREFIX = sa.bindparam("prefix", type_=sa.Text)
FIRST_DIGITS = 11


def copied(column: "sa.Column[Any]") -> sa.ColumnElement[Any]:
    """The column in a copy: other numbers, and everything else as it is."""
    if column.name == "subscriber_id":
        return column + SHIFT
    if column.table is FLEET_LINE and column.name == "iccid":
        return PREFIX + sa.func.substr(column, FIRST_DIGITS + 1)
    if column.table is FLEET_LINE and column.name == "numbers":
        return sa.func.replace(column, sa.func.substr(FLEET_LINE.c.iccid, 1, FIRST_DIGITS), PREFIX)
    return column


COPY_ROWS = tuple(
    Command(
        sa.insert(table).from_select(
            [column.name for column in table.columns],
            sa.select(*(copied(column) for column in table.columns)).where(table.c.subscriber_id < COPY_DISTANCE),
        )
    )
    for table in TABLES
)
LEAVE_ALONE = (
    Command(sa.update(FLEET).values(due=NEVER, list_due=NEVER)),
    Command(sa.update(FLEET_LINE).where(FLEET_LINE.c.due > 0).values(due=NEVER)),
    Command(sa.update(FLEET_LINE).where(FLEET_LINE.c.judge_due > 0).values(judge_due=NEVER)),
)
SUMS = ("uses", "free", "network_cost", "usage_income")
ADD_UP_DAYS = Command(sa.update(FLEET_DAY).values({name: FLEET_DAY.c[name] * sa.bindparam("fleets", type_=sa.BigInteger) for name in SUMS}))
COUNTS = tuple(Query(int, sa.select(sa.func.count().label("rows")).select_from(table)) for table in TABLES)


class TableRows(NamedTuple):
    """How many rows a table has."""

    name: str
    rows: int


@runs_in_thread
def copy_fleet(connection: Connection, *, first: int, last: int) -> None:
    """Adds the copies from number `first` to `last`."""
    for command in COPY_ROWS:
        for number in range(first, last + 1):
            given: dict[str, int | str] = {"shift": number * COPY_DISTANCE}
            named = {"prefix": f"89{number:09d}"} if "prefix" in command_names(command) else {}
            connection.run(command, **given, **named)


def command_names(command: Command) -> tuple[str, ...]:
    return ("shift", "prefix") if command is COPY_ROWS[0] else ("shift",)


@runs_in_thread
def add_up_days(connection: Connection, *, fleets: int) -> None:
    """The sums of the fleet's days become those of the fleet and its copies."""
    connection.run(ADD_UP_DAYS, fleets=fleets)


@runs_in_thread
def leave_alone(connection: Connection) -> None:
    """Nobody reads the fleet any more: it stays as it is."""
    for command in LEAVE_ALONE:
        connection.run(command)


@runs_in_thread
def table_rows(connection: Connection) -> list[TableRows]:
    return [TableRows(table.name, connection.first(query) or 0) for table, query in zip(TABLES, COUNTS, strict=True)]


async def grow_fleet(store: Store, lines: int) -> list[TableRows]:
    """Copies the one fleet in the store until it has so many lines; the rows of each table then."""
    await store.write(leave_alone)
    had = (await store.read(table_rows))[0].rows
    copies = max(0, -(-lines // had) - 1)
    for first in range(1, copies + 1, COPIES_AT_ONCE):
        await store.write(copy_fleet, first=first, last=min(copies, first + COPIES_AT_ONCE - 1))
    await store.write(add_up_days, fleets=copies + 1)
    return await store.read(table_rows)
