"""Organisations, people and memberships."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.changes import CALLERS, bump
from storage.connection import Connection
from storage.schema import MembershipTable, OrganisationTable, PersonTable
from storage.statement import Command, Query, table

ORGANISATION, PERSON, MEMBERSHIP = table(OrganisationTable), table(PersonTable), table(MembershipTable)


class Organisation(NamedTuple):
    """An organisation as the command line lists it."""

    id: str
    name: str
    tier: str
    mode: str | None
    account_id: int | None


class Member(NamedTuple):
    """A person and their role."""

    person_id: str
    organisation_id: str
    role: str


INSERT_ORGANISATION = Command(
    sa.insert(ORGANISATION).values(
        {
            name: sa.bindparam(name)
            for name in ("id", "name", "tier", "mode", "account_id", "own_token", "service_own", "simulated", "platform_fee_bps", "created")
        }
    )
)
INSERT_PERSON = Command(
    lambda dialect: (
        dialect.insert(PERSON)
        .values({name: sa.bindparam(name) for name in ("id", "email", "name", "subject", "created")})
        .on_conflict_do_nothing(index_elements=["id"])
    )
)
INSERT_MEMBER = Command(
    lambda dialect: (
        dialect.insert(MEMBERSHIP)
        .values({name: sa.bindparam(name) for name in ("person_id", "organisation_id", "role", "created")})
        .on_conflict_do_update(index_elements=["person_id", "organisation_id"], set_={"role": sa.bindparam("role")})
    )
)
REMOVE_MEMBER = Command(
    sa.delete(MEMBERSHIP).where(
        MEMBERSHIP.c.person_id == sa.bindparam("person"), MEMBERSHIP.c.organisation_id == sa.bindparam("organisation")
    )
)
SET_TIER = Command(sa.update(ORGANISATION).where(ORGANISATION.c.id == sa.bindparam("organisation")).values(tier=sa.bindparam("new_tier")))
SET_CONNECTION = Command(
    sa.update(ORGANISATION)
    .where(ORGANISATION.c.id == sa.bindparam("organisation"))
    .values(mode=sa.bindparam("new_mode"), account_id=sa.bindparam("account"), own_token=sa.bindparam("token"), simulated=0)
)
LEAVE_SIMULATION = Command(
    sa.update(ORGANISATION).where(ORGANISATION.c.simulated == 1).values(mode=None, account_id=None, own_token=None, simulated=0)
)
ALL = Query(
    Organisation,
    sa.select(ORGANISATION.c.id, ORGANISATION.c.name, ORGANISATION.c.tier, ORGANISATION.c.mode, ORGANISATION.c.account_id).order_by(
        ORGANISATION.c.id
    ),
)
MEMBERS = Query(
    Member,
    sa.select(MEMBERSHIP.c.person_id, MEMBERSHIP.c.organisation_id, MEMBERSHIP.c.role)
    .where(MEMBERSHIP.c.organisation_id == sa.bindparam("organisation"))
    .order_by(MEMBERSHIP.c.role, MEMBERSHIP.c.created, MEMBERSHIP.c.person_id),
)


def create_organisation(
    connection: Connection,
    *,
    id: str,
    name: str,
    tier: str,
    now: float,
    mode: str | None = None,
    account_id: int | None = None,
    service_own: bool = False,
    simulated: bool = False,
) -> None:
    """A new organisation; `service_own` marks the one whose account is the service's, `simulated` one whose account is no real one."""
    connection.run(
        INSERT_ORGANISATION,
        id=id,
        name=name,
        tier=tier,
        mode=mode,
        account_id=account_id,
        own_token=None,
        service_own=int(service_own),
        simulated=int(simulated),
        platform_fee_bps=None,
        created=int(now),
    )


def create_person(
    connection: Connection, *, id: str, now: float, email: str | None = None, name: str | None = None, subject: str | None = None
) -> None:
    """A new person; one with this id is left as it is."""
    connection.run(INSERT_PERSON, id=id, email=email, name=name, subject=subject, created=int(now))


def add_member(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> None:
    """Make a person a member, or change the role of one."""
    connection.run(INSERT_MEMBER, person_id=person, organisation_id=organisation, role=role, created=int(now))
    bump(connection, name=CALLERS)


def remove_member(connection: Connection, *, person: str, organisation: str) -> bool:
    """End a membership; keys that the person made for the organisation stop working with it."""
    removed = connection.run(REMOVE_MEMBER, person=person, organisation=organisation) == 1
    bump(connection, name=CALLERS)
    return removed


def set_tier(connection: Connection, *, organisation: str, tier: str) -> bool:
    """Change what an organisation may do; takes effect with the next call."""
    changed = connection.run(SET_TIER, organisation=organisation, new_tier=tier) == 1
    bump(connection, name=CALLERS)
    return changed


def set_connection(connection: Connection, *, organisation: str, mode: str | None, account_id: int | None, own_token: str | None) -> bool:
    """Connect an organisation to the upstream, or disconnect it."""
    changed = connection.run(SET_CONNECTION, organisation=organisation, new_mode=mode, account=account_id, token=own_token) == 1
    bump(connection, name=CALLERS)
    return changed


def leave_simulation(connection: Connection) -> int:
    """Disconnect the organisations whose account was simulated, now that there is a real upstream: how many there were."""
    left = connection.run(LEAVE_SIMULATION)
    if left:
        bump(connection, name=CALLERS)
    return left


def list_organisations(connection: Connection) -> list[Organisation]:
    """Every organisation, oldest first."""
    return connection.all(ALL)


def list_members(connection: Connection, *, organisation: str) -> list[Member]:
    """An organisation's members, admins first."""
    return connection.all(MEMBERS, organisation=organisation)
