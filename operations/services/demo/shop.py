"""The shop of the demo organisation: plans that the simulated network's account of the demo has in stock."""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from operations.services.demo.logo import demo_logo
from storage.connection import Connection
from storage.shop.storefront_plans import StorefrontPlan, put_plan
from storage.shop.storefronts import Storefront, insert_storefront

SLUG = "demo"
NAME = "Demo Telecom"
ACCENT = "#0f5f8c"
SUPPORT = "support@demo.invalid"
NORDICS = "DK FI IS NO SE"
EUROPE = "AT BE BG CH CY CZ DE DK EE ES FI FR GB GR HR HU IE IS IT LT LU LV MT NL NO PL PT RO RS SE SI SK TR"
ELSEWHERE = "AE AR AU BR CA CL CN CO CR DO EG HK ID IL IN JO JP KE KR MA MX MY NG NZ PE PH QA SA SG TH TN TW US VN ZA"


class Sold(NamedTuple):
    """A plan, and the package template that it is drawn on, which counts in MiB and so holds a little more."""

    slug: str
    name: str
    template_id: int
    data_mb: int
    validity_days: int
    countries: str
    price_cents: int
    on_sale: bool = True


PLANS = (
    Sold("europe-3gb", "Europe 3 GB", 55015, 3000, 30, EUROPE, 1490),
    Sold("nordics-1gb", "Nordics 1 GB", 55010, 1000, 30, NORDICS, 790),
    Sold("usa-3gb", "USA 3 GB", 55020, 3000, 30, "US", 1990),
    Sold("japan-3gb", "Japan 3 GB", 55023, 3000, 15, "JP", 1790),
    Sold("world-1gb", "World 1 GB", 55028, 1000, 30, f"{EUROPE} {ELSEWHERE}", 2290),
    Sold("baltics-2gb", "Baltics 2 GB", 55018, 2000, 15, "EE LT LV", 890, on_sale=False),
)


def seed_shop(connection: Connection, *, organisation: str, ids: Sequence[str], now: float) -> None:
    """A published shop with its plans; `ids` are the shop's and, in their order, the plans'."""
    storefront, made = ids[0], int(now)
    shop = Storefront(
        id=storefront,
        organisation=organisation,
        slug=SLUG,
        name=NAME,
        tagline="Data for your trip, on the phone you have",
        logo=demo_logo(),
        accent=ACCENT,
        support_email=SUPPORT,
        currency="EUR",
        status="published",
        created=made,
        updated=made,
    )
    insert_storefront(connection, row=shop)
    for place, (id, sold) in enumerate(zip(ids[1:], PLANS, strict=True)):
        put_plan(connection, row=plan_of(sold, id=id, storefront=storefront, place=place, made=made))


def plan_of(sold: Sold, *, id: str, storefront: str, place: int, made: int) -> StorefrontPlan:
    """Its row; it is drawn from the account that the organisation is connected to."""
    return StorefrontPlan(
        id=id,
        storefront=storefront,
        slug=sold.slug,
        name=sold.name,
        data_mb=sold.data_mb,
        validity_days=sold.validity_days,
        countries=orjson.dumps(sorted(sold.countries.split())).decode(),
        price_cents=sold.price_cents,
        on_sale=int(sold.on_sale),
        place=place,
        template_id=sold.template_id,
        account_id=None,
        product=None,
        price_id=None,
        price_mode=None,
        created=made,
        updated=made,
    )
