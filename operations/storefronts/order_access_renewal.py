"""Renewing what opens an order, by an admin of the shop's organisation."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.services.shop.access_renewal import OrderWithoutAddress, renew_access
from operations.storefronts.order_example import NUMBER
from registry.errors import NotFound
from registry.limits import Role, Scope
from registry.model import Input
from registry.operation import Example, operation
from storage.connection import Connection


class OrderNumber(Input):
    """Which order."""

    number: Annotated[str, Field(max_length=64, description="The order's number, onr_...")]


class AccessRenewed(TypedDict):
    """The order whose buyer was sent a new link; the link itself is the buyer's alone."""

    object: Literal["storefront.access_renewal"]
    order: Annotated[str, Field(description="The order's number, onr_...")]


RENEWED: AccessRenewed = {"object": "storefront.access_renewal", "order": NUMBER}


@operation(
    "POST",
    "/v1/storefronts/orders/{number}/renew-access",
    scope=Scope.ANY,
    role=Role.ADMIN,
    tool=False,
    title="Renew order access",
    raises=[NotFound, OrderWithoutAddress],
    examples=[Example("A link got into wrong hands", {"number": NUMBER}, RENEWED)],
)
async def renew_storefront_order_access(ctx: Ctx, params: OrderNumber) -> AccessRenewed:
    """End every link that opens an order, and mail its buyer a new one.

    Needs the role admin, on any tier. The mail goes to the address that the order was paid with, and to no other.

    From then on the links in earlier mails and the browser that the order was begun in open it no more. The order, its eSIM and its
    data stay as they are; what somebody has seen meanwhile, such as the activation code, is not undone by it. An order without an
    address, which was not paid for or whose buyer was erased, is 409 `order_without_address`.
    """
    renewed = await ctx.settle_result(renew, deps=ctx.deps, order=params.number, organisation=ctx.organisation, now=ctx.now)
    ctx.deps.post()
    return renewed


def renew(connection: Connection, *, deps: Deps, order: str, organisation: str, now: float) -> AccessRenewed:
    """In one transaction with the audit row of the call."""
    row = renew_access(connection, deps=deps, order=order, organisation=organisation, now=now)
    return {"object": "storefront.access_renewal", "order": row.id}
