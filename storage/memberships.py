"""People in organisations, with what the organisation may do: what every credential leads to."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.change_counters import CALLERS, count_change
from storage.engine.connection import Command, Connection, all_rows, first_row
from storage.engine.table import BigInt, TableDescription, table_of
from storage.organisations import ORGANISATION


class MemberRole(NamedTuple):
    """A person and their role."""

    person_id: Annotated[str, Field(primary_key=True, foreign_key="person.id")]
    organisation_id: Annotated[str, Field(primary_key=True, foreign_key="organisation.id", index=True)]
    role: str


class MembershipTable(TableDescription, row=MemberRole, table=True):
    """A person's role in an organisation."""

    created: BigInt


MEMBERSHIP = table_of(MembershipTable)


class Membership(NamedTuple):
    """A person in an organisation, with what the organisation may do."""

    person_id: str
    organisation_id: str
    name: str
    tier: str
    mode: str | None
    account_id: int | None
    role: str


class ConnectedOrganisation(NamedTuple):
    """An organisation's id and name."""

    id: str
    name: str


MEMBERSHIP_COLUMNS: Sequence[sa.ColumnElement[object]] = (
    MEMBERSHIP.c.person_id,
    MEMBERSHIP.c.organisation_id,
    ORGANISATION.c.name,
    ORGANISATION.c.tier,
    ORGANISATION.c.mode,
    ORGANISATION.c.account_id,
    MEMBERSHIP.c.role,
)

SELECT_MEMBERSHIPS = sa.select(*MEMBERSHIP_COLUMNS).join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)

MEMBERSHIPS_OF_PERSON = SELECT_MEMBERSHIPS.where(MEMBERSHIP.c.person_id == sa.bindparam("person")).order_by(
    MEMBERSHIP.c.created, MEMBERSHIP.c.organisation_id
)


@first_row(Membership)
def find_member(*, person: str, organisation: str) -> sa.Executable:
    """The membership of `person` in `organisation`, or None."""
    return SELECT_MEMBERSHIPS.where(MEMBERSHIP.c.person_id == person, MEMBERSHIP.c.organisation_id == organisation)


@first_row(Membership)
def first_membership(*, person: str) -> sa.Executable:
    """The membership that `person` acts in where none is named: the oldest; None where there is none."""
    return MEMBERSHIPS_OF_PERSON


@all_rows(Membership)
def memberships_of(*, person: str) -> sa.Executable:
    """Every organisation of `person`, the oldest membership first."""
    return MEMBERSHIPS_OF_PERSON


@all_rows(ConnectedOrganisation)
def list_connected(*, person: str) -> sa.Executable:
    """The organisations of `person` that have an upstream account."""
    return (
        sa.select(ORGANISATION.c.id, ORGANISATION.c.name)
        .join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)
        .where(MEMBERSHIP.c.person_id == person, ORGANISATION.c.mode.is_not(None))
        .order_by(ORGANISATION.c.id)
    )


INSERT_MEMBER = Command(
    lambda dialect: (
        dialect.insert(MEMBERSHIP)
        .values({name: sa.bindparam(name) for name in ("person_id", "organisation_id", "role", "created")})
        .on_conflict_do_update(index_elements=["person_id", "organisation_id"], set_={"role": sa.bindparam("role")})
    )
)


def add_member(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> None:
    """Make `person` a member, or change the role of one. `now`: Unix seconds."""
    connection.run(INSERT_MEMBER, person_id=person, organisation_id=organisation, role=role, created=int(now))
    count_change(connection, name=CALLERS)


@all_rows(MemberRole)
def list_members(*, organisation: str) -> sa.Executable:
    """An organisation's members, admins first."""
    return (
        sa.select(MEMBERSHIP.c.person_id, MEMBERSHIP.c.organisation_id, MEMBERSHIP.c.role)
        .where(MEMBERSHIP.c.organisation_id == organisation)
        .order_by(MEMBERSHIP.c.role, MEMBERSHIP.c.created, MEMBERSHIP.c.person_id)
    )
