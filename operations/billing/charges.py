"""Charges: what buyers and invoice recipients paid into the organisation's account."""

from operations.billing.record_page import RecordPage, read_page
from operations.deps import Ctx
from operations.services.payments.charge_refunds import refunded_of
from operations.services.payments.connect import account_of
from operations.services.payments.payment_records import ChargeRecord, shown
from operations.vocabulary import ListOf, page
from registry.errors import BadRequest
from registry.operation import Example, operation
from storage.money.payment_records import Linked, PaymentRecord, linked_to


class LinkedCharge(ChargeRecord):
    """A charge with the ids of its refunds and disputes, oldest first."""

    refunds: list[str]
    disputes: list[str]


EXAMPLE: LinkedCharge = {
    "id": "ch_3QxAbCdEfGhIjKlM",
    "object": "charge",
    "amount": 1490,
    "amount_refunded": 500,
    "currency": "EUR",
    "status": "succeeded",
    "refunded": False,
    "disputed": False,
    "failure_code": None,
    "payment_intent": "pi_3QxAbCdEfGhIjKlM",
    "application_fee": "fee_1QxAbCdEfGhIjKlM",
    "invoice": None,
    "order": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "created": 1795255200,
    "refunds": ["re_3QxAbCdEfGhIjKlM"],
    "disputes": [],
}


@operation(
    "GET",
    "/v1/operator-billing/charges",
    title="List charges",
    raises=[BadRequest],
    examples=[Example("What was paid to us?", {"limit": 20}, {"object": "list", "data": [EXAMPLE], "has_more": False})],
)
async def operator_billing_list_charges(ctx: Ctx, params: RecordPage) -> ListOf[LinkedCharge]:
    """List payments into your connected account, newest first.

    Amounts are minor units. Empty while no account is connected. `invoice` and `order` name what a charge paid: an order by its
    number, which opens nothing.

    The list is what the processor has told so far: a charge is there a moment after it was made.
    """
    rows = await read_page(ctx, "charge", params)
    account = await account_of(ctx) if rows else None
    charges = [row.id for row in rows[: params.limit]]
    links = [] if account is None else await ctx.deps.store.read(linked_to, account=account.account, charges=charges)
    return page([with_links(row, links) for row in rows], params.limit)


def with_links(row: PaymentRecord, links: list[Linked]) -> LinkedCharge:
    """The charge and what belongs to it. The processor does not tell of a charge again when it is disputed, or when a refund fails."""
    charge, own = shown(row, ChargeRecord), [link for link in links if link.charge == row.id]
    disputes = [link.id for link in own if link.kind == "dispute"]
    refunds = [link for link in own if link.kind == "refund"]
    amount = min(refunded_of(row, refunds), charge["amount_refunded"])
    return {
        **charge,
        "amount_refunded": amount,
        "refunded": charge["refunded"] and amount == charge["amount_refunded"],
        "disputed": charge["disputed"] or bool(disputes),
        "refunds": [link.id for link in refunds],
        "disputes": disputes,
    }
