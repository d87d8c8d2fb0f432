"""What a shop's plan promises is compared with the template that it draws from; buyers are told nothing of it."""

from typing import Any

import pytest

from registry.caller import Tier
from storage.storefronts import StorefrontPlan, put_plan
from tests.network_facts import ACCOUNT
from tests.storefronts.asking import SHOPS, ShopSeller, everybody, seller
from tests.world import World

EXACT: dict[str, Any] = {"data_mb": 5368, "countries": ["DK", "FI", "IS", "NO", "SE"]}


async def connected(world: World) -> ShopSeller:
    return await seller(world, Tier.PRO, mode="managed", account=ACCOUNT)


def codes(plan: Any) -> list[str]:
    return [warning["code"] for warning in plan["warnings"]]


async def test_a_plan_is_taken_refused_or_warned_of_by_its_template(world: World) -> None:
    fjord = await connected(world)
    shop = (await fjord.shop(status="published"))["id"]
    assert codes((await fjord.put(shop, **EXACT)).body) == []
    refused = await fjord.put(shop, **EXACT, validity_days=31)
    assert (refused.status, refused.body["code"], refused.body["param"]) == (400, "promise_exceeds_template", "validity_days")
    assert codes((await fjord.put(shop, price_cents=1)).body) == ["data_below_template", "countries_below_template", "price_below_cost"]
    changed = await fjord.change_plan(shop, price_cents=1490)
    assert (changed.status, codes(changed.body)) == (200, ["data_below_template", "countries_below_template"])


async def test_buyers_see_neither_warnings_nor_cost(world: World) -> None:
    fjord = await connected(world)
    shop = (await fjord.shop(status="published"))["id"]
    assert "price_below_cost" in codes((await fjord.put(shop, price_cents=1)).body)
    assert "price_below_cost" in codes((await fjord.ask("GET", f"{SHOPS}/{shop}")).body["plans"][0])
    for path in ("/api/templates", "/api/hosted/fjord-travel", "/api/hosted/fjord-travel/plans/nordic-5gb/readiness"):
        told = str((await everybody(world).ask("GET", path)).body)
        assert not [word for word in ("warnings", "cost", "adapt", "14.90") if word in told], path


@pytest.mark.long
async def test_a_plan_is_adapted_as_it_says_else_as_its_product_is(world: World) -> None:
    fjord = await connected(world)
    shop = (await fjord.shop())["id"]
    product = (await fjord.product(**EXACT, validity_days=7, adapt=True))["id"]
    for given, adapt in (({}, True), ({"adapt": False}, False), ({"adapt": True}, True)):
        said = await fjord.ask("POST", f"{SHOPS}/{shop}/plans", {"slug": "p", "product_id": product, **given})
        assert (said.body["adapt"], codes(said.body)) == (adapt, [] if adapt else ["days_below_template"])
        assert (await fjord.ask("GET", f"{SHOPS}/{shop}")).body["plans"] == [said.body]
    own = (await fjord.put(shop, **EXACT, validity_days=60, adapt=True)).body
    assert (own["adapt"], codes(own)) == (True, [])
    refused = await fjord.put(shop, **EXACT, validity_days=3651, adapt=True)
    assert (refused.status, refused.body["param"]) == (400, "validity_days")


async def test_a_plan_of_before_that_promises_too_much_goes_on_and_is_listed_with_its_warnings(world: World) -> None:
    fjord = await connected(world)
    shop = (await fjord.shop(status="published"))["id"]
    now = int(world.clock.now())
    row = StorefrontPlan(
        world.ids.new("sfp_"), shop, "old", "Old", 9000, 60, '["NO","US"]', 900, 1, 0, 55011, None, None, None, None, now, now
    )
    await world.store.write(put_plan, row=row)
    plan = (await fjord.ask("GET", f"{SHOPS}/{shop}")).body["plans"][0]
    exceeded = ["data_exceeds_template", "days_exceed_template", "countries_exceed_template"]
    assert codes(plan)[:3] == exceeded and plan["adapt"] is False
    changed = await fjord.change_plan(shop, "old", price_cents=2000)
    assert (changed.status, changed.body["price_cents"], codes(changed.body)[:3]) == (200, 2000, exceeded)
    [sold] = (await everybody(world).ask("GET", "/api/hosted/fjord-travel")).body["plans"]
    assert sold["data_mb"] == 9000
