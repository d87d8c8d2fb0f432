"""Putting a plan into a shop: with its own words, or copied from a product of the caller's."""

from typing import Annotated

import orjson
from pydantic import Field, model_validator

from operations.connectivity.products import no_such_product
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId
from operations.services.plain_line import plain_line
from operations.setup.onboarding_country import CODES
from operations.storefronts.storefront_fields import (
    MOST_DATA_MB,
    MOST_DAYS,
    MOST_PRICE_CENTS,
    Countries,
    DataMb,
    Days,
    Name,
    PlanSlug,
    Position,
    PriceCents,
    PriceId,
    PriceMode,
    StorefrontRef,
    once_each,
)
from operations.storefronts.storefront_shape import (
    ID,
    PLAN,
    PRODUCT_ID,
    ShownPlan,
    countries_of,
    no_such_storefront,
    plan_of_row,
)
from operations.storefronts.storefront_update import own_storefront
from registry.errors import BadRequest, Conflict, NotFound
from registry.limits import Scope
from registry.model import FieldRule
from registry.operation import Example, operation
from storage.connection import Connection
from storage.issuing.products import ProductRow, find_product
from storage.shop.storefront_plans import StorefrontPlan, count_plans, find_plan, put_plan
from storage.shop.storefronts import Storefront, hold_storefront

MOST_PLANS = 250
OF_PRODUCT = ("name", "data_mb", "validity_days", "countries", "price_cents", "package_template_id")
"""What a product gives and a plan needs; its account comes with it, where it names one."""


class TooManyPlans(Conflict):
    """The shop has as many plans as it may have."""

    code = "too_many_plans"


class NewPlan(StorefrontRef):
    """A plan, whole: what is left out has its default, or is the product's."""

    slug: PlanSlug
    product_id: Annotated[str | None, Field(max_length=64, description="Product to copy, cnp_...; fields given beside it win.")] = None
    name: Name | None = None
    data_mb: DataMb | None = None
    validity_days: Days | None = None
    countries: Countries | None = None
    price_cents: PriceCents | None = None
    package_template_id: Annotated[UpstreamId | None, Field(description="Upstream template to draw from.")] = None
    account_id: Annotated[UpstreamId | None, Field(description="Upstream account to draw from; absent: yours.")] = None
    on_sale: Annotated[bool, Field(description="Whether buyers see it.")] = True
    position: Position = 0
    payments_price_id: PriceId | None = None
    payments_price_mode: Annotated[PriceMode | None, Field(description="Of payments_price_id, and required with it.")] = None

    @model_validator(mode="after")
    def check(self) -> "NewPlan":
        """Whole without a product, and a price with its mode."""
        missing = [] if self.product_id is not None else [name for name in OF_PRODUCT if getattr(self, name) is None]
        if missing:
            raise FieldRule(
                f"{missing[0]}: missing; it is required without product_id",
                param=missing[0],
                hint=f"Send {', '.join(missing)}, or product_id to copy a product of yours",
            )
        require_pair(self.payments_price_id, self.payments_price_mode)
        return self


def require_pair(price_id: str | None, mode: str | None) -> None:
    """A price and its mode belong together."""
    if (price_id is None) == (mode is None):
        return
    there, lacking = ("payments_price_id", "payments_price_mode") if mode is None else ("payments_price_mode", "payments_price_id")
    how = "test or live" if mode is None else "the price's id at the payment processor"
    raise FieldRule(
        f"{lacking}: missing; it is set together with {there}",
        param=lacking,
        hint=f"Send both ({lacking}: {how}); null clears both",
    )


@operation(
    "POST",
    "/v1/storefronts/{id}/plans",
    scope=Scope.WRITE,
    status=201,
    also=200,
    access=own_storefront,
    title="Put storefront plan",
    raises=[BadRequest, NotFound, TooManyPlans],
    examples=[
        Example(
            "A plan of its own",
            {
                "id": ID,
                "slug": "nordic-5gb",
                "name": "Nordic 5 GB",
                "data_mb": 5000,
                "validity_days": 30,
                "countries": ["DK", "NO", "SE"],
                "price_cents": 1490,
                "package_template_id": 55010,
            },
            PLAN,
        ),
        Example(
            "A product, at the shop's price",
            {"id": ID, "slug": "nordic-5gb", "product_id": PRODUCT_ID, "price_cents": 1290},
            {**PLAN, "product_id": PRODUCT_ID, "price_cents": 1290},
        ),
    ],
)
async def upsert_storefront_plan(ctx: Ctx, params: NewPlan, shop: Storefront) -> ShownPlan:
    """Put a plan into a shop: a new one (201), or in place of its slug (200).

    The whole plan is replaced, its id stays. `product_id` copies a product of yours once; fields given beside it win.

    The price is in the shop's currency, so a product in another is refused. Template and account are looked up when the plan is sold,
    not here: the plan's readiness says whether that will work. Paid orders keep what they bought. A shop has at most 250 plans.
    """
    now = int(ctx.now)
    product = None
    if params.product_id is not None:
        product = await ctx.deps.store.read(find_product, product=params.product_id, organisation=ctx.organisation)
        if product is None:
            raise no_such_product("product_id")
        require_fitting(product, params)
    row = row_of(params, product, id=ctx.deps.ids.new("sfp_"), storefront=shop.id, now=now)

    def write(connection: Connection, *, row: StorefrontPlan) -> ShownPlan:
        held = hold_storefront(connection, storefront=shop.id, organisation=shop.organisation)
        if held is None:
            raise no_such_storefront()
        require_currency(product, held)
        new = find_plan(connection, storefront=held.id, slug=row.slug) is None
        if new and count_plans(connection, storefront=held.id) >= MOST_PLANS:
            raise TooManyPlans(
                f"The shop has {MOST_PLANS} plans, which is the most; nothing was changed", hint="Put this one in place of one of them"
            )
        ctx.status = 201 if new else 200
        return plan_of_row(put_plan(connection, row=row), held.currency)

    return await ctx.settle_result(write, row=row)


def row_of(params: NewPlan, product: ProductRow | None, *, id: str, storefront: str, now: int) -> StorefrontPlan:
    """What is kept: what was given, and where nothing was, the product's."""
    countries = params.countries if product is None or params.countries is not None else once_each(countries_of(product.countries))
    account = params.account_id if product is None or params.account_id is not None else product.account_id
    return StorefrontPlan(
        id=id,
        storefront=storefront,
        slug=params.slug,
        name=params.name or plain_line(of(product).name),
        data_mb=params.data_mb or of(product).data_mb,
        validity_days=params.validity_days or of(product).validity_days,
        countries=orjson.dumps(countries).decode(),
        price_cents=params.price_cents or of(product).price_cents,
        on_sale=int(params.on_sale),
        place=params.position,
        template_id=params.package_template_id or of(product).package_template_id,
        account_id=account,
        product=params.product_id,
        price_id=params.payments_price_id,
        price_mode=params.payments_price_mode,
        created=now,
        updated=now,
    )


def of(product: ProductRow | None) -> ProductRow:
    """Where a field was not given there is a product."""
    if product is None:
        raise RuntimeError("a plan without a product lacks a field that its input requires")
    return product


def require_fitting(product: ProductRow, params: NewPlan) -> None:
    """Products have looser rules than what buyers are shown: what does not fit is to be given."""
    unknown = [code for code in countries_of(product.countries) if code not in CODES]
    faults = {
        "name": None if is_plain(product.name) else "has characters that are not seen or change the direction of text",
        "countries": f"names {unknown[0]}, which is no country" if unknown else None,
        "data_mb": f"is above {MOST_DATA_MB}" if product.data_mb > MOST_DATA_MB else None,
        "validity_days": f"is above {MOST_DAYS}" if product.validity_days > MOST_DAYS else None,
        "price_cents": f"is above {MOST_PRICE_CENTS}" if product.price_cents > MOST_PRICE_CENTS else None,
    }
    for name, fault in faults.items():
        if fault is not None and getattr(params, name) is None:
            raise BadRequest(f"{name}: that of the product {fault}", param=name, hint=f"Send {name} beside product_id")


def is_plain(text: str) -> bool:
    """Whether buyers can be shown it."""
    try:
        plain_line(text)
    except ValueError:
        return False
    return True


def require_currency(product: ProductRow | None, shop: Storefront) -> None:
    """A price is a number of the shop's currency. Choice: also where price_cents is given, so that none is mistaken."""
    if product is not None and product.currency != shop.currency:
        raise BadRequest(
            f"product_id: the product is priced in {product.currency}, and the shop sells in {shop.currency}",
            param="product_id",
            hint=f"Name a product in {shop.currency}, or send the plan's fields without product_id",
        )
