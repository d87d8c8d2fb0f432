"""What a key that was narrowed does to shops: nothing beyond its narrowing, whatever its maker may."""

from typing import Any

import pytest

from registry.caller import Restrictions, Tier
from tests.storefronts.asking import PLAN_BODY, SHOP_BODY, SHOPS, ShopSeller, StoreAnswer, seller
from tests.world import Credentials, World

ADDRESS = {"email": "ada@example.com"}


async def narrowed(world: World, maker: ShopSeller, **restrictions: Any) -> ShopSeller:
    assert maker.who is not None
    who = maker.who
    key, secret = await world.key(who.person, who.organisation, restrictions=Restrictions(**restrictions))
    return ShopSeller(world, Credentials(who.organisation, who.person, key, secret))


async def writes(who: ShopSeller, shop: str, **plan: object) -> list[StoreAnswer]:
    return [
        await who.ask("POST", SHOPS, {**SHOP_BODY, "slug": "another"}, key="k"),
        await who.change(shop, name="Eve"),
        await who.put(shop, slug="new", **plan),
        await who.change_plan(shop, price_cents=1),
        await who.ask("POST", f"{SHOPS}/{shop}/erase-buyer", ADDRESS),
    ]


@pytest.mark.parametrize(
    "restrictions",
    [{"read_only": True}, {"toolsets": ("connectivity",)}, {"iccids": ("8988303700000101276",)}, {"account_ids": (8102,)}],
)
async def test_a_narrow_key_changes_no_shop(world: World, restrictions: dict[str, Any]) -> None:
    fjord = await seller(world, Tier.ENTERPRISE, mode="managed", account=8101)
    shop = (await fjord.shop())["id"]
    assert (await fjord.put(shop)).status == 201
    before = (await fjord.ask("GET", f"{SHOPS}/{shop}")).body
    key = await narrowed(world, fjord, **restrictions)
    assert [said.status for said in await writes(key, shop)] == [403] * 5
    assert (await fjord.ask("GET", f"{SHOPS}/{shop}")).body == before
    assert (await fjord.ask("GET", SHOPS)).body["data"][1:] == []


async def test_a_key_for_one_account_sells_from_no_other_not_by_a_product_either(world: World) -> None:
    fjord = await seller(world, Tier.ENTERPRISE, mode="managed", account=8101)
    shop = (await fjord.shop())["id"]
    product = (await fjord.product(account_id=8101))["id"]
    key = await narrowed(world, fjord, account_ids=(8102,))
    for plan in ({}, {"account_id": 8101}, {"product_id": product}, {"account_id": None}):
        said = await key.put(shop, **{**PLAN_BODY, **plan})
        assert (said.status, said.body["param"]) == (403, "account_id"), plan
    said = await key.put(shop, product_id=product, account_id=8102)
    assert (said.status, said.body["account_id"]) == (201, 8102)


async def test_a_key_without_admin_erases_nobody(world: World) -> None:
    fjord = await seller(world, Tier.ENTERPRISE)
    shop = (await fjord.shop())["id"]
    key = await narrowed(world, fjord, no_admin=True)
    assert (await key.ask("POST", f"{SHOPS}/{shop}/erase-buyer", ADDRESS)).status == 403
