"""The caller's account at the payment processor."""

from typing import Literal

from operations.deps import Ctx
from registry.errors import Conflict
from registry.model import Input
from storage.money.connect import Connected, connected

ConnectedStatus = Literal["pending", "active"]


async def account_of(ctx: Ctx) -> Connected | None:
    """The organisation's account; nothing where it has none."""
    return await ctx.deps.store.read(connected, organisation=ctx.organisation)


async def require_account(ctx: Ctx) -> Connected:
    """The organisation's account, or why there is none."""
    found = await account_of(ctx)
    if found is None:
        raise not_connected()
    return found


async def own_payments_account(ctx: Ctx, params: Input) -> Connected:
    """The access rule of what needs the organisation's account and nothing else: nothing of another's is reached through it."""
    del params
    return await require_account(ctx)


def not_connected() -> Conflict:
    """The organisation has no account at the payment processor; nothing was asked."""
    return Conflict(
        "Your organisation has no account at the payment processor yet, and this call needs one; nothing was done",
        code="payments_not_connected",
        hint="Open the url of POST /v1/operator-billing/connect/begin, signed in, or of operator_billing_connect_oauth_begin",
    )


def own_dashboard() -> Conflict:
    """The account was brought by its owner, who has the processor's own pages for it."""
    return Conflict(
        "Your organisation connected a Standard account, whose owner signs in at the processor itself; nothing was done",
        code="payments_account_standard",
        hint="Sign in at the payment processor itself, with the login of that account",
    )
