"""What each line's use cost and brought in, added up from day to day, so that the sum of any days is a difference of two columns.

A row holds fourteen days of a line: `cost_3` is what networks charged from its first day to its fourth, micro-euro, and `income_3` what the
customer was charged. A fleet's rows of use are millions; these are seven a line for ninety days. They are written in the commit that writes
the rows of use.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.drivers import Value
from storage.engine.sql import CLUSTERED, BigInt, Command, Connection, Dialect, TableDescription
from storage.fleet_usage import FleetDayRow

BLOCK_DAYS = 14


class LineMoneyRow(NamedTuple):
    """`block`: the ordinal of its first day, divided by fourteen."""

    block: int
    cost_0: BigInt
    cost_1: BigInt
    cost_2: BigInt
    cost_3: BigInt
    cost_4: BigInt
    cost_5: BigInt
    cost_6: BigInt
    cost_7: BigInt
    cost_8: BigInt
    cost_9: BigInt
    cost_10: BigInt
    cost_11: BigInt
    cost_12: BigInt
    cost_13: BigInt
    income_0: BigInt
    income_1: BigInt
    income_2: BigInt
    income_3: BigInt
    income_4: BigInt
    income_5: BigInt
    income_6: BigInt
    income_7: BigInt
    income_8: BigInt
    income_9: BigInt
    income_10: BigInt
    income_11: BigInt
    income_12: BigInt
    income_13: BigInt


class FleetLineMoneyTable(TableDescription, row=LineMoneyRow, table=True):
    """The money of a line in fourteen days."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (sa.PrimaryKeyConstraint("fleet", "subscriber_id", "block"), CLUSTERED)


FLEET_LINE_MONEY = FleetLineMoneyTable.table

COSTS, INCOMES = (tuple(FLEET_LINE_MONEY.c[f"{name}_{place}"] for place in range(BLOCK_DAYS)) for name in ("cost", "income"))

FIRST_BLOCK, LAST_BLOCK = (sa.bindparam(name, type_=sa.Integer) for name in ("first_block", "last_block"))

HOLDS_DAYS = sa.and_(FLEET_LINE_MONEY.c.block >= FIRST_BLOCK, FLEET_LINE_MONEY.c.block <= LAST_BLOCK)
"""The rows that the days which a `BlockSpan` was made of lie in."""


class BlockSpan(NamedTuple):
    """Some days as blocks: the first and the last one, and the places of the day before the first day (-1: none) and of the last one.

    The places say which columns are added up, so a statement is made for each pair of them: a choice among fourteen columns by a bound
    number would be made for every row, and take longer than the sums.
    """

    first_block: int
    last_block: int
    before_first: int
    last_place: int

    @property
    def bound(self) -> dict[str, Value]:
        """What to bind for a statement with HOLDS_DAYS."""
        return {"first_block": self.first_block, "last_block": self.last_block}


def blocks_of_days(first: int, last: int) -> BlockSpan:
    """The days from `first` to `last`, ordinals."""
    start, end = divmod(first, BLOCK_DAYS), divmod(last, BLOCK_DAYS)
    return BlockSpan(start[0], end[0], start[1] - 1, end[1])


def sum_of_days(columns: Sequence[sa.ColumnElement[int]], *, before_first: int, last_place: int) -> sa.ColumnElement[int]:
    """The sum of the days of a `BlockSpan` with these places for one of COSTS and INCOMES, of rows that are HOLDS_DAYS."""
    until = sa.case((FLEET_LINE_MONEY.c.block == LAST_BLOCK, columns[last_place]), else_=columns[-1])
    if before_first < 0:
        return sa.func.sum(until)
    return sa.func.sum(until - sa.case((FLEET_LINE_MONEY.c.block == FIRST_BLOCK, columns[before_first]), else_=0))


MONEY_COLUMNS = tuple(column.name for column in (*COSTS, *INCOMES))


def add_money(dialect: Dialect) -> sa.Executable:
    given = {name: sa.bindparam(name, type_=FLEET_LINE_MONEY.c[name].type) for name in ("fleet", "subscriber_id", "block", *MONEY_COLUMNS)}
    return (
        dialect.insert(FLEET_LINE_MONEY)
        .values(given)
        .on_conflict_do_update(
            index_elements=["fleet", "subscriber_id", "block"],
            set_={name: FLEET_LINE_MONEY.c[name] + given[name] for name in MONEY_COLUMNS},
        )
    )


ADD_MONEY = Command(add_money)


def add_line_money(connection: Connection, *, fleet: int, subscriber_id: int, changes: Iterable[FleetDayRow]) -> None:
    """Adds to the money of a line by what its use changed."""
    blocks: dict[int, list[int]] = {}
    for change in changes:
        block, place = divmod(change.day, BLOCK_DAYS)
        sums = blocks.setdefault(block, [0] * (2 * BLOCK_DAYS))
        for later in range(place, BLOCK_DAYS):
            sums[later] += change.network_cost
            sums[BLOCK_DAYS + later] += change.usage_income
    of_line = {"fleet": fleet, "subscriber_id": subscriber_id}
    connection.run_many(
        ADD_MONEY,
        [
            {**of_line, "block": block, **dict(zip(MONEY_COLUMNS, blocks[block], strict=True))}
            for block in sorted(blocks)
            if any(blocks[block])
        ],
    )
