"""Names that are not to be kept of lines any more: their customer asked for it, or the line has ended for good.

The charging system goes on telling them, so it is remembered whose are not to be stored again.
"""

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Command, Connection, Query, TableDescription, insert_once
from storage.fleet_lines import CURRENT_FLEETS, FLEET_LINE, FLEET_LINE_DETAIL
from storage.fleet_problems import FLEET_PROBLEM
from storage.fleets import has_fleet_tables


class FleetErasureTable(TableDescription, table=True):
    """A line whose customer's name and address are not kept."""

    organisation: str = Field(primary_key=True)
    subscriber_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})


FLEET_ERASURE = FleetErasureTable.table

BOUND_NUMBER = sa.bindparam("subscriber_id", type_=sa.BigInteger)

NOTE_ERASURE = Command(insert_once(FLEET_ERASURE, ("organisation", "subscriber_id"), key=["organisation", "subscriber_id"]))

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
    for command in (ERASE_DETAIL, ERASE_SEARCH, ERASE_PROBLEMS):
        connection.run(command, **named)


def erase_lines_of_email(connection: Connection, *, organisation: str, email: str) -> None:
    """Erases the names of the lines whose customer has this address, in lower case."""
    if not has_fleet_tables(connection):
        return
    for number in set(connection.all(LINES_OF_EMAIL, organisation=organisation, email=email)):
        erase_line(connection, organisation=organisation, subscriber_id=number)


def erased_lines(connection: Connection, *, organisation: str) -> frozenset[int]:
    """The subscriber ids of the lines whose names are not kept."""
    return frozenset(connection.all(ERASED_LINES, organisation=organisation))
