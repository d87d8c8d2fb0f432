"""Events of orders in shops, and of the top-ups of their eSIMs.

Nothing of the buyer is in them, nor what opens an order: its number opens nothing.
"""

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class OrderEventData(TypedDict):
    """`order` is the order's number, `top_up` the id of the top-up of it that is meant; null: the order itself.

    `storefront` and `plan` are slugs. `amount` is the price, in minor units of `currency` (ISO 4217).
    """

    order: str
    top_up: str | None
    storefront: str
    plan: str
    amount: int
    currency: str


class PaidOrderData(OrderEventData):
    """`paid_amount` is what the buyer paid, less than the price where a promotion took something off."""

    paid_amount: int


class ReadyOrderData(OrderEventData):
    """`iccid` is the eSIM that the buyer has; null where the order that was topped up does not name it any more."""

    iccid: str | None


class StoppedOrderData(OrderEventData):
    """`code` says why, in a word for programs, as `error.code` of the order does."""

    code: str


ORDER_EVENT_EXAMPLE: OrderEventData = {
    "order": "onr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "top_up": None,
    "storefront": "fjord-travel",
    "plan": "nordic-1gb",
    "amount": 900,
    "currency": "EUR",
}

TOP_UP_EVENT_EXAMPLE: OrderEventData = {**ORDER_EVENT_EXAMPLE, "top_up": "tuc_3k8t1v6w9x2y5z7a4b0c8d1e6f"}

ORDER_CREATED = EventType(
    "order.created",
    "A buyer has begun an order or a top-up, and its page to pay on is open.",
    OrderEventData,
    ORDER_EVENT_EXAMPLE,
    read_with="list_storefront_orders",
)

ORDER_PAID = EventType(
    "order.paid",
    "An order or a top-up was paid as agreed, and is delivered next.",
    PaidOrderData,
    {**ORDER_EVENT_EXAMPLE, "paid_amount": 900},
    read_with="list_storefront_orders",
)

ORDER_READY = EventType(
    "order.ready",
    "The eSIM of an order is the buyer's.",
    ReadyOrderData,
    {**ORDER_EVENT_EXAMPLE, "iccid": "8999012345678901237"},
    read_with="list_storefront_orders",
    line="iccid",
)

ORDER_TOP_UP_READY = EventType(
    "order.top_up_ready",
    "The data of a top-up is on the eSIM of its order.",
    ReadyOrderData,
    {**TOP_UP_EVENT_EXAMPLE, "iccid": "8999012345678901237"},
    read_with="list_storefront_orders",
    line="iccid",
)

ORDER_FAILED = EventType(
    "order.failed",
    "Nothing is delivered for an order or a top-up, and what was paid for it goes back.",
    StoppedOrderData,
    {**ORDER_EVENT_EXAMPLE, "code": "no_inventory"},
    read_with="list_storefront_orders",
)

ORDER_NEEDS_REVIEW = EventType(
    "order.needs_review",
    "What became of an order or a top-up that was paid is not known, or its package is not as it was sold.",
    StoppedOrderData,
    {**ORDER_EVENT_EXAMPLE, "code": "OUTCOME_UNKNOWN"},
    read_with="list_storefront_orders",
)

ORDER_REFUNDED = EventType(
    "order.refunded",
    "What was paid for an order or a top-up that failed has gone back to the buyer.",
    OrderEventData,
    ORDER_EVENT_EXAMPLE,
    read_with="list_storefront_orders",
)
