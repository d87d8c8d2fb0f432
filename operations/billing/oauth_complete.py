"""Connecting an account that an organisation has at the payment processor already (OAuth 2.0): the way back."""

from typing import Annotated, NamedTuple

from pydantic import Field

from clients.payments.failure import AccountDetached, KeyRefused
from clients.payments.records import Account
from operations.billing.oauth_begin import digest_of
from operations.deps import Ctx
from operations.services.payments.connect import account_of
from operations.services.payments.connect_onboarding import REPLACES, check_let_in
from operations.services.payments.connect_status import kind_of, status_of
from operations.services.payments.connect_view import ACTIVE, ConnectStatus, catch_up, shown
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, NotFound, Refusal
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from registry.payments_errors import PaymentsError
from storage.money.connect import Connected, attach_account, organisation_of_account
from storage.money.connect_states import use_state


class ConsentGiven(Input):
    """What the browser came back with."""

    code: Annotated[
        str, Field(min_length=1, max_length=500, pattern=r"^[\x21-\x7e]+$", repr=False, description="The code from the page's address.")
    ]
    state: Annotated[
        str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$", repr=False, description="The state it came with.")
    ]


async def may_attach(ctx: Ctx, params: ConsentGiven) -> Connected | None:
    """The account that takes or took payments and that the processor does not let the service into any more, where there is one.

    An admin confirms that another account takes its place. Nothing else that is live gives way.
    """
    del params
    account = await account_of(ctx)
    if account is None or not account.was_active:
        return None
    try:
        await check_let_in(ctx.deps, account)
    except AccountDetached:
        ctx.confirm_replacement(other_account_instead(account))
        return account
    return None


def other_account_instead(gone: Connected) -> Replacement:
    """The question before an account that was paid gives way to one that its owner brings."""
    return Replacement(
        f"This will attach the account whose owner has consented in place of {gone.account}, which took payments and which the "
        "payment processor does not let the service into any more. What is paid from then on goes to its owner; invoices and orders "
        "that wait for a payment to the former one are not paid by it. The way back is to disconnect the new account at the processor, and "
        "to connect the former one with operator_billing_connect_oauth_begin.",
        gone.account,
    )


@operation(
    "POST",
    "/v1/operator-billing/connect/oauth/complete",
    scope=Scope.WRITE,
    replaces=REPLACES,
    access=may_attach,
    processor=True,
    title="Complete OAuth connection",
    raises=[BadRequest, Conflict],
    examples=[
        Example(
            "The owner has consented",
            {"code": "ac_R8x2Lk9QvWm4", "state": "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE"},
            ACTIVE,
        )
    ],
)
async def operator_billing_connect_oauth_complete(ctx: Ctx, params: ConsentGiven, replaceable: Connected | None) -> ConnectStatus:
    """Finish OAuth: attach the account whose owner consented.

    Takes `code` and `state` of the page that the browser came back to. The state is used up by this call, whatever comes of it: after
    a refusal begin again.

    An account is connected to one organisation, and an organisation to one account: otherwise the answer is 409 and nothing changes.
    An Express account whose onboarding was never finished gives way to the new one, and so does an account whose owner let the service go
    at the processor; where that one took payments, only an admin may attach another, who confirms it first. Where the processor does not
    let the service into the new one, the answer is 502 and nothing is attached.
    """
    deps, organisation = ctx.deps, ctx.organisation
    used = await deps.store.write(
        use_state, digest=digest_of(params.state), organisation=organisation, person=ctx.caller.principal, now=ctx.now
    )
    if not used:
        raise BadRequest(
            "state: it is unknown, used, older than 10 minutes, or another person or organisation began with it",
            param="state",
            hint="Begin again: operator_billing_connect_oauth_begin gives a new url",
        )
    asked, ctx.reached_upstream = deps.clock.now(), True
    account = await told_of(ctx, await deps.payments.attach(params.code))
    said = {"account": account.id, "kind": kind_of(account), "status": status_of(account)}
    before = await giving_way(ctx, account.id, replaceable)
    attached = await deps.store.write(
        attach_account, organisation=organisation, **said, as_of=asked, now=deps.clock.now(), replacing=before.replacing, gone=before.gone
    )
    if not attached:
        raise await not_attached(ctx, account.id)
    if before.account != account.id:
        ctx.record_change(f"payment account {before.account or 'none'} -> {account.id}")
    await catch_up(deps, organisation, account.id)
    return await shown(deps, organisation, account)


async def told_of(ctx: Ctx, account: str) -> Account:
    """What the processor says of it. Where it says nothing now, the account waits until its status is asked for: it was let in."""
    try:
        return await ctx.deps.payments.find_account(account)
    except KeyRefused:
        raise
    except (AccountDetached, NotFound):
        raise not_let_in() from None
    except PaymentsError:
        return Account(account, "standard", charges_enabled=False, payouts_enabled=False, details_submitted=False, default_currency=None)


def not_let_in() -> PaymentsError:
    """There was a consent, and it is over, or never was for this service."""
    return PaymentsError(
        "The payment processor does not let the service into the account whose owner consented, so it was not attached",
        hint="Connect it again: operator_billing_connect_oauth_begin gives a new url, where its owner consents once more",
    )


class GivingWay(NamedTuple):
    """The organisation's account, where a new one may take its place: nobody has finished it, or the service was let out of it."""

    account: str | None = None
    replacing: str | None = None
    gone: str | None = None


async def giving_way(ctx: Ctx, new: str, replaceable: Connected | None) -> GivingWay:
    """What the processor says of the account that the organisation has.

    Choice: what was begun with begin and never finished may be replaced, and what the processor says is out of the service's reach, whose
    event was lost: either would stand in the way for ever. Nothing else may.
    """
    found = await account_of(ctx)
    if found is None or found.account == new:
        return GivingWay(None if found is None else new)
    try:
        account = await ctx.deps.payments.find_account(found.account)
    except AccountDetached:
        confirmed = not found.was_active or (replaceable is not None and replaceable.account == found.account)
        return GivingWay(found.account, gone=found.account if confirmed else None)
    except Refusal:
        return GivingWay(found.account)
    unfinished = found.kind == "express" and not found.was_active and not account.details_submitted
    return GivingWay(found.account, replacing=found.account if unfinished else None)


async def not_attached(ctx: Ctx, account: str) -> Conflict:
    """Why it stays unattached; never whose it is."""
    owner = await ctx.deps.store.read(organisation_of_account, account=account)
    undo = "The consent stays until the account's owner takes it back in the account's settings at the processor"
    if owner is not None:
        return Conflict("This account is connected to another organisation already", code="payments_account_taken", hint=undo)
    return Conflict("Your organisation has another account connected already, and keeps it", code="payments_already_connected", hint=undo)
