"""People in organisations, with what the organisation may do: what every credential leads to."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import MembershipTable, OrganisationTable
from storage.statement import Query, table

ORGANISATION, MEMBERSHIP = table(OrganisationTable), table(MembershipTable)


class Member(NamedTuple):
    """A person in an organisation, with what the organisation may do."""

    person_id: str
    organisation_id: str
    name: str
    tier: str
    mode: str | None
    account_id: int | None
    role: str


class Org(NamedTuple):
    """An organisation's id and name."""

    id: str
    name: str


MEMBER_COLUMNS: Sequence[sa.ColumnElement[object]] = (
    MEMBERSHIP.c.person_id,
    MEMBERSHIP.c.organisation_id,
    ORGANISATION.c.name,
    ORGANISATION.c.tier,
    ORGANISATION.c.mode,
    ORGANISATION.c.account_id,
    MEMBERSHIP.c.role,
)
MEMBERS = sa.select(*MEMBER_COLUMNS).join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)
MEMBER_OF = Query(
    Member,
    MEMBERS.where(MEMBERSHIP.c.person_id == sa.bindparam("person"), MEMBERSHIP.c.organisation_id == sa.bindparam("organisation")),
)
MEMBERSHIPS = Query(
    Member, MEMBERS.where(MEMBERSHIP.c.person_id == sa.bindparam("person")).order_by(MEMBERSHIP.c.created, MEMBERSHIP.c.organisation_id)
)
CONNECTED = Query(
    Org,
    sa.select(ORGANISATION.c.id, ORGANISATION.c.name)
    .join_from(MEMBERSHIP, ORGANISATION, MEMBERSHIP.c.organisation_id == ORGANISATION.c.id)
    .where(MEMBERSHIP.c.person_id == sa.bindparam("person"), ORGANISATION.c.mode.is_not(None))
    .order_by(ORGANISATION.c.id),
)


def find_member(connection: Connection, *, person: str, organisation: str) -> Member | None:
    """A membership."""
    return connection.first(MEMBER_OF, person=person, organisation=organisation)


def first_membership(connection: Connection, *, person: str) -> Member | None:
    """The membership that somebody acts in who named none: the oldest."""
    return connection.first(MEMBERSHIPS, person=person)


def memberships_of(connection: Connection, *, person: str) -> list[Member]:
    """Every organisation of a person, the oldest membership first."""
    return connection.all(MEMBERSHIPS, person=person)


def list_connected(connection: Connection, *, person: str) -> list[Org]:
    """The person's organisations that have an upstream account."""
    return connection.all(CONNECTED, person=person)
