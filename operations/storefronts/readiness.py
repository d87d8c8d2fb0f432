"""Whether a plan of a published shop can be bought now."""

from typing import Annotated, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.shop.readiness import Reason, reasons_against
from operations.storefronts.hosted import no_such_shop
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.shop.storefront_plans import StorefrontPlan, named_plan
from storage.shop.storefronts import Storefront, published


class ShopPlanRef(CamelInput):
    """Which plan of which shop."""

    slug: Annotated[str, Field(max_length=64, description="The shop's slug.")]
    plan_id: Annotated[str, Field(max_length=64, description="The plan's id, sfp_..., or its slug.")]


class Readiness(TypedDict):
    """Whether an order can be begun, and if not, all that is known to stand against it."""

    ready: bool
    reasons: list[Reason]


class Sold(NamedTuple):
    """A shop that is open, and a plan of it."""

    shop: Storefront
    plan: StorefrontPlan | None


@operation(
    "GET",
    "/api/hosted/{slug}/plans/{planId}/readiness",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    title="Get plan readiness",
    raises=[NotFound, OcsError],
    examples=[
        Example("Can it be bought now?", {"slug": "fjord-travel", "planId": "nordic-5gb"}, {"ready": False, "reasons": ["no_free_esim"]})
    ],
)
async def get_hosted_storefront_plan_readiness(ctx: Ctx, params: ShopPlanRef) -> Readiness:
    """Tell whether a plan can be bought now, by the rules of its seller's account.

    Public; draws and reserves nothing. Reasons: plan_not_on_sale, owner_not_connected, payments_not_active, account_not_found,
    template_not_visible, no_free_esim.

    The stock is a few seconds old at most. When the charging system fails nobody knows, so the answer is 502, never a guess.
    """
    found = await ctx.deps.store.read(sold, slug=params.slug, named=params.plan_id)
    if found is None:
        raise no_such_shop()
    if found.plan is None:
        raise NotFound("The shop has no plan with this id or slug", param="planId", hint="get_hosted_storefront names its plans")
    try:
        reasons = await reasons_against(ctx.deps, found.shop, found.plan)
    except OcsError as failure:
        # Choice: buyers are not told what ails the seller's connection, only that it does.
        raise OcsError(
            "The charging system could not be asked, so nobody knows whether the plan can be bought now", code=failure.error_code
        ) from None
    return {"ready": not reasons, "reasons": reasons}


def sold(connection: Connection, *, slug: str, named: str) -> Sold | None:
    """The shop and the plan, of one moment."""
    shop = published(connection, slug=slug)
    return None if shop is None else Sold(shop, named_plan(connection, storefront=shop.id, named=named))
