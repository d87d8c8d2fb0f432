"""What the payment processor holds, in our words: the only shapes of it that anybody outside this room sees.

Amounts are whole minor units (cents), currencies three upper-case letters (ISO 4217), times Unix seconds, ids the processor's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from typing_extensions import TypedDict

ListedT = TypeVar("ListedT")
EMPTY_METADATA: Mapping[str, str] = {}

AccountKind = Literal["express", "standard", "custom", "none"]
PayoutInterval = Literal["manual", "daily", "weekly", "monthly"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


@dataclass(frozen=True, slots=True)
class ProcessorPage(Generic[ListedT]):
    """A page of a list, newest first."""

    data: list[ListedT]
    has_more: bool


@dataclass(frozen=True, slots=True)
class PayoutTiming:
    """When an account's balance is paid out by itself. `weekday` with weekly, `month_day` (1-31) with monthly; `delay_days` is the rule
    of the processor for how long money rests first.
    """

    interval: PayoutInterval
    weekday: Weekday | None = None
    month_day: int | None = None
    delay_days: int | None = None


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """A connected account: a tenant's own account at the processor, attached to the service's."""

    id: str
    kind: AccountKind
    charges_enabled: bool
    payouts_enabled: bool
    details_submitted: bool
    default_currency: str | None
    currently_due: tuple[str, ...] = ()
    """What the processor still asks for, by its own names."""
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class HostedPage:
    """A page of the processor's for one person, and when it stops working, where it does."""

    url: str = field(repr=False)
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a currency."""

    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has: to be paid out now, and still under way."""

    live: bool
    available: tuple[Money, ...]
    pending: tuple[Money, ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """A payment that was tried."""

    id: str
    amount: int
    amount_refunded: int
    currency: str
    status: Literal["pending", "succeeded", "failed"]
    refunded: bool
    disputed: bool
    created: int
    payment_intent: str | None = None
    application_fee: str | None = None
    failure_code: str | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Refund:
    """Money given back to a payer."""

    id: str
    amount: int
    currency: str
    status: Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
    charge: str | None
    payment_intent: str | None
    reason: str | None
    created: int
    failure_reason: str | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Payout:
    """Money sent to the account's bank."""

    id: str
    amount: int
    currency: str
    status: Literal["pending", "in_transit", "paid", "failed", "canceled"]
    automatic: bool
    arrival_date: int
    created: int
    failure_code: str | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Dispute:
    """A payer's bank asks for the money back."""

    id: str
    amount: int
    currency: str
    status: str
    """warning_needs_response, warning_under_review, warning_closed, needs_response, under_review, won, lost or prevented."""
    reason: str
    charge: str
    payment_intent: str | None
    evidence_due_by: int | None
    evidence_submissions: int
    created: int


@dataclass(frozen=True, slots=True)
class ApplicationFee:
    """What the service kept of a connected account's charge."""

    id: str
    account: str
    amount: int
    amount_refunded: int
    currency: str
    charge: str
    created: int


@dataclass(frozen=True, slots=True)
class Review:
    """A charge that the processor's fraud rules hold up for a person's look. `reason`: why it is open, or how it was closed."""

    id: str
    open: bool
    reason: str
    charge: str | None
    payment_intent: str | None
    created: int


@dataclass(frozen=True, slots=True)
class ValueList:
    """Values that the fraud rules name, such as blocked card numbers or mail addresses."""

    id: str
    alias: str
    name: str
    item_type: str
    created: int


@dataclass(frozen=True, slots=True)
class ValueListItem:
    """One value of a list."""

    id: str
    value_list: str
    value: str = field(repr=False)
    created: int = 0


@dataclass(frozen=True, slots=True)
class ProcessorInvoice:
    """An invoice as the processor holds it. `pay_url` is the page on which its recipient pays, once it is finalised."""

    id: str
    status: Literal["draft", "open", "paid", "void", "uncollectible"]
    total: int
    amount_paid: int
    currency: str
    pay_url: str | None = field(default=None, repr=False)
    paid_at: int | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class PromotionCode:
    """A code that buyers type in at a checkout, and the coupon behind it."""

    id: str
    coupon: str
    code: str
    active: bool


@dataclass(frozen=True, slots=True)
class CheckoutSession:
    """A page of the processor's on which one buyer pays one thing."""

    id: str
    status: Literal["open", "complete", "expired"]
    payment_status: Literal["paid", "unpaid", "no_payment_required"]
    amount_total: int
    currency: str
    payment_intent: str | None
    expires_at: int
    url: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


EventRecord = ConnectedAccount | Charge | Refund | Payout | Dispute | ApplicationFee | Review | ProcessorInvoice | CheckoutSession


@dataclass(frozen=True, slots=True)
class ProcessorEvent:
    """Something that happened at the processor, as its webhook told it.

    `account` is the connected account it happened in; None: in the service's own. `record` is what it is about, as it was at that
    moment; None for kinds that nothing here reads. `created` counts whole seconds: two events of one second come in any order.
    """

    id: str
    type: str
    account: str | None
    created: int
    live: bool
    record: EventRecord | None


class EvidenceTexts(TypedDict, total=False):
    """What is told in answer to a dispute; texts of the processor's own fields."""

    access_activity_log: str
    cancellation_policy_disclosure: str
    cancellation_rebuttal: str
    customer_email_address: str
    customer_name: str
    customer_purchase_ip: str
    duplicate_charge_explanation: str
    duplicate_charge_id: str
    product_description: str
    refund_policy_disclosure: str
    refund_refusal_explanation: str
    service_date: str
    uncategorized_text: str


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """A line of an invoice that is sent through the processor."""

    text: str
    amount: int


@dataclass(frozen=True, slots=True)
class NewInvoice:
    """What an invoice that the processor is to send and collect is made of.

    `key` makes it at most one, however often it is asked for: every call that the making takes is repeated under keys made from it.
    `fee` is what the service keeps of the payment. `metadata` comes back with every event about it.
    """

    key: str
    number: str
    currency: str
    lines: tuple[InvoiceLine, ...]
    fee: int
    due_at: int
    recipient_name: str = field(repr=False)
    recipient_email: str = field(repr=False)
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class NewCheckout:
    """A thing to be paid on a page of the processor's. `promotions`: the buyer may type in a code there."""

    key: str
    text: str
    amount: int
    currency: str
    fee: int
    success_url: str = field(repr=False)
    cancel_url: str = field(repr=False)
    email: str | None = field(default=None, repr=False)
    promotions: bool = False
    expires_at: int | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class NewPromotion:
    """A code to be made: either per cent (1-100, two decimals at most as hundredths in `percent_off_bps`) or an amount off."""

    key: str
    code: str
    percent_off_bps: int | None
    amount_off: Money | None
    max_redemptions: int | None
    expires_at: int | None
