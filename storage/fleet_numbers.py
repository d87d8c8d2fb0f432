"""Lines by a piece of one of their numbers, wherever it stands in it; the best matches first.

Choice: the lines of the fleet are looked at one by one until there are enough. All of 100,000 take 50 ms on SQLite and 30 ms on PostgreSQL,
and an index of pieces would be larger than the lines and be written at every listing.
"""

from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Connection, Dialect, Query, runs_in_thread
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, LINE_IS_THERE, OF_FLEET
from storage.fleet_search import FleetBounds, bound_values, contains, within_bounds

RANKED_LINES = 500
"""So many lines with a piece are put into the order of how well they match; a piece that more lines have says little."""


class NumberedLine(NamedTuple):
    """A line that was found. `numbers`: as the table has them, between bars."""

    subscriber_id: int
    iccid: str
    numbers: str
    account_id: int
    status: str


@lru_cache(maxsize=16)
def lines_with_number(names: frozenset[str]) -> Query[NumberedLine]:
    """Lines within the bounds `names`, behind the bound one, with the bound piece in their numbers, lowest subscriber id first."""

    def build(dialect: Dialect) -> sa.Executable:
        line = FLEET_LINE.c
        bounds = [condition for name, condition in within_bounds(dialect).items() if name in names]
        asked = sa.select(*(line[name] for name in NumberedLine._fields))
        behind = line.subscriber_id > sa.bindparam("behind", type_=sa.BigInteger)
        asked = asked.where(OF_FLEET, behind, contains(dialect, line.numbers, "piece"), LINE_IS_THERE, *bounds)
        return asked.order_by(line.subscriber_id).limit(sa.bindparam("most", type_=sa.Integer))

    return Query(NumberedLine, build)


def match_rank(numbers: str, piece: str) -> int:
    """How well `piece` matches: 0 is a whole number, 1 the beginning of one, 2 its end, 3 anything else."""
    return next((rank for rank, part in enumerate((f"|{piece}|", f"|{piece}", f"{piece}|")) if part in numbers), 3)


@runs_in_thread
def find_lines_by_number(connection: Connection, *, fleet: int, bounds: FleetBounds, piece: str, most: int) -> list[NumberedLine]:
    """At most `most` lines with `piece` in a number: whole numbers first, then beginnings, ends, and pieces within. None of a fleet that
    has ended."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    held = bound_values(bounds)
    query, named = lines_with_number(frozenset(held)), {**held, "fleet": fleet}
    found = connection.all(query, piece=piece, behind=-1, most=RANKED_LINES, **named)
    if len(found) == RANKED_LINES:  # whose number it is may be one of the others
        behind = found[-1].subscriber_id
        found += connection.all(query, piece=f"|{piece}|", behind=behind, most=most, **named)
    return sorted(found, key=lambda line: (match_rank(line.numbers, piece), line.subscriber_id))[:most]
