"""What the organisations of an episode sell: a shop each, with plans, and an account at the payment processor."""

from dataclasses import dataclass

from registry.ids import Ids
from storage.connect_accounts import attach_connect_account
from storage.engine.sql import Connection
from storage.storefronts import Storefront, StorefrontPlan, insert_storefront, put_plan

SOLD = (("nordic-1gb", 55010, 990), ("nordic-3gb", 55011, 1990))
SUPPORT = "help@shop.sim.invalid"


@dataclass(frozen=True, slots=True)
class SimulatedShop:
    """A shop as it stays for all episodes. `payee` is its account at the processor."""

    storefront: Storefront
    plans: tuple[StorefrontPlan, ...]
    payee: str


def open_simulated_shop(connection: Connection, *, ids: Ids, organisation: str, account: int, now: float) -> SimulatedShop:
    """One of its plans names the account that it draws from, the other leaves it to the organisation's own."""
    since, payee = int(now), f"acct_{organisation[4:]}"
    attach_connect_account(connection, organisation=organisation, account=payee, kind="express", status="active", as_of=now, now=now)
    shop = Storefront(
        id=ids.new("sf_"),
        organisation=organisation,
        slug=f"shop-{organisation[-6:]}",
        name="Shop",
        tagline=None,
        logo=None,
        accent=None,
        support_email=SUPPORT,
        currency="EUR",
        status="published",
        created=since,
        updated=since,
    )
    insert_storefront(connection, row=shop)
    plans: list[StorefrontPlan] = []
    for place, (slug, template, price) in enumerate(SOLD):
        plan = StorefrontPlan(
            id=ids.new("sfp_"),
            storefront=shop.id,
            slug=slug,
            name=slug,
            data_mb=1000,
            validity_days=30,
            countries='["NO"]',
            price_cents=price,
            on_sale=1,
            place=place,
            template_id=template,
            account_id=account if place else None,
            product=None,
            price_id=None,
            price_mode=None,
            created=since,
            updated=since,
        )
        plans.append(put_plan(connection, row=plan))
    return SimulatedShop(shop, tuple(plans), payee)
