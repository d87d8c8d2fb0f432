"""Organisations, people and memberships."""

from typing import Literal, NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.network.connections import UpstreamRow, find_connection
from storage.people.former_tokens import erase_former_token, keep_former_token, take_former_token
from storage.people.people import claim_address
from storage.people.setup_tables import FormerTokenTable, OnboardingTable
from storage.schema import MembershipTable, OrganisationTable, PersonTable
from storage.statement import Command, Query, table

ORGANISATION, PERSON, MEMBERSHIP = table(OrganisationTable), table(PersonTable), table(MembershipTable)
ONBOARDING, OTHER = table(OnboardingTable), table(OrganisationTable).alias("other")


class ConnectionChanged(Conflict):
    """The connection is not the one any more that the call was about to replace."""

    code = "connection_changed"


class Organisation(NamedTuple):
    """An organisation as the command line lists it."""

    id: str
    name: str
    tier: str
    mode: str | None
    account_id: int | None
    assigned_account_id: int | None


class Holder(NamedTuple):
    """The organisation that an account is assigned or connected to."""

    id: str


class Member(NamedTuple):
    """A person and their role."""

    person_id: str
    organisation_id: str
    role: str


INSERT_ORGANISATION = Command(
    sa.insert(ORGANISATION).values(
        {
            name: sa.bindparam(name)
            for name in (
                *("id", "name", "tier", "mode", "account_id", "own_token", "service_own", "simulated", "platform_fee_bps"),
                *("assigned_account_id", "private_receivers", "created"),
            )
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
SET_TIER = Command(sa.update(ORGANISATION).where(ORGANISATION.c.id == sa.bindparam("organisation")).values(tier=sa.bindparam("new_tier")))
ITS = ORGANISATION.c.id == sa.bindparam("organisation")
# Changes of connections and assignments take the row of CALLERS first, so that they queue: two that race for one account see each other.
HELD = sa.select(OTHER.c.id).where(
    OTHER.c.id != sa.bindparam("organisation"),
    (OTHER.c.assigned_account_id == sa.bindparam("account"))
    | ((OTHER.c.mode == "managed") & (OTHER.c.account_id == sa.bindparam("account"))),
)
HOLDER = Query(Holder, HELD.order_by(OTHER.c.id).limit(1))
CONNECT = Command(
    sa.update(ORGANISATION)
    .where(ITS)
    .values(
        mode="managed",
        account_id=sa.bindparam("account"),
        assigned_account_id=sa.bindparam("account"),
        own_token=None,
        simulated=0,
    )
)
TAKE_ACCOUNT = Command(
    sa.update(ORGANISATION)
    .where(ITS, ~sa.exists(HELD))
    .values(
        mode="managed",
        account_id=sa.bindparam("account"),
        assigned_account_id=sa.bindparam("assigned"),
        own_token=None,
        simulated=sa.bindparam("simulation"),
    )
)
# What was assigned in a simulated network is no account of a real one.
STAYS_ASSIGNED = sa.case((ORGANISATION.c.simulated > sa.bindparam("simulation"), None), else_=ORGANISATION.c.assigned_account_id)
USE_OWN_TOKEN = Command(
    sa.update(ORGANISATION)
    .where(ITS)
    .values(
        mode="own",
        account_id=None,
        assigned_account_id=STAYS_ASSIGNED,
        own_token=sa.bindparam("token"),
        simulated=sa.bindparam("simulation"),
    )
)
USE_FORMER_TOKEN = Command(sa.update(ORGANISATION).where(ITS).values(own_token=sa.bindparam("token")))
DISCONNECT = Command(
    sa.update(ORGANISATION).where(ITS).values(mode=None, account_id=None, assigned_account_id=None, own_token=None, simulated=0)
)
LEAVE_SIMULATION = Command(
    sa.update(ORGANISATION)
    .where(ORGANISATION.c.simulated == 1)
    .values(mode=None, account_id=None, assigned_account_id=None, own_token=None, simulated=0)
)
FORMER = table(FormerTokenTable)
ERASE_SIMULATED = Command(
    sa.delete(FORMER).where(FORMER.c.organisation.in_(sa.select(ORGANISATION.c.id).where(ORGANISATION.c.simulated == 1)))
)
ASSIGN = Command(sa.update(ORGANISATION).where(ITS, ~sa.exists(HELD)).values(assigned_account_id=sa.bindparam("account")))
UNASSIGN = Command(sa.update(ORGANISATION).where(ITS).values(assigned_account_id=None))
FORGET_CHOICES = Command(
    sa.update(ONBOARDING)
    .where(ONBOARDING.c.organisation == sa.bindparam("organisation"))
    .values(pending_reason=None, template_id=None, plan_name=None, plan_saved_at=None, test_esim=None, test_esim_at=None)
)
ALL = Query(
    Organisation,
    sa.select(*(ORGANISATION.c[name] for name in Organisation._fields)).order_by(ORGANISATION.c.id),
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
        assigned_account_id=account_id,
        private_receivers=0,
        created=int(now),
    )


def create_person(
    connection: Connection, *, id: str, now: float, email: str | None = None, name: str | None = None, subject: str | None = None
) -> None:
    """A new person; one with this id is left as it is."""
    connection.run(INSERT_PERSON, id=id, email=email, name=name, subject=subject, created=int(now))
    if email is not None:
        claim_address(connection, person=id, address=email)


def add_member(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> None:
    """Make a person a member, or change the role of one."""
    connection.run(INSERT_MEMBER, person_id=person, organisation_id=organisation, role=role, created=int(now))
    bump(connection, name=CALLERS)


def set_tier(connection: Connection, *, organisation: str, tier: str) -> bool:
    """Change what an organisation may do; takes effect with the next call."""
    changed = connection.run(SET_TIER, organisation=organisation, new_tier=tier) == 1
    bump(connection, name=CALLERS)
    return changed


def set_connection(connection: Connection, *, organisation: str, mode: str | None, account_id: int | None, own_token: str | None) -> bool:
    """Connect an organisation to the upstream, or disconnect it, as whoever runs the service says.

    A managed account is assigned to it from then on, also where another organisation has the same. Choice: a disconnected organisation
    loses what it was assigned, too, since it would connect itself again otherwise.
    """
    bump(connection, name=CALLERS)
    if mode == "managed":
        changed = connection.run(CONNECT, organisation=organisation, account=account_id)
    elif mode == "own":
        changed = connection.run(USE_OWN_TOKEN, organisation=organisation, token=own_token, simulation=0)
    else:
        changed = connection.run(DISCONNECT, organisation=organisation)
    connection.run(FORGET_CHOICES, organisation=organisation)
    erase_former_token(connection, organisation=organisation)
    return changed == 1


def holder_of(connection: Connection, *, organisation: str, account_id: int) -> str | None:
    """Another organisation than this one that the account is assigned or connected to."""
    found = connection.first(HOLDER, organisation=organisation, account=account_id)
    return None if found is None else found.id


def hold_connection(connection: Connection, *, organisation: str, seen: UpstreamRow) -> None:
    """Lets no other call change a connection before this transaction ends. ConnectionChanged, where it is not the one that was seen."""
    bump(connection, name=CALLERS)
    if find_connection(connection, organisation=organisation) != seen:
        raise connection_changed()


def connection_changed() -> ConnectionChanged:
    """Somebody else was faster, or whoever runs the service."""
    return ConnectionChanged(
        "Your organisation's connection was changed, or another account assigned to it, while this call ran; this call did nothing",
        hint="get_onboarding_state shows the connection as it is now; repeat the call if it is still wanted",
    )


def take_account(connection: Connection, *, organisation: str, account_id: int, assigned: int | None, simulated: bool) -> bool:
    """Connect an organisation to an account that no other one has; its own tokens are erased. False: another one has it."""
    bump(connection, name=CALLERS)
    taken = connection.run(TAKE_ACCOUNT, organisation=organisation, account=account_id, assigned=assigned, simulation=int(simulated))
    if taken:
        connection.run(FORGET_CHOICES, organisation=organisation)
        erase_former_token(connection, organisation=organisation)
    return taken == 1


def use_own_token(connection: Connection, *, organisation: str, own_token: str, simulated: bool, seen: UpstreamRow, now: float) -> None:
    """Connect an organisation, whose connection is `seen`, with a sealed token of its own; the account it was assigned stays assigned.

    The own token that it replaces is kept for a day.
    """
    hold_connection(connection, organisation=organisation, seen=seen)
    connection.run(USE_OWN_TOKEN, organisation=organisation, token=own_token, simulation=int(simulated))
    connection.run(FORGET_CHOICES, organisation=organisation)
    if seen.mode == "own" and seen.own_token is not None:
        keep_former_token(connection, organisation=organisation, sealed=seen.own_token, now=now)
    else:
        erase_former_token(connection, organisation=organisation)


def use_former_token(connection: Connection, *, organisation: str, former: str, seen: UpstreamRow, now: float) -> None:
    """Connect an organisation, whose connection is `seen`, with the token that was replaced before; the one in use is erased.

    ConnectionChanged, where the former token is not there any more.
    """
    hold_connection(connection, organisation=organisation, seen=seen)
    if not take_former_token(connection, organisation=organisation, sealed=former, now=now):
        raise connection_changed()
    connection.run(USE_FORMER_TOKEN, organisation=organisation, token=former)
    connection.run(FORGET_CHOICES, organisation=organisation)


def assign_account(connection: Connection, *, organisation: str, account_id: int) -> Literal["assigned", "unknown"] | Holder:
    """Say that an account is an organisation's, which may then connect itself to it; or who has it."""
    bump(connection, name=CALLERS)
    if connection.run(ASSIGN, organisation=organisation, account=account_id):
        return "assigned"
    return connection.first(HOLDER, organisation=organisation, account=account_id) or "unknown"


def unassign_account(connection: Connection, *, organisation: str) -> bool:
    """Take back what was assigned; an organisation that is connected stays so. False: there is no such organisation."""
    bump(connection, name=CALLERS)
    return connection.run(UNASSIGN, organisation=organisation) == 1


def leave_simulation(connection: Connection) -> int:
    """Disconnect the organisations whose account was simulated, now that there is a real upstream: how many there were."""
    connection.run(ERASE_SIMULATED)
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


class PrivateAccess(NamedTuple):
    """Whether webhooks of an organisation may lead into the operator's own network."""

    private_receivers: int


PRIVATE_ACCESS = Query(PrivateAccess, sa.select(ORGANISATION.c.private_receivers).where(ITS))
SET_PRIVATE_ACCESS = Command(sa.update(ORGANISATION).where(ITS).values(private_receivers=sa.bindparam("opened")))


def may_receive_privately(connection: Connection, *, organisation: str) -> bool:
    """Whether webhooks of the organisation may lead to what SERVICE_WEBHOOK_PRIVATE names."""
    row = connection.first(PRIVATE_ACCESS, organisation=organisation)
    return row is not None and bool(row.private_receivers)


def set_private_access(connection: Connection, *, organisation: str, opened: bool) -> bool:
    """Allow or end that; False when there is no such organisation."""
    return connection.run(SET_PRIVATE_ACCESS, organisation=organisation, opened=int(opened)) == 1
