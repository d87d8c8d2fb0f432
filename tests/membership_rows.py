"""Ending a membership and nothing else, of whomever: the service itself ends no last admin's, and ends their keys with it."""

import sqlalchemy as sa

from storage.engine.sql import Command, Connection
from storage.organisations import MembershipTable, count_change

MEMBERSHIP = MembershipTable.table
REMOVE = Command(
    sa.delete(MEMBERSHIP).where(
        MEMBERSHIP.c.person_id == sa.bindparam("person"), MEMBERSHIP.c.organisation_id == sa.bindparam("organisation")
    )
)


def leave(connection: Connection, *, person: str, organisation: str) -> None:
    connection.run(REMOVE, person=person, organisation=organisation)
    count_change(connection)
