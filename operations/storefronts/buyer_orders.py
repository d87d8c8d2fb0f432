"""What one buyer paid for in one shop, for the shop's own server."""

from operations.deps import Ctx
from operations.services.people.addresses import Email, normal
from operations.storefronts.order_example import NUMBER, READY
from operations.storefronts.order_list import Slug, after
from operations.storefronts.order_shape import Order, whole_shown
from operations.vocabulary import Limit, ListOf, StartingAfter, page
from registry.errors import BadRequest, NotFound
from registry.limits import Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from storage.connection import Connection
from storage.shop.order_lists import WholeOrder, orders_of_buyer
from storage.shop.storefronts import Storefront, published_at


class BuyerPage(Input):
    """Whose orders in which shop, and which part of the list."""

    storefront: Slug
    email: Email
    limit: Limit = 20
    starting_after: StartingAfter = None


async def published_shop(ctx: Ctx, params: BuyerPage) -> Storefront:
    """A shop that everybody sees, by a slug that it has or had; a draft is not found."""
    shop = await ctx.deps.store.read(published_at, slug=params.storefront)
    if shop is None:
        raise NotFound("There is no published storefront with this slug", param="storefront", hint="Name the slug in the shop's address")
    ctx.act_for(shop.organisation)
    return shop


@operation(
    "GET",
    "/api/orders",
    scope=Scope.NONE,
    auth=Auth.STOREFRONT,
    access=published_shop,
    title="List a buyer's orders",
    raises=[BadRequest, NotFound],
    examples=[
        Example(
            "A buyer's orders",
            {"storefront": "fjord-travel", "email": "ada@example.com"},
            {"object": "list", "data": [{**READY, "id": NUMBER}], "has_more": False},
        )
    ],
)
async def list_storefront_buyer_orders(ctx: Ctx, params: BuyerPage, shop: Storefront) -> ListOf[Order]:
    """List the orders that one address paid for in one published shop, newest first.

    The storefront key is needed always: an address alone opens nothing. Make sure that whoever asks owns the address.

    Each is the order itself, with what installs its eSIM. `id` is its number, which the storefront key opens.
    Addresses are compared in lower case.
    """
    rows = await ctx.deps.store.read(page_of_buyer, shop=shop, params=params)
    return page([whole_shown(ctx.deps.keyring, row) for row in rows], params.limit)


def page_of_buyer(connection: Connection, *, shop: Storefront, params: BuyerPage) -> list[WholeOrder]:
    """The rows, with one more than the limit."""
    return orders_of_buyer(
        connection,
        organisation=shop.organisation,
        storefront=shop.id,
        email=normal(params.email),
        after=after(connection, shop.organisation, params.starting_after),
        most=params.limit + 1,
    )
