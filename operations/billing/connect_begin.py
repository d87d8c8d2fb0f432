"""Onboarding of an organisation at the payment processor."""

from operations.deps import Ctx
from operations.services.payments.connect_onboarding import EXAMPLE, REPLACES, Onboarding, OnboardingLink, begin_onboarding, may_begin
from registry.errors import BadRequest, Conflict
from registry.limits import Scope
from registry.operation import Auth, operation
from storage.money.connect import Connected


@operation(
    "POST",
    "/v1/operator-billing/connect/begin",
    auth=Auth.SESSION,
    scope=Scope.NONE,
    replaces=REPLACES,
    access=may_begin,
    processor=True,
    title="Begin payment onboarding",
    raises=[BadRequest, Conflict],
    examples=[EXAMPLE],
)
async def operator_billing_connect_begin(ctx: Ctx, params: Onboarding, account: Connected | None) -> OnboardingLink:
    """Begin, or go on with, onboarding at the payment processor, on any tier.

    For a person who is signed in: an API key is refused. The first call makes an Express account for your organisation; each call
    gives a fresh link to it, however many are made at once. The same as payments_connect_begin.

    Once the account has taken payments, only an admin gets a link, since the bank account can be changed there.

    Open `url` in a browser soon, once. Afterwards operator_billing_connect_status asks the processor how the account stands. Whoever
    has an account at the processor already connects it with operator_billing_connect_oauth_begin instead.
    """
    return await begin_onboarding(ctx, params, account)
