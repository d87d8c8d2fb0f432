"""What the buyers of an episode do: who buys which plan, how it is paid, what is added to it later, and who gives it back."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from storage.storefronts import StorefrontPlan
from tests.simulation.processor import Way
from tests.simulation.shops import SimulatedShop
from tests.simulation.tenants import SimulatedTenant, Tenants

Pays = Literal["never"] | Way
WAYS: Mapping[Pays, int] = {"card": 10, "bank": 1, "bank_fails": 1, "free": 1, "less": 1, "converted": 1, "never": 1}
LANGUAGES = ("en", "de")
CROWD, BY_HAND = 32, 0.1


@dataclass(frozen=True, slots=True)
class Purchase:
    """Something that is paid on a page: `after` are the seconds until it is paid, `settles` those until a bank's money is there."""

    plan: StorefrontPlan
    pays: Pays
    after: float
    settles: float


@dataclass(frozen=True, slots=True)
class Sale:
    """One buyer. `releases` are roll-backs by the operator, `returns` by the shop, all at once."""

    tenant: SimulatedTenant
    shop: SimulatedShop
    purchase: Purchase
    language: str
    top_ups: tuple[Purchase, ...]
    together: bool
    """The top-ups are paid at once."""
    releases: int
    returns: int
    refunds: float | None
    """Of the price: what the operator gives back by hand, and so does the service, perhaps."""


def draw_sales(rng: Random, tenants: Tenants, count: int) -> list[Sale]:
    return [draw_sale(rng, tenants) for _ in range(count)]


def draw_sale(rng: Random, tenants: Tenants) -> Sale:
    draw = rng.random
    tenant = tenants.all[int(draw() * len(tenants.all))]
    shop = tenants.shops[tenant.id]
    given_back = draw() < 0.4
    releases = int(draw() * 4) if draw() < 0.95 else CROWD
    return Sale(
        tenant=tenant,
        shop=shop,
        purchase=draw_purchase(rng, shop),
        language=LANGUAGES[int(draw() * 2)],
        top_ups=tuple(draw_purchase(rng, shop) for _ in range(int(draw() ** 2 * 4))),
        together=draw() < 0.5,
        releases=releases if given_back else 0,
        returns=int(draw() * 3) if given_back else 0,
        refunds=(0.5 if draw() < 0.5 else 1.0) if draw() < BY_HAND else None,
    )


def draw_purchase(rng: Random, shop: SimulatedShop) -> Purchase:
    """What is bought, and how it is paid: mostly soon, at times just before its page ends, or too late."""
    draw = rng.random
    plan = shop.plans[int(draw() * len(shop.plans))]
    after = draw() * 30 if draw() < 0.8 else draw() * 4000
    ways: list[Pays] = [*WAYS]
    return Purchase(plan, rng.choices(ways, [*WAYS.values()])[0], after, draw() ** 2 * 7200)
