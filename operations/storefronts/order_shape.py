"""An order as its buyer sees it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.shapes import Esim
from operations.services.issuing.esim_profile import esim_of, open_profile
from operations.services.issuing.purpose import MANUAL, UNKNOWN
from registry.policy import stamp
from storage.secrets.sealing import Keyring
from storage.shop.order_lists import WholeOrder
from storage.shop.order_status import OrderStatus, cancelled_at, status_of
from storage.shop.orders import OrderRow

Cents = Annotated[int, Field(description="Minor units (cents)")]
Currency = Annotated[str, Field(description="ISO 4217, upper case")]
RefundStatus = Literal["pending", "succeeded", "failed"]
HELD = ("ready", "rollback_pending")
"""While these last the eSIM is the buyer's."""


class SoldPlan(TypedDict):
    """A plan as it was when it was sold."""

    slug: str
    name: str
    data_mb: int
    validity_days: int
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, upper case")]


class OrderError(TypedDict):
    """Why there is no eSIM, or none yet."""

    code: str
    message: str


class OrderRefund(TypedDict):
    """What goes back to the buyer."""

    status: Annotated[RefundStatus, Field(description="failed: the processor refused it, and the shop's owner was told")]
    amount: Cents


class OrderTopUp(TypedDict):
    """More data that was paid for, for the same eSIM."""

    id: Annotated[str, Field(description="tuc_...")]
    plan: SoldPlan
    status: Literal["paid", "provisioning", "ready", "failed", "needs_review"]
    amount: Cents
    currency: Currency
    created: str


class Order(TypedDict):
    """An order. `error` while it is failed or needs a person's look; `esim` while it is the buyer's. Times are RFC 3339 UTC."""

    id: Annotated[str, Field(description="What it was named by: its access token, ord_..., or its number; in a list its number")]
    object: Literal["storefront.order"]
    number: Annotated[str, Field(description="onr_...; names the order to the shop, and opens nothing")]
    storefront: Annotated[str, Field(description="Slug of the shop")]
    plan: SoldPlan
    status: OrderStatus
    amount: Annotated[int, Field(description="The price, minor units (cents)")]
    currency: Currency
    error: OrderError | None
    esim: Esim | None
    refund: OrderRefund | None
    top_ups: Annotated[list[OrderTopUp], Field(description="Those that were paid for, oldest first")]
    created: str
    paid_at: str | None
    ready_at: str | None
    cancelled_at: Annotated[str | None, Field(description="Since then no top-up is taken")]


FAILED = "The eSIM could not be issued, so what was paid is given back"
MESSAGES: Mapping[str, str] = {
    "no_inventory": "The shop had no eSIM left, so what was paid is given back",
    "payment_mismatch": "What was paid is not what the order costs, so it is given back",
    "payment_refunded": "What was paid went back before anything was sent, so nothing is",
    UNKNOWN: "Whether the eSIM was issued is being found out; it is never issued twice",
    MANUAL: "What became of the eSIM could not be found out by itself: the shop's owner has to look, and was told",
}
REFUNDS: Mapping[str, RefundStatus] = {"done": "succeeded", "failed": "failed"}


def whole_shown(keyring: Keyring, order: WholeOrder, *, named: str | None = None) -> Order:
    """An order that was read whole. `named`: what its reader named it by; without it, its number."""
    return order_of(keyring, order.row, order.shop, order.top_ups, named or order.row.id)


def order_of(keyring: Keyring, row: OrderRow, shop_slug: str, top_ups: Sequence[OrderRow], named: str) -> Order:
    """A stored order, its eSIM unsealed while it is the buyer's."""
    return {
        "id": named,
        "object": "storefront.order",
        "number": row.id,
        "storefront": shop_slug,
        "plan": plan_sold(row),
        "status": status_of(row),
        "amount": row.amount,
        "currency": row.currency,
        "error": error_of(row),
        "esim": esim_of_order(keyring, row),
        "refund": refund_of(row),
        "top_ups": [shown for top_up in top_ups if (shown := top_up_shown(top_up)) is not None],
        "created": stamp(row.created),
        "paid_at": moment(row.paid_at),
        "ready_at": moment(row.ready_at),
        "cancelled_at": moment(cancelled_at(row)),
    }


def plan_sold(row: OrderRow) -> SoldPlan:
    """What was bought, whatever the shop sells by now."""
    bought: SoldPlan = orjson.loads(row.bought)
    return bought


def error_of(row: OrderRow) -> OrderError | None:
    """In words for the buyer; an unknown code has the words of what it led to."""
    status = status_of(row)
    if status not in ("failed", "needs_review", "rollback_unknown"):
        return None
    lost = {"failed": "issuance_failed", "needs_review": UNKNOWN, "rollback_unknown": MANUAL}[status]
    code = lost if row.code is None or status == "rollback_unknown" else row.code
    return {"code": code, "message": MESSAGES.get(code, FAILED if status == "failed" else MESSAGES[UNKNOWN])}


def esim_of_order(keyring: Keyring, row: OrderRow) -> Esim | None:
    """Nothing once it went back: the next one to have it is another buyer."""
    if status_of(row) not in HELD or row.iccid is None or row.esim is None:
        return None
    return esim_of(open_profile(row.iccid, row.esim, keyring=keyring, organisation=row.organisation, intent=row.esim_binding or row.id))


def refund_of(row: OrderRow) -> OrderRefund | None:
    """What was paid, in whole; how the processor is asked for it is no matter of the buyer's."""
    if row.refund is None:
        return None
    return {"status": REFUNDS.get(row.refund, "pending"), "amount": row.amount if row.paid_amount is None else row.paid_amount}


def top_up_shown(row: OrderRow) -> OrderTopUp | None:
    """Nothing for one that was not paid for."""
    status = status_of(row)
    if status in ("pending_payment", "rollback_pending", "rolled_back", "rollback_unknown"):
        return None
    return {
        "id": row.id,
        "plan": plan_sold(row),
        "status": status,
        "amount": row.amount,
        "currency": row.currency,
        "created": stamp(row.created),
    }


def moment(at: float | None) -> str | None:
    """A time that may not have come."""
    return None if at is None else stamp(at)
