"""How the account stands that invoices are paid to."""

from operations.deps import Ctx
from operations.services.payments.connect_view import ACTIVE, ConnectStatus, ask_account, shown
from registry.model import Nothing
from registry.operation import Example, operation


@operation(
    "GET",
    "/v1/invoices/payments/connect/status",
    processor=True,
    title="Get payment account status",
    examples=[Example("Can our invoices be paid online?", {}, ACTIVE)],
)
async def payments_connect_status(ctx: Ctx, params: Nothing) -> ConnectStatus:
    """Tell whether your organisation's invoices can be paid online.

    Asks the payment processor and keeps its answer, which is how `pending` becomes `active`; `active` goes back to `pending` when the
    processor restricts the account.

    Without an account, and when the processor does not answer, what is stored is told, with all three flags false.
    """
    del params
    _, account = await ask_account(ctx)
    return await shown(ctx.deps, ctx.organisation, account)
