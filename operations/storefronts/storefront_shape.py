"""Shops and what they sell, as every door shows them."""

from typing import Annotated, Literal, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.connectivity.shapes import Currency
from operations.storefronts.storefront_fields import PriceMode, Status
from registry.errors import Conflict, NotFound
from registry.policy import stamp
from storage.shop.storefront_plans import Offer, StorefrontPlan
from storage.shop.storefronts import Storefront


class Identified(TypedDict):
    """What has an id, which its schema names first."""

    id: str


class Front(TypedDict):
    """What everybody sees of a shop."""

    object: Literal["storefront"]
    slug: str
    name: str
    tagline: str | None
    logo: Annotated[str | None, Field(description="data: URI")]
    accent: str | None
    support_email: str | None
    currency: Currency


class ShownStorefront(Identified, Front):
    """A shop; times are RFC 3339 UTC. Only a published one is there for buyers."""

    status: Status
    created: str
    updated: str


class ShownPlan(TypedDict):
    """What a shop sells. `price_cents` in cents of `currency`; `position` is its place in the shop."""

    id: str
    object: Literal["storefront.plan"]
    slug: str
    name: str
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
    payments_price_mode: PriceMode | None


class PublicPlan(TypedDict):
    """A plan as buyers see it."""

    id: str
    slug: str
    name: str
    data_mb: int
    validity_days: int
    countries: list[str]
    price_cents: int
    currency: Currency
    position: int


ID, PLAN_ID, PRODUCT_ID = "sf_01k0a8w7zv6q4k3m2n1p0r9s8t", "sfp_01k0a8w7zv6q4k3m2n1p0r9s8t", "cnp_01k0a8w7zv6q4k3m2n1p0r9s8t"
FRONT: Front = {
    "object": "storefront",
    "slug": "fjord-travel",
    "name": "Fjord Travel SIM",
    "tagline": "Data for the north",
    "logo": None,
    "accent": "#0b6e4f",
    "support_email": "help@fjord.example",
    "currency": "EUR",
}
EXAMPLE: ShownStorefront = {
    "id": ID,
    **FRONT,
    "status": "draft",
    "created": "2026-11-20T09:00:00Z",
    "updated": "2026-11-20T09:00:00Z",
}
PUBLIC_PLAN: PublicPlan = {
    "id": PLAN_ID,
    "slug": "nordic-5gb",
    "name": "Nordic 5 GB",
    "data_mb": 5000,
    "validity_days": 30,
    "countries": ["DK", "NO", "SE"],
    "price_cents": 1490,
    "currency": "EUR",
    "position": 0,
}
PLAN: ShownPlan = {
    "id": PLAN_ID,
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
    "package_template_id": 55010,
    "account_id": None,
    "payments_price_id": None,
    "payments_price_mode": None,
}


class SlugTaken(Conflict):
    """Another shop is found under this slug."""

    code = "slug_taken"


def front_of(row: Storefront) -> Front:
    """As everybody sees it."""
    return {
        "object": "storefront",
        "slug": row.slug,
        "name": row.name,
        "tagline": row.tagline,
        "logo": row.logo,
        "accent": row.accent,
        "support_email": row.support_email,
        "currency": cast(Currency, row.currency),
    }


def storefront_of_row(row: Storefront) -> ShownStorefront:
    """As its operator sees it."""
    return {
        "id": row.id,
        **front_of(row),
        "status": cast(Status, row.status),
        "created": stamp(row.created),
        "updated": stamp(row.updated),
    }


def countries_of(text: str) -> list[str]:
    """The codes as they are kept."""
    return cast(list[str], orjson.loads(text))


def plan_of_row(row: StorefrontPlan, currency: str) -> ShownPlan:
    """As its operator sees it."""
    return {
        "object": "storefront.plan",
        **public_plan(row, currency),
        "on_sale": bool(row.on_sale),
        "product_id": row.product,
        "package_template_id": row.template_id,
        "account_id": row.account_id,
        "payments_price_id": row.price_id,
        "payments_price_mode": cast("PriceMode | None", row.price_mode),
    }


def public_plan(row: StorefrontPlan | Offer, currency: str) -> PublicPlan:
    """As buyers see it."""
    return {
        "id": row.id,
        "slug": row.slug,
        "name": row.name,
        "data_mb": row.data_mb,
        "validity_days": row.validity_days,
        "countries": countries_of(row.countries),
        "price_cents": row.price_cents,
        "currency": cast(Currency, currency),
        "position": row.place,
    }


def no_such_storefront(param: str = "id") -> NotFound:
    """Unknown and foreign shops are answered alike."""
    return NotFound("Your organisation has no storefront with this id", param=param, hint="list_storefronts names yours")


def slug_taken(slug: str) -> SlugTaken:
    """Choice: whoever has it is not named."""
    return SlugTaken(f"Another shop has the slug {slug}, or had it; nothing was changed", param="slug", hint="Choose another slug")
