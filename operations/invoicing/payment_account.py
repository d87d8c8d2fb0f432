"""The account that invoices are paid to at the payment processor: its onboarding, and how it stands."""

from operations.deps import Ctx
from operations.ledger.payment_accounts import (
    CONNECT_STATUS_EXAMPLE,
    ONBOARDING_LINK_EXAMPLE,
    REPLACES_PAYMENT_ACCOUNT,
    ConnectStatus,
    Onboarding,
    OnboardingLink,
    ask_payment_account,
    begin_payment_onboarding,
    may_begin_onboarding,
    render_connect_status,
)
from registry.errors import BadRequest, Conflict
from registry.limits import Scope
from registry.model import Nothing
from registry.operation import Auth, Example, operation
from storage.connect_accounts import ConnectAccount


@operation(
    "POST",
    "/v1/invoices/payments/connect/begin",
    auth=Auth.SESSION,
    scope=Scope.NONE,
    replaces=REPLACES_PAYMENT_ACCOUNT,
    access=may_begin_onboarding,
    processor=True,
    title="Connect payment account",
    raises=[BadRequest, Conflict],
    examples=[ONBOARDING_LINK_EXAMPLE],
)
async def payments_connect_begin(ctx: Ctx, params: Onboarding, account: ConnectAccount | None) -> OnboardingLink:
    """Get a link to the payment processor's onboarding, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once.

    Once the account has taken payments, only an admin gets a link, since the bank account can be changed there.

    Open `url` in a browser soon, once. Afterwards payments_connect_status asks the processor how the account stands: pending becomes
    active when it takes payments. An account that was connected by OAuth is onboarded by its owner, and answers 409.
    """
    return await begin_payment_onboarding(ctx, params, account)


@operation(
    "GET",
    "/v1/invoices/payments/connect/status",
    processor=True,
    title="Get payment account status",
    examples=[Example("Can our invoices be paid online?", {}, CONNECT_STATUS_EXAMPLE)],
)
async def payments_connect_status(ctx: Ctx, params: Nothing) -> ConnectStatus:
    """Tell whether your organisation's invoices can be paid online.

    Asks the payment processor and keeps its answer, which is how `pending` becomes `active`; `active` goes back to `pending` when the
    processor restricts the account.

    Without an account, and when the processor does not answer, what is stored is told, with all three flags false.
    """
    del params
    _, account = await ask_payment_account(ctx)
    return await render_connect_status(ctx.deps, ctx.organisation, account)
