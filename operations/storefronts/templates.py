"""What all published shops sell."""

from typing import Annotated

from pydantic import Field

from operations.deps import Ctx
from operations.storefronts.storefront_shape import PUBLIC_PLAN, PublicPlan, public_plan
from operations.vocabulary import StartingAfter
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.shop.storefront_plans import Offer, offers


class TemplatePage(Input):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Page size.")] = 1000
    starting_after: StartingAfter = None


class SellablePlan(PublicPlan):
    """A plan on sale, and the slug of its shop."""

    storefront: str


def sellable(row: Offer) -> SellablePlan:
    """As buyers see it."""
    return {"storefront": row.storefront, **public_plan(row, row.currency)}


@operation(
    "GET",
    "/api/templates",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    title="List sellable plans",
    examples=[Example("What can be bought anywhere?", {}, [{**PUBLIC_PLAN, "storefront": "fjord-travel"}])],
)
async def list_storefront_templates(ctx: Ctx, params: TemplatePage) -> list[SellablePlan]:
    """List the plans on sale in all published shops, oldest first.

    Public. A bare array, empty when nothing is sold. Whether one can be bought now is told by its readiness.
    """
    rows = await ctx.deps.store.read(offers, after=params.starting_after, most=params.limit)
    return [sellable(row) for row in rows]
