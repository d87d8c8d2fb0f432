"""Shops of an organisation, as their operator makes, reads and changes them."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, cast

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.plans import PlanWarning
from operations.storefronts.hosted_storefronts import (
    PLAN_ID_EXAMPLE,
    PUBLIC_STOREFRONT_EXAMPLE,
    STOREFRONT_ID_EXAMPLE,
    PublicStorefront,
    read_plan_countries,
    render_public_plan,
)
from operations.upstream.template_terms import OfferedTerms, PlanPromise, compare_offers
from operations.vocabulary import Currency, Email, ListOf, ListPage, list_page, plain_line, render_fields, without_default
from registry.clock import rfc3339_utc
from registry.errors import Conflict, NotFound
from registry.free_text import FreeText
from registry.operation import Example, Input, Once, Scope, SpendKind, operation
from registry.versions import ObjectVersion, Versioned
from storage.engine.sql import Connection
from storage.package_adaptations import adapted_among
from storage.storefronts import (
    Storefront,
    StorefrontPlan,
    count_plans,
    find_storefront,
    hold_storefront,
    hold_storefront_count,
    insert_storefront,
    plans_of,
    slug_is_taken,
    take_address,
    write_storefront,
)
from storage.storefronts import list_storefronts as list_shops

StorefrontStatus = Literal["draft", "published"]
ProcessorPriceMode = Literal["test", "live"]
LOGO_LENGTH_LIMIT = 32 * 1024
LOGO_BASE64_PATTERN = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"
LOGO_PATTERN = rf"^data:image/(?:png|jpeg|webp|gif);base64,{LOGO_BASE64_PATTERN}$"
# Choice: a slug begins and ends with a letter or a digit.
StorefrontSlug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9-]{1,38}[a-z0-9]$",
        description="Where it is found, /shop/{slug}: 3-40 of a-z, 0-9 and hyphens, none first or last; no other shop may have it.",
    ),
]
ShopDisplayName = Annotated[
    str, Field(min_length=1, max_length=80, description="Shown to buyers, 1-80 characters."), AfterValidator(plain_line)
]
ShopTagline = Annotated[
    str, Field(min_length=1, max_length=160, description="A line below the name, 1-160 characters."), AfterValidator(plain_line)
]
# Choice: pictures made of dots alone. An SVG is a document, with links and styles of its own.
ShopLogo = Annotated[
    str,
    Field(
        max_length=LOGO_LENGTH_LIMIT,
        pattern=LOGO_PATTERN,
        description="data:image/png;base64,... (or jpeg, webp, gif), at most 32768 characters.",
    ),
]
ShopAccent = Annotated[
    str, Field(pattern=r"^#[0-9a-fA-F]{6}$", description="Colour of buttons: #rrggbb."), AfterValidator(lambda text: text.lower())
]
ShopSupportEmail = Annotated[Email, Field(description="Where buyers ask for help, at most 254 characters; shown to them.")]


class StorefrontRef(Input):
    """Which shop."""

    id: Annotated[str, Field(max_length=64, description="Storefront id, sf_...")]


class PartialStorefrontChange(StorefrontRef):
    """What is left out stays: a call that leaves a field out is another one than a call that gives it, whatever it gives."""

    @property
    def removed(self) -> Sequence[str]:
        """All fields that were given, so that the same key with other fields is refused."""
        return sorted(self.model_fields_set)


class IdentifiedStorefront(TypedDict):
    """What has an id, which its schema names first."""

    id: str


class ShownStorefront(IdentifiedStorefront, PublicStorefront):
    """A shop; times are RFC 3339 UTC. Only a published one is there for buyers."""

    status: StorefrontStatus
    created: str
    updated: str


class ShownPlan(TypedDict):
    """What a shop sells. `price_cents` in cents of `currency`; `position` is its place in the shop."""

    id: str
    object: Literal["storefront.plan"]
    slug: str
    name: FreeText
    data_mb: int
    validity_days: int
    countries: list[str]
    price_cents: int
    currency: Currency
    on_sale: bool
    position: int
    product_id: Annotated[str | None, Field(description="The product it was copied from")]
    package_template_id: int
    account_id: Annotated[int | None, Field(description="Null: your connected account")]
    payments_price_id: str | None
    payments_price_mode: ProcessorPriceMode | None
    adapt: Annotated[bool, Field(description="Its packages get its own data and days, not their template's")]
    warnings: Annotated[list[PlanWarning], Field(description="How it differs from its template now")]


STOREFRONT_EXAMPLE: ShownStorefront = {
    "id": STOREFRONT_ID_EXAMPLE,
    **PUBLIC_STOREFRONT_EXAMPLE,
    "status": "draft",
    "created": "2026-11-20T09:00:00Z",
    "updated": "2026-11-20T09:00:00Z",
}
STOREFRONT_PLAN_EXAMPLE: ShownPlan = {
    "id": PLAN_ID_EXAMPLE,
    "object": "storefront.plan",
    "slug": "nordic-5gb",
    "name": "Nordic 5 GB",
    "data_mb": 5000,
    "validity_days": 30,
    "countries": ["DK", "NO", "SE"],
    "price_cents": 1490,
    "currency": "EUR",
    "on_sale": True,
    "position": 0,
    "product_id": None,
    "package_template_id": 55011,
    "account_id": None,
    "payments_price_id": None,
    "payments_price_mode": None,
    "adapt": False,
    "warnings": [],
}


class SlugTaken(Conflict):
    """Another shop is found under this slug."""

    code = "slug_taken"


def render_storefront(row: Storefront) -> ShownStorefront:
    created, updated = rfc3339_utc(row.created), rfc3339_utc(row.updated)
    return render_fields(row, ShownStorefront, object="storefront", created=created, updated=updated)


class OwnStorefrontPlan(NamedTuple):
    """A plan of a shop that sells in `currency`. `adapt`: its packages get its own data and days."""

    row: StorefrontPlan
    currency: str
    adapt: bool

    @property
    def offered(self) -> OfferedTerms:
        """What it promises, to be compared with its template."""
        row = self.row
        promise = PlanPromise(
            row.data_mb, row.validity_days, read_plan_countries(row.countries), row.price_cents, self.currency, self.adapt
        )
        return OfferedTerms(row.template_id, promise)


def render_storefront_plan(plan: OwnStorefrontPlan, warnings: list[PlanWarning]) -> ShownPlan:
    """The plan as its operator sees it, with what comparing it with its template tells."""
    row = plan.row
    return {
        "object": "storefront.plan",
        **render_public_plan(row, plan.currency),
        "on_sale": bool(row.on_sale),
        "product_id": row.product,
        "package_template_id": row.template_id,
        "account_id": row.account_id,
        "payments_price_id": row.price_id,
        "payments_price_mode": cast("ProcessorPriceMode | None", row.price_mode),
        "adapt": plan.adapt,
        "warnings": warnings,
    }


def no_such_storefront() -> NotFound:
    """The refusal; unknown and foreign shops are answered alike."""
    return NotFound("Your organisation has no storefront with this id", param="id", hint="list_storefronts names yours")


def slug_is_refused(slug: str) -> SlugTaken:
    """Choice: whoever has it is not named."""
    return SlugTaken(f"Another shop has the slug {slug}, or had it; nothing was changed", param="slug", hint="Choose another slug")


STOREFRONTS_LIMIT = 100


class TooManyStorefronts(Conflict):
    """The organisation has as many shops as it may have."""

    code = "too_many_storefronts"


class NewStorefront(Input):
    """A shop to make."""

    slug: StorefrontSlug
    name: ShopDisplayName
    currency: Annotated[Currency, Field(description="Of all its prices (ISO 4217); stays once it has a plan.")]
    tagline: ShopTagline | None = None
    logo: ShopLogo | None = None
    accent: ShopAccent | None = None
    support_email: ShopSupportEmail | None = None
    status: Annotated[StorefrontStatus, Field(description="Only a published shop is there for buyers.")] = "draft"


class WholeStorefront(ShownStorefront):
    """A shop with all its plans, on sale or not, as they are displayed."""

    plans: list[ShownPlan]


@operation(
    "GET",
    "/v1/storefronts",
    title="List storefronts",
    examples=[Example("Which shops have we?", {}, {"object": "list", "data": [STOREFRONT_EXAMPLE], "has_more": False})],
)
async def list_storefronts(ctx: Ctx, params: ListPage) -> ListOf[ShownStorefront]:
    """List the shops of your organisation, newest first; no plans."""
    rows = await ctx.deps.store.read(list_shops, organisation=ctx.organisation, after=params.starting_after, most=params.limit + 1)
    return list_page([render_storefront(row) for row in rows], params.limit)


@operation(
    "POST",
    "/v1/storefronts",
    spends=SpendKind.OPEN,
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
            STOREFRONT_EXAMPLE,
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
    return await ctx.settle(render_storefront(row), insert_new_storefront, row=row)


def insert_new_storefront(connection: Connection, *, row: Storefront) -> None:
    if hold_storefront_count(connection, organisation=row.organisation) >= STOREFRONTS_LIMIT:
        raise TooManyStorefronts(
            f"Your organisation has {STOREFRONTS_LIMIT} storefronts, which is the most; nothing was made",
            hint="Change one that you no longer need: update_storefront",
        )
    if not insert_storefront(connection, row=row):
        raise slug_is_refused(row.slug)


def read_storefront_version(connection: Connection, ctx: Ctx, params: StorefrontRef, hold: bool) -> ObjectVersion | None:
    """The version of a shop, without its plans: each of them has its own."""
    find = hold_storefront if hold else find_storefront
    row = find(connection, storefront=params.id, organisation=ctx.organisation)
    return None if row is None else ObjectVersion(row, row.updated)


STOREFRONT_VERSION = Versioned("shop", read_storefront_version, "get_storefront", ("update_storefront",))


@operation(
    "GET",
    "/v1/storefronts/{id}",
    reaches_out=True,
    versioned=STOREFRONT_VERSION,
    title="Get storefront",
    raises=[NotFound],
    examples=[
        Example("Read a shop and what it sells", {"id": STOREFRONT_ID_EXAMPLE}, {**STOREFRONT_EXAMPLE, "plans": [STOREFRONT_PLAN_EXAMPLE]})
    ],
)
async def get_storefront(ctx: Ctx, params: StorefrontRef) -> WholeStorefront:
    """Get one shop of your organisation, with all its plans.

    Plans that are not on sale are among them; buyers see only the others, once the shop is published. `warnings` of a plan, which
    buyers do not see, say how it differs from its template now.
    """

    def find(connection: Connection) -> tuple[Storefront, list[OwnStorefrontPlan]]:
        row = find_storefront(connection, storefront=params.id, organisation=ctx.organisation)
        if row is None:
            raise no_such_storefront()
        plans = plans_of(connection, storefront=row.id)
        adapted = adapted_among(connection, offers=[plan.id for plan in plans])
        return row, [OwnStorefrontPlan(plan, row.currency, plan.id in adapted) for plan in plans]

    row, plans = await ctx.deps.store.read(find)
    warnings = await compare_offers(ctx, [plan.offered for plan in plans])
    return {**render_storefront(row), "plans": [render_storefront_plan(*each) for each in zip(plans, warnings, strict=True)]}


STOREFRONT_FIELD_UNSET = Field(json_schema_extra=without_default)


class StorefrontHasPlans(Conflict):
    """Prices are in the shop's currency, which therefore stays."""

    code = "storefront_has_plans"


class StorefrontChange(PartialStorefrontChange):
    """What to change; what is left out stays, null clears what may be unset."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"tagline", "logo", "accent", "support_email"})

    slug: Annotated[StorefrontSlug, STOREFRONT_FIELD_UNSET] = ""
    name: Annotated[ShopDisplayName, STOREFRONT_FIELD_UNSET] = ""
    tagline: ShopTagline | None = None
    logo: ShopLogo | None = None
    accent: ShopAccent | None = None
    support_email: ShopSupportEmail | None = None
    currency: Annotated[Currency, Field(description="Only while it has no plan.", json_schema_extra=without_default)] = "USD"
    status: Annotated[
        StorefrontStatus, Field(description="published opens it, draft closes it to buyers.", json_schema_extra=without_default)
    ] = "draft"

    @property
    def given(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in self.model_fields_set if name != "id"}


async def own_storefront(ctx: Ctx, params: StorefrontRef) -> Storefront:
    """The access rule: the organisation's own shop. Raises NotFound for a foreign one."""
    row = await ctx.deps.store.read(find_storefront, storefront=params.id, organisation=ctx.organisation)
    if row is None:
        raise no_such_storefront()
    return row


@operation(
    "PATCH",
    "/v1/storefronts/{id}",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    access=own_storefront,
    versioned=STOREFRONT_VERSION,
    title="Update storefront",
    raises=[NotFound, SlugTaken, StorefrontHasPlans],
    examples=[
        Example(
            "Open the shop to buyers", {"id": STOREFRONT_ID_EXAMPLE, "status": "published"}, {**STOREFRONT_EXAMPLE, "status": "published"}
        ),
        Example("Another colour", {"id": STOREFRONT_ID_EXAMPLE, "accent": "#7a1f5c"}, {**STOREFRONT_EXAMPLE, "accent": "#7a1f5c"}),
    ],
)
async def update_storefront(ctx: Ctx, params: StorefrontChange, row: Storefront) -> ShownStorefront:
    """Change a shop, open it to buyers (`published`) or close it (`draft`).

    What is left out stays; null clears tagline, logo, accent and support_email. A new slug takes the old address off the web.

    An address that was yours once stays yours: no other organisation gets it, and the links in your buyers' mails go on working.

    The currency cannot change once the shop has a plan (409 `storefront_has_plans`). Orders that were paid are not touched by anything
    that is changed here.
    """
    return await ctx.settle_result(change_storefront, shop=row, given=params.given, now=ctx.now)


def change_storefront(connection: Connection, *, shop: Storefront, given: dict[str, str | None], now: float) -> ShownStorefront:
    """The shop as it is from now on. Choice: what changes nothing leaves `updated` as it is."""
    row = hold_storefront(connection, storefront=shop.id, organisation=shop.organisation)
    if row is None:
        raise no_such_storefront()
    wanted = row._replace(**given)
    if wanted == row:
        return render_storefront(row)
    if wanted.currency != row.currency and count_plans(connection, storefront=row.id):
        raise StorefrontHasPlans(
            f"The shop's plans are priced in {row.currency}, so its currency stays; nothing was changed",
            param="currency",
            hint="Make another storefront for another currency: create_storefront",
        )
    if wanted.slug != row.slug and (
        slug_is_taken(connection, slug=wanted.slug, storefront=row.id) or not take_address(connection, row=wanted, now=now)
    ):
        raise slug_is_refused(wanted.slug)
    wanted = wanted._replace(updated=int(now))
    write_storefront(connection, row=wanted)
    return render_storefront(wanted)
