"""Which managed account is an organisation's, and connecting it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clients.ocs.wire.reseller import ResellerAccounts
from operations.deps import Deps
from operations.services.network.reached import Upstream
from operations.services.network.upstream import identity_of
from operations.services.people.onboarding import OnboardingState, PendingReason, read_state
from registry.errors import Refusal
from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.network.connections import UpstreamRow, find_connection
from storage.people.accounts import connection_changed, holder_of, take_account
from storage.people.onboarding import OnboardingRow, choose_managed, find_onboarding


class Seen(NamedTuple):
    """What the service's reseller has: all accounts, those that bear the organisation's id, those for newcomers of a simulated network."""

    live: frozenset[int]
    named: Sequence[int]
    spare: Sequence[int]


async def look_for_account(deps: Deps, organisation: str) -> Seen | PendingReason:
    """Ask the charging system with the service's own token; reads only. Or why that was not possible."""
    if not deps.ocs_token.strip():
        return "not_configured"
    identity = identity_of(deps.ocs_token)
    upstream = Upstream(
        deps.ocs.for_token(deps.ocs_token, organisation), "managed", None, False, identity, deps.reads, organisation, deps.stock.parts
    )
    try:
        own = await upstream.reseller_id()
        resellers = await upstream.ocs.reseller.list_reseller_account()
    except Refusal:
        return "ocs_unavailable"
    deps.reads.forget(identity, "accounts")  # an account that is new is there for the next call, too
    live = frozenset(names_of(resellers))
    # An account of a reseller below the service's may be called anything: only the service's own are told by their names.
    named = [id for id, name in names_of(one for one in resellers if one.get("id") == own).items() if bears(name, organisation)]
    return Seen(live, named, [account for account in deps.spare_accounts if account in live])


def names_of(resellers: Iterable[ResellerAccounts]) -> dict[int, str]:
    """All accounts by id."""
    accounts = [account for reseller in resellers for account in reseller.get("account", [])]
    return {account["id"]: str(account.get("name", "")) for account in accounts if "id" in account}


def bears(name: str, organisation: str) -> bool:
    """Whether an account's name holds the organisation's id.

    Choice: never its display name, whatever the mapping says: anybody can sign up under any name, and would get somebody's fleet.
    """
    return organisation in name.casefold()


class Link(NamedTuple):
    """An account that the organisation would be connected to. `assigned` is what it is assigned then; `spare`: of a simulated network."""

    account: int
    assigned: int | None
    spare: bool = False


def link_for(connection: Connection, row: OnboardingRow, seen: Seen | PendingReason) -> Link | PendingReason | None:
    """Where an organisation would be connected to, or why nowhere; nothing, where it is connected there already.

    Choice: who is connected to an account stays so, though whoever runs the service may have given it to others as well.
    """
    if isinstance(seen, str):
        return seen
    account = account_of(row, seen)
    if isinstance(account, int):
        if (row.mode, row.account_id) == ("managed", account):
            return None
        held = holder_of(connection, organisation=row.id, account_id=account) is not None
        return "account_conflict" if held else Link(account, row.assigned_account_id)
    newcomer = account == "account_absent" and row.assigned_account_id is None
    return (spare_for(connection, row.id, seen.spare) if newcomer else None) or account


def spare_for(connection: Connection, organisation: str, spare: Sequence[int]) -> Link | None:
    """The first account that nobody has, as somebody who runs a real network would open one; none when they are used up."""
    free = (id for id in spare if holder_of(connection, organisation=organisation, account_id=id) is None)
    return next((Link(id, id, spare=True) for id in free), None)


class Outlook(NamedTuple):
    """An organisation's connection, and where it would be connected to."""

    connection: UpstreamRow
    link: Link | PendingReason | None


def outlook(connection: Connection, *, organisation: str, seen: Seen | PendingReason) -> Outlook:
    """What asking for the managed account would do now."""
    row = find_onboarding(connection, organisation=organisation)
    found = find_connection(connection, organisation=organisation)
    assert found is not None, "a caller's organisation is never removed"
    return Outlook(found, link_for(connection, row, seen))


def relink(
    connection: Connection, *, organisation: str, seen: Seen | PendingReason, expected: Outlook, simulated: bool, now: float
) -> OnboardingState:
    """Connect the organisation to its account, or note why not; then neither its connection nor its token changes.

    ConnectionChanged, where another live connection would be replaced, or by another account, than what was expected and confirmed.
    """
    bump(connection, name=CALLERS)  # from here on nobody else's connection changes
    found = outlook(connection, organisation=organisation, seen=seen)
    link = found.link
    if isinstance(link, Link):
        if found.connection.mode is not None and found != expected:
            raise connection_changed()
        account, assigned = link.account, link.assigned
        given = take_account(
            connection, organisation=organisation, account_id=account, assigned=assigned, simulated=simulated or link.spare
        )
        assert given, "no account changes hands meanwhile"
    choose_managed(connection, organisation=organisation, pending_reason=link if isinstance(link, str) else None, now=now)
    return read_state(connection, organisation=organisation)


def account_of(row: OnboardingRow, seen: Seen) -> int | PendingReason:
    """The one that was assigned; else the one that it is connected to; else the one that bears its id."""
    if row.assigned_account_id is not None:
        return row.assigned_account_id if row.assigned_account_id in seen.live else "account_absent"
    if row.mode == "managed" and row.account_id in seen.live:
        return row.account_id
    if len(seen.named) > 1:
        return "account_conflict"
    return seen.named[0] if seen.named else "account_absent"
