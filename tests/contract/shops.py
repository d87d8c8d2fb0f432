"""What an organisation on the stage sells, and what documented inputs name of it."""

from typing import Any

import orjson

from storage.products import ProductRow, insert_product
from storage.storefronts import Storefront, StorefrontPlan, insert_storefront, put_plan
from tests.network_facts import NORDIC_5GB
from tests.world import Credentials, World

Input = dict[str, Any]


async def free_slug(world: World, who: Credentials) -> Input:
    del who
    return {"slug": world.ids.new("shop-")}


async def shop(world: World, who: Credentials) -> Input:
    id, slug, now = world.ids.new("sf_"), (await free_slug(world, who))["slug"], int(world.clock.now())
    row = Storefront(id, who.organisation, slug, "Fjord Travel SIM", None, None, None, None, "EUR", "published", now, now)
    assert await world.store.write(insert_storefront, row=row)
    return {"id": id, "slug": slug}


async def shop_by_id(world: World, who: Credentials) -> Input:
    """The same, for an input that does not name its slug."""
    return {"id": (await shop(world, who))["id"]}


async def documented_product(world: World, who: Credentials) -> str:
    """The product of the documented example, as if it had been asked for; its id."""
    id, now = world.ids.new("cnp_"), int(world.clock.now())
    product = ProductRow(id, who.organisation, "Nordic 5 GB", 5000, 30, '["DK","NO","SE"]', 1490, "EUR", NORDIC_5GB, None, now)
    await world.store.write(insert_product, row=product)
    return id


async def shop_and_product(world: World, who: Credentials) -> Input:
    """A shop, and a product that may be copied into it."""
    return {**await shop_by_id(world, who), "product_id": await documented_product(world, who)}


async def plan(world: World, who: Credentials) -> Input:
    """A published shop with the documented plan."""
    made, now = await shop(world, who), int(world.clock.now())
    row = StorefrontPlan(
        id=world.ids.new("sfp_"),
        storefront=made["id"],
        slug="nordic-5gb",
        name="Nordic 5 GB",
        data_mb=5000,
        validity_days=30,
        countries=orjson.dumps(["DK", "NO", "SE"]).decode(),
        price_cents=1490,
        on_sale=1,
        place=0,
        template_id=NORDIC_5GB,
        account_id=None,
        product=None,
        price_id=None,
        price_mode=None,
        created=now,
        updated=now,
    )
    await world.store.write(put_plan, row=row)
    return made


async def plan_by_id(world: World, who: Credentials) -> Input:
    """The same, for an input whose slug is the plan's."""
    return {"id": (await plan(world, who))["id"]}


async def plan_by_slug(world: World, who: Credentials) -> Input:
    """The same, as everybody finds it."""
    return {"slug": (await plan(world, who))["slug"]}


SHOP_INPUTS = {
    "create_storefront": free_slug,
    "get_storefront": plan_by_id,
    "update_storefront": shop_by_id,
    "upsert_storefront_plan": shop_and_product,
    "update_storefront_plan": plan_by_id,
    "get_storefront_plan": plan_by_id,
    "get_hosted_storefront": plan_by_slug,
    "get_hosted_storefront_plan_readiness": plan_by_slug,
}
