"""Changing a shop: its words, its looks, its slug, and whether it is there for buyers."""

from typing import Annotated, ClassVar

from pydantic import Field

from operations.connectivity.shapes import Currency
from operations.deps import Ctx
from operations.storefronts.storefront_fields import (
    Accent,
    Change,
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
    ShownStorefront,
    SlugTaken,
    no_such_storefront,
    slug_taken,
    storefront_of_row,
)
from operations.vocabulary import without_default
from registry.errors import Conflict, NotFound
from registry.limits import Scope
from registry.operation import Example, operation
from storage.connection import Connection
from storage.shop.storefront_plans import count_plans
from storage.shop.storefronts import Storefront, find_storefront, hold_storefront, slug_is_taken, take_address, write_storefront

KEPT = Field(json_schema_extra=without_default)


class StorefrontHasPlans(Conflict):
    """Prices are in the shop's currency, which therefore stays."""

    code = "storefront_has_plans"


class StorefrontChange(Change):
    """What to change; what is left out stays, null clears what may be unset."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"tagline", "logo", "accent", "support_email"})

    slug: Annotated[Slug, KEPT] = ""
    name: Annotated[Name, KEPT] = ""
    tagline: Tagline | None = None
    logo: Logo | None = None
    accent: Accent | None = None
    support_email: SupportEmail | None = None
    currency: Annotated[Currency, Field(description="Only while it has no plan.", json_schema_extra=without_default)] = "USD"
    status: Annotated[Status, Field(description="published opens it, draft closes it to buyers.", json_schema_extra=without_default)] = (
        "draft"
    )

    @property
    def given(self) -> dict[str, str | None]:
        """What is to be different, null for what is cleared."""
        return {name: getattr(self, name) for name in self.model_fields_set if name != "id"}


async def own_storefront(ctx: Ctx, params: StorefrontRef) -> Storefront:
    """The shop; a foreign one is not found."""
    row = await ctx.deps.store.read(find_storefront, storefront=params.id, organisation=ctx.organisation)
    if row is None:
        raise no_such_storefront()
    return row


@operation(
    "PATCH",
    "/v1/storefronts/{id}",
    scope=Scope.WRITE,
    access=own_storefront,
    title="Update storefront",
    raises=[NotFound, SlugTaken, StorefrontHasPlans],
    examples=[
        Example("Open the shop to buyers", {"id": ID, "status": "published"}, {**EXAMPLE, "status": "published"}),
        Example("Another colour", {"id": ID, "accent": "#7a1f5c"}, {**EXAMPLE, "accent": "#7a1f5c"}),
    ],
)
async def update_storefront(ctx: Ctx, params: StorefrontChange, row: Storefront) -> ShownStorefront:
    """Change a shop, open it to buyers (`published`) or close it (`draft`).

    What is left out stays; null clears tagline, logo, accent and support_email. A new slug takes the old address off the web.

    An address that was yours once stays yours: no other organisation gets it, and the links in your buyers' mails go on working.

    The currency cannot change once the shop has a plan (409 `storefront_has_plans`). Orders that were paid are not touched by anything
    that is changed here.
    """
    return await ctx.settle_result(change, storefront=row.id, organisation=row.organisation, given=params.given, now=ctx.now)


def change(connection: Connection, *, storefront: str, organisation: str, given: dict[str, str | None], now: float) -> ShownStorefront:
    """The shop as it is from now on. Choice: what changes nothing leaves `updated` as it is."""
    row = hold_storefront(connection, storefront=storefront, organisation=organisation)
    if row is None:
        raise no_such_storefront()
    wanted = row._replace(**given)
    if wanted == row:
        return storefront_of_row(row)
    if wanted.currency != row.currency and count_plans(connection, storefront=row.id):
        raise StorefrontHasPlans(
            f"The shop's plans are priced in {row.currency}, so its currency stays; nothing was changed",
            param="currency",
            hint="Make another storefront for another currency: create_storefront",
        )
    if wanted.slug != row.slug and (
        slug_is_taken(connection, slug=wanted.slug, storefront=row.id) or not take_address(connection, row=wanted, now=now)
    ):
        raise slug_taken(wanted.slug)
    wanted = wanted._replace(updated=int(now))
    write_storefront(connection, row=wanted)
    return storefront_of_row(wanted)
