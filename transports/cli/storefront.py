"""`reseller storefront`: open a shop for products that are there, and list shops, here or at a server."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, cast

import orjson
import typer

from operations.connectivity.shapes import Plan
from operations.services.network.live_plans import NAMELESS, slug_of
from operations.storefronts.storefront_shape import ShownStorefront
from registry.clock import SystemClock
from registry.ids import SystemIds
from transports.cli.door import Data, Door, Key, Org, Url, Where, accepted, open_door
from transports.cli.failure import Failure
from transports.cli.keys import every
from transports.cli.order_settle import settle_one
from transports.cli.render import cell, indented, print_line

CREATE, LIST = "reseller storefront create", "reseller storefront list"
LONGEST_SLUG = 40

storefront_app = typer.Typer(no_args_is_help=True, help="Open shops where buyers pay your plans.")
storefront_app.command("settle")(settle_one)
Products = Annotated[list[str] | None, typer.Option("--from-product", help="Sell this product, cnp_...; may be repeated.")]
Slug = Annotated[str | None, typer.Option("--slug", help="Its address, /shop/SLUG; absent: from the name.")]
Currency = Annotated[str | None, typer.Option("--currency", help="USD, EUR, GBP or CHF; absent: that of the products.")]


class Wish(NamedTuple):
    """The shop to make."""

    name: str
    slug: str
    currency: str | None
    products: Sequence[str]
    publish: bool


@storefront_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What buyers know it by, 1-80 characters.")],
    slug: Slug = None,
    currency: Currency = None,
    from_product: Products = None,
    publish: Annotated[bool, typer.Option("--publish", help="Open it to buyers at once.")] = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Make a shop that sells these products, and print its id; without --publish it is a draft."""
    wish = Wish(name, slug or slug_from(name), currency, from_product or (), publish)
    print_line(asyncio.run(make(Where(url, key, org, data), wish)))


@storefront_app.command("list")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """List shops: id, slug, status, currency and name."""
    rows = asyncio.run(read(Where(url, key, org, data)))
    if as_json:
        print_line(indented({"data": rows}))
        return
    for row in rows:
        print_line("\t".join(map(cell, (row["id"], row["slug"], row["status"], row["currency"], row["name"]))))


def slug_from(name: str) -> str:
    """The name in the letters of an address."""
    made = slug_of(name, 0, ())
    if made == f"{NAMELESS}-0":
        raise Failure("--slug: the name has no letter that an address could be made of, so name one")
    return made[:LONGEST_SLUG].strip("-")


async def make(where: Where, wish: Wish) -> str:
    """The shop's id. Everything that can be wrong with the products is found before there is a shop."""
    async with open_door(where) as door:
        products = [cast(Plan, await ask(door, "get_connectivity_product", {"id": id})) for id in wish.products]
        wanted = {"slug": wish.slug, "name": wish.name, "currency": currency_of(products, wish.currency)}
        shop = await ask(door, "create_storefront", wanted, key=SystemIds(SystemClock()).new("cli-"))
        id = str(shop["id"])
        taken: set[str] = set()
        for place, product in enumerate(products):
            slug = slug_of(product["name"], place, taken)
            taken.add(slug)
            plan = {"id": id, "slug": slug, "product_id": product["id"], "position": place}
            await ask(door, "upsert_storefront_plan", plan, made=id)
        if wish.publish:
            await ask(door, "update_storefront", {"id": id, "status": "published"}, made=id)
        return id


def currency_of(products: Sequence[Plan], named: str | None) -> str:
    """What the shop sells in: a shop has one currency, and so have its products."""
    found = {product["id"]: product["price"]["currency"] for product in products if product["price"] is not None}
    chosen = named or next(iter(found.values()), None)
    if chosen is None:
        raise Failure("--currency: name USD, EUR, GBP or CHF, or a product with --from-product, whose currency it then is")
    for id, currency in found.items():
        if currency != chosen:
            raise Failure(
                f"--from-product: {id} is priced in {currency}, and the shop would sell in {chosen}; make a shop for each currency"
            )
    return chosen


async def ask(
    door: Door, operation: str, arguments: Mapping[str, object], *, key: str | None = None, made: str | None = None
) -> dict[str, object]:
    """One call's answer; a refusal says which shop is there by then."""
    reply = await door.ask(operation, arguments, idempotency_key=key)
    try:
        return orjson.loads(accepted(reply, CREATE).body)
    except Failure as failure:
        if made is None:
            raise
        raise Failure(f"{failure.message}\nthe shop {made} was made, as a draft", exit_code=failure.exit_code) from None


async def read(where: Where) -> list[ShownStorefront]:
    """Every shop."""
    async with open_door(where) as door:
        return cast("list[ShownStorefront]", await every(door, "list_storefronts", LIST))
