"""Onboarding, step ocs: a token of the organisation's own, or its managed account, and what an admin confirms before one of them replaces a
live connection.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from clients.ocs.resellers import ResellerAccounts
from operations.deps import Ctx, Deps
from operations.people.organisation_events import log_connection_change
from operations.setup.onboarding import ONBOARDING_EXAMPLE, OnboardingState, PendingReason, read_onboarding
from operations.upstream.connection import Upstream, credential_digest, open_own_token
from registry.caller import Role
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, OcsError, QuotaExceeded, Refusal
from registry.operation import Example, Input, Nothing, Scope, Secret, SpendKind, operation
from storage.allowances import allowance_for, spend_allowances
from storage.engine.sql import Connection
from storage.former_tokens import FormerToken, find_former_token
from storage.onboarding import OnboardingRow, choose_managed, choose_own, find_onboarding
from storage.organisations import count_change
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import (
    ConnectionChanged,
    UpstreamRow,
    account_holder,
    connection_has_changed,
    find_upstream,
    take_account,
    use_former_token,
    use_own_token,
)

LIVE_CONNECTION = "your organisation's live connection to the charging system"
_OUT_OF_REACH = (
    "What you have at the former one (lines, packages, templates) is then out of reach here: products, shop plans and schedules that use "
    "it fail, and eSIMs whose outcome is not known yet can no longer be settled."
)


class ConnectionReach(NamedTuple):
    """What a connection reaches: a managed account, or the reseller of an own token, which may not be known."""

    mode: str | None
    account: int | None = None
    reseller: int | None = None

    @property
    def in_words(self) -> str:
        """As a sentence names it. Never by a name: those are written by others, and models read this."""
        if self.mode == "managed":
            return f"the managed account {self.account}"
        return (
            "the reseller of the token in use (unknown, it cannot be asked)" if self.reseller is None else f"the reseller {self.reseller}"
        )

    @property
    def in_short(self) -> str:
        """As the audit log names it."""
        if self.mode == "managed":
            return f"managed account {self.account}"
        return "none" if self.mode is None else "own token" + (f", reseller {self.reseller}" if self.reseller is not None else "")


async def read_connection(ctx: Ctx) -> UpstreamRow:
    row = await ctx.deps.store.read(find_upstream, organisation=ctx.organisation)
    if row is None:
        raise LookupError("a caller's organisation is never removed")
    return row


async def _connection_reach(ctx: Ctx, row: UpstreamRow) -> ConnectionReach:
    """What a connection reaches; one read at the charging system, whose failure is no reason to keep a token that may be dead."""
    if row.mode != "own" or row.own_token is None:
        return ConnectionReach(row.mode, row.account_id)
    try:
        token = open_own_token(ctx.deps, ctx.organisation, row.own_token)
        return ConnectionReach("own", None, await _upstream_of_token(ctx.deps, ctx.organisation, token, "own").reseller_id())
    except Refusal:
        return ConnectionReach("own")


def _upstream_of_token(deps: Deps, organisation: str, token: str, mode: Literal["managed", "own"]) -> Upstream:
    """What `token` reaches; what is read with it is kept for a minute."""
    calls, identity = deps.ocs.for_token(token, organisation), credential_digest(token)
    return Upstream(calls, mode, None, False, identity, deps.reads, organisation, deps.stock.parts)


def _is_same_token(ctx: Ctx, row: UpstreamRow, token: str) -> bool:
    """Whether the stored token is this one. One that opens no more is not."""
    if row.mode != "own" or row.own_token is None:
        return False
    try:
        return credential_digest(open_own_token(ctx.deps, ctx.organisation, row.own_token)) == credential_digest(token)
    except OcsError:
        return False


def _connection_fingerprint(row: UpstreamRow, *target: object) -> str:
    """What a confirmation is bound to: the connection as it was seen, and where it goes. A token's sealed text is its own each time."""
    parts = (row.mode, row.account_id, row.own_token, *target)
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def _own_token_replacement(row: UpstreamRow, before: ConnectionReach, after: ConnectionReach) -> Replacement:
    if before.mode == "own" and before.reseller == after.reseller:
        text = f"This will replace the token with which your organisation reaches {after.in_words} by another one of the same reseller."
    else:
        text = f"This will move your organisation from {before.in_words} to {after.in_words}. {_OUT_OF_REACH}"
    if before.mode == "own":
        back = "The token in use is kept sealed for 24 hours, in which an admin can go back once with onboarding_restore_ocs_token"
        back += "; then it is erased, and must be entered again."
    else:
        back = "onboarding_start_managed_account leads back while that account stays assigned to your organisation."
    return Replacement(f"{text} {back}", _connection_fingerprint(row, after.reseller))


def _managed_account_replacement(row: UpstreamRow, before: ConnectionReach, after: ConnectionReach) -> Replacement:
    """The question before a managed account (`after`) takes the place of the connection `before`."""
    text = f"This will move your organisation from {before.in_words} to {after.in_words}. {_OUT_OF_REACH}"
    if before.mode == "own":
        back = "The token in use, and one that it replaced, are erased at once: the only way back is to enter the token again."
    else:
        back = "Only whoever runs the service can lead back, by assigning the former account again."
    return Replacement(f"{text} {back}", _connection_fingerprint(row, after.account))


def _former_token_replacement(row: UpstreamRow, before: ConnectionReach, after: ConnectionReach, former: str) -> Replacement:
    text = f"This will move your organisation back from {before.in_words} to {after.in_words}. {_OUT_OF_REACH}"
    if before.reseller == after.reseller:
        text = f"This will go back to the token with which your organisation reached {after.in_words} before."
    back = "The token in use is erased at once, and this cannot be undone: the only way to it is to enter it again."
    return Replacement(f"{text} {back}", _connection_fingerprint(row, former))


def connection_change_text(before: ConnectionReach, after: ConnectionReach) -> str:
    """The audit log's words for the change from `before` to `after`."""
    return f"{before.in_short} -> {after.in_short}"


REPLACING_CONNECTION = f"Replacing {LIVE_CONNECTION}"
_TOKEN_REFUSED_CODE = 8
# Choice: whoever may ask whether a token is good could try many; ten an hour are enough for somebody who mistypes their own.
TOKEN_TRIES_PER_HOUR = 10
_OWN_TOKEN_EXAMPLE: OnboardingState = {
    **ONBOARDING_EXAMPLE,
    "connection": {"connected": True, "mode": "own", "account_id": None, "former_token_until": None},
    "managed_path_chosen": False,
}


class OwnToken(Input):
    """The organisation's token."""

    # `repr=False`: a refusal never repeats it.
    token: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            pattern=r"^[!-~]+$",
            repr=False,
            description="Your reseller token of the charging system: 1-1024 visible ASCII characters.",
        ),
        Secret,
    ]


class NoFormerToken(Conflict):
    """No own token was replaced by another one in the last 24 hours, or the change was undone, or the organisation left its own token."""

    code = "no_former_token"


class FormerTokenRefused(Conflict):
    """The charging system does not accept the former token any more."""

    code = "former_token_refused"


class TokenPath(NamedTuple):
    """The connection that the token is for. `same`: it is the token in use. `after` is known where the token was verified already."""

    row: UpstreamRow
    same: bool
    before: ConnectionReach
    after: ConnectionReach | None = None


async def _token_path(ctx: Ctx, params: OwnToken) -> TokenPath:
    """Compares with the token in use; where another live connection gives way, the token is verified and an admin confirms it."""
    row = await read_connection(ctx)
    same, before = _is_same_token(ctx, row, params.token), ConnectionReach(row.mode, row.account_id)
    if row.mode is None or same:
        return TokenPath(row, same, before)
    ctx.need_admin(REPLACING_CONNECTION)
    after = ConnectionReach("own", None, await _verified_reseller(ctx, params.token))
    before = await _connection_reach(ctx, row)
    ctx.confirm_replacement(_own_token_replacement(row, before, after))
    return TokenPath(row, same, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-connect",
    spends=SpendKind.OPEN,
    scope=Scope.ANY,
    replaces=LIVE_CONNECTION,
    access=_token_path,
    title="Connect own token",
    raises=[OcsError, QuotaExceeded, ConnectionChanged],
    examples=[
        Example(
            "Use the token of a reseller of the simulated network",
            {"token": "sandbox-7002-token"},
            _OWN_TOKEN_EXAMPLE,
        )
    ],
)
async def onboarding_connect_ocs_token(ctx: Ctx, params: OwnToken, path: TokenPath) -> OnboardingState:
    """Onboarding step ocs, another way: connect with a reseller token of your own.

    What you give to a tool your model has read: a person had better paste the token at connect_url. It is never shown again. Where your
    organisation is connected already, to anything else, only an admin may, who confirms it first.

    The charging system is asked whose token it is, and nothing else; only one that it accepts is kept, sealed. Your organisation then
    leaves its managed account, which stays assigned: onboarding_start_managed_account goes back to it. An own token that is replaced is
    kept sealed for 24 hours, in which onboarding_restore_ocs_token goes back to it once. At most 10 tries an hour.
    """
    after = path.after or ConnectionReach("own", None, await _verified_reseller(ctx, params.token))
    sealed = ctx.deps.keyring.seal(params.token, org_id=ctx.organisation, field=OWN_TOKEN_FIELD)
    simulated = bool(ctx.deps.spare_accounts)

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        if not path.same:
            use_own_token(connection, organisation=organisation, own_token=sealed, simulated=simulated, seen=path.row, now=now)
            log_connection_change(connection, organisation=organisation, before=path.row, ids=ctx.deps.ids, now=now)
            ctx.record_change(connection_change_text(path.before, after))
        choose_own(connection, organisation=organisation)
        return read_onboarding(connection, organisation=organisation)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


class FormerPath(NamedTuple):
    """The connection in use, and the token that it is to go back to."""

    row: UpstreamRow
    former: FormerToken
    before: ConnectionReach
    after: ConnectionReach


async def _former_path(ctx: Ctx, _params: Nothing) -> FormerPath | None:
    """Finds the former token and verifies it: one that is dead meanwhile is not restored silently.

    Nothing where there is none, which the handler refuses: a repeated call with its key has used the token up.
    """
    row = await read_connection(ctx)
    former = await ctx.deps.store.read(find_former_token, organisation=ctx.organisation, now=ctx.now)
    if former is None:
        return None
    try:
        after = ConnectionReach("own", None, await _accepted_reseller(ctx, open_own_token(ctx.deps, ctx.organisation, former.sealed)))
    except TokenNotAccepted:
        raise FormerTokenRefused(
            "The charging system does not accept the former token any more, so your organisation keeps the one in use; nothing was changed",
            hint="Ask your provider for a token, and connect it: onboarding_connect_ocs_token",
        ) from None
    before = await _connection_reach(ctx, row)
    ctx.confirm_replacement(_former_token_replacement(row, before, after, former.sealed))
    return FormerPath(row, former, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-restore",
    spends=SpendKind.OPEN,
    scope=Scope.ANY,
    role=Role.ADMIN,
    replaces=LIVE_CONNECTION,
    access=_former_path,
    title="Restore former token",
    raises=[OcsError, NoFormerToken, FormerTokenRefused, ConnectionChanged],
    examples=[Example("The new token was the wrong one", {}, _OWN_TOKEN_EXAMPLE)],
)
async def onboarding_restore_ocs_token(ctx: Ctx, _params: Nothing, path: FormerPath | None) -> OnboardingState:
    """Undo onboarding_connect_ocs_token: go back to the token that it replaced.

    For admins, who confirm it, within 24 hours, once: the token in use is erased. Only where one token of your own replaced another; from
    a managed account onboarding_start_managed_account leads back.

    The former token is verified first. One that the charging system does not accept any more is not restored: 409 `former_token_refused`.
    """
    if path is None:
        raise NoFormerToken(
            "There is no former token to go back to: it is kept for 24 hours after another token of your own replaced it, and for one undo",
            hint="Enter the token again: onboarding_connect_ocs_token",
        )

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        use_former_token(connection, organisation=organisation, former=path.former.sealed, seen=path.row, now=now)
        log_connection_change(connection, organisation=organisation, before=path.row, ids=ctx.deps.ids, now=now)
        ctx.record_change(connection_change_text(path.before, path.after) + " (former token)")
        return read_onboarding(connection, organisation=organisation)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


class TokenNotAccepted(Exception):
    """The charging system knows no such token."""


async def _accepted_reseller(ctx: Ctx, token: str) -> int:
    """The reseller of a token, asked now. TokenNotAccepted, or OcsError where the charging system could not be asked."""
    try:
        found = (await ctx.deps.ocs.for_token(token, ctx.organisation).reseller.get_reseller_info()).get("id")
    except OcsError as error:
        if error.ocs_code == _TOKEN_REFUSED_CODE:
            raise TokenNotAccepted from None
        raise
    except Refusal as refusal:
        raise OcsError(refusal.message, code=refusal.error_code) from None
    if found is None:
        raise OcsError("The charging system did not say which reseller the token belongs to")
    return found


async def _verified_reseller(ctx: Ctx, token: str) -> int:
    """The reseller of a token that somebody gave: one of ten tries an hour. Refuses one that the charging system does not accept."""
    await ctx.deps.store.write(
        spend_allowances,
        wanted=(allowance_for("ocs_token", ctx.organisation, TOKEN_TRIES_PER_HOUR),),
        what="tries to connect a token",
        upgrade_url=ctx.deps.site.upgrade_url,
        now=ctx.now,
    )
    try:
        return await _accepted_reseller(ctx, token)
    except TokenNotAccepted:
        raise BadRequest(
            "token: the charging system does not accept it; nothing was changed",
            code="ocs_token_refused",
            param="token",
            hint="Give the reseller token that your provider gave you, whole and without blanks; an API key of this service is none",
        ) from None


class AccountCandidates(NamedTuple):
    """What the service's reseller has: all accounts, those that bear the organisation's id, those for newcomers of a simulated network."""

    live: frozenset[int]
    named: Sequence[int]
    spare: Sequence[int]


async def _find_account_candidates(deps: Deps, organisation: str) -> AccountCandidates | PendingReason:
    """Ask the charging system with the service's own token; reads only. Or why that was not possible."""
    if not deps.ocs_token.strip():
        return "not_configured"
    upstream = _upstream_of_token(deps, organisation, deps.ocs_token, "managed")
    try:
        own = await upstream.reseller_id()
        resellers = await upstream.ocs.reseller.list_reseller_account()
    except Refusal:
        return "ocs_unavailable"
    deps.reads.forget(upstream.identity, "accounts")  # an account that is new is there for the next call, too
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
    before = await _connection_reach(ctx, row)
    ctx.confirm_replacement(_managed_account_replacement(row, before, ConnectionReach("managed", link.account)))
    return ManagedPath(candidates, found, before)


@operation(
    "POST",
    "/v1/onboarding/managed-account",
    spends=SpendKind.OPEN,
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
            log_connection_change(connection, organisation=organisation, before=found.connection, ids=ctx.deps.ids, now=now)
        choose_managed(connection, organisation=organisation, pending_reason=link if isinstance(link, str) else None, now=now)
        state = read_onboarding(connection, organisation=organisation)
        after = ConnectionReach(state["connection"]["mode"], state["connection"]["account_id"])
        if after != path.before and after.mode == "managed":
            ctx.record_change(connection_change_text(path.before, after))
        return state

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)
