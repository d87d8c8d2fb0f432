"""How an organisation reaches the upstream: an account that is assigned to it, or a token of its own. Changes queue one after another."""

from typing import Literal, NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.engine.sql import Command, Connection, Query, first_row
from storage.fleets import end_fleets, end_simulated_fleets
from storage.former_tokens import FORMER_TOKEN, erase_former_token, keep_former_token, take_former_token
from storage.onboarding import ONBOARDING
from storage.organisations import ORGANISATION, THIS_ORGANISATION, OrganisationTable, count_change

OTHER_ORGANISATION = OrganisationTable.table.alias("other")


class ConnectionChanged(Conflict):
    """The connection is not the one any more that the call was about to replace."""

    code = "connection_changed"


class AccountHolder(NamedTuple):
    """The organisation that an account is assigned or connected to, as the outcome of an assignment."""

    id: str


class SimulatedConnection(NamedTuple):
    """The connection of an organisation to a simulated network."""

    id: str
    mode: str | None
    account_id: int | None


# Changes of connections and assignments take the row of CALLERS first, so that they queue: two that race for one account see each other.
ACCOUNT_HOLDERS = sa.select(OTHER_ORGANISATION.c.id).where(
    OTHER_ORGANISATION.c.id != sa.bindparam("organisation"),
    (OTHER_ORGANISATION.c.assigned_account_id == sa.bindparam("account"))
    | ((OTHER_ORGANISATION.c.mode == "managed") & (OTHER_ORGANISATION.c.account_id == sa.bindparam("account"))),
)

CONNECT_MANAGED = Command(
    sa.update(ORGANISATION)
    .where(THIS_ORGANISATION)
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
    .where(THIS_ORGANISATION, ~sa.exists(ACCOUNT_HOLDERS))
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
    .where(THIS_ORGANISATION)
    .values(
        mode="own",
        account_id=None,
        assigned_account_id=STAYS_ASSIGNED,
        own_token=sa.bindparam("token"),
        simulated=sa.bindparam("simulation"),
    )
)

USE_FORMER_TOKEN = Command(lambda _: sa.update(ORGANISATION).where(THIS_ORGANISATION).values(own_token=sa.bindparam("token")))

DISCONNECTED = {"mode": None, "account_id": None, "assigned_account_id": None, "own_token": None, "simulated": 0}

DISCONNECT = Command(lambda _: sa.update(ORGANISATION).where(THIS_ORGANISATION).values(DISCONNECTED))

SIMULATED_CONNECTIONS = Query(
    SimulatedConnection,
    lambda _: sa.select(ORGANISATION.c.id, ORGANISATION.c.mode, ORGANISATION.c.account_id).where(ORGANISATION.c.simulated == 1),
)

LEAVE_SIMULATION = Command(lambda _: sa.update(ORGANISATION).where(ORGANISATION.c.simulated == 1).values(DISCONNECTED))

ERASE_SIMULATED = Command(
    sa.delete(FORMER_TOKEN).where(FORMER_TOKEN.c.organisation.in_(sa.select(ORGANISATION.c.id).where(ORGANISATION.c.simulated == 1)))
)

ASSIGN_ACCOUNT = Command(
    sa.update(ORGANISATION).where(THIS_ORGANISATION, ~sa.exists(ACCOUNT_HOLDERS)).values(assigned_account_id=sa.bindparam("account"))
)

UNASSIGN_ACCOUNT = Command(lambda _: sa.update(ORGANISATION).where(THIS_ORGANISATION).values(assigned_account_id=None))

FORGET_CHOICES = Command(
    sa.update(ONBOARDING)
    .where(ONBOARDING.c.organisation == sa.bindparam("organisation"))
    .values(pending_reason=None, template_id=None, plan_name=None, plan_saved_at=None, test_esim=None, test_esim_at=None)
)


def set_connection(connection: Connection, *, organisation: str, mode: str | None, account_id: int | None, own_token: str | None) -> bool:
    """Connect an organisation to the upstream, or disconnect it, as whoever runs the service says.

    A managed account is assigned to it from then on, also where another organisation has the same. Choice: a disconnected organisation
    loses what it was assigned, too, since it would connect itself again otherwise.
    """
    count_change(connection)
    if mode == "managed":
        changed = connection.run(CONNECT_MANAGED, organisation=organisation, account=account_id)
    elif mode == "own":
        changed = connection.run(USE_OWN_TOKEN, organisation=organisation, token=own_token, simulation=0)
    else:
        changed = connection.run(DISCONNECT, organisation=organisation)
    end_fleets(connection, organisation=organisation)
    connection.run(FORGET_CHOICES, organisation=organisation)
    erase_former_token(connection, organisation=organisation)
    return changed == 1


FIND_ACCOUNT_HOLDER = Query(str, lambda _: ACCOUNT_HOLDERS.order_by(OTHER_ORGANISATION.c.id).limit(1))


def account_holder(connection: Connection, *, organisation: str, account_id: int) -> str | None:
    """Another organisation than this one that the account is assigned or connected to."""
    return connection.first(FIND_ACCOUNT_HOLDER, organisation=organisation, account=account_id)


class UpstreamRow(NamedTuple):
    """`own_token` is sealed; `service_own` marks the organisation whose account is the service's."""

    mode: str | None
    account_id: int | None
    own_token: str | None
    service_own: int


def hold_connection(connection: Connection, *, organisation: str, seen: UpstreamRow) -> None:
    """Lets no other call change a connection before this transaction ends. ConnectionChanged, where it is not the one that was seen."""
    count_change(connection)
    if find_upstream(connection, organisation=organisation) != seen:
        raise connection_has_changed()


def connection_has_changed() -> ConnectionChanged:
    """Somebody else was faster, or whoever runs the service."""
    return ConnectionChanged(
        "Your organisation's connection was changed, or another account assigned to it, while this call ran; this call did nothing",
        hint="get_onboarding_state shows the connection as it is now; repeat the call if it is still wanted",
    )


def take_account(connection: Connection, *, organisation: str, account_id: int, assigned: int | None, simulated: bool) -> bool:
    """Connect an organisation to an account that no other one has; its own tokens are erased. False: another one has it."""
    count_change(connection)
    taken = connection.run(TAKE_ACCOUNT, organisation=organisation, account=account_id, assigned=assigned, simulation=int(simulated))
    if taken:
        end_fleets(connection, organisation=organisation)
        connection.run(FORGET_CHOICES, organisation=organisation)
        erase_former_token(connection, organisation=organisation)
    return taken == 1


def use_own_token(connection: Connection, *, organisation: str, own_token: str, simulated: bool, seen: UpstreamRow, now: float) -> None:
    """Connect an organisation, whose connection is `seen`, with a sealed token of its own; the account it was assigned stays assigned.

    The own token that it replaces is kept for a day. `now`: Unix seconds.
    """
    hold_connection(connection, organisation=organisation, seen=seen)
    connection.run(USE_OWN_TOKEN, organisation=organisation, token=own_token, simulation=int(simulated))
    end_fleets(connection, organisation=organisation)
    connection.run(FORGET_CHOICES, organisation=organisation)
    if seen.mode == "own" and seen.own_token is not None:
        keep_former_token(connection, organisation=organisation, sealed=seen.own_token, now=now)
    else:
        erase_former_token(connection, organisation=organisation)


def use_former_token(connection: Connection, *, organisation: str, former: str, seen: UpstreamRow, now: float) -> None:
    """Connect an organisation, whose connection is `seen`, with the token that was replaced before; the one in use is erased.

    ConnectionChanged, where the former token is not there any more. `now`: Unix seconds.
    """
    hold_connection(connection, organisation=organisation, seen=seen)
    if not take_former_token(connection, organisation=organisation, sealed=former, now=now):
        raise connection_has_changed()
    connection.run(USE_FORMER_TOKEN, organisation=organisation, token=former)
    end_fleets(connection, organisation=organisation)
    connection.run(FORGET_CHOICES, organisation=organisation)


def assign_account(connection: Connection, *, organisation: str, account_id: int) -> Literal["assigned", "unknown"] | AccountHolder:
    """Say that an account is an organisation's, which may then connect itself to it; or who has it."""
    count_change(connection)
    if connection.run(ASSIGN_ACCOUNT, organisation=organisation, account=account_id):
        return "assigned"
    holder = account_holder(connection, organisation=organisation, account_id=account_id)
    return "unknown" if holder is None else AccountHolder(holder)


def unassign_account(connection: Connection, *, organisation: str) -> bool:
    """Take back what was assigned; an organisation that is connected stays so. False: there is no such organisation."""
    count_change(connection)
    return connection.run(UNASSIGN_ACCOUNT, organisation=organisation) == 1


def leave_simulation(connection: Connection) -> list[SimulatedConnection]:
    """Disconnect the organisations whose account was simulated, now that there is a real upstream: as they were connected."""
    if not connection.all(SIMULATED_CONNECTIONS):
        return []
    count_change(connection)  # of two processes that start at once the second one finds nothing any more
    left = connection.all(SIMULATED_CONNECTIONS)
    connection.run(ERASE_SIMULATED)
    end_simulated_fleets(connection)
    connection.run(LEAVE_SIMULATION)
    return left


@first_row(UpstreamRow)
def find_upstream(*, organisation: str) -> sa.Executable:
    """How an organisation reaches the upstream."""
    return sa.select(ORGANISATION.c.mode, ORGANISATION.c.account_id, ORGANISATION.c.own_token, ORGANISATION.c.service_own).where(
        ORGANISATION.c.id == organisation
    )
