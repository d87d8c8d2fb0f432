"""What the payment processor holds, in our words: no other shape of it leaves this package.

Amounts are whole minor units (cents), currencies three upper-case letters (ISO 4217), times Unix seconds, ids the processor's own.
The types of the members say how each is read from the wire.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, LiteralString, TypeVar, cast

from pydantic import BeforeValidator, Field, SkipValidation, ValidationInfo
from typing_extensions import TypedDict

from clients.payments.fields import (
    KNOWN_WORD,
    Count,
    Currency,
    Flag,
    Metadata,
    ObjectId,
    OptionalCount,
    OptionalCurrency,
    OptionalObjectId,
    OptionalPage,
    OptionalTerm,
    Page,
    ProcessorJson,
    Term,
    Text,
    Whole,
    inner_object,
    inside,
    read_count,
    read_count_or_zero,
    read_currency,
    read_member,
    read_page,
    read_text,
    require_list,
)

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


InvoiceStatus = Literal["draft", "open", "paid", "void", "uncollectible"]
PayoutStatus = Literal["pending", "in_transit", "paid", "failed", "canceled"]
RefundStatus = Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
PAYOUT_SCHEDULE = ("payments", "payouts", "schedule")
ACCOUNT_KIND_BY_DASHBOARD: Mapping[str | None, AccountKind] = {"express": "express", "full": "standard", "none": "custom"}
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
REQUIREMENTS_LIMIT = 200


def word_or(default: LiteralString) -> BeforeValidator:
    """A word that the wire knows there; `default` where it says none."""

    def read(found: object) -> str:
        return read_text(found) or default

    return BeforeValidator(read)


def read_weekday(found: object, info: ValidationInfo) -> object:
    """The first day of a weekly schedule."""
    return found if isinstance(found, str) and info.data.get("interval") == "weekly" else None


def read_month_day(found: object, info: ValidationInfo) -> object:
    """The first day of a monthly schedule."""
    return found if type(found) is int and 1 <= found <= 31 and info.data.get("interval") == "monthly" else None


@dataclass(frozen=True, slots=True)
class PayoutTiming:
    """When an account's balance is paid out by itself. `weekday` with weekly, `month_day` (1-31) with monthly; `delay_days` is the rule
    of the processor for how long money rests first. Choice: an account that has no schedule pays nothing out by itself.
    """

    interval: Annotated[PayoutInterval, word_or("manual"), inside(*PAYOUT_SCHEDULE, "interval", default="manual")]
    weekday: Annotated[Weekday | None, BeforeValidator(read_weekday), inside(*PAYOUT_SCHEDULE, "weekly_payout_days", 0)] = None
    month_day: Annotated[int | None, BeforeValidator(read_month_day), inside(*PAYOUT_SCHEDULE, "monthly_payout_days", 0)] = None
    delay_days: Annotated[int | None, BeforeValidator(read_count), inside("payments", "settlement_timing", "delay_days")] = None


def read_account_kind(found: object, info: ValidationInfo) -> str:
    """Accounts made by what they may, not by a type, have type `none`; their dashboard then says which they are."""
    kind = read_text(found) or "none"
    controller: ProcessorJson = inner_object(cast("ProcessorJson", info.context), "controller") if kind == "none" else {}
    return ACCOUNT_KIND_BY_DASHBOARD.get(read_member(inner_object(controller, "stripe_dashboard"), "type", read_text), kind)


def read_currently_due(found: object) -> tuple[str, ...]:
    """What is still asked for; what is none of the wire's names is left out."""
    due = cast("list[object]", found) if isinstance(found, list) else []
    return tuple(one for one in due if isinstance(one, str) and REQUIREMENT_NAME.fullmatch(one))[:REQUIREMENTS_LIMIT]


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """A connected account: a tenant's own account at the processor, attached to the service's. One that its owner has not finished says
    no to everything.
    """

    id: ObjectId
    kind: Annotated[AccountKind, BeforeValidator(read_account_kind), Field(validation_alias="type", default=None, validate_default=True)]
    charges_enabled: Flag
    payouts_enabled: Flag
    details_submitted: Flag
    default_currency: OptionalCurrency
    currently_due: Annotated[tuple[str, ...], BeforeValidator(read_currently_due), inside("requirements", "currently_due")] = ()
    """What the processor still asks for, by its own names."""
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class HostedPage:
    """A page of the processor's for one person, and when it stops working, where it does."""

    url: Page = field(repr=False)
    expires_at: OptionalCount = None


@dataclass(frozen=True, slots=True)
class Money:
    amount: Whole
    currency: Currency


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has: to be paid out now, and still under way."""

    live: Annotated[Flag, Field(validation_alias="livemode")]
    available: Annotated[tuple[Money, ...], BeforeValidator(require_list), Field(default=None, validate_default=True)]
    pending: Annotated[tuple[Money, ...], BeforeValidator(require_list), Field(default=None, validate_default=True)]


@dataclass(frozen=True, slots=True)
class Charge:
    """An attempt to pay. It no longer names the invoice that it pays."""

    id: ObjectId
    amount: Count
    amount_refunded: Count
    currency: Currency
    status: Annotated[Literal["pending", "succeeded", "failed"], KNOWN_WORD]
    refunded: Flag
    disputed: Flag
    created: Count
    payment_intent: OptionalObjectId = None
    application_fee: OptionalObjectId = None
    failure_code: OptionalTerm = None
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Refund:
    """Money given back to a payer; one without a status is not known to have arrived."""

    id: ObjectId
    amount: Count
    currency: Currency
    status: Annotated[RefundStatus, word_or("pending"), Field(default="pending")]
    charge: OptionalObjectId
    payment_intent: OptionalObjectId
    reason: OptionalTerm
    created: Count
    failure_reason: OptionalTerm = None
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Payout:
    """Money sent to the account's bank."""

    id: ObjectId
    amount: Whole
    currency: Currency
    status: Annotated[PayoutStatus, KNOWN_WORD]
    automatic: Flag
    arrival_date: Count
    created: Count
    failure_code: OptionalTerm = None
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class Dispute:
    """A payer's bank asks for the money back."""

    id: ObjectId
    amount: Count
    currency: Currency
    status: Term
    """warning_needs_response, warning_under_review, warning_closed, needs_response, under_review, won, lost or prevented."""
    reason: Term
    charge: ObjectId
    payment_intent: OptionalObjectId
    evidence_due_by: Annotated[int | None, BeforeValidator(read_count), inside("evidence_details", "due_by", default=None)]
    evidence_submissions: Annotated[int, BeforeValidator(read_count_or_zero), inside("evidence_details", "submission_count", default=0)]
    created: Count


@dataclass(frozen=True, slots=True)
class ApplicationFee:
    """The service's fee for a connected account's charge."""

    id: ObjectId
    account: ObjectId
    amount: Count
    amount_refunded: Count
    currency: Currency
    charge: ObjectId
    created: Count


@dataclass(frozen=True, slots=True)
class Review:
    """A charge that the processor's fraud rules hold up for a person's look. `reason`: why it is open, or how it was closed."""

    id: ObjectId
    open: Flag
    reason: Term
    charge: OptionalObjectId
    payment_intent: OptionalObjectId
    created: Count


@dataclass(frozen=True, slots=True)
class ValueList:
    """Values that the fraud rules name, such as blocked card numbers or mail addresses."""

    id: ObjectId
    alias: Term
    name: Text
    item_type: Term
    created: Count


@dataclass(frozen=True, slots=True)
class ValueListItem:
    id: ObjectId
    value_list: ObjectId
    value: Text = field(repr=False)
    created: Count


@dataclass(frozen=True, slots=True)
class ProcessorInvoice:
    """An invoice as the processor holds it; it no longer names the payments that pay it. `pay_url` is the page on which its recipient
    pays, once it is finalised.
    """

    id: ObjectId
    status: Annotated[InvoiceStatus, word_or("draft"), Field(default="draft")]
    total: Whole
    amount_paid: Whole
    currency: Currency
    pay_url: Annotated[str | None, BeforeValidator(read_page), Field(validation_alias="hosted_invoice_url")] = field(
        default=None, repr=False
    )
    paid_at: Annotated[int | None, BeforeValidator(read_count), inside("status_transitions", "paid_at")] = None
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


@dataclass(frozen=True, slots=True)
class PromotionCode:
    """A code that buyers type in at a checkout, and the coupon behind it, which the wire has one level deeper than it once did."""

    id: ObjectId
    coupon: Annotated[ObjectId, inside("promotion", "coupon")]
    code: Text
    active: Flag


def read_buyer_email(found: object, info: ValidationInfo) -> str | None:
    """What the buyer typed in, else what the page was made with."""
    session = cast("ProcessorJson", info.context)
    return read_member(inner_object(session, "customer_details"), "email", read_text) or read_text(found)


@dataclass(frozen=True, slots=True)
class CheckoutSession:
    """A page of the processor's on which one buyer pays one thing. Accounts have pages of their own as well, and one that sells nothing
    has no amount.
    """

    id: ObjectId
    status: Annotated[Literal["open", "complete", "expired"], word_or("open"), Field(default="open")]
    payment_status: Annotated[Literal["paid", "unpaid", "no_payment_required"], KNOWN_WORD]
    amount_total: Annotated[int, BeforeValidator(read_count_or_zero), Field(default=0)]
    currency: Annotated[str, BeforeValidator(lambda found: read_currency(found) or ""), Field(default="")]
    payment_intent: OptionalObjectId
    expires_at: Count
    url: OptionalPage = field(default=None, repr=False)
    email: Annotated[
        str | None, BeforeValidator(read_buyer_email), Field(validation_alias="customer_email", default=None, validate_default=True)
    ] = field(default=None, repr=False)
    metadata: Metadata = field(default_factory=lambda: EMPTY_METADATA)


EventRecord = ConnectedAccount | Charge | Refund | Payout | Dispute | ApplicationFee | Review | ProcessorInvoice | CheckoutSession


@dataclass(frozen=True, slots=True)
class ProcessorEvent:
    """Something that happened at the processor, as its webhook reports it.

    `account` is the connected account it happened in; None: in the service's own. `record` is what it is about, as it was at that
    moment; None for kinds that nothing here reads. `created` counts whole seconds: two events of one second come in any order.
    """

    id: ObjectId
    type: Text
    account: OptionalObjectId
    created: Count
    live: Annotated[Flag, Field(validation_alias="livemode")]
    record: Annotated[EventRecord | None, SkipValidation, Field(default=None)]


class EvidenceTexts(TypedDict, total=False):
    """The answer to a dispute: texts, by the processor's names for them."""

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
