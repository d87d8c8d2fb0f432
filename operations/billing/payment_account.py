"""An organisation's account at the payment processor: onboarding, balance, status, its pages, and accounts that are brought (OAuth)."""

import hashlib
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from clients.payments.port import AccountDetached, KeyRefused
from clients.payments.records import ConnectedAccount, Money
from operations.deps import Ctx
from operations.ledger.payment_accounts import (
    CONNECT_STATUS_EXAMPLE,
    ONBOARDING_LINK_EXAMPLE,
    REPLACES_PAYMENT_ACCOUNT,
    ConnectStatus,
    Onboarding,
    OnboardingLink,
    ReturnUrl,
    ask_payment_account,
    attach_payment_account,
    begin_payment_onboarding,
    check_payment_account_access,
    default_return_page,
    find_payment_account,
    may_begin_onboarding,
    render_connect_status,
    require_payment_account,
    standard_account_refusal,
    sync_new_account,
)
from operations.secret_tokens import new_secret_token
from registry.caller import Role
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, NotFound, NotSupported, PaymentsError, Refusal
from registry.operation import Auth, Example, Input, Nothing, Scope, SpendKind, operation
from storage.connect_accounts import ConnectAccount, ConnectState, insert_connect_state, organisation_of_account, use_connect_state


@operation(
    "POST",
    "/v1/operator-billing/connect/begin",
    spends=SpendKind.OPEN,
    auth=Auth.SESSION,
    scope=Scope.NONE,
    replaces=REPLACES_PAYMENT_ACCOUNT,
    access=may_begin_onboarding,
    processor=True,
    title="Begin payment onboarding",
    raises=[BadRequest, Conflict],
    examples=[ONBOARDING_LINK_EXAMPLE],
)
async def operator_billing_connect_begin(ctx: Ctx, params: Onboarding, account: ConnectAccount | None) -> OnboardingLink:
    """Begin, or go on with, onboarding at the payment processor, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once. The same as payments_connect_begin.

    Once the account has taken payments, only an admin gets a link, since the bank account can be changed there.

    Open `url` in a browser soon, once. Afterwards operator_billing_connect_status asks the processor how the account stands. Whoever
    has an account at the processor already connects it with operator_billing_connect_oauth_begin instead.
    """
    return await begin_payment_onboarding(ctx, params, account)


# Choice: what the processor still asks for has a field of its own, since `requirements` is always null at present.
class AccountStatus(ConnectStatus):
    """Your account at the payment processor, and what it still has to tell."""

    currently_due: Annotated[list[str], Field(description="What the processor still asks for, by its own names")]


PENDING_ACCOUNT_EXAMPLE: AccountStatus = {
    **CONNECT_STATUS_EXAMPLE,
    "status": "pending",
    "charges_enabled": False,
    "payouts_enabled": False,
    "details_submitted": False,
    "currently_due": ["external_account", "individual.verification.document"],
}


@operation(
    "GET",
    "/v1/operator-billing/connect/status",
    processor=True,
    title="Get payment account",
    examples=[Example("What does the processor still need from us?", {}, PENDING_ACCOUNT_EXAMPLE)],
)
async def operator_billing_connect_status(ctx: Ctx, _params: Nothing) -> AccountStatus:
    """Tell how your payment account stands, and what the processor still needs.

    Asks the processor and keeps its answer, which is how `pending` becomes `active`. What is in `currently_due` a person tells
    the processor on its onboarding pages.

    The link to those pages comes from operator_billing_connect_begin, for signed-in people. Without an account, and when the
    processor does not answer, what is stored is told, with all three flags false.
    """
    _, account = await ask_payment_account(ctx)
    return {
        **await render_connect_status(ctx.deps, ctx.organisation, account),
        "currently_due": [] if account is None else list(account.currently_due),
    }


class DashboardLink(TypedDict):
    """`url` signs one person in, once, for a few minutes."""

    url: str


async def express_account(ctx: Ctx, _params: Nothing) -> ConnectAccount:
    """The organisation's account, where the processor gives links to its pages."""
    ctx.mark_answer_private()
    ctx.need_admin("A link to the pages where the bank account can be changed")
    account = await require_payment_account(ctx)
    if account.kind != "express":
        raise standard_account_refusal()
    return account


@operation(
    "POST",
    "/v1/operator-billing/connect/dashboard-link",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    role=Role.ADMIN,
    processor=True,
    title="Get dashboard link",
    access=express_account,
    raises=[Conflict],
    examples=[Example("Where do we see our payouts?", {}, {"url": "https://connect.processor.example/express/acct_1R8fjord0Xy/k2Vt9"})],
)
async def operator_billing_connect_dashboard_link(ctx: Ctx, _params: Nothing, account: ConnectAccount) -> DashboardLink:
    """Get a link that signs you in to your payment account's pages.

    Give it to nobody: whoever opens it first is in. It works once, for a few minutes.

    For admins, since the bank account that is paid can be changed there. Express accounts only; the owner of a Standard account signs in
    at the processor.
    """
    ctx.reached_upstream = True
    link = await ctx.deps.payments.dashboard_link(account.account)
    return {"url": link.url}


OAUTH_STATE_SECONDS = 600


class Consent(Input):
    """Where to come back to."""

    return_url: Annotated[
        ReturnUrl | None,
        Field(
            repr=False,
            description="Page to come back to with `code` and `state`; https, and registered at the processor. Absent: one of ours.",
        ),
    ] = None


class ConsentBegun(TypedDict):
    """Open `url` in a browser; `state` comes back with the code and is good once, until `expires_at` (Unix seconds)."""

    url: str
    state: str
    expires_at: int


async def owner_of_oauth_state(ctx: Ctx, _params: Consent) -> str:
    ctx.mark_answer_private()
    return ctx.caller.principal


@operation(
    "POST",
    "/v1/operator-billing/connect/oauth/begin",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    title="Begin OAuth connection",
    access=owner_of_oauth_state,
    raises=[NotSupported],
    examples=[
        Example(
            "We have an account at the processor already",
            {},
            {
                "url": "https://connect.processor.example/oauth/authorize?response_type=code&client_id=ca_R8&scope=read_write&state=rG3v...",
                "state": "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE",
                "expires_at": 1795165500,
            },
        )
    ],
)
async def operator_billing_connect_oauth_begin(ctx: Ctx, params: Consent, person: str) -> ConsentBegun:
    """Begin to connect a Standard account that you have at the processor.

    Have the account's owner open `url` and consent; the browser comes back with `code` and `state`, which
    operator_billing_connect_oauth_complete takes.

    `state` is good for 10 minutes, once, and for whoever began it alone. Where the service has no client id for OAuth the answer is 501;
    operator_billing_connect_begin makes an account then.
    """
    deps = ctx.deps
    state = new_secret_token(deps.ids)
    url = deps.payments.authorize_url(state=state, return_url=params.return_url or default_return_page(deps))
    if url is None:
        raise NotSupported(
            "This service has no client id for OAuth at the payment processor, so accounts of your own cannot be connected",
            hint="POST /v1/operator-billing/connect/begin makes an account; the client id is SERVICE_PAYMENTS_CLIENT_ID",
        )
    row = ConnectState(oauth_state_digest(state), ctx.organisation, person, ctx.now + OAUTH_STATE_SECONDS)
    return await ctx.settle({"url": url, "state": state, "expires_at": int(row.expires_at)}, insert_connect_state, state=row)


def oauth_state_digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


class ConsentGiven(Input):
    """What the browser came back with."""

    code: Annotated[
        str, Field(min_length=1, max_length=500, pattern=r"^[\x21-\x7e]+$", repr=False, description="The code from the page's address.")
    ]
    state: Annotated[
        str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$", repr=False, description="The state it came with.")
    ]


async def may_attach_payment_account(ctx: Ctx, _params: ConsentGiven) -> ConnectAccount | None:
    """The account that takes or took payments and that the processor does not let the service into any more, where there is one.

    An admin confirms that another account takes its place. Nothing else that is live gives way.
    """
    account = await find_payment_account(ctx)
    if account is None or not account.was_active:
        return None
    try:
        await check_payment_account_access(ctx.deps, account)
    except AccountDetached:
        ctx.confirm_replacement(
            Replacement(
                f"This will attach the account whose owner has consented in place of {account.account}, which took payments and which the "
                "payment processor does not let the service into any more. What is paid from then on goes to its owner; invoices and "
                "orders that wait for a payment to the former one are not paid by it. The way back is to disconnect the new account at the "
                "processor, and to connect the former one with operator_billing_connect_oauth_begin.",
                account.account,
            )
        )
        return account
    return None


@operation(
    "POST",
    "/v1/operator-billing/connect/oauth/complete",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    replaces=REPLACES_PAYMENT_ACCOUNT,
    access=may_attach_payment_account,
    processor=True,
    title="Complete OAuth connection",
    raises=[BadRequest, Conflict],
    examples=[
        Example(
            "The owner has consented",
            {"code": "ac_R8x2Lk9QvWm4", "state": "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE"},
            CONNECT_STATUS_EXAMPLE,
        )
    ],
)
async def operator_billing_connect_oauth_complete(ctx: Ctx, params: ConsentGiven, replaceable: ConnectAccount | None) -> ConnectStatus:
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
        use_connect_state, digest=oauth_state_digest(params.state), organisation=organisation, person=ctx.caller.principal, now=ctx.now
    )
    if not used:
        raise BadRequest(
            "state: it is unknown, used, older than 10 minutes, or another person or organisation began with it",
            param="state",
            hint="Begin again: operator_billing_connect_oauth_begin gives a new url",
        )
    asked, ctx.reached_upstream = deps.clock.now(), True
    account = await read_consented_account(ctx, await deps.payments.attach(params.code))
    before = await find_replaceable_payment_account(ctx, account.id, replaceable)
    attached = await deps.store.write(
        attach_payment_account,
        deps=deps,
        organisation=organisation,
        account=account,
        as_of=asked,
        now=deps.clock.now(),
        replacing=before.replacing,
        gone=before.gone,
    )
    if not attached:
        raise await payment_account_not_attached(ctx, account.id)
    if before.account != account.id:
        ctx.record_change(f"payment account {before.account or 'none'} -> {account.id}")
    await sync_new_account(deps, organisation, account.id)
    return await render_connect_status(deps, organisation, account)


async def read_consented_account(ctx: Ctx, account: str) -> ConnectedAccount:
    """What the processor says of it. Where it says nothing now, the account waits until its status is asked for: it was let in."""
    try:
        return await ctx.deps.payments.find_account(account)
    except KeyRefused:
        raise
    except (AccountDetached, NotFound):
        raise PaymentsError(
            "The payment processor does not let the service into the account whose owner consented, so it was not attached",
            hint="Connect it again: operator_billing_connect_oauth_begin gives a new url, where its owner consents once more",
        ) from None
    except PaymentsError:
        return ConnectedAccount(
            account, "standard", charges_enabled=False, payouts_enabled=False, details_submitted=False, default_currency=None
        )


class ReplaceablePaymentAccount(NamedTuple):
    """The organisation's account, where a new one may take its place: nobody has finished it, or the service was let out of it."""

    account: str | None = None
    replacing: str | None = None
    gone: str | None = None


async def find_replaceable_payment_account(ctx: Ctx, new: str, replaceable: ConnectAccount | None) -> ReplaceablePaymentAccount:
    """What the processor says of the account that the organisation has.

    Choice: what was begun with begin and never finished may be replaced, and what the processor says is out of the service's reach, whose
    event was lost: either would stand in the way for ever. Nothing else may.
    """
    found = await find_payment_account(ctx)
    if found is None or found.account == new:
        return ReplaceablePaymentAccount(None if found is None else new)
    try:
        account = await ctx.deps.payments.find_account(found.account)
    except AccountDetached:
        confirmed = not found.was_active or (replaceable is not None and replaceable.account == found.account)
        return ReplaceablePaymentAccount(found.account, gone=found.account if confirmed else None)
    except Refusal:
        return ReplaceablePaymentAccount(found.account)
    unfinished = found.kind == "express" and not found.was_active and not account.details_submitted
    return ReplaceablePaymentAccount(found.account, replacing=found.account if unfinished else None)


async def payment_account_not_attached(ctx: Ctx, account: str) -> Conflict:
    """Why `account` was not attached. It is not said which organisation has it."""
    owner = await ctx.deps.store.read(organisation_of_account, account=account)
    undo = "The consent stays until the account's owner takes it back in the account's settings at the processor"
    if owner is not None:
        return Conflict("This account is connected to another organisation already", code="payments_account_taken", hint=undo)
    return Conflict("Your organisation has another account connected already, and keeps it", code="payments_already_connected", hint=undo)


TEST_BALANCE_NOTE = "The payment processor is in test mode: no real money moves, so there is no balance to show"
NO_ACCOUNT_BALANCE_NOTE = "No account at the payment processor yet: POST /v1/operator-billing/connect/begin makes one"


class PaymentAmount(TypedDict):
    """`amount` in minor units (cents) of `currency`; it may be negative."""

    amount: int
    currency: str


class PaymentBalance(TypedDict):
    """What is there to be paid out, and what is still under way, by currency."""

    payments_mode: Annotated[Literal["test", "live"], Field(description="test: no real money moves")]
    available: list[PaymentAmount]
    pending: list[PaymentAmount]
    note: Annotated[str | None, Field(description="Why nothing is listed; null where the processor was asked")]


@operation(
    "GET",
    "/v1/operator-billing/balance",
    processor=True,
    title="Get balance",
    examples=[
        Example(
            "What have we earned?",
            {},
            {
                "payments_mode": "live",
                "available": [{"amount": 184250, "currency": "EUR"}],
                "pending": [{"amount": 3990, "currency": "EUR"}],
                "note": None,
            },
        )
    ],
)
async def operator_billing_balance(ctx: Ctx, _params: Nothing) -> PaymentBalance:
    """Get the balance of your payment account, available and pending.

    In test mode, and without an account, nothing is asked: both lists are empty and `note` says why.
    """
    if not ctx.deps.payments.live:
        return {"payments_mode": "test", "available": [], "pending": [], "note": TEST_BALANCE_NOTE}
    account = await find_payment_account(ctx)
    if account is None:
        return {"payments_mode": "live", "available": [], "pending": [], "note": NO_ACCOUNT_BALANCE_NOTE}
    ctx.reached_upstream = True
    balance = await ctx.deps.payments.balance_of(account.account)
    return {
        "payments_mode": "live",
        "available": render_balance_amounts(balance.available),
        "pending": render_balance_amounts(balance.pending),
        "note": None,
    }


def render_balance_amounts(held: tuple[Money, ...]) -> list[PaymentAmount]:
    return [{"amount": money.amount, "currency": money.currency} for money in held]
