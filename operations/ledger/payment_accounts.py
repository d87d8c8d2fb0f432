"""An organisation's account at the payment processor: onboarding, how it stands, and the service's share of what it is paid."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field, JsonValue
from typing_extensions import TypedDict

from clients.payments.port import AccountDetached
from clients.payments.records import ConnectedAccount, HostedPage
from operations.deps import Ctx, Deps
from operations.event_types.payment import ACCOUNT_RESTRICTED
from operations.ledger.payment_intake import sync_payments
from operations.ledger.payment_records import log_payment_event
from operations.vocabulary import CountryOfRegistration, check_web_address
from registry.context import Replacement
from registry.errors import Conflict, PaymentsError, PaymentsRefused, Refusal
from registry.operation import Example, Input, Scope
from registry.policy import require_scope
from storage.billing_config import find_config
from storage.connect_accounts import (
    ConnectAccount,
    attach_connect_account,
    connect_standing,
    detach_connect_account,
    find_connect_account,
    organisation_of_account,
    restrict_connect_account,
    write_connect_status,
)
from storage.engine.sql import Connection
from storage.onboarding import find_onboarding
from storage.organisations import own_fee_bps

ProcessorId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9_]+$")]
AfterProcessorId = Annotated[str | None, Field(max_length=255, pattern=r"^[A-Za-z0-9_]*$", description="Last id of the page before.")]
ReturnUrl = Annotated[
    str,
    Field(
        max_length=1000,
        pattern=r"^https://[^\s\\\x1c-\x1f\x85\ufeff]+$",  # which space is one, languages see differently
        description="Page of yours to come back to afterwards; https.",
    ),
    AfterValidator(
        partial(
            check_web_address, what="an address to come back to", such_as="https address such as https://fjord.example/billing", strict=True
        )
    ),
]


def default_return_page(deps: Deps) -> str:
    """The page to come back to for callers who named none: our page on payments, or the documentation where people sign in elsewhere."""
    return f"{deps.site.base_url}/auth/payments" if deps.own_identity else deps.site.docs_url


PLATFORM_FEE_BPS_LIMIT = 5000
"""Choice: half at most; more is a slip of the hand."""


async def platform_fee_bps_of(deps: Deps, organisation: str) -> int:
    """The rate of `organisation` in basis points: its own, or else the service's."""
    own = await deps.store.read(own_fee_bps, organisation=organisation)
    return deps.platform_fee_bps if own is None else own


ConnectedStatus = Literal["pending", "active"]


async def find_payment_account(ctx: Ctx) -> ConnectAccount | None:
    """The account of the organisation that `ctx` acts for; None where it has none."""
    return await ctx.deps.store.read(find_connect_account, organisation=ctx.organisation)


async def require_payment_account(ctx: Ctx) -> ConnectAccount:
    """The account of the organisation that `ctx` acts for. Raises Conflict where it has none."""
    found = await find_payment_account(ctx)
    if found is None:
        raise payments_not_connected()
    return found


async def own_payment_account(ctx: Ctx, _params: Input) -> ConnectAccount:
    """The access rule of what needs the organisation's account and nothing else: nothing of another's is reached through it."""
    return await require_payment_account(ctx)


def payments_not_connected() -> Conflict:
    """The refusal where the organisation has no account at the payment processor; nothing was asked."""
    return Conflict(
        "Your organisation has no account at the payment processor yet, and this call needs one; nothing was done",
        code="payments_not_connected",
        hint="Open the url of POST /v1/operator-billing/connect/begin, signed in, or of operator_billing_connect_oauth_begin",
    )


def standard_account_refusal() -> Conflict:
    """The refusal where the account is a Standard one, which has pages of its own at the processor."""
    return Conflict(
        "Your organisation connected a Standard account, whose owner signs in at the processor itself; nothing was done",
        code="payments_account_standard",
        hint="Sign in at the payment processor itself, with the login of that account",
    )


def payment_account_status(account: ConnectedAccount) -> Literal["pending", "active"]:
    """Active: its owner has told the processor everything it needs, and it takes payments.

    Choice: an account whose payouts alone are held back stays active, since its invoices can be paid; `payouts_enabled` says the rest.
    """
    return "active" if account.details_submitted and account.charges_enabled else "pending"


def payment_account_kind(account: ConnectedAccount) -> Literal["express", "standard"]:
    """`express` where the service made the account, `standard` where its owner brought it."""
    return "express" if account.kind == "express" else "standard"


def keep_payment_account_status(connection: Connection, *, deps: Deps, account: ConnectedAccount, as_of: float, now: float) -> None:
    """Stores what the processor says of `account`, unless something newer is known. `as_of`, `now`: Unix seconds."""
    log_account_restriction(connection, deps, account, as_of, now)
    write_connect_status(connection, account=account.id, status=payment_account_status(account), as_of=as_of, now=now)


def log_account_restriction(connection: Connection, deps: Deps, account: ConnectedAccount, as_of: float, now: float) -> None:
    """Makes an active account pending where the processor says so, which is an event.

    Choice: an account that was let go of, by its owner or by us, is not restricted: there is none any more.
    """
    if payment_account_status(account) == "active":
        return
    organisation = restrict_connect_account(connection, account=account.id, as_of=as_of, now=now)
    if organisation is not None:
        log_payment_event(connection, deps, ACCOUNT_RESTRICTED, {"account": account.id}, organisation, now)


def attach_payment_account(
    connection: Connection,
    *,
    deps: Deps,
    organisation: str,
    account: ConnectedAccount,
    as_of: float,
    now: float,
    replacing: str | None = None,
    gone: str | None = None,
) -> bool:
    """Makes `account` this organisation's, as the processor says that it stands; True where it is now, also when it was before.

    `replacing` and `gone`: see `attach_connect_account`. `as_of`, `now`: Unix seconds.
    """
    if organisation_of_account(connection, account=account.id) == organisation:
        log_account_restriction(connection, deps, account, as_of, now)
    said = {"account": account.id, "kind": payment_account_kind(account), "status": payment_account_status(account)}
    return attach_connect_account(connection, organisation=organisation, **said, as_of=as_of, now=now, replacing=replacing, gone=gone)


class ConnectStatus(TypedDict):
    """Your account at the payment processor; without one `account_id` is null and everything is false."""

    status: Literal["not_connected", "pending", "active"]
    account_id: str | None
    charges_enabled: Annotated[bool, Field(description="It takes payments")]
    payouts_enabled: Annotated[bool, Field(description="It pays out to its bank")]
    details_submitted: Annotated[bool, Field(description="Its owner has finished the processor's pages")]
    requirements: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    capabilities: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    payout_schedule: Annotated[Mapping[str, JsonValue] | None, Field(description="Always null at present")]
    default_currency: Annotated[str, Field(description="Of the account; before one is there, the one you bill in")]
    platform_fee_bps: Annotated[int, Field(description="The service's share of what is paid, in hundredths of a per cent")]


CONNECT_STATUS_EXAMPLE: ConnectStatus = {
    "status": "active",
    "account_id": "acct_1R8fjord0Xy",
    "charges_enabled": True,
    "payouts_enabled": True,
    "details_submitted": True,
    "requirements": None,
    "capabilities": None,
    "payout_schedule": None,
    "default_currency": "EUR",
    "platform_fee_bps": 100,
}


async def ask_payment_account(ctx: Ctx) -> tuple[ConnectAccount | None, ConnectedAccount | None]:
    """The stored account, and what the processor says of it now: None where it does not answer. Waits for the network."""
    found = await find_payment_account(ctx)
    if found is None:
        return None, None
    deps = ctx.deps
    asked, ctx.reached_upstream = deps.clock.now(), True
    try:
        account = await deps.payments.find_account(found.account)
    except Refusal:  # what is stored is told then
        return found, None
    await deps.store.write(keep_payment_account_status, deps=deps, account=account, as_of=asked, now=deps.clock.now())
    if found.status != "active" and payment_account_status(account) == "active":
        await sync_new_account(deps, ctx.organisation, account.id)
    return found, account


async def sync_new_account(deps: Deps, organisation: str, account: str) -> None:
    """Reads the records that `account` had before it was connected, of which no event tells. Waits for the network; raises no Refusal."""
    with suppress(Refusal):
        await sync_payments(deps, organisation=organisation, account=account, baseline=True)


async def render_connect_status(deps: Deps, organisation: str, account: ConnectedAccount | None) -> ConnectStatus:
    """The state of the organisation's account; `account` is what the processor says of it, None where it said nothing."""
    config = await deps.store.read(find_config, organisation=organisation)
    own = "USD" if config is None else config.currency
    if account is not None and (config is None or config.connect_account != account.id):
        account = None  # it was disconnected while it was asked for
    return {
        "status": cast(Literal["not_connected", "pending", "active"], "not_connected" if config is None else config.connect_status),
        "account_id": None if config is None else config.connect_account,
        "charges_enabled": account is not None and account.charges_enabled,
        "payouts_enabled": account is not None and account.payouts_enabled,
        "details_submitted": account is not None and account.details_submitted,
        "requirements": None,
        "capabilities": None,
        "payout_schedule": None,
        "default_currency": (account and account.default_currency) or own,
        "platform_fee_bps": await platform_fee_bps_of(deps, organisation),
    }


REPLACES_PAYMENT_ACCOUNT = "a payment account that takes payments"
LIVE_PAYMENT_ACCOUNT_PAGES = "Opening the pages of a live payment account"


class Onboarding(Input):
    """Where to come back to, and what the account is made with."""

    account_type: Annotated[
        str | int | float | bool | None, Field(description="Taken and ignored: an Express account is made either way.")
    ] = None
    country: Annotated[
        CountryOfRegistration | None,
        Field(description="Country of a new account, ISO 3166-1 alpha-2; absent: the one you saved in onboarding."),
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


ONBOARDING_LINK_EXAMPLE = Example(
    "Where do we tell the processor about ourselves?",
    {"return_url": "https://fjord.example/billing"},
    {
        "url": "https://connect.processor.example/setup/e/acct_1R8fjord0Xy/9cUq2",
        "account_id": "acct_1R8fjord0Xy",
        "expires_at": 1795165500,
        "status": "pending",
    },
)


async def may_begin_onboarding(ctx: Ctx, _params: Onboarding) -> ConnectAccount | None:
    """The organisation's account. Where it is or was live, an admin alone is led to its pages, since the bank account is changed there.

    One that was live and let the service go is replaced by a new one when an admin has confirmed it.
    """
    require_scope(Scope.ANY, ctx.caller, ctx.deps.site)  # a login that was only let read changes nothing
    account = await find_payment_account(ctx)
    if account is not None and account.was_active:
        if account.kind == "express":
            ctx.need_admin(LIVE_PAYMENT_ACCOUNT_PAGES)
        try:
            await check_payment_account_access(ctx.deps, account)
        except AccountDetached:
            ctx.confirm_replacement(
                Replacement(
                    f"This will make a new account at the payment processor for your organisation in place of {account.account}, which "
                    "took payments and which the processor does not let the service into any more. What is paid from then on goes to the "
                    "new account, once its owner has told the processor about themselves; invoices and orders that wait for a payment to "
                    "the former one are not paid by it. The way back is to connect the former account again with "
                    "operator_billing_connect_oauth_begin, while the new one is unfinished.",
                    account.account,
                )
            )
    return account


async def begin_payment_onboarding(ctx: Ctx, params: Onboarding, account: ConnectAccount | None) -> OnboardingLink:
    """A fresh link to the pages of `account`, which the first call makes. Waits for the network; raises Conflict or PaymentsError."""
    before = "none" if account is None else account.account
    account = account or await make_payment_account(ctx, params.country)
    ctx.reached_upstream, asked = True, ctx.deps.clock.now()
    try:
        link = await onboarding_link_to(ctx.deps, account, params)
    except AccountDetached:
        if account.was_active and ctx.replacement is None:
            raise Conflict(
                "The payment account of your organisation let the service go while this call ran; nothing was changed",
                hint="Repeat the call: it asks for a confirmation before another account takes its place",
            ) from None
        # Choice: its event may have been lost, and the organisation would stand before a closed door for ever; only a person who begins
        # gets a new account, so that a wrong key of the service's takes none away by itself.
        await ctx.deps.store.write(detach_connect_account, account=account.account, as_of=asked, now=ctx.deps.clock.now())
        account = await make_payment_account(ctx, params.country)
        link = await onboarding_link_to(ctx.deps, account, params)
    if account.account != before:
        ctx.record_change(f"payment account {before} -> {account.account}")
    status = cast(ConnectedStatus, account.status)
    return {"url": link.url, "account_id": account.account, "expires_at": link.expires_at, "status": status}


async def onboarding_link_to(deps: Deps, account: ConnectAccount, params: Onboarding) -> HostedPage:
    """A fresh link. Whoever brought an account signs in at the processor itself, as long as the service is let into it."""
    if account.kind != "express":
        await check_payment_account_access(deps, account)
        raise standard_account_refusal()
    back = params.return_url or default_return_page(deps)
    return await deps.payments.onboarding_link(account.account, return_url=back, refresh_url=params.refresh_url or back)


async def check_payment_account_access(deps: Deps, account: ConnectAccount) -> None:
    """Raises AccountDetached where the processor does not let the service into `account`; every other refusal is ignored."""
    try:
        await deps.payments.find_account(account.account)
    except AccountDetached:
        raise
    except Refusal:
        return


async def make_payment_account(ctx: Ctx, country: str | None) -> ConnectAccount:
    """A new Express account, or the one that another call has made meanwhile.

    The processor's key says which account of the organisation it is, so that calls at once, and one after a crash, make the same.
    Choice: the processor keeps a key for a day at least; a crash right after the making that nobody repeats for a day leaves an account
    there that nobody uses.
    """
    deps, organisation = ctx.deps, ctx.organisation
    found, as_of = await deps.store.read(connect_standing, organisation=organisation)
    if found is not None:
        return found
    country = country or (await deps.store.read(find_onboarding, organisation=organisation)).country
    asked, ctx.reached_upstream = deps.clock.now(), True
    try:
        made = await deps.payments.create_account(
            key=f"connect:{organisation}:{int(as_of)}", email=None, country=country, metadata={"organisation": organisation}
        )
    except Refusal as refusal:
        # The processor refuses a key that is in use, or that another call gave with another country.
        found = await find_payment_account(ctx)
        if found is None:
            raise other_country_refusal(refusal) or refusal from None
        return found
    await deps.store.write(attach_payment_account, deps=deps, organisation=organisation, account=made, as_of=asked, now=deps.clock.now())
    found = await find_payment_account(ctx)
    if found is None:  # it is another organisation's by what the processor says, or was let go at once
        raise PaymentsError("The payment processor answered with an account that your organisation cannot have; it was not kept.")
    return found


def other_country_refusal(refusal: Refusal) -> PaymentsRefused | None:
    """An account was made for another country, by a call whose answer never came to us; the processor keeps to it for a day."""
    if not isinstance(refusal, PaymentsRefused) or refusal.processor_code != "idempotency_error":
        return None
    text = "country: an account of your organisation was begun with another country a short while ago, and it is not known how that ended"
    hint = "Give the country of the first call, which then gets that account; another one is taken a day later"
    return PaymentsRefused(text, processor_code=refusal.processor_code, param="country", hint=hint)
