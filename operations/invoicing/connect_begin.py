"""The way to be paid for invoices: an account at the payment processor."""

from operations.deps import Ctx
from operations.services.payments.connect_onboarding import EXAMPLE, REPLACES, Onboarding, OnboardingLink, begin_onboarding, may_begin
from registry.errors import BadRequest, Conflict
from registry.limits import Scope
from registry.operation import Auth, operation
from storage.money.connect import Connected


@operation(
    "POST",
    "/v1/invoices/payments/connect/begin",
    auth=Auth.SESSION,
    scope=Scope.NONE,
    replaces=REPLACES,
    access=may_begin,
    processor=True,
    title="Connect payment account",
    raises=[BadRequest, Conflict],
    examples=[EXAMPLE],
)
async def payments_connect_begin(ctx: Ctx, params: Onboarding, account: Connected | None) -> OnboardingLink:
    """Get a link to the payment processor's onboarding, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once.

    Once the account has taken payments, only an admin gets a link, since the bank account can be changed there.

    Open `url` in a browser soon, once. Afterwards payments_connect_status asks the processor how the account stands: pending becomes
    active when it takes payments. An account that was connected by OAuth is onboarded by its owner, and answers 409.
    """
    return await begin_onboarding(ctx, params, account)
