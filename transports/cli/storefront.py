"""`reseller storefront`: open a shop for products that are there, and list shops, here or at a server."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import orjson
import typer

from operations.connectivity.plans import NAMELESS_PLAN_SLUG, plan_slug
from operations.plans import Plan
from transports.cli.orders import decide_order
from transports.cli.target import CallTarget, JsonOption, TargetOptions, at_target, fresh_key, open_target, read_every_page, require_success
from transports.cli.terminal import Failure, print_line, print_rows

LONGEST_SLUG = 40

storefront_app = typer.Typer(no_args_is_help=True, help="Open shops where buyers pay your plans.")
storefront_app.command("settle")(decide_order)
ProductsOption = Annotated[list[str] | None, typer.Option("--from-product", help="Sell this product, cnp_...; may be repeated.")]
SlugOption = Annotated[str | None, typer.Option("--slug", help="Its address, /shop/SLUG; absent: from the name.")]
CurrencyOption = Annotated[str | None, typer.Option("--currency", help="USD, EUR, GBP or CHF; absent: that of the products.")]


@storefront_app.command("create")
@at_target
def create_shop(
    where: TargetOptions,
    name: Annotated[str, typer.Argument(help="What buyers know it by, 1-80 characters.")],
    slug: SlugOption = None,
    currency: CurrencyOption = None,
    from_product: ProductsOption = None,
    publish: Annotated[bool, typer.Option("--publish", help="Open it to buyers at once.")] = False,
) -> None:
    """Make a shop that sells these products, and print its id; without --publish it is a draft."""
    fields = {"slug": slug or slug_of_name(name), "name": name}
    print_line(asyncio.run(make_shop(where, fields, currency, from_product or (), publish=publish)))


@storefront_app.command("list")
@at_target
def list_shops(
    where: TargetOptions,
    as_json: JsonOption = False,
) -> None:
    """List shops: id, slug, status, currency and name."""
    rows = read_every_page(where, "list_storefronts", "reseller storefront list")
    print_rows(rows, lambda row: [str(row[name]) for name in ("id", "slug", "status", "currency", "name")], as_json=as_json)


def slug_of_name(name: str) -> str:
    """A slug made of the name. Raises Failure."""
    made = plan_slug(name, 0, ())
    if made == f"{NAMELESS_PLAN_SLUG}-0":
        raise Failure("--slug: the name has no letter that an address could be made of, so name one")
    return made[:LONGEST_SLUG].strip("-")


async def make_shop(where: TargetOptions, fields: Mapping[str, str], currency: str | None, sold: Sequence[str], *, publish: bool) -> str:
    """The id of the new shop, which sells the products `sold`. All faults of these are found before it is made."""
    async with open_target(where) as target:
        products = [cast(Plan, await call_storefront(target, "get_connectivity_product", {"id": id})) for id in sold]
        given = {**fields, "currency": shop_currency(products, currency)}
        shop = await call_storefront(target, "create_storefront", given, key=fresh_key("cli-"))
        id = str(shop["id"])
        slugs: set[str] = set()
        for place, product in enumerate(products):
            slug = plan_slug(product["name"], place, slugs)
            slugs.add(slug)
            plan = {"id": id, "slug": slug, "product_id": product["id"], "position": place}
            await call_storefront(target, "upsert_storefront_plan", plan, made=id)
        if publish:
            await call_storefront(target, "update_storefront", {"id": id, "status": "published"}, made=id)
        return id


def shop_currency(products: Sequence[Plan], named: str | None) -> str:
    """The currency of the shop, which is that of all its products. Raises Failure."""
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


async def call_storefront(
    target: CallTarget, operation: str, arguments: Mapping[str, object], *, key: str | None = None, made: str | None = None
) -> dict[str, object]:
    """The answer's object. Raises Failure, which names the shop `made` so far."""
    reply = await target.ask(operation, arguments, idempotency_key=key)
    try:
        return orjson.loads(require_success(reply, "reseller storefront create").body)
    except Failure as failure:
        if made is None:
            raise
        raise Failure(f"{failure.message}\nthe shop {made} was made, as a draft", exit_code=failure.exit_code) from None
