"""Cancelling an order: no more top-ups, and nothing else."""

from operations.deps import Ctx
from operations.storefronts.order_access import OrderRef, any_order
from operations.storefronts.order_example import ORDER, READY
from operations.storefronts.order_shape import Order, whole_shown
from registry.errors import Conflict, NotFound
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.secrets.sealing import Keyring
from storage.shop.order_cancellation import cancel_order
from storage.shop.order_lists import WholeOrder, whole_order
from storage.shop.order_status import cancelled_at

CANCELLED: Order = {**READY, "cancelled_at": "2026-11-28T08:00:00Z"}


class OrderNotPaid(Conflict):
    """There is nothing to cancel yet."""

    code = "order_not_paid"


@operation(
    "POST",
    "/api/orders/{orderId}/cancel",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    guessed=True,
    access=any_order,
    title="Cancel order",
    raises=[NotFound, OrderNotPaid],
    examples=[Example("The buyer wants no more data", {"orderId": ORDER}, CANCELLED)],
)
async def cancel_storefront_order(ctx: Ctx, params: OrderRef, order: WholeOrder) -> Order:
    """Cancel an order: from now on no top-up is taken. Nothing is refunded.

    Again: the same answer, with the first call's `cancelled_at`.

    The eSIM and its data stay as they are: nothing changes at the network. To take the eSIM back, roll the order back. Any order that
    was paid for can be cancelled, a failed one too; one that was not is 409 `order_not_paid`. A top-up that was paid for before is
    added all the same.
    """
    return await ctx.settle_result(cancelled, order=order.row.id, named=params.order_id, keyring=ctx.deps.keyring, now=ctx.now)


def cancelled(connection: Connection, *, order: str, named: str, keyring: Keyring, now: float) -> Order:
    """The order with the time at which it was cancelled, by this call or by one before."""
    cancel_order(connection, order=order, now=now)
    found = whole_order(connection, order=order)
    if found is None:
        raise RuntimeError("an order that was read just now is not there")
    if cancelled_at(found.row) is None:
        raise OrderNotPaid(
            "This order was not paid for, so there is nothing to cancel",
            hint="Leave it: what is not paid for is not delivered, and is forgotten after 30 days",
        )
    return whole_shown(keyring, found, named=named)
