"""Plans of a shop: putting one in, with its own words or copied from a product, and changing it."""

from typing import Annotated, ClassVar, cast

import orjson
from pydantic import AfterValidator, Field, model_validator

from operations.deps import Ctx
from operations.plans import product_not_found
from operations.storefronts.hosted_storefronts import PLAN_PRODUCT_ID_EXAMPLE, STOREFRONT_ID_EXAMPLE, read_plan_countries
from operations.storefronts.storefronts import (
    STOREFRONT_PLAN_EXAMPLE,
    OwnStorefrontPlan,
    PartialStorefrontChange,
    ProcessorPriceMode,
    ShopDisplayName,
    ShownPlan,
    StorefrontRef,
    no_such_storefront,
    own_storefront,
    render_storefront_plan,
)
from operations.upstream.template_terms import PromiseExceedsTemplate, adaptation_fault, check_new_offer, compare_offers
from operations.vocabulary import COUNTRY_CODES, UpstreamId, check_country_code, plain_line, without_default
from registry.errors import BadRequest, Conflict, NotFound
from registry.operation import Example, FieldRule, Scope, SpendKind, operation
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection
from storage.package_adaptations import adapted_among, set_adapted
from storage.products import ProductRow, find_product
from storage.storefronts import Storefront, StorefrontPlan, count_plans, find_plan, find_storefront, hold_storefront, put_plan, write_plan

PLAN_DATA_MB_LIMIT, PLAN_DAYS_LIMIT, PLAN_PRICE_CENTS_LIMIT = 1_000_000_000, 36_500, 99_999_999


def each_plan_country_once(codes: list[str]) -> list[str]:
    return list(dict.fromkeys(codes))


PlanSlug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$",
        description="Names the plan in its shop: 1-64 of a-z, 0-9 and hyphens, none first or last.",
    ),
]
PlanDataMb = Annotated[int, Field(ge=1, le=PLAN_DATA_MB_LIMIT, description="Megabytes (10^6 bytes), 1-1000000000.")]
PlanDays = Annotated[int, Field(ge=1, le=PLAN_DAYS_LIMIT, description="Days it is valid, 1-36500.")]
SoldCountryCode = Annotated[str, Field(pattern=r"^[A-Z]{2}$"), AfterValidator(check_country_code)]
PlanCountries = Annotated[
    list[SoldCountryCode],
    Field(min_length=1, max_length=250, description='Where it works, ISO 3166-1 alpha-2: ["DE","FR"].'),
    AfterValidator(each_plan_country_once),
]
PlanPriceCents = Annotated[int, Field(ge=1, le=PLAN_PRICE_CENTS_LIMIT, description="Price in cents of the shop's currency, 1-99999999.")]
PlanPosition = Annotated[int, Field(ge=0, le=1_000_000, description="Place in the shop, 0-1000000: lower ones first, then older ones.")]
ProcessorPriceId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=255,
        pattern=r"^[A-Za-z0-9_]+$",
        description="A price at the payment processor, price_...; kept, not charged by.",
    ),
]
STOREFRONT_PLANS_LIMIT = 250
PLAN_FIELDS_OF_PRODUCT = ("name", "data_mb", "validity_days", "countries", "price_cents", "package_template_id")
"""What a product gives and a plan needs; its account comes with it, where it names one."""


class TooManyPlans(Conflict):
    """The shop has as many plans as it may have."""

    code = "too_many_plans"


class NewStorefrontPlan(StorefrontRef):
    """A plan, whole: what is left out has its default, or is the product's."""

    slug: PlanSlug
    product_id: Annotated[str | None, Field(max_length=64, description="Product to copy, cnp_...; fields given beside it win.")] = None
    name: ShopDisplayName | None = None
    data_mb: PlanDataMb | None = None
    validity_days: PlanDays | None = None
    countries: PlanCountries | None = None
    price_cents: PlanPriceCents | None = None
    package_template_id: Annotated[UpstreamId | None, Field(description="Upstream template to draw from.")] = None
    account_id: Annotated[UpstreamId | None, Field(description="Upstream account to draw from; absent: yours.")] = None
    on_sale: Annotated[bool, Field(description="Whether buyers see it.")] = True
    position: PlanPosition = 0
    payments_price_id: ProcessorPriceId | None = None
    payments_price_mode: Annotated[ProcessorPriceMode | None, Field(description="Of payments_price_id, and required with it.")] = None
    adapt: Annotated[bool | None, Field(description="Set each package to data_mb and validity_days; absent: as the product, else not.")] = (
        None
    )

    @model_validator(mode="after")
    def check(self) -> "NewStorefrontPlan":
        missing = [] if self.product_id is not None else [name for name in PLAN_FIELDS_OF_PRODUCT if getattr(self, name) is None]
        if missing:
            raise FieldRule(
                f"{missing[0]}: missing; it is required without product_id",
                param=missing[0],
                hint=f"Send {', '.join(missing)}, or product_id to copy a product of yours",
            )
        require_price_and_mode(self.payments_price_id, self.payments_price_mode)
        fault = adaptation_fault(self.data_mb, self.validity_days) if self.adapt else None
        if fault is not None:
            raise fault
        return self


class StorefrontPlanRef(StorefrontRef):
    """Which plan of which shop."""

    slug: Annotated[str, Field(max_length=64, description="The plan's slug.")]


def read_plan_version(connection: Connection, ctx: Ctx, params: StorefrontRef, hold: bool) -> ObjectVersion | None:
    """The version of a plan. Whoever changes a plan holds its shop."""
    shop = (hold_storefront if hold else find_storefront)(connection, storefront=params.id, organisation=ctx.organisation)
    slug = cast("StorefrontPlanRef | StorefrontPlanChange | NewStorefrontPlan", params).slug
    row = None if shop is None else find_plan(connection, storefront=shop.id, slug=slug)
    return None if row is None else ObjectVersion([row, row.id in adapted_among(connection, offers=[row.id])], row.updated)


PLAN_VERSION = Versioned("plan", read_plan_version, "get_storefront_plan", ("update_storefront_plan", "upsert_storefront_plan"))


@operation(
    "GET",
    "/v1/storefronts/{id}/plans/{slug}",
    reaches_out=True,
    tool=False,
    versioned=PLAN_VERSION,
    title="Get storefront plan",
    raises=[NotFound],
    examples=[
        Example("What does this plan promise?", {"id": STOREFRONT_ID_EXAMPLE, "slug": "nordic-5gb"}, STOREFRONT_PLAN_EXAMPLE),
    ],
)
async def get_storefront_plan(ctx: Ctx, params: StorefrontPlanRef) -> ShownPlan:
    """Get one plan of a shop of yours, on sale or not.

    As get_storefront shows it. Its ETag is of this plan alone, for a change that overwrites nobody else's.
    """

    def find(connection: Connection) -> OwnStorefrontPlan:
        shop = find_storefront(connection, storefront=params.id, organisation=ctx.organisation)
        if shop is None:
            raise no_such_storefront()
        row = find_plan(connection, storefront=shop.id, slug=params.slug)
        if row is None:
            raise no_such_plan()
        return OwnStorefrontPlan(row, shop.currency, row.id in adapted_among(connection, offers=[row.id]))

    plan = await ctx.deps.store.read(find)
    return render_storefront_plan(plan, (await compare_offers(ctx, [plan.offered]))[0])


def no_such_plan() -> NotFound:
    return NotFound("The storefront has no plan with this slug", param="slug", hint="get_storefront names its plans")


def require_price_and_mode(price_id: str | None, mode: str | None) -> None:
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
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    status=201,
    also=200,
    access=own_storefront,
    reaches_out=True,
    versioned=PLAN_VERSION,
    title="Put storefront plan",
    raises=[BadRequest, PromiseExceedsTemplate, NotFound, TooManyPlans],
    examples=[
        Example(
            "A plan of its own",
            {
                "id": STOREFRONT_ID_EXAMPLE,
                "slug": "nordic-5gb",
                "name": "Nordic 5 GB",
                "data_mb": 5000,
                "validity_days": 30,
                "countries": ["DK", "NO", "SE"],
                "price_cents": 1490,
                "package_template_id": 55011,
            },
            STOREFRONT_PLAN_EXAMPLE,
        ),
        Example(
            "A product, at the shop's price",
            {"id": STOREFRONT_ID_EXAMPLE, "slug": "nordic-5gb", "product_id": PLAN_PRODUCT_ID_EXAMPLE, "price_cents": 1290},
            {**STOREFRONT_PLAN_EXAMPLE, "product_id": PLAN_PRODUCT_ID_EXAMPLE, "price_cents": 1290},
        ),
    ],
)
async def upsert_storefront_plan(ctx: Ctx, params: NewStorefrontPlan, shop: Storefront) -> ShownPlan:
    """Put a plan into a shop: a new one (201), or in place of its slug (200).

    The whole plan is replaced, its id stays. `product_id` copies a product of yours once; fields given beside it win.

    A plan that promises more data, days or countries than its template has is refused; what it promises less, and a price below the
    template's cost, is in `warnings`. With `adapt` every package that is sold gets the plan's own data and days. A template that cannot be
    read refuses nothing: a warning says so. The price is in the shop's currency, so a product in another is refused. The account is looked
    up when the plan is sold: the plan's readiness says whether that will work. Paid orders keep what they bought. A shop has at most 250
    plans.
    """
    now = int(ctx.now)
    product, adapt = None, bool(params.adapt)
    if params.product_id is not None:
        product, is_adapted = await ctx.deps.store.read(find_copied_product, product=params.product_id, organisation=ctx.organisation)
        if product is None:
            raise product_not_found("product_id")
        require_fitting_product(product, params)
        adapt = is_adapted if params.adapt is None else params.adapt
    row = storefront_plan_row(params, product, id=ctx.deps.ids.new("sfp_"), storefront=shop.id, now=now)
    fault = adaptation_fault(row.data_mb, row.validity_days) if adapt else None
    if fault is not None:
        raise BadRequest(str(fault), param=fault.param, hint=fault.hint)
    require_shop_currency(product, shop)
    warnings = await check_new_offer(ctx, OwnStorefrontPlan(row, shop.currency, adapt).offered)

    def write(connection: Connection, *, row: StorefrontPlan) -> ShownPlan:
        held = hold_storefront(connection, storefront=shop.id, organisation=shop.organisation)
        if held is None:
            raise no_such_storefront()
        require_shop_currency(product, held)
        new = find_plan(connection, storefront=held.id, slug=row.slug) is None
        if new and count_plans(connection, storefront=held.id) >= STOREFRONT_PLANS_LIMIT:
            raise TooManyPlans(
                f"The shop has {STOREFRONT_PLANS_LIMIT} plans, which is the most; nothing was changed",
                hint="Put this one in place of one of them",
            )
        ctx.status = 201 if new else 200
        plan = put_plan(connection, row=row)
        set_adapted(connection, offer=plan.id, adapt=adapt)
        return render_storefront_plan(OwnStorefrontPlan(plan, held.currency, adapt), warnings)

    return await ctx.settle_result(write, row=row)


def find_copied_product(connection: Connection, *, product: str, organisation: str) -> tuple[ProductRow | None, bool]:
    """The organisation's product, and whether its packages are adapted."""
    row = find_product(connection, product=product, organisation=organisation)
    return row, row is not None and row.id in adapted_among(connection, offers=[row.id])


def storefront_plan_row(params: NewStorefrontPlan, product: ProductRow | None, *, id: str, storefront: str, now: int) -> StorefrontPlan:
    countries = (
        params.countries
        if product is None or params.countries is not None
        else each_plan_country_once(read_plan_countries(product.countries))
    )
    account = params.account_id if product is None or params.account_id is not None else product.account_id
    return StorefrontPlan(
        id=id,
        storefront=storefront,
        slug=params.slug,
        name=params.name or plain_line(require_plan_product(product).name),
        data_mb=params.data_mb or require_plan_product(product).data_mb,
        validity_days=params.validity_days or require_plan_product(product).validity_days,
        countries=orjson.dumps(countries).decode(),
        price_cents=params.price_cents or require_plan_product(product).price_cents,
        on_sale=int(params.on_sale),
        place=params.position,
        template_id=params.package_template_id or require_plan_product(product).package_template_id,
        account_id=account,
        product=params.product_id,
        price_id=params.payments_price_id,
        price_mode=params.payments_price_mode,
        created=now,
        updated=now,
    )


def require_plan_product(product: ProductRow | None) -> ProductRow:
    if product is None:
        raise RuntimeError("a plan without a product lacks a field that its input requires")
    return product


def require_fitting_product(product: ProductRow, params: NewStorefrontPlan) -> None:
    """Products have looser rules than what buyers are shown: what does not fit is to be given."""
    unknown = [code for code in read_plan_countries(product.countries) if code not in COUNTRY_CODES]
    faults = {
        "name": None if is_plain_plan_text(product.name) else "has characters that are not seen or change the direction of text",
        "countries": f"names {unknown[0]}, which is no country" if unknown else None,
        "data_mb": f"is above {PLAN_DATA_MB_LIMIT}" if product.data_mb > PLAN_DATA_MB_LIMIT else None,
        "validity_days": f"is above {PLAN_DAYS_LIMIT}" if product.validity_days > PLAN_DAYS_LIMIT else None,
        "price_cents": f"is above {PLAN_PRICE_CENTS_LIMIT}" if product.price_cents > PLAN_PRICE_CENTS_LIMIT else None,
    }
    for name, fault in faults.items():
        if fault is not None and getattr(params, name) is None:
            raise BadRequest(f"{name}: that of the product {fault}", param=name, hint=f"Send {name} beside product_id")


def is_plain_plan_text(text: str) -> bool:
    try:
        plain_line(text)
    except ValueError:
        return False
    return True


def require_shop_currency(product: ProductRow | None, shop: Storefront) -> None:
    """A price is a number of the shop's currency. Choice: also where price_cents is given, so that none is mistaken."""
    if product is not None and product.currency != shop.currency:
        raise BadRequest(
            f"product_id: the product is priced in {product.currency}, and the shop sells in {shop.currency}",
            param="product_id",
            hint=f"Name a product in {shop.currency}, or send the plan's fields without product_id",
        )


PLAN_FIELD_UNSET = Field(json_schema_extra=without_default)
PLAN_CHANGE_COLUMNS = {"price_cents": "price_cents", "on_sale": "on_sale", "position": "place"}
PROCESSOR_PRICE_FIELDS = ("payments_price_id", "payments_price_mode")


class StorefrontPlanChange(PartialStorefrontChange):
    """What to change; what is left out stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset(PROCESSOR_PRICE_FIELDS)

    slug: Annotated[str, Field(max_length=64, description="The plan's slug.")]
    price_cents: Annotated[PlanPriceCents, PLAN_FIELD_UNSET] = 0
    on_sale: Annotated[bool, Field(description="Whether buyers see it.", json_schema_extra=without_default)] = True
    position: Annotated[PlanPosition, PLAN_FIELD_UNSET] = 0
    payments_price_id: ProcessorPriceId | None = None
    payments_price_mode: Annotated[
        ProcessorPriceMode | None, Field(description="Of payments_price_id: set together, null clears both.")
    ] = None

    @model_validator(mode="after")
    def check(self) -> "StorefrontPlanChange":
        """A price and its mode are set together. Choice: null of the one and nothing of the other clears both."""
        require_price_and_mode(self.payments_price_id, self.payments_price_mode)
        return self

    @property
    def given(self) -> dict[str, int | str | None]:
        found: dict[str, int | str | None] = {
            column: int(getattr(self, name)) for name, column in PLAN_CHANGE_COLUMNS.items() if name in self.model_fields_set
        }
        if not self.model_fields_set.isdisjoint(PROCESSOR_PRICE_FIELDS):
            found |= {"price_id": self.payments_price_id, "price_mode": self.payments_price_mode}
        return found


@operation(
    "PATCH",
    "/v1/storefronts/{id}/plans/{slug}",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    access=own_storefront,
    reaches_out=True,
    versioned=PLAN_VERSION,
    title="Update storefront plan",
    raises=[BadRequest, NotFound],
    examples=[
        Example(
            "A lower price",
            {"id": STOREFRONT_ID_EXAMPLE, "slug": "nordic-5gb", "price_cents": 1290},
            {**STOREFRONT_PLAN_EXAMPLE, "price_cents": 1290},
        ),
        Example(
            "Take it off the shelf",
            {"id": STOREFRONT_ID_EXAMPLE, "slug": "nordic-5gb", "on_sale": False},
            {**STOREFRONT_PLAN_EXAMPLE, "on_sale": False},
        ),
    ],
)
async def update_storefront_plan(ctx: Ctx, params: StorefrontPlanChange, shop: Storefront) -> ShownPlan:
    """Change a plan's price, sale state, place in the shop, or stored payment Price.

    What is left out stays. The id of the payment Price and its mode are set together, and null clears both.

    The payment Price is kept beside the plan and nothing is charged by it yet: buyers pay price_cents. What else a plan is,
    upsert_storefront_plan replaces. Orders that were begun keep their price.
    """

    def find(connection: Connection) -> OwnStorefrontPlan:
        row = find_plan(connection, storefront=shop.id, slug=params.slug)
        if row is None:
            raise no_such_plan()
        return OwnStorefrontPlan(row._replace(**params.given), shop.currency, row.id in adapted_among(connection, offers=[row.id]))

    def change(connection: Connection, *, now: float) -> ShownPlan:
        held = hold_storefront(connection, storefront=shop.id, organisation=shop.organisation)
        if held is None:
            raise no_such_storefront()
        plan = find(connection)
        row = find_plan(connection, storefront=held.id, slug=params.slug)
        if plan.row != row:
            plan = plan._replace(row=plan.row._replace(updated=int(now)))
            write_plan(connection, row=plan.row)
        return render_storefront_plan(plan._replace(currency=held.currency), warnings)

    warnings = (await compare_offers(ctx, [(await ctx.deps.store.read(find)).offered]))[0]
    return await ctx.settle_result(change, now=ctx.now)
