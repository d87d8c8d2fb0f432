"""Everything the simulated processor knows at one moment: accounts, what each holds, events, and the webhooks that wait.

Plain data, so that it can be kept in a file. Whoever takes a turn calls `enter_turn` first: that is where its time comes from.
"""

from dataclasses import dataclass, field
from hashlib import sha512
from typing import Annotated, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from simulators.processor.webhooks import WebhookQueue

AccountKind: TypeAlias = Literal["express", "standard", "custom", "none"]

JsonObject: TypeAlias = dict[str, object]


@dataclass(slots=True)
class StoredRow:
    """A row of an account's book; `created` is in Unix seconds."""

    id: str
    created: int


@dataclass(slots=True)
class LabelledRow(StoredRow):
    """A row to which callers add metadata."""

    metadata: dict[str, str] = field(default_factory=dict[str, str], kw_only=True)


@dataclass(slots=True)
class ProcessorAccount(LabelledRow):
    """The platform's own account, or one connected to it."""

    kind: AccountKind = "express"
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
    capabilities: dict[str, str] = field(default_factory=dict[str, str])
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


@dataclass(slots=True)
class PaymentIntent(LabelledRow):
    """A payment that is to be made, whatever the number of attempts."""

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


@dataclass(slots=True)
class Charge(LabelledRow):
    """One attempt at a payment."""

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


@dataclass(slots=True)
class Refund(LabelledRow):
    """Money on its way back to a payer."""

    amount: int
    currency: str
    charge: str
    status: str = "succeeded"
    intent: str | None = None
    reason: str | None = None
    txn: str | None = None
    failure_reason: str | None = None
    failure_txn: str | None = None


@dataclass(slots=True)
class Payout(LabelledRow):
    """Money on its way to the account's bank."""

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


@dataclass(slots=True)
class Dispute(LabelledRow):
    amount: int
    currency: str
    charge: str
    reason: str
    status: str
    due_by: int
    intent: str | None = None
    brand: str = "visa"
    submissions: int = 0
    evidence: dict[str, str] = field(default_factory=dict[str, str])
    txns: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Review(StoredRow):
    """A charge that a person should look at."""

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
class ValueList(LabelledRow):
    """Values that the fraud rules name."""

    alias: str
    name: str
    item_type: str = "string"


@dataclass(slots=True)
class ListValue(StoredRow):
    list: str
    value: str


@dataclass(slots=True)
class ApplicationFee(StoredRow):
    """What the platform kept of a connected account's charge; the platform's own."""

    account: str
    charge: str
    amount: int
    currency: str
    amount_refunded: int = 0
    txn: str | None = None


@dataclass(slots=True)
class FeeRefund(StoredRow):
    """A part of an application fee that was given back."""

    fee: str
    amount: int
    currency: str
    txn: str | None = None


@dataclass(slots=True)
class BalanceTransaction(StoredRow):
    """One movement of an account's balance."""

    amount: int
    currency: str
    fee: int
    available_on: int
    type: str
    source: str
    application_fee: int = 0
    """How much of the fee is the platform's."""


@dataclass(slots=True)
class Customer(LabelledRow):
    name: str | None = None
    email: str | None = None
    phone: str | None = None
    description: str | None = None
    currency: str | None = None
    prefix: str = ""
    address: dict[str, str | None] | None = None
    deleted: bool = False


@dataclass(slots=True)
class OAuthCode(StoredRow):
    """An authorisation an account's owner gave: a code that is changed once for access."""

    account: str
    scope: str
    used: bool = False


@dataclass(slots=True)
class AccountLink(StoredRow):
    """A page for one person: an account link or a login link."""

    account: str
    expires_at: int
    kind: str = "account_onboarding"
    return_url: str = ""
    refresh_url: str = ""
    used: bool = False


@dataclass(slots=True)
class StoredAnswer:
    """What was answered under an idempotency key."""

    fingerprint: str
    at: int
    status: int
    body: str
    request: str


@dataclass(slots=True)
class InvoiceItem(LabelledRow):
    """One line, waiting for an invoice or on one."""

    customer: str
    amount: int
    currency: str
    quantity: int = 1
    unit_decimal: str = "0"
    product: str = ""
    price: str = ""
    description: str | None = None
    discountable: bool = True
    invoice: str | None = None
    line: str = ""
    period_start: int = 0
    period_end: int = 0


@dataclass(slots=True)
class Invoice(LabelledRow):
    """An invoice; `items` are the ids of its lines in order."""

    customer: str
    currency: str
    customer_name: str | None = None
    customer_email: str | None = None
    customer_phone: str | None = None
    customer_address: dict[str, str | None] | None = None
    status: str = "draft"
    collection_method: str = "charge_automatically"
    number: str | None = None
    fee_amount: int | None = None
    due_date: int | None = None
    days_until_due: int | None = None
    effective_at: int | None = None
    description: str | None = None
    footer: str | None = None
    statement_descriptor: str | None = None
    custom_fields: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    auto_advance: bool = False
    items: list[str] = field(default_factory=list[str])
    amount_paid: int = 0
    attempts: int = 0
    intent: str | None = None
    payment: str | None = None
    slug: str = ""
    """The last part of its pay page's address."""
    out_of_band: bool = False
    sent_at: int | None = None
    finalized_at: int | None = None
    paid_at: int | None = None
    voided_at: int | None = None
    uncollectible_at: int | None = None


class SessionLine(TypedDict):
    """A thing to be paid: a plain dictionary, as it is stored."""

    id: str
    price: str
    product: str
    name: str
    description: str | None
    unit_amount: int
    quantity: int


@dataclass(slots=True)
class CheckoutSession(LabelledRow):
    """A page on which one buyer pays once."""

    currency: str
    success_url: str
    expires_at: int
    cancel_url: str | None = None
    status: str = "open"
    payment_status: str = "unpaid"
    lines: list[SessionLine] = field(default_factory=list[SessionLine])
    fee_amount: int | None = None
    customer: str | None = None
    email: str | None = None
    """As given by the caller."""
    buyer_email: str | None = None
    """As given by the buyer."""
    buyer_name: str | None = None
    reference: str | None = None
    promotions: bool = False
    promotion: str | None = None
    coupon: str | None = None
    discount: int = 0
    intent: str | None = None
    intent_description: str | None = None
    intent_metadata: dict[str, str] = field(default_factory=dict[str, str])
    locale: str | None = None
    submit_type: str | None = None


@dataclass(slots=True)
class Coupon(LabelledRow):
    duration: str = "once"
    duration_in_months: int | None = None
    percent_off: float | None = None
    amount_off: int | None = None
    currency: str | None = None
    name: str | None = None
    max_redemptions: int | None = None
    redeem_by: int | None = None
    times_redeemed: int = 0
    deleted: bool = False


@dataclass(slots=True)
class PromotionCode(LabelledRow):
    """A code that buyers type in for a coupon."""

    code: str
    coupon: str
    active: bool = True
    customer: str | None = None
    max_redemptions: int | None = None
    expires_at: int | None = None
    times_redeemed: int = 0
    first_time: bool = False
    minimum_amount: int | None = None
    minimum_currency: str | None = None


@dataclass(slots=True)
class AccountBook:
    """What one account holds, each kind by id, oldest first."""

    intents: dict[str, PaymentIntent] = field(default_factory=dict[str, PaymentIntent])
    charges: dict[str, Charge] = field(default_factory=dict[str, Charge])
    refunds: dict[str, Refund] = field(default_factory=dict[str, Refund])
    payouts: dict[str, Payout] = field(default_factory=dict[str, Payout])
    disputes: dict[str, Dispute] = field(default_factory=dict[str, Dispute])
    reviews: dict[str, Review] = field(default_factory=dict[str, Review])
    value_lists: dict[str, ValueList] = field(default_factory=dict[str, ValueList])
    values: dict[str, ListValue] = field(default_factory=dict[str, ListValue])
    fees: dict[str, ApplicationFee] = field(default_factory=dict[str, ApplicationFee])
    fee_refunds: dict[str, FeeRefund] = field(default_factory=dict[str, FeeRefund])
    txns: dict[str, BalanceTransaction] = field(default_factory=dict[str, BalanceTransaction])
    customers: dict[str, Customer] = field(default_factory=dict[str, Customer])
    items: dict[str, InvoiceItem] = field(default_factory=dict[str, InvoiceItem])
    invoices: dict[str, Invoice] = field(default_factory=dict[str, Invoice])
    sessions: dict[str, CheckoutSession] = field(default_factory=dict[str, CheckoutSession])
    coupons: dict[str, Coupon] = field(default_factory=dict[str, Coupon])
    promotions: dict[str, PromotionCode] = field(default_factory=dict[str, PromotionCode])


PROCESSOR_API_VERSION = "2026-10-28.endive"

ID_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

PROCESSOR_ID_LENGTH = 24

PROCESSOR_DAY_SECONDS = 86_400


@dataclass(slots=True)
class ProcessorState:
    seed: int = 1
    at: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """The time of this turn."""
    offset: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """How far the processor's clock is ahead of the wall's."""
    pages_url: str = ""
    live: bool = False
    request: str | None = None
    request_key: str | None = None
    """The API call that is being answered, and its idempotency key: events name both."""
    platform: str = ""
    client_id: str = ""
    accounts: dict[str, ProcessorAccount] = field(default_factory=dict[str, ProcessorAccount])
    books: dict[str, AccountBook] = field(default_factory=dict[str, AccountBook])
    events: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Oldest first; `account` is absent in the platform's own."""
    pending: list[str] = field(default_factory=list[str])
    """Events that no webhook was made of yet, oldest first."""
    hooks: WebhookQueue = field(default_factory=WebhookQueue)
    codes: dict[str, OAuthCode] = field(default_factory=dict[str, OAuthCode])
    visits: dict[str, AccountLink] = field(default_factory=dict[str, AccountLink])
    answers: dict[str, StoredAnswer] = field(default_factory=dict[str, StoredAnswer])
    """By account, a line break, and idempotency key."""
    counters: dict[str, int] = field(default_factory=dict[str, int])

    def now(self) -> int:
        return int(self.at)

    def new_id(self, prefix: str, length: int = PROCESSOR_ID_LENGTH) -> str:
        """The next id, which the seed and the number of ids before it decide."""
        count = self.counters.get(prefix, 0) + 1
        self.counters[prefix] = count
        number = int.from_bytes(sha512(f"{self.seed}|{prefix}|{count}".encode()).digest())
        letters: list[str] = []
        for _ in range(length):
            number, place = divmod(number, len(ID_LETTERS))
            letters.append(ID_LETTERS[place])
        return prefix + "".join(letters)

    def book(self, account: str) -> AccountBook:
        return self.books.setdefault(account, AccountBook())


def enter_turn(state: ProcessorState, *, now: float, pages_url: str, live: bool) -> None:
    """Begins a turn: `now` is the time outside in Unix seconds. The processor's time does not go back."""
    state.at = max(state.at, now + state.offset)
    state.pages_url, state.live = pages_url, live
    state.request = state.request_key = None


def make_processor_state(*, now: float, pages_url: str, live: bool, seed: int) -> ProcessorState:
    """A state with a platform account, to which no account is connected."""
    state = ProcessorState(seed=seed, at=now, pages_url=pages_url, live=live)
    state.platform = state.new_id("acct_1", 15)
    state.client_id = state.new_id("ca_")
    state.accounts[state.platform] = ProcessorAccount(
        id=state.platform,
        created=state.now(),
        kind="standard",
        email="platform@example.com",
        name="Simulated platform",
        charges_enabled=True,
        payouts_enabled=True,
        details_submitted=True,
        capabilities={"card_payments": "active", "transfers": "active"},
        interval="manual",
        bank=state.new_id("ba_"),
        swept=state.now() // 86400,
    )
    return state


def emit_event(state: ProcessorState, type: str, object: JsonObject, account: str, previous: JsonObject | None = None) -> JsonObject:
    """Adds an event, and queues it for the webhook. `account`: the one in whose books it happened."""
    data: JsonObject = {"object": object}
    if previous is not None:
        data["previous_attributes"] = previous
    event: JsonObject = {
        "id": state.new_id("evt_"),
        "object": "event",
        "api_version": PROCESSOR_API_VERSION,
        "created": state.now(),
        "data": data,
        "livemode": state.live,
        "pending_webhooks": 1,
        "request": {"id": state.request, "idempotency_key": state.request_key},
        "type": type,
    }
    if account != state.platform:
        event["account"] = account
    state.events[str(event["id"])] = event
    state.pending.append(str(event["id"]))
    return event


def open_resident_account(state: ProcessorState, id: str) -> ProcessorAccount:
    """An Express account that takes payments, as if it had been onboarded long ago: it emits no event."""
    active = {"card_payments": "active", "transfers": "active"}
    state.accounts[id] = row = ProcessorAccount(
        id, state.now(), country="DE", currency="eur", email="demo@example.com", name="Demo Telecom", capabilities=active
    )
    row.charges_enabled = row.payouts_enabled = row.details_submitted = True
    row.business_type, row.bank = "company", state.new_id("ba_")
    row.delay_days, row.swept = 3, state.now() // PROCESSOR_DAY_SECONDS
    return row
