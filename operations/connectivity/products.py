"""Products: plans that an organisation defines for itself."""

from typing import Annotated, cast

import orjson
from pydantic import Field

from operations.deps import Ctx
from operations.plans import Plan, offered_plan, product_not_found
from operations.vocabulary import Currency, ListOf, LongListPage, list_page
from registry.errors import NotFound
from registry.operation import Example, Input, Once, Scope, operation
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
    price_cents: Annotated[int, Field(ge=1, description="Price in minor units (cents).")]
    currency: Annotated[Currency, Field(description="Currency of the price (ISO 4217).")]
    package_template_id: Annotated[int, Field(ge=1, description="Upstream template to draw from.")]
    account_id: Annotated[int | None, Field(ge=1, description="Upstream account; absent: yours.")] = None


class ProductRef(Input):
    """Which product."""

    id: Annotated[str, Field(max_length=64, description="Product id, cnp_...")]


def product_plan(row: ProductRow) -> Plan:
    return offered_plan(
        row.id,
        row.name,
        data_mb=row.data_mb,
        validity_days=row.validity_days,
        countries=cast(list[str], orjson.loads(row.countries)),
        price={"amount": row.price_cents, "currency": cast(Currency, row.currency)},
    )


PRODUCT_EXAMPLE = offered_plan(
    "cnp_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "Nordic 5 GB",
    data_mb=5000,
    validity_days=30,
    countries=["DK", "NO", "SE"],
    price={"amount": 1490, "currency": "EUR"},
)


@operation(
    "GET",
    "/v1/connectivity/products",
    title="List products",
    examples=[Example("Which plans have we defined?", {}, {"object": "list", "data": [PRODUCT_EXAMPLE], "has_more": False})],
)
async def list_connectivity_products(ctx: Ctx, params: LongListPage) -> ListOf[Plan]:
    """List the plans your organisation defined, newest first; no test plans."""
    read = ctx.deps.store.read
    rows = await read(list_products, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return list_page([product_plan(row) for row in rows], params.limit)


@operation(
    "POST",
    "/v1/connectivity/products",
    scope=Scope.WRITE,
    once=Once(required=True, forever=True),
    status=201,
    title="Create product",
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
                "package_template_id": 581423,
            },
            PRODUCT_EXAMPLE,
        )
    ],
)
async def create_connectivity_product(ctx: Ctx, params: NewProduct) -> Plan:
    """Define a plan of your own: data, days, countries and price.

    Issues nothing, charges nobody, cannot be changed later.

    `countries` are your own claim and are not compared with any coverage. The template is looked up when an intent is issued,
    not here. The same key and body return the original product.
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
    return await ctx.settle(product_plan(row), insert_product, row=row)


@operation(
    "GET",
    "/v1/connectivity/products/{id}",
    title="Get product",
    raises=[NotFound],
    examples=[Example("Read one product", {"id": PRODUCT_EXAMPLE["id"]}, PRODUCT_EXAMPLE)],
)
async def get_connectivity_product(ctx: Ctx, params: ProductRef) -> Plan:
    """Get one product of your organisation by id."""
    row = await ctx.deps.store.read(find_product, product=params.id, organisation=ctx.organisation)
    if row is None:
        raise product_not_found("id")
    return product_plan(row)
