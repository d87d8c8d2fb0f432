"""Published shops and what they sell, as everybody sees them, and whether a plan can be bought now."""

from typing import Annotated, Literal, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.storefronts.sales.checkout import ReadinessReason, reasons_against_sale
from operations.vocabulary import Currency, ListPage, render_fields
from registry.errors import NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import Auth, CamelInput, Example, Input, Scope, operation
from storage.engine.sql import Connection
from storage.storefronts import ShopOffer, Storefront, StorefrontPlan, find_published, list_offers, named_plan, plans_on_sale


class PublicStorefront(TypedDict):
    """What everybody sees of a shop."""

    object: Literal["storefront"]
    slug: str
    name: FreeText
    tagline: FreeText | None
    logo: Annotated[str | None, Field(description="data: URI")]
    accent: str | None
    support_email: FreeText | None
    currency: Currency


class PublicPlan(TypedDict):
    """A plan as buyers see it."""

    id: str
    slug: str
    name: FreeText
    data_mb: int
    validity_days: int
    countries: list[str]
    price_cents: int
    currency: Currency
    position: int


STOREFRONT_ID_EXAMPLE = "sf_01k0a8w7zv6q4k3m2n1p0r9s8t"
PLAN_ID_EXAMPLE = "sfp_01k0a8w7zv6q4k3m2n1p0r9s8t"
PLAN_PRODUCT_ID_EXAMPLE = "cnp_01k0a8w7zv6q4k3m2n1p0r9s8t"
PUBLIC_STOREFRONT_EXAMPLE: PublicStorefront = {
    "object": "storefront",
    "slug": "fjord-travel",
    "name": "Fjord Travel SIM",
    "tagline": "Data for the north",
    "logo": None,
    "accent": "#0b6e4f",
    "support_email": "help@fjord.example",
    "currency": "EUR",
}
PUBLIC_PLAN_EXAMPLE: PublicPlan = {
    "id": PLAN_ID_EXAMPLE,
    "slug": "nordic-5gb",
    "name": "Nordic 5 GB",
    "data_mb": 5000,
    "validity_days": 30,
    "countries": ["DK", "NO", "SE"],
    "price_cents": 1490,
    "currency": "EUR",
    "position": 0,
}


def read_plan_countries(text: str) -> list[str]:
    """The country codes in the JSON that a row stores."""
    return cast(list[str], orjson.loads(text))


def render_public_plan(row: StorefrontPlan | ShopOffer, currency: str) -> PublicPlan:
    """The plan `row` as buyers see it; `currency` is its shop's."""
    return render_fields(row, PublicPlan, countries=read_plan_countries(row.countries), currency=currency, position=row.place)


class HostedStorefrontRef(Input):
    """Which shop."""

    slug: Annotated[str, Field(max_length=64, description="The shop's slug.")]


class HostedStorefront(PublicStorefront):
    """A shop that is open, and what it sells, as it is displayed."""

    plans: list[PublicPlan]


HOSTED_STOREFRONT_EXAMPLE: HostedStorefront = {**PUBLIC_STOREFRONT_EXAMPLE, "plans": [PUBLIC_PLAN_EXAMPLE]}


@operation(
    "GET",
    "/api/hosted/{slug}",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    title="Get hosted storefront",
    raises=[NotFound],
    examples=[Example("What does the shop sell?", {"slug": "fjord-travel"}, HOSTED_STOREFRONT_EXAMPLE)],
)
async def get_hosted_storefront(ctx: Ctx, params: HostedStorefrontRef) -> HostedStorefront:
    """Get a published shop and the plans it has on sale.

    Public. A draft is not found. Amounts are in cents of the shop's currency.
    """
    return await ctx.deps.store.read(find_hosted_storefront, slug=params.slug)


def find_hosted_storefront(connection: Connection, *, slug: str) -> HostedStorefront:
    """The shop and what it sells, of one moment."""
    row = find_published(connection, slug=slug)
    if row is None:
        raise no_such_hosted_storefront()
    plans = [render_public_plan(plan, row.currency) for plan in plans_on_sale(connection, storefront=row.id)]
    return render_fields(row, HostedStorefront, object="storefront", plans=plans)


def no_such_hosted_storefront() -> NotFound:
    return NotFound("There is no published shop with this slug", param="slug", hint="Check the spelling; a draft has to be published first")


class SellablePlanPage(ListPage):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Page size.")] = 1000


class SellablePlan(PublicPlan):
    """A plan on sale, and the slug of its shop."""

    storefront: str


@operation(
    "GET",
    "/api/templates",
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    title="List sellable plans",
    examples=[Example("What can be bought anywhere?", {}, [{**PUBLIC_PLAN_EXAMPLE, "storefront": "fjord-travel"}])],
)
async def list_storefront_templates(ctx: Ctx, params: SellablePlanPage) -> list[SellablePlan]:
    """List the plans on sale in all published shops, oldest first.

    Public. A bare array, empty when nothing is sold. Whether one can be bought now is told by its readiness.
    """
    rows = await ctx.deps.store.read(list_offers, after=params.starting_after or "", most=params.limit)
    return [{"storefront": row.storefront, **render_public_plan(row, row.currency)} for row in rows]


class HostedPlanRef(CamelInput):
    """Which plan of which shop."""

    slug: Annotated[str, Field(max_length=64, description="The shop's slug.")]
    plan_id: Annotated[str, Field(max_length=64, description="The plan's id, sfp_..., or its slug.")]


class Readiness(TypedDict):
    """Whether an order can be begun, and if not, all that is known to stand against it."""

    ready: bool
    reasons: list[ReadinessReason]


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
async def get_hosted_storefront_plan_readiness(ctx: Ctx, params: HostedPlanRef) -> Readiness:
    """Tell whether a plan can be bought now, by the rules of its seller's account.

    Public; draws and reserves nothing. Reasons: plan_not_on_sale, owner_not_connected, payments_not_active, account_not_found,
    template_not_visible, no_free_esim.

    The stock is a few seconds old at most. When the charging system fails nobody knows, so the answer is 502, never a guess.
    """
    shop, plan = await ctx.deps.store.read(find_shop_and_plan, slug=params.slug, named=params.plan_id)
    try:
        reasons = await reasons_against_sale(ctx.deps, shop, plan)
    except OcsError as failure:
        # Choice: buyers are not told what ails the seller's connection, only that it does.
        raise OcsError(
            "The charging system could not be asked, so nobody knows whether the plan can be bought now", code=failure.error_code
        ) from None
    return {"ready": not reasons, "reasons": reasons}


def find_shop_and_plan(connection: Connection, *, slug: str, named: str) -> tuple[Storefront, StorefrontPlan]:
    """The open shop with `slug` and its plan with the id or slug `named`, of one moment. Raises NotFound."""
    shop = find_published(connection, slug=slug)
    if shop is None:
        raise no_such_hosted_storefront()
    plan = named_plan(connection, storefront=shop.id, named=named)
    if plan is None:
        raise NotFound("The shop has no plan with this id or slug", param="planId", hint="get_hosted_storefront names its plans")
    return shop, plan
