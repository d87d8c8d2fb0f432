"""A published shop, as everybody sees it."""

from typing import Annotated

from pydantic import Field

from operations.deps import Ctx
from operations.storefronts.storefront_shape import FRONT, PUBLIC_PLAN, Front, PublicPlan, front_of, public_plan
from registry.errors import NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.shop.storefront_plans import plans_on_sale
from storage.shop.storefronts import published


class ShopRef(Input):
    """Which shop."""

    slug: Annotated[str, Field(max_length=64, description="The shop's slug.")]


class HostedStorefront(Front):
    """A shop that is open, and what it sells, as it is displayed."""

    plans: list[PublicPlan]


EXAMPLE: HostedStorefront = {**FRONT, "plans": [PUBLIC_PLAN]}


@operation(
    "GET",
    "/api/hosted/{slug}",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    title="Get hosted storefront",
    raises=[NotFound],
    examples=[Example("What does the shop sell?", {"slug": "fjord-travel"}, EXAMPLE)],
)
async def get_hosted_storefront(ctx: Ctx, params: ShopRef) -> HostedStorefront:
    """Get a published shop and the plans it has on sale.

    Public. A draft is not found. Amounts are in cents of the shop's currency.
    """
    found = await ctx.deps.store.read(open_shop, slug=params.slug)
    if found is None:
        raise no_such_shop()
    return found


def open_shop(connection: Connection, *, slug: str) -> HostedStorefront | None:
    """The shop and what it sells, of one moment."""
    row = published(connection, slug=slug)
    if row is None:
        return None
    on_sale = plans_on_sale(connection, storefront=row.id)
    return {**front_of(row), "plans": [public_plan(plan, row.currency) for plan in on_sale]}


def no_such_shop() -> NotFound:
    """Unknown shops and drafts are answered alike."""
    return NotFound("There is no published shop with this slug", param="slug", hint="Check the spelling; a draft has to be published first")
