"""What is sold on pages of the processor's, and what makes it cheaper."""

from dataclasses import dataclass, field

from typing_extensions import TypedDict


class SessionLine(TypedDict):
    """A thing to be paid: plain, so that it is kept as it is."""

    id: str
    price: str
    product: str
    name: str
    description: str | None
    unit_amount: int
    quantity: int


@dataclass(slots=True)
class Session:
    """A page on which one buyer pays once."""

    id: str
    created: int
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
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Coupon:
    """Money off."""

    id: str
    created: int
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
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Promotion:
    """A code that buyers type in for a coupon."""

    id: str
    created: int
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
    metadata: dict[str, str] = field(default_factory=dict[str, str])
