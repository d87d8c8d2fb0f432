"""Changing a plan of a shop: price, whether it is on sale, its place, the price that the processor has for it."""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from operations.deps import Ctx
from operations.storefronts.plans import require_pair
from operations.storefronts.storefront_fields import (
    Change,
    Position,
    PriceCents,
    PriceId,
    PriceMode,
)
from operations.storefronts.storefront_shape import (
    ID,
    PLAN,
    ShownPlan,
    no_such_storefront,
    plan_of_row,
)
from operations.storefronts.storefront_update import own_storefront
from operations.vocabulary import without_default
from registry.errors import BadRequest, NotFound
from registry.limits import Scope
from registry.operation import Example, operation
from storage.connection import Connection
from storage.shop.storefront_plans import find_plan, write_plan
from storage.shop.storefronts import Storefront, hold_storefront

KEPT = Field(json_schema_extra=without_default)
COLUMN = {"price_cents": "price_cents", "on_sale": "on_sale", "position": "place"}
PAIR = ("payments_price_id", "payments_price_mode")


class PlanChange(Change):
    """What to change; what is left out stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset(PAIR)

    slug: Annotated[str, Field(max_length=64, description="The plan's slug.")]
    price_cents: Annotated[PriceCents, KEPT] = 0
    on_sale: Annotated[bool, Field(description="Whether buyers see it.", json_schema_extra=without_default)] = True
    position: Annotated[Position, KEPT] = 0
    payments_price_id: PriceId | None = None
    payments_price_mode: Annotated[PriceMode | None, Field(description="Of payments_price_id: set together, null clears both.")] = None

    @model_validator(mode="after")
    def check(self) -> "PlanChange":
        """A price and its mode are set together. Choice: null of the one and nothing of the other clears both."""
        require_pair(self.payments_price_id, self.payments_price_mode)
        return self

    @property
    def given(self) -> dict[str, int | str | None]:
        """The columns that are to be different."""
        found: dict[str, int | str | None] = {
            column: int(getattr(self, name)) for name, column in COLUMN.items() if name in self.model_fields_set
        }
        if not self.model_fields_set.isdisjoint(PAIR):
            found |= {"price_id": self.payments_price_id, "price_mode": self.payments_price_mode}
        return found


@operation(
    "PATCH",
    "/v1/storefronts/{id}/plans/{slug}",
    scope=Scope.WRITE,
    access=own_storefront,
    title="Update storefront plan",
    raises=[BadRequest, NotFound],
    examples=[
        Example("A lower price", {"id": ID, "slug": "nordic-5gb", "price_cents": 1290}, {**PLAN, "price_cents": 1290}),
        Example("Take it off the shelf", {"id": ID, "slug": "nordic-5gb", "on_sale": False}, {**PLAN, "on_sale": False}),
    ],
)
async def update_storefront_plan(ctx: Ctx, params: PlanChange, shop: Storefront) -> ShownPlan:
    """Change a plan's price, sale state, place in the shop, or stored payment Price.

    What is left out stays. The id of the payment Price and its mode are set together, and null clears both.

    The payment Price is kept beside the plan and nothing is charged by it yet: buyers pay price_cents. What else a plan is,
    upsert_storefront_plan replaces. Orders that were begun keep their price.
    """
    return await ctx.settle_result(
        change, storefront=shop.id, organisation=shop.organisation, slug=params.slug, given=params.given, now=ctx.now
    )


def change(
    connection: Connection, *, storefront: str, organisation: str, slug: str, given: dict[str, int | str | None], now: float
) -> ShownPlan:
    """The plan as it is from now on; another shop's is not found."""
    shop = hold_storefront(connection, storefront=storefront, organisation=organisation)
    if shop is None:
        raise no_such_storefront()
    row = find_plan(connection, storefront=shop.id, slug=slug)
    if row is None:
        raise NotFound("The storefront has no plan with this slug", param="slug", hint="get_storefront names its plans")
    wanted = row._replace(**given)
    if wanted != row:
        wanted = wanted._replace(updated=int(now))
        write_plan(connection, row=wanted)
    return plan_of_row(wanted, shop.currency)
