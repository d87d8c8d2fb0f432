"""Whose order it is: a buyer names it by an access token, the holder of the storefront key by its number."""

from typing import Annotated, Protocol

from pydantic import Field

from operations.deps import Ctx
from operations.services.shop.order_opening import known_order, opened_order
from registry.errors import NotFound
from registry.model import CamelInput
from storage.shop.order_lists import WholeOrder

OrderId = Annotated[str, Field(description="The order's access token, ord_...; with the storefront key also its number, onr_...")]


class NamesOrder(Protocol):
    """An input that names an order."""

    @property
    def order_id(self) -> str: ...


class OrderRef(CamelInput):
    """Which order."""

    order_id: OrderId


async def any_order(ctx: Ctx, params: NamesOrder) -> WholeOrder:
    """The order, whosever it is. The call is in the audit log of the shop's organisation.

    Choice: an id that cannot be an order's is not bad input but an order that is not there, so that a guess learns nothing of ids. A
    number is answered the same way to whoever shows no storefront key; "local" is whoever runs the service, at its command line.
    """
    find = known_order if ctx.caller.kind in ("storefront", "local") else opened_order
    found = await ctx.deps.store.read(find, named=params.order_id)
    if found is None:
        raise NotFound("There is no order with this id", param="orderId", hint="Take it from the link that the buyer got by mail")
    ctx.act_for(found.row.organisation)
    return found
