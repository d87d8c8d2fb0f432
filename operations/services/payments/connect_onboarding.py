"""Onboarding at the payment processor: one Express account per organisation, and as many links to its pages as are asked for."""

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.failure import AccountDetached
from clients.payments.records import Link
from operations.deps import Ctx, Deps
from operations.services.payments.connect import ConnectedStatus, account_of, own_dashboard
from operations.services.payments.connect_status import detach, kind_of, status_of
from operations.services.payments.return_url import ReturnUrl, own_page
from operations.setup.onboarding_country import Country
from registry.context import Replacement
from registry.errors import Conflict, Refusal
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example
from registry.payments_errors import PaymentsError, PaymentsRefused
from registry.policy import require
from storage.money.connect import Connected, attach_account, standing_of
from storage.people.onboarding import find_onboarding

REPLACES = "a payment account that takes payments"
LIVE_PAGES = "Opening the pages of a live payment account"


class Onboarding(Input):
    """Where to come back to, and what the account is made with."""

    account_type: Annotated[
        str | int | float | bool | None, Field(description="Taken and ignored: an Express account is made either way.")
    ] = None
    country: Annotated[
        Country | None, Field(description="Country of a new account, ISO 3166-1 alpha-2; absent: the one you saved in onboarding.")
    ] = None
    return_url: Annotated[
        ReturnUrl | None, Field(repr=False, description="Page to come back to when done; https. Absent: one of ours.")
    ] = None
    refresh_url: Annotated[
        ReturnUrl | None, Field(repr=False, description="Page for whoever comes with an expired link; absent: return_url.")
    ] = None


class OnboardingLink(TypedDict):
    """`url` is for one visit by a person; `expires_at` is Unix seconds, null where it is not known."""

    url: str
    account_id: str
    expires_at: int | None
    status: Annotated[ConnectedStatus, Field(description="pending until the processor has all it needs")]


EXAMPLE = Example(
    "Where do we tell the processor about ourselves?",
    {"return_url": "https://fjord.example/billing"},
    {
        "url": "https://connect.processor.example/setup/e/acct_1R8fjord0Xy/9cUq2",
        "account_id": "acct_1R8fjord0Xy",
        "expires_at": 1795165500,
        "status": "pending",
    },
)


async def may_begin(ctx: Ctx, params: Onboarding) -> Connected | None:
    """The organisation's account. Where it is or was live, an admin alone is led to its pages, since the bank account is changed there.

    One that was live and let the service go is replaced by a new one when an admin has confirmed it.
    """
    del params
    require(Scope.ANY, ctx.caller, ctx.deps.site)  # a login that was only let read changes nothing
    account = await account_of(ctx)
    if account is not None and account.was_active:
        if account.kind == "express":
            ctx.need_admin(LIVE_PAGES)
        try:
            await check_let_in(ctx.deps, account)
        except AccountDetached:
            ctx.confirm_replacement(new_account_instead(account))
    return account


async def begin_onboarding(ctx: Ctx, params: Onboarding, account: Connected | None) -> OnboardingLink:
    """The account, made on the first call, and a fresh link to the pages on which its owner tells about themselves."""
    before = "none" if account is None else account.account
    account = account or await make_account(ctx, params.country)
    ctx.reached_upstream, asked = True, ctx.deps.clock.now()
    try:
        link = await link_to(ctx.deps, account, params)
    except AccountDetached:
        if account.was_active and ctx.replacement is None:
            raise let_go_meanwhile() from None
        account = await replaced(ctx, account, params.country, asked)
        link = await link_to(ctx.deps, account, params)
    if account.account != before:
        ctx.record_change(f"payment account {before} -> {account.account}")
    status = cast(ConnectedStatus, account.status)
    return {"url": link.url, "account_id": account.account, "expires_at": link.expires_at, "status": status}


def new_account_instead(gone: Connected) -> Replacement:
    """The question before an account that was paid gives way to a new one."""
    return Replacement(
        f"This will make a new account at the payment processor for your organisation in place of {gone.account}, which took payments and "
        "which the processor does not let the service into any more. What is paid from then on goes to the new account, once its owner has "
        "told the processor about themselves; invoices and orders that wait for a payment to the former one are not paid by it. The way "
        "back is to connect the former account again with operator_billing_connect_oauth_begin, while the new one is unfinished.",
        gone.account,
    )


def let_go_meanwhile() -> Conflict:
    """The account was within reach when the call began."""
    return Conflict(
        "The payment account of your organisation let the service go while this call ran; nothing was changed",
        hint="Repeat the call: it asks for a confirmation before another account takes its place",
    )


async def link_to(deps: Deps, account: Connected, params: Onboarding) -> Link:
    """A fresh link. Whoever brought an account signs in at the processor itself, as long as the service is let into it."""
    if account.kind != "express":
        await check_let_in(deps, account)
        raise own_dashboard()
    back = params.return_url or own_page(deps)
    return await deps.payments.onboarding_link(account.account, return_url=back, refresh_url=params.refresh_url or back)


async def check_let_in(deps: Deps, account: Connected) -> None:
    """AccountDetached, where the processor says that the service was let out; nothing else that it says matters here."""
    try:
        await deps.payments.find_account(account.account)
    except AccountDetached:
        raise
    except Refusal:
        return


async def replaced(ctx: Ctx, gone: Connected, country: str | None, asked: float) -> Connected:
    """A new account in place of one that the processor says is out of the service's reach.

    Choice: its event may have been lost, and the organisation would stand before a closed door for ever; only a person who begins gets
    a new one, so that a wrong key of the service's takes no accounts away by itself.
    """
    await ctx.deps.store.write(detach, account=gone.account, as_of=asked, now=ctx.deps.clock.now())
    return await make_account(ctx, country)


async def make_account(ctx: Ctx, country: str | None) -> Connected:
    """A new Express account, or the one that another call has made meanwhile.

    The processor's key says which account of the organisation it is, so that calls at once, and one after a crash, make the same.
    Choice: the processor keeps a key for a day at least; a crash right after the making that nobody repeats for a day leaves an account
    there that nobody uses.
    """
    deps, organisation = ctx.deps, ctx.organisation
    found, as_of = await deps.store.read(standing_of, organisation=organisation)
    if found is not None:
        return found
    country = country or (await deps.store.read(find_onboarding, organisation=organisation)).country
    asked, ctx.reached_upstream = deps.clock.now(), True
    try:
        made = await deps.payments.create_account(
            key=f"connect:{organisation}:{int(as_of)}", email=None, country=country, metadata={"organisation": organisation}
        )
    except Refusal as refusal:
        found = await account_of(ctx)  # the processor refuses a key that is in use, or that another call gave with another country
        if found is None:
            raise another_country(refusal) or refusal from None
        return found
    said = {"account": made.id, "kind": kind_of(made), "status": status_of(made)}
    await deps.store.write(attach_account, organisation=organisation, **said, as_of=asked, now=deps.clock.now())
    found = await account_of(ctx)
    if found is None:  # it is another organisation's by what the processor says, or was let go at once
        raise PaymentsError("The payment processor answered with an account that your organisation cannot have; it was not kept.")
    return found


def another_country(refusal: Refusal) -> PaymentsRefused | None:
    """An account was made for another country, by a call whose answer never came to us; the processor keeps to it for a day."""
    if not isinstance(refusal, PaymentsRefused) or refusal.processor_code != "idempotency_error":
        return None
    text = "country: an account of your organisation was begun with another country a short while ago, and it is not known how that ended"
    hint = "Give the country of the first call, which then gets that account; another one is taken a day later"
    return PaymentsRefused(text, processor_code=refusal.processor_code, param="country", hint=hint)
