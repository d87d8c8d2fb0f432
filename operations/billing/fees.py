"""Application fees: what the service kept of the organisation's charges."""

from operations.billing.record_page import RecordPage, read_page
from operations.deps import Ctx
from operations.services.payments.payment_records import FeeRecord, shown
from operations.vocabulary import ListOf, page
from registry.errors import BadRequest
from registry.limits import Scope
from registry.operation import Example, operation

FEE: FeeRecord = {
    "id": "fee_1QxAbCdEfGhIjKlM",
    "object": "application_fee",
    "amount": 15,
    "amount_refunded": 5,
    "currency": "EUR",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "account": "acct_1QxFjordConnected",
    "created": 1795255200,
}


@operation(
    "GET",
    "/v1/operator-billing/fees",
    scope=Scope.ADMIN,
    title="List platform fees",
    raises=[BadRequest],
    examples=[Example("What did the service keep?", {"limit": 20}, {"object": "list", "data": [FEE], "has_more": False})],
)
async def operator_billing_list_fees(ctx: Ctx, params: RecordPage) -> ListOf[FeeRecord]:
    """List platform fees that were kept of your charges, newest first.

    Amounts are minor units; `amount_refunded` went back with refunds of the charge.

    Needs admin. Empty while no account is connected.
    """
    return page([shown(row, FeeRecord) for row in await read_page(ctx, "fee", params)], params.limit)
