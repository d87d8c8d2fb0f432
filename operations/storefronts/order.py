"""One order, for its buyer."""

from operations.deps import Ctx
from operations.storefronts.order_access import OrderRef, any_order
from operations.storefronts.order_example import ORDER, READY
from operations.storefronts.order_shape import Order, whole_shown
from registry.errors import NotFound
from registry.limits import Scope
from registry.operation import Auth, Example, operation
from storage.shop.order_lists import WholeOrder


@operation(
    "GET",
    "/api/orders/{orderId}",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT_OPEN,
    guessed=True,
    access=any_order,
    title="Get order",
    raises=[NotFound],
    examples=[Example("Has the eSIM come?", {"orderId": ORDER}, READY)],
)
async def get_storefront_order(ctx: Ctx, params: OrderRef, order: WholeOrder) -> Order:
    """Get one order: where it stands and, once it is ready, its eSIM.

    Without a storefront key its access token, from the link in the buyer's mail, opens it; with the key its `number` does as well.
    `id` is what you named it by.

    `esim` is null before ready, and after a roll-back.

    An order begins as `pending_payment`; `paid` and `provisioning` take seconds. `needs_review`: whether an eSIM was drawn is being
    found out. `failed` says why in `error`, and what was paid goes back. The activation code is worth the eSIM: keep it out of logs.
    """
    return whole_shown(ctx.deps.keyring, order, named=params.order_id)
