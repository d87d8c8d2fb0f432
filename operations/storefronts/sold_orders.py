"""An order of a shop as its seller sees it: where it stands, its eSIM's number, and the way that it has gone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.storefronts.buyers import OrderNumber
from operations.storefronts.orders import (
    ORDER_NUMBER_EXAMPLE,
    SOLD_PLAN_EXAMPLE,
    TOP_UP_ID_EXAMPLE,
    OrderCents,
    OrderCurrency,
    OrderError,
    OrderRefund,
    SoldPlan,
    order_stamp,
    render_order_error,
    render_order_refund,
    sold_plan_of,
)
from registry.clock import rfc3339_utc
from registry.errors import NotFound
from registry.operation import Example, operation
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow, IssuanceState, find_issuance
from storage.mail import waiting_among
from storage.order_steps import OrderStepRow, steps_of_orders
from storage.orders import OrderDetail, OrderRow, OrderStatus, find_order_detail, order_cancelled_at, order_status_of

OrderStepWord = Literal[
    "created",
    "paid",
    "esim_asked_for",
    "esim_issued",
    "ready",
    "needs_review",
    "failed",
    "refunded",
    "refund_failed",
    "cancelled",
    "rolled_back",
    "mail_ready",
    "mail_added",
    "mail_failed",
    "mail_new_link",
]
WAY_ORDER: Sequence[str] = ("created", "paid", "esim_asked_for", "esim_issued", "needs_review", "ready", "failed", "refunded")
"""What comes first of steps that were taken in the same moment; all others come behind them."""
MAIL_STEP = "mail_"


class OrderMail(TypedDict):
    """A mail to the buyer. `failed`: it was given up, or withdrawn since its buyer was erased."""

    status: Literal["waiting", "sent", "failed"]
    sent_at: str | None


class OrderStep(TypedDict):
    """A step on the way of an order. `mail_ready`: the eSIM was mailed, `mail_added`: a top-up, `mail_failed`: that nothing comes."""

    step: OrderStepWord
    at: Annotated[str, Field(description="RFC 3339, UTC; of a mail: when it was written")]
    mail: Annotated[OrderMail | None, Field(description="Null where the step is no mail to the buyer")]


class OrderIssuance(TypedDict):
    """What the ledger of eSIMs says of it; rollback_esim_issuance takes the order's number as its key."""

    state: IssuanceState
    account_id: int
    package_id: int | None
    updated: str


class SoldTopUp(TypedDict):
    """More data for the eSIM of an order, paid for or not."""

    id: Annotated[str, Field(description="tuc_...")]
    plan: SoldPlan
    status: OrderStatus
    amount: OrderCents
    currency: OrderCurrency
    error: OrderError | None
    refund: OrderRefund | None
    created: str
    paid_at: str | None
    ready_at: str | None
    way: Annotated[list[OrderStep], Field(description="Oldest first")]


class SoldOrder(TypedDict):
    """An order of a shop of yours. Times are RFC 3339 UTC."""

    id: Annotated[str, Field(description="The order's number, onr_...; opens nothing by itself")]
    object: Literal["storefront.sold_order"]
    storefront: Annotated[str, Field(description="Slug of the shop")]
    plan: SoldPlan
    status: OrderStatus
    amount: Annotated[int, Field(description="The price, minor units (cents)")]
    paid_amount: Annotated[int | None, Field(description="What was paid, less where a promotion took something off; null: nothing yet")]
    currency: OrderCurrency
    error: Annotated[OrderError | None, Field(description="As the buyer sees it, while it is failed or needs a person's look")]
    iccid: Annotated[str | None, Field(description="The eSIM that it got, also after it went back to stock")]
    issuance: OrderIssuance | None
    refund: OrderRefund | None
    top_ups: Annotated[list[SoldTopUp], Field(description="Oldest first")]
    way: Annotated[list[OrderStep], Field(description="Oldest first")]
    created: str
    paid_at: str | None
    ready_at: str | None
    cancelled_at: Annotated[str | None, Field(description="Since then no top-up is taken")]


class SoldOrderFacts(NamedTuple):
    """What is stored of an order: its row, its row in the ledger, the steps of it and its top-ups by number, and mails that wait."""

    order: OrderDetail
    issuance: IssuanceRow | None
    steps: Mapping[str, Sequence[OrderStepRow]]
    waiting: set[str]


SOLD_ORDER_EXAMPLE: SoldOrder = {
    "id": ORDER_NUMBER_EXAMPLE,
    "object": "storefront.sold_order",
    "storefront": "fjord-travel",
    "plan": SOLD_PLAN_EXAMPLE,
    "status": "ready",
    "amount": 900,
    "paid_amount": 900,
    "currency": "EUR",
    "error": None,
    "iccid": "8988303700000100286",
    "issuance": {"state": "issued", "account_id": 8101, "package_id": 7700012, "updated": "2026-11-20T09:01:12Z"},
    "refund": None,
    "top_ups": [
        {
            "id": TOP_UP_ID_EXAMPLE,
            "plan": SOLD_PLAN_EXAMPLE,
            "status": "ready",
            "amount": 900,
            "currency": "EUR",
            "error": None,
            "refund": None,
            "created": "2026-11-27T10:12:00Z",
            "paid_at": "2026-11-27T10:13:00Z",
            "ready_at": "2026-11-27T10:13:02Z",
            "way": [
                {"step": "created", "at": "2026-11-27T10:12:00Z", "mail": None},
                {"step": "paid", "at": "2026-11-27T10:13:00Z", "mail": None},
                {"step": "ready", "at": "2026-11-27T10:13:02Z", "mail": None},
                {"step": "mail_added", "at": "2026-11-27T10:13:02Z", "mail": {"status": "waiting", "sent_at": None}},
            ],
        }
    ],
    "way": [
        {"step": "created", "at": "2026-11-20T09:00:00Z", "mail": None},
        {"step": "paid", "at": "2026-11-20T09:01:10Z", "mail": None},
        {"step": "esim_asked_for", "at": "2026-11-20T09:01:11Z", "mail": None},
        {"step": "esim_issued", "at": "2026-11-20T09:01:12Z", "mail": None},
        {"step": "ready", "at": "2026-11-20T09:01:12Z", "mail": None},
        {"step": "mail_ready", "at": "2026-11-20T09:01:12Z", "mail": {"status": "sent", "sent_at": "2026-11-20T09:01:14Z"}},
    ],
    "created": "2026-11-20T09:00:00Z",
    "paid_at": "2026-11-20T09:01:10Z",
    "ready_at": "2026-11-20T09:01:12Z",
    "cancelled_at": None,
}


@operation(
    "GET",
    "/v1/storefronts/orders/{number}",
    title="Get sold order",
    raises=[NotFound],
    examples=[Example("What became of this order?", {"number": ORDER_NUMBER_EXAMPLE}, SOLD_ORDER_EXAMPLE)],
)
async def get_sold_order(ctx: Ctx, params: OrderNumber) -> SoldOrder:
    """Get one order of your shops as its seller: where it stands, and its way so far.

    With its ICCID, its refund and its top-ups; without what installs the eSIM, what opens the order, and who the buyer is.

    `way` has the time of each step. Mails and what stopped an order are in it since schema 0026; of older orders the rest is. A buyer's
    page of the same order is get_storefront_order. An order of another organisation is not found, like one that never was.
    """

    def find(connection: Connection, *, number: str, organisation: str) -> SoldOrderFacts | None:
        order = find_order_detail(connection, order=number)
        if order is None or order.row.organisation != organisation:
            return None
        rows, steps = [order.row, *order.top_ups], dict[str, list[OrderStepRow]]()
        for step in steps_of_orders(connection, orders=[row.id for row in rows]):
            steps.setdefault(step.storefront_order, []).append(step)
        mails = {step.mail for each in steps.values() for step in each if step.mail and step.sent_at is None}
        issuance = find_issuance(connection, organisation=organisation, key=order.row.id)
        return SoldOrderFacts(order, issuance, steps, waiting_among(connection, mails=mails))

    facts = await ctx.deps.store.read(find, number=params.number, organisation=ctx.organisation)
    if facts is None:
        raise NotFound(
            "Your shops have no order with this number", param="number", hint="list_storefront_orders shows the numbers of orders, onr_..."
        )
    return render_sold_order(facts)


def render_sold_order(facts: SoldOrderFacts) -> SoldOrder:
    order, issuance = facts.order, facts.issuance
    row = order.row
    return {
        "id": row.id,
        "object": "storefront.sold_order",
        "storefront": order.shop,
        "plan": sold_plan_of(row),
        "status": order_status_of(row),
        "amount": row.amount,
        "paid_amount": row.paid_amount,
        "currency": row.currency,
        "error": render_order_error(row),
        "iccid": row.iccid,
        "issuance": None if issuance is None else render_order_issuance(issuance),
        "refund": render_order_refund(row),
        "top_ups": [render_sold_top_up(facts, top_up) for top_up in order.top_ups],
        "way": render_way(facts, row),
        "created": rfc3339_utc(row.created),
        "paid_at": order_stamp(row.paid_at),
        "ready_at": order_stamp(row.ready_at),
        "cancelled_at": order_stamp(order_cancelled_at(row)),
    }


def render_order_issuance(row: IssuanceRow) -> OrderIssuance:
    return {
        "state": cast(IssuanceState, row.state),
        "account_id": row.account_id,
        "package_id": row.package_id,
        "updated": rfc3339_utc(row.updated),
    }


def render_sold_top_up(facts: SoldOrderFacts, row: OrderRow) -> SoldTopUp:
    return {
        "id": row.id,
        "plan": sold_plan_of(row),
        "status": order_status_of(row),
        "amount": row.amount,
        "currency": row.currency,
        "error": render_order_error(row),
        "refund": render_order_refund(row),
        "created": rfc3339_utc(row.created),
        "paid_at": order_stamp(row.paid_at),
        "ready_at": order_stamp(row.ready_at),
        "way": render_way(facts, row),
    }


def render_way(facts: SoldOrderFacts, row: OrderRow) -> list[OrderStep]:
    """The steps of an order or a top-up, oldest first: what its row and the ledger say, and what is stored of its way."""
    stored = facts.steps.get(row.id, ())
    times = row_times(row, facts.issuance if row.top_up_of is None else None, {step.step for step in stored})
    found = [(at, word, None) for word, at in times.items() if at is not None]
    found += [(step.at, step.step, render_order_mail(facts, step)) for step in stored]
    places = {word: place for place, word in enumerate(WAY_ORDER)}
    found.sort(key=lambda each: (each[0], places.get(each[1], len(places))))
    return [{"step": cast(OrderStepWord, word), "at": rfc3339_utc(at), "mail": mail} for at, word, mail in found]


def row_times(row: OrderRow, issuance: IssuanceRow | None, stored: set[str]) -> dict[OrderStepWord, float | None]:
    """When the steps were taken that rows tell of, Unix seconds. `stored`: the words of steps that are kept by themselves."""
    status = order_status_of(row)
    times: dict[OrderStepWord, float | None] = {"created": row.created, "paid": row.paid_at, "ready": row.ready_at}
    times["cancelled"] = row.cancelled_at
    if issuance is not None:
        times["esim_asked_for"] = issuance.dispatched
        times["esim_issued"] = min(issuance.updated, row.ready_at or issuance.updated) if issuance.state == "issued" else None
        times["rolled_back"] = issuance.updated if status == "rolled_back" else None
    # Of an order that stopped before steps were kept its row says when, unless it has been changed since by its refund.
    if status == "needs_review" and status not in stored:
        times["needs_review"] = row.updated if row.status == "needs_review" else row.ledger_updated
    if status == "failed" and status not in stored and row.refund not in ("done", "failed"):
        times["failed"] = row.updated
    return times


def render_order_mail(facts: SoldOrderFacts, step: OrderStepRow) -> OrderMail | None:
    if not step.step.startswith(MAIL_STEP):
        return None
    if step.sent_at is not None:
        return {"status": "sent", "sent_at": rfc3339_utc(step.sent_at)}
    return {"status": "waiting" if step.mail in facts.waiting else "failed", "sent_at": None}
