"""What can be added to an order's eSIM."""

from operations.deps import Ctx
from operations.services.shop.top_up_plans import addable
from operations.storefronts.order_access import OrderRef, any_order
from operations.storefronts.order_example import ORDER
from operations.storefronts.storefront_shape import PUBLIC_PLAN, PublicPlan, public_plan
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.shop.order_lists import WholeOrder


@operation(
    "GET",
    "/api/orders/{orderId}/top-up-options",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    guessed=True,
    access=any_order,
    title="Get top-up options",
    raises=[NotFound, OcsError],
    examples=[Example("What can this eSIM be given?", {"orderId": ORDER}, [PUBLIC_PLAN])],
)
async def get_storefront_order_top_up_options(ctx: Ctx, params: OrderRef, order: WholeOrder) -> list[PublicPlan]:
    """List the plans that can be added to an order's eSIM, as its shop displays them.

    Empty when nothing can be: the order is not ready, was cancelled, or nothing that its shop sells fits this eSIM.
    """
    del params
    # A shop's currency is for ever that of its first plan, so it is the order's.
    return [public_plan(plan, order.row.currency) for plan in await addable(ctx.deps, order.row)]
