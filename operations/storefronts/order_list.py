"""The orders of an organisation's shops, for their operator: what was sold, and nothing that installs an eSIM."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.people.addresses import Email, normal
from operations.services.shop.order_opening import number_of
from operations.storefronts.order_example import NUMBER
from operations.storefronts.order_shape import RefundStatus, moment, plan_sold, refund_of
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import BadRequest, NotFound
from registry.model import Input
from registry.operation import Example, operation
from registry.policy import stamp
from storage.connection import Connection
from storage.shop.order_lists import FIRST, Place, WholeOrder, list_orders, place_of, shop_named
from storage.shop.order_status import OrderStatus, cancelled_at, status_of

Slug = Annotated[str, Field(min_length=3, max_length=40, pattern=r"^[a-z0-9-]+$", description="Slug of the shop.")]


class OrderPage(Input):
    """Which orders, and which part of the list."""

    storefront: Annotated[Slug | None, Field(description="Slug of one shop.")] = None
    status: Annotated[OrderStatus | None, Field(description="Without it, all that were paid for.")] = None
    email: Annotated[Email | None, Field(description="Of the buyer with this address.")] = None
    limit: Limit = 20
    starting_after: StartingAfter = None


class OrderEntry(TypedDict):
    """An order in short. Times are RFC 3339 UTC."""

    id: Annotated[str, Field(description="The order's number, onr_...; opens nothing by itself")]
    object: Literal["storefront.order"]
    storefront: Annotated[str, Field(description="Slug of the shop")]
    plan: Annotated[str, Field(description="Slug of the plan as it was sold")]
    status: OrderStatus
    amount: Annotated[int, Field(description="The price, minor units (cents)")]
    currency: Annotated[str, Field(description="ISO 4217, upper case")]
    refund: Annotated[RefundStatus | None, Field(description="failed: the processor refused it, and you have to give it back yourself")]
    top_ups: Annotated[int, Field(description="How many were paid for")]
    created: str
    paid_at: str | None
    ready_at: str | None
    cancelled_at: str | None


ENTRY: OrderEntry = {
    "id": NUMBER,
    "object": "storefront.order",
    "storefront": "fjord-travel",
    "plan": "nordic-1gb",
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
    examples=[Example("What did our shops sell?", {"limit": 20}, {"object": "list", "data": [ENTRY], "has_more": False})],
)
async def list_storefront_orders(ctx: Ctx, params: OrderPage) -> ListOf[OrderEntry]:
    """List the orders of your shops, newest first, without what installs their eSIMs.

    Orders that nobody paid for are left out, unless `status` is pending_payment. `needs_review` and a `refund` that failed want you.

    An ICCID, a code or a buyer's address is in none of them. `id` is the order's number, which opens nothing: the token that does is
    the buyer's alone.
    """
    rows = await ctx.deps.store.read(page_of_orders, organisation=ctx.organisation, params=params)
    return page([entry_of(row) for row in rows], params.limit)


def page_of_orders(connection: Connection, *, organisation: str, params: OrderPage) -> list[WholeOrder]:
    """The rows, with one more than the limit."""
    shop = None
    if params.storefront is not None:
        shop = shop_named(connection, slug=params.storefront, organisation=organisation)
        if shop is None:
            raise NotFound("Your organisation has no storefront with this slug", param="storefront", hint="list_storefronts names yours")
    return list_orders(
        connection,
        organisation=organisation,
        storefront=None if shop is None else shop.id,
        email=None if params.email is None else normal(params.email),
        status=params.status,
        after=after(connection, organisation, params.starting_after),
        most=params.limit + 1,
    )


def after(connection: Connection, organisation: str, order: str | None) -> Place:
    """The place behind which the page begins."""
    named = None if order is None else number_of(connection, named=order)
    found = FIRST if named is None else place_of(connection, organisation=organisation, order=named)
    if found is None:
        raise BadRequest(
            "starting_after: there is no order with this id",
            param="starting_after",
            hint="Give the `id` of the last order of the page before, or leave it out for the newest",
        )
    return found


def entry_of(order: WholeOrder) -> OrderEntry:
    """An order in short."""
    row, refund = order.row, refund_of(order.row)
    return {
        "id": row.id,
        "object": "storefront.order",
        "storefront": order.shop,
        "plan": plan_sold(row)["slug"],
        "status": status_of(row),
        "amount": row.amount,
        "currency": row.currency,
        "refund": None if refund is None else refund["status"],
        "top_ups": sum(top_up.status != "pending_payment" for top_up in order.top_ups),
        "created": stamp(row.created),
        "paid_at": moment(row.paid_at),
        "ready_at": moment(row.ready_at),
        "cancelled_at": moment(cancelled_at(row)),
    }
