"""Whose order it is: whoever knows its id may see it, where no storefront key is set."""

import re
from typing import Annotated, Protocol

from pydantic import Field

from operations.deps import Ctx
from registry.errors import NotFound
from registry.model import CamelInput
from storage.shop.order_lists import WholeOrder, whole_order

ORDER_ID = re.compile(r"ord_[0-9a-z]{26}", re.ASCII)
OrderId = Annotated[str, Field(description="Order id, ord_...")]


class NamesOrder(Protocol):
    """An input with an order's id."""

    @property
    def order_id(self) -> str: ...


class OrderRef(CamelInput):
    """Which order."""

    order_id: OrderId


async def any_order(ctx: Ctx, params: NamesOrder) -> WholeOrder:
    """The order, whosever it is. The call is in the audit log of the shop's organisation.

    Choice: an id that cannot be an order's is not bad input but an order that is not there, so that a guess learns nothing of ids.
    """
    found = await ctx.deps.store.read(whole_order, order=params.order_id) if ORDER_ID.fullmatch(params.order_id) else None
    if found is None:
        raise NotFound("There is no order with this id", param="orderId", hint="Take it from the link that the buyer got by mail")
    ctx.act_for(found.row.organisation)
    return found
