"""People by the address whose mail they have proved to read."""

from typing import Annotated

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    StatementBuild,
    TableDescription,
    first_row,
    insert_once,
    one_row,
    row_exists,
    writes,
)
from storage.invitations import INVITATION


class PersonTable(TableDescription, table=True):
    """Somebody who signs in. `subject` is an external identity provider's name for them; `address` is how they sign in at the built-in
    one: the e-mail address in lower case, once only, since whoever reads its mail is this person.
    """

    id: str = Field(primary_key=True)
    email: str | None = Field(index=True)
    name: str | None
    subject: str | None = Field(unique=True)
    address: str | None
    created: BigInt
    __table_args__ = (sa.Index("person_address", "address", unique=True),)


PERSON = PersonTable.table

OTHER_PERSON = PERSON.alias("other")


@writes
def claim_address(*, person: str, address: Annotated[str, str.lower]) -> sa.Executable:
    """Let `person` sign in with `address`, unless they have an address, or the address is somebody else's."""
    # Whoever has proved the address already keeps it.
    return (
        sa.update(PERSON)
        .where(
            PERSON.c.id == person,
            PERSON.c.address.is_(None),
            ~sa.exists().where(OTHER_PERSON.c.address == address),
        )
        .values(address=address)
    )


@first_row(str)
def find_by_address(*, address: str) -> sa.Executable:
    """The id of the person who signs in with `address`, or None."""
    return sa.select(PERSON.c.id).where(PERSON.c.address == address)


@first_row(str)
def mail_address_of(*, person: str) -> sa.Executable:
    """The address that somebody reads mail at, or None."""
    return sa.select(sa.func.coalesce(PERSON.c.address, PERSON.c.email).label("address")).where(PERSON.c.id == person)


@row_exists
def is_expected(*, address: str, now: float) -> sa.Executable:
    """Whether an address is somebody's, or that of somebody who is invited and becomes a person by signing in. `now`: Unix seconds."""
    is_invited = sa.exists().where(INVITATION.c.address == address, INVITATION.c.expires_at > now)
    return sa.select(sa.literal_column("1", sa.Integer).label("expected")).where(
        sa.exists().where(PERSON.c.address == address) | is_invited
    )


@one_row(str)
def ensure_person(*, address: str, id: str, now: Annotated[float, int], name: str | None = None) -> StatementBuild:
    """The id of the person who has proved `address`: the one who is there, or a new one with this `id`. `now`: Unix seconds."""
    # Two who prove the same address at once become one person; a name that is there is not replaced.
    values = {"id": id, "email": address, "address": address, "name": name, "subject": None, "created": now}
    known_name = sa.func.coalesce(PERSON.c.name, sa.bindparam("name"))
    return lambda dialect: (
        dialect.insert(PERSON)
        .values(values)
        .on_conflict_do_update(index_elements=["address"], set_={"name": known_name})
        .returning(PERSON.c.id)
    )


INSERT_PERSON = Command(insert_once(PERSON, ("id", "email", "name", "subject", "created"), key=["id"]))


def create_person(
    connection: Connection, *, id: str, now: float, email: str | None = None, name: str | None = None, subject: str | None = None
) -> None:
    """Insert a person, who may sign in with `email`; one with this id is left as it is. `now`: Unix seconds."""
    connection.run(INSERT_PERSON, id=id, email=email, name=name, subject=subject, created=int(now))
    if email is not None:
        claim_address(connection, person=id, address=email)
