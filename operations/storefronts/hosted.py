"""A published shop, as everybody sees it."""

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.shapes import Currency
from operations.deps import Ctx
from operations.storefronts.storefront_shape import PUBLIC_PLAN, PublicPlan, public_plans
from registry.errors import NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.storefront_plans import plans_on_sale
from storage.storefronts import published


class ShopRef(Input):
    """Which shop."""

    slug: Annotated[str, Field(max_length=64, description="The shop's slug.")]


class HostedStorefront(TypedDict):
    """A shop that is open, and what it sells, as it is displayed."""

    object: Literal["storefront"]
    slug: str
    name: str
    tagline: str | None
    logo: Annotated[str | None, Field(description="data: URI")]
    accent: str | None
    support_email: str | None
    currency: Currency
    plans: list[PublicPlan]


EXAMPLE: HostedStorefront = {
    "object": "storefront",
    "slug": "fjord-travel",
    "name": "Fjord Travel SIM",
    "tagline": "Data for the north",
    "logo": None,
    "accent": "#0b6e4f",
    "support_email": "help@fjord.example",
    "currency": "EUR",
    "plans": [PUBLIC_PLAN],
}


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
    return {
        "object": "storefront",
        "slug": row.slug,
        "name": row.name,
        "tagline": row.tagline,
        "logo": row.logo,
        "accent": row.accent,
        "support_email": row.support_email,
        "currency": cast(Currency, row.currency),
        "plans": public_plans(plans_on_sale(connection, storefront=row.id), row.currency),
    }


def no_such_shop() -> NotFound:
    """Unknown shops and drafts are answered alike."""
    return NotFound("There is no published shop with this slug", param="slug", hint="Check the spelling; a draft has to be published first")
