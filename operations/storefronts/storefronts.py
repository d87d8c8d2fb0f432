"""Shops of the caller's organisation: listing, making, reading."""

from typing import Annotated

from pydantic import Field

from operations.connectivity.shapes import Currency
from operations.deps import Ctx
from operations.storefronts.storefront_fields import (
    Accent,
    Logo,
    Name,
    Slug,
    Status,
    StorefrontRef,
    SupportEmail,
    Tagline,
)
from operations.storefronts.storefront_shape import (
    EXAMPLE,
    ID,
    PLAN,
    ShownPlan,
    ShownStorefront,
    SlugTaken,
    no_such_storefront,
    plan_of_row,
    slug_taken,
    storefront_of_row,
)
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import Conflict, NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, Once, operation
from storage.connection import Connection
from storage.shop.storefront_plans import plans_of
from storage.shop.storefronts import Storefront, find_storefront, hold_number, insert_storefront
from storage.shop.storefronts import list_storefronts as list_shops

MOST_STOREFRONTS = 100


class TooManyStorefronts(Conflict):
    """The organisation has as many shops as it may have."""

    code = "too_many_storefronts"


class NewStorefront(Input):
    """A shop to make."""

    slug: Slug
    name: Name
    currency: Annotated[Currency, Field(description="Of all its prices (ISO 4217); stays once it has a plan.")]
    tagline: Tagline | None = None
    logo: Logo | None = None
    accent: Accent | None = None
    support_email: SupportEmail | None = None
    status: Annotated[Status, Field(description="Only a published shop is there for buyers.")] = "draft"


class StorefrontPage(Input):
    """Which part of the list."""

    limit: Limit = 20
    starting_after: StartingAfter = None


class WholeStorefront(ShownStorefront):
    """A shop with all its plans, on sale or not, as they are displayed."""

    plans: list[ShownPlan]


@operation(
    "GET",
    "/v1/storefronts",
    title="List storefronts",
    examples=[Example("Which shops have we?", {}, {"object": "list", "data": [EXAMPLE], "has_more": False})],
)
async def list_storefronts(ctx: Ctx, params: StorefrontPage) -> ListOf[ShownStorefront]:
    """List the shops of your organisation, newest first; no plans."""
    rows = await ctx.deps.store.read(list_shops, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return page([storefront_of_row(row) for row in rows], params.limit)


@operation(
    "POST",
    "/v1/storefronts",
    scope=Scope.WRITE,
    once=Once(required=True),
    status=201,
    title="Create storefront",
    raises=[SlugTaken, TooManyStorefronts],
    examples=[
        Example(
            "A shop for travellers to the north",
            {
                "slug": "fjord-travel",
                "name": "Fjord Travel SIM",
                "currency": "EUR",
                "tagline": "Data for the north",
                "accent": "#0b6e4f",
                "support_email": "help@fjord.example",
            },
            EXAMPLE,
        )
    ],
)
async def create_storefront(ctx: Ctx, params: NewStorefront) -> ShownStorefront:
    """Make a shop where buyers pay your plans, at /shop/{slug}.

    A draft until `status` is published; it sells once it has a plan on sale: upsert_storefront_plan.

    Slugs are unique over the whole service (409 `slug_taken`). An organisation has at most 100 shops. Buyers pay the account that
    your organisation has at the payment processor.
    """
    made = int(ctx.now)
    row = Storefront(id=ctx.deps.ids.new("sf_"), organisation=ctx.organisation, **params.model_dump(), created=made, updated=made)
    return await ctx.settle(storefront_of_row(row), make, row=row)


def make(connection: Connection, *, row: Storefront) -> None:
    """Keep it, unless its slug is another's or there are too many."""
    if hold_number(connection, organisation=row.organisation) >= MOST_STOREFRONTS:
        raise TooManyStorefronts(
            f"Your organisation has {MOST_STOREFRONTS} storefronts, which is the most; nothing was made",
            hint="Change one that you no longer need: update_storefront",
        )
    if not insert_storefront(connection, row=row):
        raise slug_taken(row.slug)


@operation(
    "GET",
    "/v1/storefronts/{id}",
    title="Get storefront",
    raises=[NotFound],
    examples=[Example("Read a shop and what it sells", {"id": ID}, {**EXAMPLE, "plans": [PLAN]})],
)
async def get_storefront(ctx: Ctx, params: StorefrontRef) -> WholeStorefront:
    """Get one shop of your organisation, with all its plans.

    Plans that are not on sale are among them; buyers see only the others, once the shop is published.
    """
    found = await ctx.deps.store.read(whole, storefront=params.id, organisation=ctx.organisation)
    if found is None:
        raise no_such_storefront()
    return found


def whole(connection: Connection, *, storefront: str, organisation: str) -> WholeStorefront | None:
    """The shop and its plans, of one moment."""
    row = find_storefront(connection, storefront=storefront, organisation=organisation)
    if row is None:
        return None
    plans = plans_of(connection, storefront=row.id)
    return {**storefront_of_row(row), "plans": [plan_of_row(plan, row.currency) for plan in plans]}
