"""Orders of shops: one for its buyer, all of them for the shop's operator, cancelling one, and taking its eSIM back to stock."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.ledger.esims import Esim, open_esim_profile, render_esim_profile
from operations.ledger.issuance import MANUAL_RECONCILIATION, OUTCOME_UNKNOWN, PACKAGE_NOT_ADAPTED
from operations.ledger.orders import find_known_order, find_opened_order, order_number_of
from operations.ledger.rollback import LineHasPackages, find_issued_line, roll_back_issuance, rollback_unknown
from operations.storefronts.sales.checkout import OrderNotReady
from operations.upstream.connection import upstream_of_organisation
from operations.upstream.lines import Line
from operations.vocabulary import Email, ListOf, PageLimit, StartingAfter, list_page, normal_email, render_fields
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict, NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import Auth, CamelInput, Example, Input, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import (
    FIRST_ORDER_PLACE,
    OrderDetail,
    OrderPlace,
    OrderRow,
    OrderStatus,
    cancel_order,
    find_order_detail,
    find_shop,
    list_orders,
    order_cancelled_at,
    order_place,
    order_status_of,
)
from storage.rollbacks import rollback_is_running

OrderCents = Annotated[int, Field(description="Minor units (cents)")]
OrderCurrency = Annotated[str, Field(description="ISO 4217, upper case")]
OrderRefundStatus = Literal["pending", "succeeded", "failed"]
BUYER_ESIM_STATUSES = ("ready", "rollback_pending")
"""While these last the eSIM is the buyer's."""


class SoldPlan(TypedDict):
    """A plan as it was when it was sold."""

    slug: str
    name: FreeText
    data_mb: int
    validity_days: int
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, upper case")]


class OrderError(TypedDict):
    """Why there is no eSIM, or none yet."""

    code: str
    message: str


class OrderRefund(TypedDict):
    """What goes back to the buyer."""

    status: Annotated[OrderRefundStatus, Field(description="failed: the processor refused it, and the shop's owner was told")]
    amount: OrderCents


class OrderTopUp(TypedDict):
    """More data that was paid for, for the same eSIM."""

    id: Annotated[str, Field(description="tuc_...")]
    plan: SoldPlan
    status: Literal["paid", "provisioning", "ready", "failed", "needs_review"]
    amount: OrderCents
    currency: OrderCurrency
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
    currency: OrderCurrency
    error: OrderError | None
    esim: Esim | None
    refund: OrderRefund | None
    top_ups: Annotated[list[OrderTopUp], Field(description="Those that were paid for, oldest first")]
    created: str
    paid_at: str | None
    ready_at: str | None
    cancelled_at: Annotated[str | None, Field(description="Since then no top-up is taken")]


ORDER_FAILED_MESSAGE = "The eSIM could not be issued, so what was paid is given back"
ORDER_ERROR_MESSAGES: Mapping[str, str] = {
    "no_inventory": "The shop had no eSIM left, so what was paid is given back",
    "payment_mismatch": "What was paid is not what the order costs, so it is given back",
    "payment_refunded": "What was paid went back before anything was sent, so nothing is",
    PACKAGE_NOT_ADAPTED: "What was bought is being set on the eSIM and is not there yet; the shop's owner was told",
    OUTCOME_UNKNOWN: "Whether the eSIM was issued is being found out; it is never issued twice",
    MANUAL_RECONCILIATION: "What became of the eSIM could not be found out by itself: the shop's owner has to look, and was told",
}
ORDER_REFUND_STATUSES: Mapping[str, OrderRefundStatus] = {"done": "succeeded", "failed": "failed"}


def render_order(ctx: Ctx, order: OrderDetail, *, named: str | None = None) -> Order:
    """An order, its eSIM unsealed while it is the buyer's. `named`: what its reader named it by; without it, its number."""
    row = order.row
    return {
        "id": named or row.id,
        "object": "storefront.order",
        "number": row.id,
        "storefront": order.shop,
        "plan": sold_plan_of(row),
        "status": order_status_of(row),
        "amount": row.amount,
        "currency": row.currency,
        "error": render_order_error(row),
        "esim": render_order_esim(ctx, row),
        "refund": render_order_refund(row),
        "top_ups": [shown for top_up in order.top_ups if (shown := render_order_top_up(top_up)) is not None],
        "created": rfc3339_utc(row.created),
        "paid_at": order_stamp(row.paid_at),
        "ready_at": order_stamp(row.ready_at),
        "cancelled_at": order_stamp(order_cancelled_at(row)),
    }


def sold_plan_of(row: OrderRow) -> SoldPlan:
    """As buyers see it: without what the row keeps beside it."""
    bought: dict[str, object] = orjson.loads(row.bought)
    return cast(SoldPlan, {name: bought[name] for name in SoldPlan.__annotations__})


def render_order_error(row: OrderRow) -> OrderError | None:
    """In words for the buyer; an unknown code has the words of what it led to."""
    status = order_status_of(row)
    if status not in ("failed", "needs_review", "rollback_unknown"):
        return None
    lost = {"failed": "issuance_failed", "needs_review": OUTCOME_UNKNOWN, "rollback_unknown": MANUAL_RECONCILIATION}[status]
    code = lost if row.code is None or status == "rollback_unknown" else row.code
    return {
        "code": code,
        "message": ORDER_ERROR_MESSAGES.get(code, ORDER_FAILED_MESSAGE if status == "failed" else ORDER_ERROR_MESSAGES[OUTCOME_UNKNOWN]),
    }


def render_order_esim(ctx: Ctx, row: OrderRow) -> Esim | None:
    """Nothing once it went back: the next one to have it is another buyer."""
    if order_status_of(row) not in BUYER_ESIM_STATUSES or row.iccid is None or row.esim is None:
        return None
    return render_esim_profile(
        open_esim_profile(row.iccid, row.esim, keyring=ctx.deps.keyring, organisation=row.organisation, intent=row.esim_binding or row.id)
    )


def render_order_refund(row: OrderRow) -> OrderRefund | None:
    """The whole amount that was paid. How the processor is asked for it is not shown to the buyer."""
    if row.refund is None:
        return None
    return {
        "status": ORDER_REFUND_STATUSES.get(row.refund, "pending"),
        "amount": row.amount if row.paid_amount is None else row.paid_amount,
    }


def render_order_top_up(row: OrderRow) -> OrderTopUp | None:
    status = order_status_of(row)
    if status in ("pending_payment", "rollback_pending", "rolled_back", "rollback_unknown"):
        return None
    return render_fields(row, OrderTopUp, plan=sold_plan_of(row), status=status, created=rfc3339_utc(row.created))


def order_stamp(at: float | None) -> str | None:
    return None if at is None else rfc3339_utc(at)


ORDER_TOKEN_EXAMPLE = "ord_7m2q9k4xb1zdp0rt5v8w3y6h2n"
ORDER_NUMBER_EXAMPLE = "onr_01k0a8w7zv6q4k3m2n1p0r9s8t"
TOP_UP_ID_EXAMPLE = "tuc_3k8t1v6w9x2y5z7a4b0c8d1e6f"
SOLD_PLAN_EXAMPLE: SoldPlan = {
    "slug": "nordic-1gb",
    "name": "Nordic 1 GB",
    "data_mb": 1000,
    "validity_days": 30,
    "countries": ["DK", "NO", "SE"],
}
READY_ORDER_EXAMPLE: Order = {
    "id": ORDER_TOKEN_EXAMPLE,
    "object": "storefront.order",
    "number": ORDER_NUMBER_EXAMPLE,
    "storefront": "fjord-travel",
    "plan": SOLD_PLAN_EXAMPLE,
    "status": "ready",
    "amount": 900,
    "currency": "EUR",
    "error": None,
    "esim": {
        "iccid": "8988303700000100286",
        "activation_code": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
        "qr_code": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
        "smdp_address": "smdp.sandbox.invalid",
        "matching_id": "F7K2-QX9M-41TB",
    },
    "refund": None,
    "top_ups": [
        {
            "id": TOP_UP_ID_EXAMPLE,
            "plan": SOLD_PLAN_EXAMPLE,
            "status": "ready",
            "amount": 900,
            "currency": "EUR",
            "created": "2026-11-27T10:12:00Z",
        },
    ],
    "created": "2026-11-20T09:00:00Z",
    "paid_at": "2026-11-20T09:01:10Z",
    "ready_at": "2026-11-20T09:01:12Z",
    "cancelled_at": None,
}
OrderId = Annotated[str, Field(description="The order's access token, ord_...; with the storefront key also its number, onr_...")]


class OrderRef(CamelInput):
    """Which order."""

    order_id: OrderId


async def order_of_any_shop(ctx: Ctx, params: OrderRef) -> OrderDetail:
    """The order, whichever organisation's it is. The call is in the audit log of the shop's organisation.

    Choice: an id that cannot be an order's is not bad input but an order that is not there, so that a guess learns nothing of ids. A
    number is answered the same way to whoever shows no storefront key; "local" is whoever runs the service, at its command line.
    """
    find = find_known_order if ctx.caller.kind in ("storefront", "local") else find_opened_order
    found = await ctx.deps.store.read(find, named=params.order_id)
    if found is None:
        raise NotFound("There is no order with this id", param="orderId", hint="Take it from the link that the buyer got by mail")
    ctx.act_for(found.row.organisation)
    return found


@operation(
    "GET",
    "/api/orders/{orderId}",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    enumeration_guarded=True,
    access=order_of_any_shop,
    title="Get order",
    raises=[NotFound],
    examples=[Example("Has the eSIM come?", {"orderId": ORDER_TOKEN_EXAMPLE}, READY_ORDER_EXAMPLE)],
)
async def get_storefront_order(ctx: Ctx, params: OrderRef, order: OrderDetail) -> Order:
    """Get one order: where it stands and, once it is ready, its eSIM.

    Without a storefront key its access token, from the link in the buyer's mail, opens it; with the key its `number` does as well.
    `id` is what you named it by.

    `esim` is null before ready, and after a roll-back.

    An order begins as `pending_payment`; `paid` and `provisioning` take seconds. `needs_review`: whether an eSIM was drawn is being
    found out. `failed` says why in `error`, and what was paid goes back. The activation code is worth the eSIM: keep it out of logs.
    """
    return render_order(ctx, order, named=params.order_id)


SoldAtSlug = Annotated[str, Field(min_length=3, max_length=40, pattern=r"^[a-z0-9-]+$", description="Slug of the shop.")]


class OrderPage(Input):
    """Which orders, and which part of the list."""

    storefront: Annotated[SoldAtSlug | None, Field(description="Slug of one shop.")] = None
    status: Annotated[OrderStatus | None, Field(description="Without it, all that were paid for.")] = None
    email: Annotated[Email | None, Field(description="Of the buyer with this address.")] = None
    limit: PageLimit = 20
    starting_after: StartingAfter = None


class OrderEntry(TypedDict):
    """An order in short. Times are RFC 3339 UTC."""

    id: Annotated[str, Field(description="The order's number, onr_...; opens nothing by itself")]
    object: Literal["storefront.order"]
    storefront: Annotated[str, Field(description="Slug of the shop")]
    plan: Annotated[str, Field(description="Slug of the plan as it was sold")]
    plan_name: Annotated[FreeText, Field(description="Its name as it was sold")]
    status: OrderStatus
    amount: Annotated[int, Field(description="The price, minor units (cents)")]
    currency: Annotated[str, Field(description="ISO 4217, upper case")]
    refund: Annotated[
        OrderRefundStatus | None, Field(description="failed: the processor refused it, and you have to give it back yourself")
    ]
    top_ups: Annotated[int, Field(description="How many were paid for")]
    created: str
    paid_at: str | None
    ready_at: str | None
    cancelled_at: str | None


ORDER_ENTRY_EXAMPLE: OrderEntry = {
    "id": ORDER_NUMBER_EXAMPLE,
    "object": "storefront.order",
    "storefront": "fjord-travel",
    "plan": "nordic-1gb",
    "plan_name": SOLD_PLAN_EXAMPLE["name"],
    "status": "ready",
    "amount": 900,
    "currency": "EUR",
    "refund": None,
    "top_ups": 1,
    "created": "2026-11-20T09:00:00Z",
    "paid_at": "2026-11-20T09:01:10Z",
    "ready_at": "2026-11-20T09:01:12Z",
    "cancelled_at": None,
}


@operation(
    "GET",
    "/v1/storefronts/orders",
    title="List storefront orders",
    raises=[BadRequest, NotFound],
    examples=[Example("What did our shops sell?", {"limit": 20}, {"object": "list", "data": [ORDER_ENTRY_EXAMPLE], "has_more": False})],
)
async def list_storefront_orders(ctx: Ctx, params: OrderPage) -> ListOf[OrderEntry]:
    """List the orders of your shops, newest first, without what installs their eSIMs.

    Orders that nobody paid for are left out, unless `status` is pending_payment. `needs_review` and a `refund` that failed want you.

    An ICCID, a code or a buyer's address is in none of them. `id` is the order's number, which opens nothing: the token that does is
    the buyer's alone.
    """
    organisation = ctx.organisation

    def find(connection: Connection) -> list[OrderDetail]:
        shop = None if params.storefront is None else find_shop(connection, slug=params.storefront, organisation=organisation)
        if shop is None and params.storefront is not None:
            raise NotFound("Your organisation has no storefront with this slug", param="storefront", hint="list_storefronts names yours")
        return list_orders(
            connection,
            organisation=organisation,
            storefront=None if shop is None else shop.id,
            email=None if params.email is None else normal_email(params.email),
            status=params.status,
            after=place_of_order(connection, organisation, params.starting_after),
            most=params.limit + 1,
        )

    rows = await ctx.deps.store.read(find)
    return list_page([render_order_entry(row) for row in rows], params.limit)


def place_of_order(connection: Connection, organisation: str, order: str | None) -> OrderPlace:
    """The place behind the organisation's `order`, or before the newest. Raises BadRequest where there is none with this id."""
    named = None if order is None else order_number_of(connection, named=order)
    found = FIRST_ORDER_PLACE if named is None else order_place(connection, organisation=organisation, order=named)
    if found is None:
        raise BadRequest(
            "starting_after: there is no order with this id",
            param="starting_after",
            hint="Give the `id` of the last order of the page before, or leave it out for the newest",
        )
    return found


def render_order_entry(order: OrderDetail) -> OrderEntry:
    row, refund, plan = order.row, render_order_refund(order.row), sold_plan_of(order.row)
    return {
        "id": row.id,
        "object": "storefront.order",
        "storefront": order.shop,
        "plan": plan["slug"],
        "plan_name": plan["name"],
        "status": order_status_of(row),
        "amount": row.amount,
        "currency": row.currency,
        "refund": None if refund is None else refund["status"],
        "top_ups": sum(top_up.status != "pending_payment" for top_up in order.top_ups),
        "created": rfc3339_utc(row.created),
        "paid_at": order_stamp(row.paid_at),
        "ready_at": order_stamp(row.ready_at),
        "cancelled_at": order_stamp(order_cancelled_at(row)),
    }


CANCELLED_ORDER_EXAMPLE: Order = {**READY_ORDER_EXAMPLE, "cancelled_at": "2026-11-28T08:00:00Z"}


class OrderNotPaid(Conflict):
    """There is nothing to cancel yet."""

    code = "order_not_paid"


@operation(
    "POST",
    "/api/orders/{orderId}/cancel",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    enumeration_guarded=True,
    access=order_of_any_shop,
    title="Cancel order",
    raises=[NotFound, OrderNotPaid],
    examples=[Example("The buyer wants no more data", {"orderId": ORDER_TOKEN_EXAMPLE}, CANCELLED_ORDER_EXAMPLE)],
)
async def cancel_storefront_order(ctx: Ctx, params: OrderRef, order: OrderDetail) -> Order:
    """Cancel an order: from now on no top-up is taken. Nothing is refunded.

    Again: the same answer, with the first call's `cancelled_at`.

    The eSIM and its data stay as they are: nothing changes at the network. To take the eSIM back, roll the order back. Any order that
    was paid for can be cancelled, a failed one too; one that was not is 409 `order_not_paid`. A top-up that was paid for before is
    added all the same.
    """

    def cancel(connection: Connection, *, now: float) -> Order:
        """The order with the time at which it was cancelled, by this call or by one before."""
        cancel_order(connection, order=order.row.id, now=now)
        found = current_order(connection, order.row.id)
        if order_cancelled_at(found.row) is None:
            raise OrderNotPaid(
                "This order was not paid for, so there is nothing to cancel",
                hint="Leave it: what is not paid for is not delivered, and is forgotten after 30 days",
            )
        return render_order(ctx, found, named=params.order_id)

    return await ctx.settle_result(cancel, now=ctx.now)


def current_order(connection: Connection, order: str) -> OrderDetail:
    found = find_order_detail(connection, order=order)
    if found is None:
        raise RuntimeError("an order that was read just now is not there")
    return found


ROLLED_BACK_ORDER_EXAMPLE: Order = {**READY_ORDER_EXAMPLE, "status": "rolled_back", "esim": None, "cancelled_at": "2026-11-28T08:00:00Z"}


class ReturnableOrder(NamedTuple):
    """An order with its row of the ledger, where it has one, and the line that its eSIM is."""

    order: OrderDetail
    row: IssuanceRow | None
    line: Line | None


async def order_to_return(ctx: Ctx, params: OrderRef) -> ReturnableOrder:
    """The line is looked for only where something can be given back. The organisation's own way to the charging system is used."""
    order = await order_of_any_shop(ctx, params)
    row = await ctx.deps.store.read(find_issuance, organisation=order.row.organisation, key=order.row.id)
    if row is not None and row.state != order.row.ledger:  # it moved on between the two reads
        order = await order_of_any_shop(ctx, params)
    line = None
    if row is not None and order_status_of(order.row) == "ready" and row.state == "issued":
        line = await find_issued_line(await upstream_of_organisation(ctx.deps, order.row.organisation), row)
    ctx.stage()
    return ReturnableOrder(order, row, line)


@operation(
    "DELETE",
    "/api/orders/{orderId}",
    spends=SpendKind.NOTHING,
    irreversible=True,
    scope=Scope.NONE,
    auth=Auth.STOREFRONT,
    access=order_to_return,
    title="Roll back order",
    raises=[NotFound, OrderNotReady, LineHasPackages, Conflict, OcsError],
    examples=[Example("The buyer returns the eSIM", {"orderId": ORDER_TOKEN_EXAMPLE}, ROLLED_BACK_ORDER_EXAMPLE)],
)
async def rollback_storefront_order(ctx: Ctx, params: OrderRef, held: ReturnableOrder) -> Order:
    """Take a ready order's eSIM back: its package goes, the SIM returns to stock.

    Nothing is refunded: operator_billing_create_refund does. Again: answers as before. MANUAL_RECONCILIATION_REQUIRED: do not repeat.

    Only `ready` orders roll back; another status is 409 `order_not_ready`. The outcomes are told apart: 200, the order with status
    `rolled_back`; 409 `line_has_packages`, where a top-up or another package is on the line: have it removed first; 409
    `top_up_under_way`, where one may come any moment; 409 `idempotency_in_progress`, where the shop's owner or another call takes it
    back just now: repeat it in a second; and 502 `MANUAL_RECONCILIATION_REQUIRED`, where the charging system did not say: the order
    is `rollback_unknown`, its eSIM is never issued again by itself, and a person has to settle it. Any other 502 changed nothing. A
    profile that was downloaded does not return to stock. The storefront key is needed always.
    """
    order, row, line = held
    if order_status_of(order.row) == "rolled_back":
        return render_order(ctx, order, named=params.order_id)

    def answer(connection: Connection, row: IssuanceRow) -> Order:
        return render_order(ctx, current_order(connection, row.key), named=params.order_id)

    concluded = await roll_back_issuance(ctx, *require_returnable_order(order, row, line), answer)
    ctx.deps.wake_worker()
    return concluded.body


def require_returnable_order(order: OrderDetail, row: IssuanceRow | None, line: Line | None) -> tuple[Line, IssuanceRow]:
    status = order_status_of(order.row)
    if row is not None and row.state == "rollback_pending":
        raise rollback_is_running()
    if row is not None and row.state == "rollback_unknown":
        raise rollback_unknown(row)
    if status != "ready" or row is None or row.state != "issued":
        raise OrderNotReady(
            f"Only an order that is ready can be rolled back, and this one is {status}; nothing was taken back",
            hint="GET /api/orders/{orderId} tells where it stands",
        )
    if line is None:
        raise OrderNotReady(
            "The eSIM of this order is not in the account any more that it was drawn from; nothing was taken back",
            hint="Its owner moved it, and takes it back where it is now",
        )
    if row.package_id is None:
        raise OrderNotReady(
            "The package of this order is not known, so a person has to take it back; nothing was taken back", code=MANUAL_RECONCILIATION
        )
    return line, row
