"""What the simulated processor remembers, as flat records: amounts in minor units, currencies in lower case, times in Unix seconds."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from clients.sandbox.payments.invoice_entities import Invoice, InvoiceItem
from clients.sandbox.payments.shop_entities import Coupon, Promotion, Session, SessionLine

__all__ = [
    "Account",
    "Charge",
    "Code",
    "Coupon",
    "Customer",
    "Dispute",
    "Fee",
    "FeeRefund",
    "Intent",
    "Invoice",
    "InvoiceItem",
    "Payout",
    "Promotion",
    "Refund",
    "Review",
    "Session",
    "SessionLine",
    "Stored",
    "Txn",
    "Value",
    "ValueList",
    "Visit",
]

Kind: TypeAlias = Literal["express", "standard", "custom", "none"]


def words() -> dict[str, str]:
    """No metadata yet."""
    return {}


@dataclass(slots=True)
class Account:
    """The platform's own account, or one connected to it."""

    id: str
    created: int
    kind: Kind = "express"
    country: str = "US"
    currency: str = "usd"
    email: str | None = None
    business_type: str | None = None
    name: str | None = None
    url: str | None = None
    charges_enabled: bool = False
    payouts_enabled: bool = False
    details_submitted: bool = False
    currently_due: list[str] = field(default_factory=list[str])
    capabilities: dict[str, str] = field(default_factory=words)
    attached: bool = True
    """False once it has let the platform go."""
    interval: str = "daily"
    weekly_days: list[str] = field(default_factory=list[str])
    monthly_days: list[int] = field(default_factory=list[int])
    delay_days: int = 2
    bank: str = ""
    bank_last4: str = "6789"
    bank_fails: bool = False
    """Payouts to this bank come back."""
    swept: int = 0
    """The day (since 1970) up to which scheduled payouts were made."""
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Intent:
    """A payment that is to be made, whatever the number of attempts."""

    id: str
    created: int
    amount: int
    currency: str
    status: str = "requires_payment_method"
    amount_received: int = 0
    charge: str | None = None
    customer: str | None = None
    description: str | None = None
    fee_amount: int | None = None
    email: str | None = None
    method: str | None = None
    review: str | None = None
    canceled_at: int | None = None
    cancellation_reason: str | None = None
    failure_code: str | None = None
    decline_code: str | None = None
    failure_message: str | None = None
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Charge:
    """One attempt at a payment."""

    id: str
    created: int
    amount: int
    currency: str
    status: str
    intent: str | None = None
    amount_refunded: int = 0
    disputed: bool = False
    fee: str | None = None
    fee_amount: int | None = None
    txn: str | None = None
    customer: str | None = None
    name: str | None = None
    email: str | None = None
    description: str | None = None
    method: str | None = None
    brand: str = "visa"
    last4: str = "4242"
    country: str = "US"
    failure_code: str | None = None
    decline_code: str | None = None
    failure_message: str | None = None
    risk_level: str = "normal"
    risk_score: int = 22
    review: str | None = None
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Refund:
    """Money on its way back to a payer."""

    id: str
    created: int
    amount: int
    currency: str
    charge: str
    status: str = "succeeded"
    intent: str | None = None
    reason: str | None = None
    txn: str | None = None
    failure_reason: str | None = None
    failure_txn: str | None = None
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Payout:
    """Money on its way to the account's bank."""

    id: str
    created: int
    amount: int
    currency: str
    arrival: int
    status: str = "pending"
    automatic: bool = False
    destination: str = ""
    method: str = "standard"
    description: str | None = None
    statement_descriptor: str | None = None
    txn: str | None = None
    failure_code: str | None = None
    failure_message: str | None = None
    failure_txn: str | None = None
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Dispute:
    """A payer's bank asks for the money back."""

    id: str
    created: int
    amount: int
    currency: str
    charge: str
    reason: str
    status: str
    due_by: int
    intent: str | None = None
    brand: str = "visa"
    submissions: int = 0
    evidence: dict[str, str] = field(default_factory=words)
    txns: list[str] = field(default_factory=list[str])
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Review:
    """A charge that a person should look at."""

    id: str
    created: int
    charge: str
    intent: str | None
    open: bool = True
    reason: str = "rule"
    opened_reason: str = "rule"
    closed_reason: str | None = None
    ip_address: str | None = None
    country: str | None = None
    zip: str | None = None


@dataclass(slots=True)
class ValueList:
    """Values that the fraud rules name."""

    id: str
    created: int
    alias: str
    name: str
    item_type: str = "string"
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Value:
    """One value of such a list."""

    id: str
    created: int
    list: str
    value: str


@dataclass(slots=True)
class Fee:
    """What the platform kept of a connected account's charge; the platform's own."""

    id: str
    created: int
    account: str
    charge: str
    amount: int
    currency: str
    amount_refunded: int = 0
    txn: str | None = None


@dataclass(slots=True)
class FeeRefund:
    """Part of such a fee, given back."""

    id: str
    created: int
    fee: str
    amount: int
    currency: str
    txn: str | None = None


@dataclass(slots=True)
class Txn:
    """One movement of an account's balance."""

    id: str
    created: int
    amount: int
    currency: str
    fee: int
    available_on: int
    type: str
    source: str
    application_fee: int = 0
    """How much of the fee is the platform's."""


@dataclass(slots=True)
class Customer:
    """Somebody who pays."""

    id: str
    created: int
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    description: str | None = None
    currency: str | None = None
    prefix: str = ""
    address: dict[str, str | None] | None = None
    deleted: bool = False
    metadata: dict[str, str] = field(default_factory=words)


@dataclass(slots=True)
class Code:
    """An authorisation an account's owner gave: a code that is changed once for access."""

    id: str
    created: int
    account: str
    scope: str
    used: bool = False


@dataclass(slots=True)
class Visit:
    """A page for one person: an account link or a login link."""

    id: str
    created: int
    account: str
    expires_at: int
    kind: str = "account_onboarding"
    return_url: str = ""
    refresh_url: str = ""
    used: bool = False


@dataclass(slots=True)
class Stored:
    """What was answered under an idempotency key."""

    fingerprint: str
    at: int
    status: int
    body: str
    request: str
