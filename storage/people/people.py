"""People by the address whose mail they have proved to read."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import InvitationTable, PersonTable
from storage.statement import Command, Query, table

PERSON, INVITATION = table(PersonTable), table(InvitationTable)
OTHER = PERSON.alias("other")


class Person(NamedTuple):
    """A person's id."""

    id: str


class Expected(NamedTuple):
    """Whether an address may sign in: 1 or 0."""

    expected: int


BY_ADDRESS = Query(Person, sa.select(PERSON.c.id).where(PERSON.c.address == sa.bindparam("address")))
EXPECTED = Query(
    Expected,
    sa.select(
        sa.case(
            (sa.exists().where(PERSON.c.address == sa.bindparam("address")), 1),
            (sa.exists().where(INVITATION.c.address == sa.bindparam("address"), INVITATION.c.expires_at > sa.bindparam("now")), 1),
            else_=0,
        ).label("expected")
    ),
)
# Two who prove the same address at once become one person; a name that is there is not replaced.
KEEP = Query(
    Person,
    lambda dialect: (
        dialect.insert(PERSON)
        .values({name: sa.bindparam(name) for name in ("id", "email", "address", "name", "subject", "created")})
        .on_conflict_do_update(index_elements=["address"], set_={"name": sa.func.coalesce(PERSON.c.name, sa.bindparam("name"))})
        .returning(PERSON.c.id)
    ),
)


# Whoever has proved the address already keeps it.
CLAIM = Command(
    sa.update(PERSON)
    .where(PERSON.c.id == sa.bindparam("person"), PERSON.c.address.is_(None), ~sa.exists().where(OTHER.c.address == sa.bindparam("wanted")))
    .values(address=sa.bindparam("wanted"))
)


def claim_address(connection: Connection, *, person: str, address: str) -> None:
    """Whoever runs the service says that somebody signs in with an address; one that is another's stays so."""
    connection.run(CLAIM, person=person, wanted=address.lower())


def find_by_address(connection: Connection, *, address: str) -> str | None:
    """The person who signs in with an address."""
    found = connection.first(BY_ADDRESS, address=address)
    return None if found is None else found.id


def is_expected(connection: Connection, *, address: str, now: float) -> bool:
    """Whether an address is somebody's, or that of somebody who is invited and becomes a person by signing in."""
    found = connection.first(EXPECTED, address=address, now=now)
    return found is not None and found.expected == 1


def keep_person(connection: Connection, *, address: str, id: str, now: float, name: str | None = None) -> str:
    """The person who has proved an address: the one who is there, or a new one with this id."""
    kept = connection.first(KEEP, id=id, email=address, address=address, name=name, subject=None, created=int(now))
    assert kept is not None
    return kept.id
