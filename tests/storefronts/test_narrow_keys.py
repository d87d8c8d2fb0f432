"""What a key that was narrowed does to shops: nothing beyond its narrowing, whatever its maker may."""

from typing import Any

from registry.caller import Restrictions, Tier
from tests.storefronts.asking import PLAN_BODY, ShopSeller, seller
from tests.world import Credentials, World


async def narrowed(world: World, maker: ShopSeller, **restrictions: Any) -> ShopSeller:
    assert maker.who is not None
    who = maker.who
    key, secret = await world.key(who.person, who.organisation, restrictions=Restrictions(**restrictions))
    return ShopSeller(world, Credentials(who.organisation, who.person, key, secret))


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
