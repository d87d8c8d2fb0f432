"""Onboarding, step ocs: which managed account is an organisation's, and connecting it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clients.ocs.resellers import ResellerAccounts
from operations.deps import Ctx, Deps
from operations.setup.onboarding import ONBOARDING_EXAMPLE, OnboardingState, PendingReason, read_onboarding
from operations.setup.onboarding_connection import (
    LIVE_CONNECTION,
    REPLACING_CONNECTION,
    ConnectionReach,
    connection_change_text,
    managed_account_replacement,
    read_connection_reach,
)
from operations.upstream.connection import Upstream, credential_digest
from registry.errors import Refusal
from registry.operation import Example, Nothing, Scope, operation
from storage.engine.sql import Connection
from storage.onboarding import OnboardingRow, choose_managed, find_onboarding
from storage.organisations import count_change
from storage.upstream_connections import ConnectionChanged, UpstreamRow, account_holder, connection_has_changed, find_upstream, take_account


class AccountCandidates(NamedTuple):
    """What the service's reseller has: all accounts, those that bear the organisation's id, those for newcomers of a simulated network."""

    live: frozenset[int]
    named: Sequence[int]
    spare: Sequence[int]


async def _find_account_candidates(deps: Deps, organisation: str) -> AccountCandidates | PendingReason:
    """Ask the charging system with the service's own token; reads only. Or why that was not possible."""
    if not deps.ocs_token.strip():
        return "not_configured"
    identity = credential_digest(deps.ocs_token)
    upstream = Upstream(
        deps.ocs.for_token(deps.ocs_token, organisation), "managed", None, False, identity, deps.reads, organisation, deps.stock.parts
    )
    try:
        own = await upstream.reseller_id()
        resellers = await upstream.ocs.reseller.list_reseller_account()
    except Refusal:
        return "ocs_unavailable"
    deps.reads.forget(identity, "accounts")  # an account that is new is there for the next call, too
    live = frozenset(_account_names(resellers))
    # An account of a reseller below the service's may be called anything: only the service's own are recognised by their names. Choice:
    # by the organisation's id in it, never its display name: anybody can sign up under any name, and would get somebody's fleet.
    named = [id for id, name in _account_names(one for one in resellers if one.get("id") == own).items() if organisation in name.casefold()]
    return AccountCandidates(live, named, [account for account in deps.spare_accounts if account in live])


def _account_names(resellers: Iterable[ResellerAccounts]) -> dict[int, str]:
    accounts = [account for reseller in resellers for account in reseller.get("account", [])]
    return {account["id"]: str(account.get("name", "")) for account in accounts if "id" in account}


class AccountLink(NamedTuple):
    """An account that the organisation would be connected to. `assigned` is what it is assigned then; `spare`: of a simulated network."""

    account: int
    assigned: int | None
    spare: bool = False


def _account_link(
    connection: Connection, row: OnboardingRow, candidates: AccountCandidates | PendingReason
) -> AccountLink | PendingReason | None:
    """Where an organisation would be connected to, or why nowhere; nothing, where it is connected there already.

    Choice: who is connected to an account stays so, though whoever runs the service may have given it to others as well.
    """
    if isinstance(candidates, str):
        return candidates
    account = _managed_account_of(row, candidates)
    if isinstance(account, int):
        if (row.mode, row.account_id) == ("managed", account):
            return None
        held = account_holder(connection, organisation=row.id, account_id=account) is not None
        return "account_conflict" if held else AccountLink(account, row.assigned_account_id)
    newcomer = account == "account_absent" and row.assigned_account_id is None
    return (_spare_account_link(connection, row.id, candidates.spare) if newcomer else None) or account


def _spare_account_link(connection: Connection, organisation: str, spare: Sequence[int]) -> AccountLink | None:
    """The first account that nobody has, as somebody who runs a real network would open one; none when they are used up."""
    free = (id for id in spare if account_holder(connection, organisation=organisation, account_id=id) is None)
    return next((AccountLink(id, id, spare=True) for id in free), None)


class LinkPreview(NamedTuple):
    """An organisation's connection, and where it would be connected to."""

    connection: UpstreamRow
    link: AccountLink | PendingReason | None


def _preview_account_link(connection: Connection, *, organisation: str, candidates: AccountCandidates | PendingReason) -> LinkPreview:
    row = find_onboarding(connection, organisation=organisation)
    found = find_upstream(connection, organisation=organisation)
    assert found is not None, "a caller's organisation is never removed"
    return LinkPreview(found, _account_link(connection, row, candidates))


def _managed_account_of(row: OnboardingRow, candidates: AccountCandidates) -> int | PendingReason:
    """The account that was assigned to the organisation; else the one that it is connected to; else the one whose name holds its id."""
    if row.assigned_account_id is not None:
        return row.assigned_account_id if row.assigned_account_id in candidates.live else "account_absent"
    if row.mode == "managed" and row.account_id in candidates.live:
        return row.account_id
    if len(candidates.named) > 1:
        return "account_conflict"
    return candidates.named[0] if candidates.named else "account_absent"


class ManagedPath(NamedTuple):
    """What the charging system has for the organisation, and what that would change. `before` is known where something live is replaced."""

    candidates: AccountCandidates | PendingReason
    preview: LinkPreview
    before: ConnectionReach


async def _managed_path(ctx: Ctx, _params: Nothing) -> ManagedPath:
    """Looks for the account; an admin confirms it where another live connection gives way to it."""
    candidates = await _find_account_candidates(ctx.deps, ctx.organisation)
    found = await ctx.deps.store.read(_preview_account_link, organisation=ctx.organisation, candidates=candidates)
    row, link = found
    if row.mode is None or not isinstance(link, AccountLink):
        return ManagedPath(candidates, found, ConnectionReach(row.mode, row.account_id))
    ctx.need_admin(REPLACING_CONNECTION)
    before = await read_connection_reach(ctx, row)
    ctx.confirm_replacement(managed_account_replacement(row, before, ConnectionReach("managed", link.account)))
    return ManagedPath(candidates, found, before)


@operation(
    "POST",
    "/v1/onboarding/managed-account",
    reaches_out=True,
    scope=Scope.ANY,
    replaces=LIVE_CONNECTION,
    access=_managed_path,
    title="Connect managed account",
    raises=[ConnectionChanged],
    examples=[Example("Be connected to the account that was opened for us", {}, ONBOARDING_EXAMPLE)],
)
async def onboarding_start_managed_account(ctx: Ctx, _params: Nothing, path: ManagedPath) -> OnboardingState:
    """Onboarding step ocs: connect your organisation to its managed account.

    Opens no account: whoever runs the service does. `pending: true` means that there is none yet, or that it could not be asked for
    (`pending_reason`); call again later. Where your organisation is connected to something else, only an admin may, who confirms it first.

    The account is the one that was assigned to your organisation, or the one whose name holds your organisation's id. Once connected,
    a token of your own is erased at once: the way back is to enter it again. While it is pending, an organisation that is connected already
    stays as it is. Reasons: `account_absent` (none was opened), `account_conflict` (two match, or another organisation has it),
    `not_configured` (the service has no reseller token), `ocs_unavailable` (the charging system did not answer as it should).
    """
    simulated = bool(ctx.deps.spare_accounts)

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        """Connects the organisation to its account, or notes why not; then neither its connection nor its token changes.

        ConnectionChanged, where another live connection would be replaced, or by another account, than what was expected and confirmed.
        """
        count_change(connection)  # from here on nobody else's connection changes
        found = _preview_account_link(connection, organisation=organisation, candidates=path.candidates)
        link = found.link
        if isinstance(link, AccountLink):
            if found.connection.mode is not None and found != path.preview:
                raise connection_has_changed()
            account, assigned = link.account, link.assigned
            given = take_account(
                connection, organisation=organisation, account_id=account, assigned=assigned, simulated=simulated or link.spare
            )
            assert given, "no account changes hands meanwhile"
        choose_managed(connection, organisation=organisation, pending_reason=link if isinstance(link, str) else None, now=now)
        state = read_onboarding(connection, organisation=organisation)
        after = ConnectionReach(state["connection"]["mode"], state["connection"]["account_id"])
        if after != path.before and after.mode == "managed":
            ctx.record_change(connection_change_text(path.before, after))
        return state

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)
