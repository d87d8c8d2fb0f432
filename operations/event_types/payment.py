"""Events of payments: refunds, disputes, payouts and the payment account.

Ids of refunds, charges, disputes and payouts are the payment processor's. Amounts are minor units of `currency` (ISO 4217). Of the payer
and of the bank account nothing is in them.
"""

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class RefundEventData(TypedDict):
    """`order` is the number of the order or top-up that was paid by the charge, where it was one of a shop of yours.

    `status` is the refund's own word, or refused: the processor made no refund of an order that failed, and `refund` is null.
    `failure_reason` is the processor's, where the money did not reach the payer.
    """

    refund: str | None
    charge: str | None
    order: str | None
    amount: int
    currency: str
    status: str
    failure_reason: str | None


class DisputeEventData(TypedDict):
    """`order` is the number of the order or top-up that is disputed, where it is one of a shop of yours. `reason` is the bank's word,
    such as fraudulent. `evidence_due_by` is Unix seconds: until when the bank takes an answer.

    A `status` that begins with `warning_` is of an inquiry: no money was taken for it.
    """

    dispute: str
    charge: str
    order: str | None
    amount: int
    currency: str
    status: str
    reason: str
    evidence_due_by: int | None


class PayoutEventData(TypedDict):
    """`automatic`: by the schedule, not by a call. `arrival_date` is Unix seconds. `failure_code` says why it came back."""

    payout: str
    amount: int
    currency: str
    status: str
    automatic: bool
    arrival_date: int
    failure_code: str | None


class PaymentAccountData(TypedDict):
    """`account` is the processor's id of your payment account."""

    account: str


REFUND_EVENT_EXAMPLE: RefundEventData = {
    "refund": "re_3QxAbCdEfGhIjKlM",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "order": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "amount": 500,
    "currency": "EUR",
    "status": "succeeded",
    "failure_reason": None,
}

DISPUTE_EVENT_EXAMPLE: DisputeEventData = {
    "dispute": "du_1QxAbCdEfGhIjKlM",
    "charge": "ch_3QxAbCdEfGhIjKlM",
    "order": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "amount": 1490,
    "currency": "EUR",
    "status": "needs_response",
    "reason": "product_not_received",
    "evidence_due_by": 1_796_083_199,
}

PAYOUT_EVENT_EXAMPLE: PayoutEventData = {
    "payout": "po_1QxAbCdEfGhIjKlM",
    "amount": 25_000,
    "currency": "EUR",
    "status": "paid",
    "automatic": True,
    "arrival_date": 1_795_428_000,
    "failure_code": None,
}

REFUND_DONE = EventType(
    "payment.refund_done",
    "A refund of a charge has succeeded, whoever made it.",
    RefundEventData,
    REFUND_EVENT_EXAMPLE,
    read_with="operator_billing_list_refunds",
)

REFUND_FAILED = EventType(
    "payment.refund_failed",
    "A refund of a charge has failed, or was canceled or refused: the payer did not get the money.",
    RefundEventData,
    {**REFUND_EVENT_EXAMPLE, "status": "failed", "failure_reason": "expired_or_canceled_card"},
    read_with="operator_billing_list_refunds",
)

DISPUTE_OPENED = EventType(
    "payment.dispute_opened",
    "A payer's bank has opened a dispute or an inquiry, or has made an inquiry a dispute.",
    DisputeEventData,
    DISPUTE_EVENT_EXAMPLE,
    read_with="operator_billing_list_disputes",
)

DISPUTE_CLOSED = EventType(
    "payment.dispute_closed",
    "A dispute or an inquiry is decided; `status` says how.",
    DisputeEventData,
    {**DISPUTE_EVENT_EXAMPLE, "status": "won"},
    read_with="operator_billing_list_disputes",
)

PAYOUT_PAID = EventType(
    "payment.payout_paid",
    "A payout has arrived at the bank of your payment account.",
    PayoutEventData,
    PAYOUT_EVENT_EXAMPLE,
    read_with="operator_billing_list_payouts",
)

PAYOUT_FAILED = EventType(
    "payment.payout_failed",
    "A payout has failed or was canceled, also one that was called paid before.",
    PayoutEventData,
    {**PAYOUT_EVENT_EXAMPLE, "status": "failed", "failure_code": "account_closed"},
    read_with="operator_billing_list_payouts",
)

ACCOUNT_RESTRICTED = EventType(
    "payment.account_restricted",
    "Your payment account took payments, and the payment processor lets it take none for now.",
    PaymentAccountData,
    {"account": "acct_1R8fjord0Xy"},
    read_with="operator_billing_connect_status",
)
