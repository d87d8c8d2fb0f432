"""Names that are not to be kept of lines any more: their customer asked for it, or the line has ended for good.

The charging system goes on telling them, so it is remembered whose are not to be stored again.
"""

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Command, Connection, Query, TableDescription, bound_list, insert_once, pack_rows, runs_in_thread, unindexed
from storage.fleet_lines import (
    BOUND_FLEET,
    CURRENT_FLEETS,
    FLEET_LINE,
    FLEET_LINE_DETAIL,
    HOLD_CURRENT_FLEET,
    LINE_IS_THERE,
    LineDetail,
    LineWrite,
    ListedLine,
    write_lines,
)
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleets import FLEET, FLEET_SETTING, IS_CURRENT, has_fleet_tables


class FleetErasureTable(TableDescription, table=True):
    """A line whose customer's name and address are not kept."""

    organisation: str = Field(primary_key=True)
    subscriber_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})


FLEET_ERASURE = FleetErasureTable.table

BOUND_NUMBER = sa.bindparam("subscriber_id", type_=sa.BigInteger)

NOTE_ERASURE = Command(insert_once(FLEET_ERASURE, ("organisation", "subscriber_id"), key=["organisation", "subscriber_id"]))

# What is being written to these fleets is there before anything is erased, and what comes after sees the note.
HOLD_FLEETS = Command(
    sa.update(FLEET).where(FLEET.c.organisation == sa.bindparam("organisation", type_=sa.Text), IS_CURRENT).values(due=FLEET.c.due)
)

ERASE_DETAIL = Command(
    sa.update(FLEET_LINE_DETAIL)
    .where(FLEET_LINE_DETAIL.c.fleet.in_(CURRENT_FLEETS), FLEET_LINE_DETAIL.c.subscriber_id == BOUND_NUMBER)
    .values(name=None, company=None, email=None, phone=None)
)

ERASE_SEARCH = Command(
    sa.update(FLEET_LINE)
    .where(FLEET_LINE.c.fleet.in_(CURRENT_FLEETS), FLEET_LINE.c.subscriber_id == BOUND_NUMBER)
    .values(search="", version=FLEET_LINE.c.version + 1)
)

ERASE_PROBLEMS = Command(
    sa.delete(FLEET_PROBLEM).where(FLEET_PROBLEM.c.fleet.in_(CURRENT_FLEETS), FLEET_PROBLEM.c.subscriber_id == BOUND_NUMBER)
)

LINES_OF_ICCIDS = Query(
    int,
    lambda dialect: sa.select(FLEET_LINE.c.subscriber_id).where(
        unindexed(FLEET_LINE.c.fleet).in_(CURRENT_FLEETS), FLEET_LINE.c.iccid.in_(bound_list(dialect, "iccids")), LINE_IS_THERE
    ),
)

LINES_OF_EMAIL = Query(
    int,
    sa.select(FLEET_LINE_DETAIL.c.subscriber_id).where(
        FLEET_LINE_DETAIL.c.fleet.in_(CURRENT_FLEETS), sa.func.lower(FLEET_LINE_DETAIL.c.email) == sa.bindparam("email", type_=sa.Text)
    ),
)

ERASED_LINES = Query(int, sa.select(FLEET_ERASURE.c.subscriber_id).where(FLEET_ERASURE.c.organisation == sa.bindparam("organisation")))


def erase_line(connection: Connection, *, organisation: str, subscriber_id: int) -> None:
    """Erases the names of a line, and what was found wrong with it; neither is stored again."""
    if not has_fleet_tables(connection):
        return
    named = {"organisation": organisation, "subscriber_id": subscriber_id}
    connection.run(NOTE_ERASURE, **named)
    connection.run(HOLD_FLEETS, organisation=organisation)
    for command in (ERASE_SEARCH, ERASE_DETAIL, ERASE_PROBLEMS):
        connection.run(command, **named)


def erase_lines_of_buyer(connection: Connection, *, organisation: str, email: str, iccids: Collection[str]) -> None:
    """Erases the names of the lines whose customer has this address (lower case), and of those with these ICCIDs, which were sold to it."""
    if not has_fleet_tables(connection):
        return
    sold = connection.all(LINES_OF_ICCIDS, organisation=organisation, iccids=pack_rows([[iccid] for iccid in sorted(iccids)]))
    for number in sorted({*connection.all(LINES_OF_EMAIL, organisation=organisation, email=email), *sold}):
        erase_line(connection, organisation=organisation, subscriber_id=number)


def erased_lines(connection: Connection, *, organisation: str) -> frozenset[int]:
    """The subscriber ids of the lines whose names are not kept."""
    return frozenset(connection.all(ERASED_LINES, organisation=organisation))


NAMELESS_LINES = Query(
    int,
    lambda dialect: sa.select(FLEET_ERASURE.c.subscriber_id).where(
        FLEET_ERASURE.c.organisation.in_(sa.select(FLEET.c.organisation).where(FLEET.c.id == BOUND_FLEET)),
        FLEET_ERASURE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger)),
    ),
)

CHOICE_OF_FLEET = Query(
    int,
    sa.select(FLEET_SETTING.c.personal).where(
        FLEET_SETTING.c.organisation.in_(sa.select(FLEET.c.organisation).where(FLEET.c.id == BOUND_FLEET))
    ),
)


def lines_without_names(connection: Connection, *, fleet: int, numbers: Collection[int]) -> set[int]:
    """Which of these lines (subscriber ids) are stored without the names and addresses that the charging system tells of them."""
    if connection.first(CHOICE_OF_FLEET, fleet=fleet) == 0:
        return set(numbers)
    return set(connection.all(NAMELESS_LINES, fleet=fleet, numbers=pack_rows([[number] for number in numbers])))


@runs_in_thread
def write_listed_lines(connection: Connection, *, fleet: int, lines: Sequence[LineWrite], now: float) -> int:
    """As `write_lines`, without names that were erased, or ceased to be kept, since the listing began."""
    if connection.first(HOLD_CURRENT_FLEET, fleet=fleet) is None:
        return 0
    nameless = lines_without_names(connection, fleet=fleet, numbers=[line.subscriber_id for line in lines])
    kept = [
        line._replace(listed=listed, detail=detail)
        for line in lines
        for listed, detail in [without_names(line.listed, line.detail) if line.subscriber_id in nameless else (line.listed, line.detail)]
    ]
    return write_lines(connection, fleet=fleet, lines=kept, now=now)


def without_names(listed: ListedLine, detail: LineDetail) -> tuple[ListedLine, LineDetail]:
    """The rows of a line without its names; where it had some, the next listing writes it again."""
    return (listed._replace(search="", digest=0), LineDetail(detail.facts, None, None, None, None)) if listed.search else (listed, detail)
