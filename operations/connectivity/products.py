"""Products: plans that an organisation defines for itself."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, cast

import orjson
from pydantic import Field, model_validator

from operations.deps import Ctx
from operations.plans import BYTES_PER_MB, Plan, PlanWarning, offered_plan, product_not_found
from operations.upstream.template_terms import (
    OfferedTerms,
    PlanPromise,
    PromiseExceedsTemplate,
    adaptation_fault,
    check_new_offer,
    compare_offers,
)
from operations.vocabulary import Currency, ListOf, LongListPage, list_page
from registry.errors import NotFound
from registry.operation import Example, Input, Once, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.package_adaptations import PackageTerms, adapted_among, set_adapted
from storage.products import ProductRow, find_product, insert_product, list_products

# Choice: two upper-case letters as in ISO 3166-1, but any two: the codes are the operator's own words.
ProductCountry = Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
# Choice: no control characters in a name that other people will be shown.
ProductName = Annotated[
    str, Field(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Shown to buyers; 1-80 characters.")
]


class NewProduct(Input):
    """A plan to define."""

    name: ProductName
    data_mb: Annotated[int, Field(ge=1, description="Megabytes (10^6 bytes).")]
    validity_days: Annotated[int, Field(ge=1, description="Days it is valid, from 1.")]
    countries: Annotated[
        list[ProductCountry], Field(min_length=1, max_length=250, description='Countries you promise, ISO 3166: ["DE","FR"].')
    ]
    price_cents: Annotated[int, Field(ge=1, description="Price in minor units.")]
    currency: Annotated[Currency, Field(description="ISO 4217.")]
    package_template_id: Annotated[int, Field(ge=1, description="Upstream template to draw from.")]
    account_id: Annotated[int | None, Field(ge=1, description="Upstream account; absent: yours.")] = None
    adapt: Annotated[bool, Field(description="Set each package to data_mb and validity_days.")] = False

    @model_validator(mode="after")
    def check(self) -> "NewProduct":
        """Raises FieldRule for an adapted product that no package can be set to."""
        fault = adaptation_fault(self.data_mb, self.validity_days) if self.adapt else None
        if fault is not None:
            raise fault
        return self


class ProductRef(Input):
    """Which product."""

    id: Annotated[str, Field(max_length=64, description="Product id, cnp_...")]


class Product(NamedTuple):
    """A product as it is stored. `adapt`: its packages get its own data and days."""

    row: ProductRow
    adapt: bool

    @property
    def terms(self) -> PackageTerms | None:
        """What its packages are set to; None: they stay as their template makes them."""
        return PackageTerms(self.row.data_mb * BYTES_PER_MB, self.row.validity_days) if self.adapt else None

    @property
    def offered(self) -> OfferedTerms:
        """What it promises, to be compared with its template."""
        row = self.row
        promise = PlanPromise(row.data_mb, row.validity_days, product_countries(row), row.price_cents, row.currency, self.adapt)
        return OfferedTerms(row.package_template_id, promise)


def product_countries(row: ProductRow) -> list[str]:
    return cast(list[str], orjson.loads(row.countries))


def product_plan(product: Product) -> Plan:
    """The product as it is sold, without what comparing it with its template tells."""
    row = product.row
    plan = offered_plan(
        row.id,
        row.name,
        data_mb=row.data_mb,
        validity_days=row.validity_days,
        countries=product_countries(row),
        price={"amount": row.price_cents, "currency": cast(Currency, row.currency)},
    )
    return {**plan, "adapt": product.adapt}


def compared_plan(product: Product, warnings: list[PlanWarning]) -> Plan:
    """The product with what its owner is warned of."""
    return {**product_plan(product), "warnings": warnings}


async def compared_plans(ctx: Ctx, products: Sequence[Product]) -> list[Plan]:
    """The products, each compared with its template. Waits a few seconds for the network."""
    warnings = await compare_offers(ctx, [product.offered for product in products])
    return [compared_plan(product, each) for product, each in zip(products, warnings, strict=True)]


def find_own_product(connection: Connection, *, product: str, organisation: str) -> Product | None:
    """The organisation's product, or None."""
    row = find_product(connection, product=product, organisation=organisation)
    return None if row is None else Product(row, row.id in adapted_among(connection, offers=[row.id]))


def list_own_products(connection: Connection, *, organisation: str, after: str | None, most: int) -> list[Product]:
    """At most `most` products behind the id `after`, newest first."""
    rows = list_products(connection, organisation=organisation, after=after, most=most)
    adapted = adapted_among(connection, offers=[row.id for row in rows])
    return [Product(row, row.id in adapted) for row in rows]


def insert_own_product(connection: Connection, *, product: Product) -> None:
    """Keeps a new product, and whether its packages are adapted."""
    insert_product(connection, row=product.row)
    if product.adapt:
        set_adapted(connection, offer=product.row.id, adapt=True)


PRODUCT_EXAMPLE: Plan = {
    **offered_plan(
        "cnp_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "Nordic 5 GB",
        data_mb=5000,
        validity_days=30,
        countries=["DK", "NO", "SE"],
        price={"amount": 1490, "currency": "EUR"},
    ),
    "adapt": False,
    "warnings": [
        {
            "code": "data_below_template",
            "message": "5000 MB are promised, and a package of the template holds 5368 MB (of 10^6 bytes): buyers get more",
        }
    ],
}


@operation(
    "GET",
    "/v1/connectivity/products",
    reaches_out=True,
    title="List products",
    examples=[Example("Which plans have we defined?", {}, {"object": "list", "data": [PRODUCT_EXAMPLE], "has_more": False})],
)
async def list_connectivity_products(ctx: Ctx, params: LongListPage) -> ListOf[Plan]:
    """List the plans your organisation defined, newest first; no test plans.

    `warnings` say how each differs from its template now.
    """
    read = ctx.deps.store.read
    products = await read(list_own_products, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return list_page(await compared_plans(ctx, products), params.limit)


@operation(
    "POST",
    "/v1/connectivity/products",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    once=Once(required=True, forever=True),
    status=201,
    reaches_out=True,
    title="Create product",
    raises=[PromiseExceedsTemplate, NotFound],
    examples=[
        Example(
            "Define a Nordic plan",
            {
                "name": "Nordic 5 GB",
                "data_mb": 5000,
                "validity_days": 30,
                "countries": ["DK", "NO", "SE"],
                "price_cents": 1490,
                "currency": "EUR",
                "package_template_id": 55011,
            },
            PRODUCT_EXAMPLE,
        )
    ],
)
async def create_connectivity_product(ctx: Ctx, params: NewProduct) -> Plan:
    """Define a plan of your own: data, days, countries and price.

    Issues nothing, charges nobody, cannot be changed later. More data, days or countries than the template has is refused, unless
    `adapt` sets packages to these data and days. `warnings`: what is less, or a price below cost.

    A template that is not there is refused. One that cannot be read now refuses nothing: a warning says so. With `adapt` the cost that the
    price is compared with is still the template's. The same key and body return the original product.
    """
    row = ProductRow(
        ctx.deps.ids.new("cnp_"),
        ctx.organisation,
        params.name,
        params.data_mb,
        params.validity_days,
        orjson.dumps(params.countries).decode(),
        params.price_cents,
        params.currency,
        params.package_template_id,
        params.account_id,
        int(ctx.now),
    )
    product = Product(row, params.adapt)
    warnings = await check_new_offer(ctx, product.offered, changeable=False)
    return await ctx.settle(compared_plan(product, warnings), insert_own_product, product=product)


@operation(
    "GET",
    "/v1/connectivity/products/{id}",
    reaches_out=True,
    title="Get product",
    raises=[NotFound],
    examples=[Example("Read one product", {"id": PRODUCT_EXAMPLE["id"]}, PRODUCT_EXAMPLE)],
)
async def get_connectivity_product(ctx: Ctx, params: ProductRef) -> Plan:
    """Get one product of your organisation by id."""
    product = await ctx.deps.store.read(find_own_product, product=params.id, organisation=ctx.organisation)
    if product is None:
        raise product_not_found("id")
    return (await compared_plans(ctx, [product]))[0]
