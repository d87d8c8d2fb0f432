"""Charges: what buyers and invoice recipients paid into the organisation's account, and the fees that the service kept of them."""

from operations.deps import Ctx
from operations.ledger.payment_accounts import AfterProcessorId, find_payment_account
from operations.ledger.payment_records import ChargeRecord, FeeRecord, load_payment_record, refunded_amount
from operations.vocabulary import ListOf, ListPage, list_page, unknown_last_id
from registry.errors import BadRequest
from registry.operation import Example, Scope, operation
from storage.engine.sql import Connection
from storage.payment_records import (
    FIRST_RECORD_PLACE,
    LinkedRecord,
    PaymentRecord,
    PaymentRecordKind,
    linked_to,
    list_payment_records,
    payment_record_place,
)


class PaymentRecordPage(ListPage):
    """Which part of the list."""

    starting_after: AfterProcessorId = None


async def read_payment_records(ctx: Ctx, kind: PaymentRecordKind, params: PaymentRecordPage) -> list[PaymentRecord]:
    """The rows, with one more than the limit. Without an account there are none; what a former account had is not shown."""
    account = await find_payment_account(ctx)
    if account is None:
        return []
    named = {"account": account.account, "organisation": account.organisation}

    def find(connection: Connection) -> list[PaymentRecord]:
        last = params.starting_after
        after = FIRST_RECORD_PLACE if last is None else payment_record_place(connection, **named, kind=kind, id=last)
        if after is None:
            raise unknown_last_id(kind)
        return list_payment_records(connection, **named, kind=kind, after=after, most=params.limit + 1)

    return await ctx.deps.store.read(find)


class LinkedCharge(ChargeRecord):
    """A charge with the ids of its refunds and disputes, oldest first."""

    refunds: list[str]
    disputes: list[str]


CHARGE_EXAMPLE: LinkedCharge = {
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
    examples=[Example("What was paid to us?", {"limit": 20}, {"object": "list", "data": [CHARGE_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_charges(ctx: Ctx, params: PaymentRecordPage) -> ListOf[LinkedCharge]:
    """List payments into your connected account, newest first.

    Amounts are minor units. Empty while no account is connected. `invoice` and `order` name what a charge paid: an order by its
    number, which opens nothing.

    The list is what the processor has told so far: a charge is there a moment after it was made.
    """
    rows = await read_payment_records(ctx, "charge", params)
    account = await find_payment_account(ctx) if rows else None
    charges = [row.id for row in rows[: params.limit]]
    links = [] if account is None else await ctx.deps.store.read(linked_to, account=account.account, charges=charges)
    return list_page([render_linked_charge(row, links) for row in rows], params.limit)


def render_linked_charge(row: PaymentRecord, links: list[LinkedRecord]) -> LinkedCharge:
    """The charge and what belongs to it. The processor does not tell of a charge again when it is disputed, or when a refund fails."""
    charge, own = load_payment_record(row, ChargeRecord), [link for link in links if link.charge == row.id]
    disputes = [link.id for link in own if link.kind == "dispute"]
    refunds = [link for link in own if link.kind == "refund"]
    amount = min(refunded_amount(row, refunds), charge["amount_refunded"])
    return {
        **charge,
        "amount_refunded": amount,
        "refunded": charge["refunded"] and amount == charge["amount_refunded"],
        "disputed": charge["disputed"] or bool(disputes),
        "refunds": [link.id for link in refunds],
        "disputes": disputes,
    }


FEE_EXAMPLE: FeeRecord = {
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
    examples=[Example("What did the service keep?", {"limit": 20}, {"object": "list", "data": [FEE_EXAMPLE], "has_more": False})],
)
async def operator_billing_list_fees(ctx: Ctx, params: PaymentRecordPage) -> ListOf[FeeRecord]:
    """List platform fees that were kept of your charges, newest first.

    Amounts are minor units; `amount_refunded` went back with refunds of the charge.

    Needs admin. Empty while no account is connected.
    """
    return list_page([load_payment_record(row, FeeRecord) for row in await read_payment_records(ctx, "fee", params)], params.limit)
