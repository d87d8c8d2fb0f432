"""Onboarding, step ocs: a managed account, or a token of the organisation's own."""

from typing import Annotated

from pydantic import Field

from operations.deps import Ctx
from operations.services.hourly import spend_allowances
from operations.services.people.onboarding import EXAMPLE, OnboardingState, read_state
from operations.services.people.onboarding_account import look_for_account, relink
from registry.errors import BadRequest, OcsError, QuotaExceeded, Refusal
from registry.limits import Scope
from registry.model import Input, Nothing, Secret
from registry.operation import Example, operation
from storage.calls.allowances import allowance
from storage.connection import Connection
from storage.people.accounts import use_own_token
from storage.people.onboarding import choose_own
from storage.secrets.sealed_fields import OWN_TOKEN_FIELD

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


@operation(
    "POST",
    "/v1/onboarding/managed-account",
    reaches_out=True,
    scope=Scope.ANY,
    title="Connect managed account",
    examples=[Example("Be connected to the account that was opened for us", {}, EXAMPLE)],
)
async def onboarding_start_managed_account(ctx: Ctx, params: Nothing) -> OnboardingState:
    """Onboarding step ocs: connect your organisation to its managed account.

    Opens no account: whoever runs the service does. `pending: true` means that there is none yet, or that it could not be asked for
    (`pending_reason`); call again later.

    The account is the one that was assigned to your organisation, or the one whose name holds your organisation's id. Once connected,
    a token of your own is forgotten. While it is pending, an organisation that is connected already stays as it is. Reasons:
    `account_absent` (none was opened), `account_conflict` (two match, or another organisation has it), `not_configured` (the service
    has no reseller token), `ocs_unavailable` (the charging system did not answer as it should).
    """
    del params
    seen = await look_for_account(ctx.deps, ctx.organisation)
    simulated = bool(ctx.deps.spare_accounts)
    return await ctx.settle_result(relink, organisation=ctx.organisation, seen=seen, simulated=simulated, now=ctx.now)


@operation(
    "POST",
    "/v1/onboarding/ocs-connect",
    scope=Scope.ANY,
    title="Connect own token",
    raises=[OcsError, QuotaExceeded],
    examples=[
        Example(
            "Use the token of a reseller of the simulated network",
            {"token": "sandbox-7002-token"},
            {**EXAMPLE, "connection": {"connected": True, "mode": "own", "account_id": None}, "managed_path_chosen": False},
        )
    ],
)
async def onboarding_connect_ocs_token(ctx: Ctx, params: OwnToken) -> OnboardingState:
    """Onboarding step ocs, another way: connect with a reseller token of your own.

    What you give to a tool your model has read: a person had better paste the token at connect_url. It is never shown again.

    The charging system is asked whose token it is, and nothing else; only one that it accepts is kept, sealed. Your organisation then
    leaves its managed account, which stays assigned: onboarding_start_managed_account goes back to it. At most 10 tries an hour.
    """
    await ctx.deps.store.write(
        spend_allowances,
        wanted=(allowance("ocs_token", ctx.organisation, TRIES_PER_HOUR),),
        what="tries to connect a token",
        upgrade_url=ctx.deps.site.upgrade_url,
        now=ctx.now,
    )
    await verify(ctx, params.token)
    sealed = ctx.deps.keyring.seal(params.token, org_id=ctx.organisation, field=OWN_TOKEN_FIELD)
    simulated = bool(ctx.deps.spare_accounts)
    return await ctx.settle_result(switch, organisation=ctx.organisation, sealed=sealed, simulated=simulated)


async def verify(ctx: Ctx, token: str) -> None:
    """Refuse a token that the charging system does not accept, or could not be asked for."""
    try:
        await ctx.deps.ocs.for_token(token, ctx.organisation).reseller.get_reseller_info()
    except OcsError as error:
        if error.ocs_code == TOKEN_REFUSED:
            raise BadRequest(
                "token: the charging system does not accept it; nothing was changed",
                code="ocs_token_refused",
                param="token",
                hint="Give the reseller token that your provider gave you, whole and without blanks; an API key of this service is none",
            ) from None
        raise
    except Refusal as refusal:
        raise OcsError(refusal.message, code=refusal.error_code) from None


def switch(connection: Connection, *, organisation: str, sealed: str, simulated: bool) -> OnboardingState:
    """The organisation has a token of its own."""
    use_own_token(connection, organisation=organisation, own_token=sealed, simulated=simulated)
    choose_own(connection, organisation=organisation)
    return read_state(connection, organisation=organisation)
