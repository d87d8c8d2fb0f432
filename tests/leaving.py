"""Ending a membership and nothing else, of whomever: the service itself ends no last admin's, and ends their keys with it."""

import sqlalchemy as sa

from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.schema import MembershipTable
from storage.statement import Command, table

MEMBERSHIP = table(MembershipTable)
REMOVE = Command(
    sa.delete(MEMBERSHIP).where(
        MEMBERSHIP.c.person_id == sa.bindparam("person"), MEMBERSHIP.c.organisation_id == sa.bindparam("organisation")
    )
)


def leave(connection: Connection, *, person: str, organisation: str) -> None:
    """The membership is gone."""
    connection.run(REMOVE, person=person, organisation=organisation)
    bump(connection, name=CALLERS)
