"""Payouts: what went to the account's bank."""

from operations.billing.record_page import RecordPage, read_page
from operations.deps import Ctx
from operations.services.payments.payment_records import PayoutRecord, shown
from operations.vocabulary import ListOf, page
from registry.errors import BadRequest
from registry.operation import Example, operation

PAID_OUT: PayoutRecord = {
    "id": "po_1QxAbCdEfGhIjKlM",
    "object": "payout",
    "amount": 25000,
    "currency": "EUR",
    "status": "pending",
    "automatic": False,
    "arrival_date": 1795428000,
    "failure_code": None,
    "created": 1795341600,
}


@operation(
    "GET",
    "/v1/operator-billing/payouts",
    title="List payouts",
    raises=[BadRequest],
    examples=[Example("What was paid out to our bank?", {"limit": 20}, {"object": "list", "data": [PAID_OUT], "has_more": False})],
)
async def operator_billing_list_payouts(ctx: Ctx, params: RecordPage) -> ListOf[PayoutRecord]:
    """List payouts to your bank, newest first.

    Amounts are minor units. A paid payout may still come back as failed: see `failure_code`.

    Scheduled payouts (`automatic`) and manual ones are both there. Empty while no account is connected.
    """
    return page([shown(row, PayoutRecord) for row in await read_page(ctx, "payout", params)], params.limit)
