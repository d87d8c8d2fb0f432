"""Refunds: what went back to payers."""

from operations.billing.record_page import RecordPage, read_page
from operations.deps import Ctx
from operations.services.payments.payment_records import RefundRecord, shown
from operations.vocabulary import ListOf, page
from registry.errors import BadRequest
from registry.operation import Example, operation

REFUNDED: RefundRecord = {
    "id": "re_3QxAbCdEfGhIjKlM",
    "object": "refund",
    "amount": 500,
    "currency": "EUR",
    "status": "succeeded",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "payment_intent": "pi_3QxAbCdEfGhIjKlM",
    "reason": "requested_by_customer",
    "failure_reason": None,
    "created": 1795341600,
}


@operation(
    "GET",
    "/v1/operator-billing/refunds",
    title="List refunds",
    raises=[BadRequest],
    examples=[Example("What did we give back?", {"limit": 20}, {"object": "list", "data": [REFUNDED], "has_more": False})],
)
async def operator_billing_list_refunds(ctx: Ctx, params: RecordPage) -> ListOf[RefundRecord]:
    """List refunds of your connected account's charges, newest first.

    Amounts are minor units. A failed refund gave nothing back: see `failure_reason`.

    Refunds made through this service and at the processor's own pages are both there. Empty while no account is connected.
    """
    return page([shown(row, RefundRecord) for row in await read_page(ctx, "refund", params)], params.limit)
