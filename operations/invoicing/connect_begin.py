"""The way to be paid for invoices: an account at the payment processor."""

from operations.deps import Ctx
from operations.services.payments.connect_onboarding import EXAMPLE, Onboarding, OnboardingLink, begin_onboarding
from registry.errors import BadRequest, Conflict
from registry.limits import Scope
from registry.operation import Auth, operation


@operation(
    "POST",
    "/v1/invoices/payments/connect/begin",
    auth=Auth.SESSION,
    scope=Scope.NONE,
    processor=True,
    title="Connect payment account",
    raises=[BadRequest, Conflict],
    examples=[EXAMPLE],
)
async def payments_connect_begin(ctx: Ctx, params: Onboarding) -> OnboardingLink:
    """Get a link to the payment processor's onboarding, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once.

    Open `url` in a browser soon, once. Afterwards payments_connect_status asks the processor how the account stands: pending becomes
    active when it takes payments. An account that was connected by OAuth is onboarded by its owner, and answers 409.
    """
    return await begin_onboarding(ctx, params)
