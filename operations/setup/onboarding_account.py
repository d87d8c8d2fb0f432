"""Onboarding, step ocs: a managed account, or a token of the organisation's own."""

from typing import Annotated, NamedTuple

from pydantic import Field

from operations.deps import Ctx
from operations.services.hourly import spend_allowances
from operations.services.network.upstream import opened
from operations.services.people.connection_change import (
    REPLACES,
    Reach,
    change_of,
    connection_of,
    reach_of,
    same_token,
    to_former_token,
    to_managed,
    to_own_token,
)
from operations.services.people.onboarding import EXAMPLE, OnboardingState, read_state
from operations.services.people.onboarding_account import Link, Outlook, PendingReason, Seen, look_for_account, outlook, relink
from registry.errors import BadRequest, Conflict, OcsError, QuotaExceeded, Refusal
from registry.limits import Role, Scope
from registry.model import Input, Nothing, Secret
from registry.operation import Example, operation
from storage.calls.allowances import allowance
from storage.connection import Connection
from storage.network.connections import UpstreamRow
from storage.people.accounts import ConnectionChanged, use_former_token, use_own_token
from storage.people.former_tokens import FormerToken, find_former_token
from storage.people.onboarding import choose_own
from storage.secrets.sealed_fields import OWN_TOKEN_FIELD

REPLACING = f"Replacing {REPLACES}"
TOKEN_REFUSED = 8
# Choice: whoever may ask whether a token is good could try many; ten an hour are enough for somebody who mistypes their own.
TRIES_PER_HOUR = 10


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


class ManagedPath(NamedTuple):
    """What the charging system has for the organisation, and what that would change. `before` is known where something live is replaced."""

    seen: Seen | PendingReason
    outlook: Outlook
    before: Reach


async def managed_path(ctx: Ctx, params: Nothing) -> ManagedPath:
    """Looks for the account; an admin confirms it where another live connection gives way to it."""
    del params
    seen = await look_for_account(ctx.deps, ctx.organisation)
    found = await ctx.deps.store.read(outlook, organisation=ctx.organisation, seen=seen)
    row, link = found
    if row.mode is None or not isinstance(link, Link):
        return ManagedPath(seen, found, Reach(row.mode, row.account_id))
    ctx.need_admin(REPLACING)
    before = await reach_of(ctx, row)
    ctx.confirm_replacement(to_managed(row, before, Reach("managed", link.account)))
    return ManagedPath(seen, found, before)


@operation(
    "POST",
    "/v1/onboarding/managed-account",
    reaches_out=True,
    scope=Scope.ANY,
    replaces=REPLACES,
    access=managed_path,
    title="Connect managed account",
    raises=[ConnectionChanged],
    examples=[Example("Be connected to the account that was opened for us", {}, EXAMPLE)],
)
async def onboarding_start_managed_account(ctx: Ctx, params: Nothing, path: ManagedPath) -> OnboardingState:
    """Onboarding step ocs: connect your organisation to its managed account.

    Opens no account: whoever runs the service does. `pending: true` means that there is none yet, or that it could not be asked for
    (`pending_reason`); call again later. Where your organisation is connected to something else, only an admin may, who confirms it first.

    The account is the one that was assigned to your organisation, or the one whose name holds your organisation's id. Once connected,
    a token of your own is erased at once: the way back is to enter it again. While it is pending, an organisation that is connected already
    stays as it is. Reasons: `account_absent` (none was opened), `account_conflict` (two match, or another organisation has it),
    `not_configured` (the service has no reseller token), `ocs_unavailable` (the charging system did not answer as it should).
    """
    del params
    simulated = bool(ctx.deps.spare_accounts)

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        state = relink(connection, organisation=organisation, seen=path.seen, expected=path.outlook, simulated=simulated, now=now)
        after = Reach(state["connection"]["mode"], state["connection"]["account_id"])
        if after != path.before and after.mode == "managed":
            ctx.record_change(change_of(path.before, after))
        return state

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


class TokenPath(NamedTuple):
    """The connection that the token is for. `same`: it is the token in use. `after` is known where the token was verified already."""

    row: UpstreamRow
    same: bool
    before: Reach
    after: Reach | None = None


async def token_path(ctx: Ctx, params: OwnToken) -> TokenPath:
    """Compares with the token in use; where another live connection gives way, the token is verified and an admin confirms it."""
    row = await connection_of(ctx)
    same, before = same_token(ctx, row, params.token), Reach(row.mode, row.account_id)
    if row.mode is None or same:
        return TokenPath(row, same, before)
    ctx.need_admin(REPLACING)
    after = Reach("own", None, await verified(ctx, params.token))
    before = await reach_of(ctx, row)
    ctx.confirm_replacement(to_own_token(row, before, after))
    return TokenPath(row, same, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-connect",
    scope=Scope.ANY,
    replaces=REPLACES,
    access=token_path,
    title="Connect own token",
    raises=[OcsError, QuotaExceeded, ConnectionChanged],
    examples=[
        Example(
            "Use the token of a reseller of the simulated network",
            {"token": "sandbox-7002-token"},
            {
                **EXAMPLE,
                "connection": {"connected": True, "mode": "own", "account_id": None, "former_token_until": None},
                "managed_path_chosen": False,
            },
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
    after = path.after or Reach("own", None, await verified(ctx, params.token))
    sealed = ctx.deps.keyring.seal(params.token, org_id=ctx.organisation, field=OWN_TOKEN_FIELD)
    simulated = bool(ctx.deps.spare_accounts)

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        if not path.same:
            use_own_token(connection, organisation=organisation, own_token=sealed, simulated=simulated, seen=path.row, now=now)
            ctx.record_change(change_of(path.before, after))
        choose_own(connection, organisation=organisation)
        return read_state(connection, organisation=organisation)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


class FormerPath(NamedTuple):
    """The connection in use, and the token that it is to go back to."""

    row: UpstreamRow
    former: FormerToken
    before: Reach
    after: Reach


async def former_path(ctx: Ctx, params: Nothing) -> FormerPath | None:
    """Finds the former token and verifies it: one that is dead meanwhile is not restored silently.

    Nothing where there is none, which the handler refuses: a repeated call with its key has used the token up.
    """
    del params
    row = await connection_of(ctx)
    former = await ctx.deps.store.read(find_former_token, organisation=ctx.organisation, now=ctx.now)
    if former is None:
        return None
    try:
        after = Reach("own", None, await accepted(ctx, opened(ctx.deps, ctx.organisation, former.sealed)))
    except TokenNotAccepted:
        raise FormerTokenRefused(
            "The charging system does not accept the former token any more, so your organisation keeps the one in use; nothing was changed",
            hint="Ask your provider for a token, and connect it: onboarding_connect_ocs_token",
        ) from None
    before = await reach_of(ctx, row)
    ctx.confirm_replacement(to_former_token(row, before, after, former.sealed))
    return FormerPath(row, former, before, after)


@operation(
    "POST",
    "/v1/onboarding/ocs-restore",
    scope=Scope.ANY,
    role=Role.ADMIN,
    replaces=REPLACES,
    access=former_path,
    title="Restore former token",
    raises=[OcsError, NoFormerToken, FormerTokenRefused, ConnectionChanged],
    examples=[
        Example(
            "The new token was the wrong one",
            {},
            {
                **EXAMPLE,
                "connection": {"connected": True, "mode": "own", "account_id": None, "former_token_until": None},
                "managed_path_chosen": False,
            },
        )
    ],
)
async def onboarding_restore_ocs_token(ctx: Ctx, params: Nothing, path: FormerPath | None) -> OnboardingState:
    """Undo onboarding_connect_ocs_token: go back to the token that it replaced.

    For admins, who confirm it, within 24 hours, once: the token in use is erased. Only where one token of your own replaced another; from
    a managed account onboarding_start_managed_account leads back.

    The former token is verified first. One that the charging system does not accept any more is not restored: 409 `former_token_refused`.
    """
    del params
    if path is None:
        raise NoFormerToken(
            "There is no former token to go back to: it is kept for 24 hours after another token of your own replaced it, and for one undo",
            hint="Enter the token again: onboarding_connect_ocs_token",
        )

    def write(connection: Connection, *, organisation: str, now: float) -> OnboardingState:
        use_former_token(connection, organisation=organisation, former=path.former.sealed, seen=path.row, now=now)
        ctx.record_change(change_of(path.before, path.after) + " (former token)")
        return read_state(connection, organisation=organisation)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now)


class TokenNotAccepted(Exception):
    """The charging system knows no such token."""


async def accepted(ctx: Ctx, token: str) -> int:
    """The reseller of a token, asked now. TokenNotAccepted, or OcsError where the charging system could not be asked."""
    try:
        found = (await ctx.deps.ocs.for_token(token, ctx.organisation).reseller.get_reseller_info()).get("id")
    except OcsError as error:
        if error.ocs_code == TOKEN_REFUSED:
            raise TokenNotAccepted from None
        raise
    except Refusal as refusal:
        raise OcsError(refusal.message, code=refusal.error_code) from None
    if found is None:
        raise OcsError("The charging system did not say which reseller the token belongs to")
    return found


async def verified(ctx: Ctx, token: str) -> int:
    """The reseller of a token that somebody gave: one of ten tries an hour. Refuses one that the charging system does not accept."""
    await ctx.deps.store.write(
        spend_allowances,
        wanted=(allowance("ocs_token", ctx.organisation, TRIES_PER_HOUR),),
        what="tries to connect a token",
        upgrade_url=ctx.deps.site.upgrade_url,
        now=ctx.now,
    )
    try:
        return await accepted(ctx, token)
    except TokenNotAccepted:
        raise BadRequest(
            "token: the charging system does not accept it; nothing was changed",
            code="ocs_token_refused",
            param="token",
            hint="Give the reseller token that your provider gave you, whole and without blanks; an API key of this service is none",
        ) from None
