"""How an organisation's account at the payment processor stands, and what it still has to tell."""

from typing import Annotated

from pydantic import Field

from operations.deps import Ctx
from operations.services.payments.connect_view import ACTIVE, ConnectStatus, ask_account, shown
from registry.model import Nothing
from registry.operation import Example, operation


# Choice: what the processor still asks for has a field of its own, since `requirements` is always null at present.
class AccountStatus(ConnectStatus):
    """Your account at the payment processor, and what it still has to tell."""

    currently_due: Annotated[list[str], Field(description="What the processor still asks for, by its own names")]


WAITING: AccountStatus = {
    **ACTIVE,
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
    examples=[Example("What does the processor still need from us?", {}, WAITING)],
)
async def operator_billing_connect_status(ctx: Ctx, params: Nothing) -> AccountStatus:
    """Tell how your payment account stands, and what the processor still needs.

    Asks the processor and keeps its answer, which is how `pending` becomes `active`. What is in `currently_due` a person tells
    the processor on its onboarding pages.

    The link to those pages comes from operator_billing_connect_begin, for signed-in people. Without an account, and when the
    processor does not answer, what is stored is told, with all three flags false.
    """
    del params
    _, account = await ask_account(ctx)
    return {**await shown(ctx.deps, ctx.organisation, account), "currently_due": [] if account is None else list(account.currently_due)}
