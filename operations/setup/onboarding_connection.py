"""Onboarding, step ocs: a token of the organisation's own, and what an admin confirms before it replaces a live connection."""

import hashlib
from typing import Annotated, NamedTuple

from pydantic import Field

from operations.deps import Ctx
from operations.setup.onboarding import ONBOARDING_EXAMPLE, OnboardingState, read_onboarding
from operations.upstream.connection import Upstream, credential_digest, open_own_token
from registry.caller import Role
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, OcsError, QuotaExceeded, Refusal
from registry.operation import Example, Input, Nothing, Scope, Secret, operation
from storage.allowances import allowance_for, spend_allowances
from storage.engine.sql import Connection
from storage.former_tokens import FormerToken, find_former_token
from storage.onboarding import choose_own
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import ConnectionChanged, UpstreamRow, find_upstream, use_former_token, use_own_token

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


async def read_connection_reach(ctx: Ctx, row: UpstreamRow) -> ConnectionReach:
    """What a connection reaches; one read at the charging system, whose failure is no reason to keep a token that may be dead."""
    if row.mode != "own" or row.own_token is None:
        return ConnectionReach(row.mode, row.account_id)
    try:
        return ConnectionReach("own", None, await _cached_reseller(ctx, open_own_token(ctx.deps, ctx.organisation, row.own_token)))
    except Refusal:
        return ConnectionReach("own")


async def _cached_reseller(ctx: Ctx, token: str) -> int:
    """Whose token it is; kept for a minute, as all that is read with it."""
    deps, identity = ctx.deps, credential_digest(token)
    return await Upstream(
        deps.ocs.for_token(token, ctx.organisation), "own", None, False, identity, deps.reads, ctx.organisation, deps.stock.parts
    ).reseller_id()


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


def managed_account_replacement(row: UpstreamRow, before: ConnectionReach, after: ConnectionReach) -> Replacement:
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
    before = await read_connection_reach(ctx, row)
    ctx.confirm_replacement(_own_token_replacement(row, before, after))
    return TokenPath(row, same, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-connect",
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
    before = await read_connection_reach(ctx, row)
    ctx.confirm_replacement(_former_token_replacement(row, before, after, former.sealed))
    return FormerPath(row, former, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-restore",
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
