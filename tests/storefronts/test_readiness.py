"""Whether a plan can be bought now."""

from typing import Any

import pytest

from registry.caller import Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from storage.upstream_connections import set_connection
from tests.contract.fleet import writes
from tests.contract.stage import ServiceHouse
from tests.storefronts.asking import ShopSeller, StoreAnswer, everybody
from tests.world import World

FJORD = "sandbox-7001-token"
PATH = "/api/hosted/fjord-travel/plans"
READY: StoreAnswer = StoreAnswer(200, {"ready": True, "reasons": []})


def against(*reasons: str) -> StoreAnswer:
    return StoreAnswer(200, {"ready": False, "reasons": list(reasons)})


async def readiness(world: World, plan: str = "nordic-5gb") -> StoreAnswer:
    return await everybody(world).ask("GET", f"{PATH}/{plan}/readiness")


async def opened(world: World, *, paid: bool = True, **connection: object) -> tuple[ShopSeller, str]:
    """A published shop with a plan, whose owner is connected in this way."""
    who = await world.caller(Tier.PRO, **(connection or {"mode": "managed", "account": 8101}))  # pyright: ignore[reportArgumentType]
    if paid:
        await world.connect_payments(who)
    fjord = ShopSeller(world, who)
    shop = await fjord.shop(status="published")
    assert (await fjord.put(shop["id"])).status == 201
    return fjord, shop["id"]


async def free_lines(world: World, account: int) -> list[Line]:
    return [line for line in (await world.network()).lines_of(account) if line.sim.status == "FREE"]


def calls(world: World) -> list[str]:
    return [call.method for call in world.sandbox.calls]


@pytest.mark.rule("4.6.7")
@pytest.mark.parametrize("connection", [{"mode": "managed", "account": 8101}, {"token": FJORD}])
async def test_a_plan_is_ready_by_its_id_and_its_slug_and_nothing_is_changed(house: ServiceHouse, connection: dict[str, Any]) -> None:
    world = house.world
    fjord, shop = await opened(world, **connection)
    plan = (await fjord.ask("GET", f"/v1/storefronts/{shop}")).body["plans"][0]
    assert await readiness(world, plan["id"]) == await readiness(world) == READY
    assert calls(world) != [] and writes(calls(world)) == []
    assert fjord.who is not None and await house.charged(fjord.who.organisation) == 2 + 1  # its owner's own calls


@pytest.mark.rule("4.6.7")
async def test_an_unconnected_owner_and_an_unpaid_one_are_named_without_a_call(house: ServiceHouse) -> None:
    world = house.world
    fjord, _ = await opened(world, paid=False, mode=None)
    assert await readiness(world) == against("payments_not_active", "owner_not_connected")
    assert calls(world) == []
    assert fjord.who is not None
    await world.connect_payments(fjord.who)
    assert await readiness(world) == against("owner_not_connected")
    await world.store.write(set_connection, organisation=fjord.who.organisation, mode="managed", account_id=8101, own_token=None)
    assert await readiness(world) == READY


@pytest.mark.long
async def test_a_pending_account_at_the_processor_takes_no_payments(house: ServiceHouse) -> None:
    world = house.world
    fjord, _ = await opened(world, paid=False)
    assert fjord.who is not None
    await world.connect_payments(fjord.who, active=False)
    assert await readiness(world) == against("payments_not_active")


async def test_a_plan_that_is_off_sale_says_so(house: ServiceHouse) -> None:
    fjord, shop = await opened(house.world)
    await fjord.change_plan(shop, on_sale=False)
    assert await readiness(house.world) == against("plan_not_on_sale")


@pytest.mark.cases
@pytest.mark.rule("4.6.7")
@pytest.mark.parametrize(
    ("connection", "account", "said"),
    [
        ({"mode": "managed", "account": 8101}, 8101, READY),
        ({"mode": "managed", "account": 8101}, 8102, against("account_not_found")),
        ({"mode": "managed", "account": 8101}, 8201, against("account_not_found")),
        ({"mode": "managed", "account": 999_999}, None, against("account_not_found")),
        ({"token": FJORD}, 8103, READY),
        ({"token": FJORD}, 8102, against("no_free_esim")),  # its stock is of another sponsor than the template
        ({"token": FJORD}, 8201, against("account_not_found")),
        ({"token": FJORD}, 999_999, against("account_not_found")),
    ],
)
async def test_the_account_is_held_to_its_owner_s_rules(
    house: ServiceHouse, connection: dict[str, Any], account: int | None, said: StoreAnswer
) -> None:
    fjord, shop = await opened(house.world, **connection)
    await fjord.put(shop, account_id=account)
    assert await readiness(house.world) == said


@pytest.mark.rule("4.6.7")
@pytest.mark.parametrize("template", [55041, 999_999])
async def test_a_template_that_is_gone_or_unknown_is_not_visible(house: ServiceHouse, template: int) -> None:
    fjord, shop = await opened(house.world)
    await fjord.put(shop, package_template_id=template)
    assert await readiness(house.world) == against("template_not_visible")


async def test_a_template_of_another_reseller_is_not_visible(house: ServiceHouse) -> None:
    network = await house.world.network()
    foreign = next(each.id for each in network.templates.values() if each.reseller_id == 7002)
    fjord, shop = await opened(house.world)
    await fjord.put(shop, package_template_id=foreign)
    assert await readiness(house.world) == against("template_not_visible")


@pytest.mark.long
@pytest.mark.rule("4.6.7")
async def test_without_a_free_esim_that_the_template_fits_nothing_can_be_bought(house: ServiceHouse) -> None:
    world = house.world
    await opened(world)
    free = await free_lines(world, 8101)
    assert len(free) > 1
    for line in free[1:]:
        line.sim.status = "AFFECTED"
    assert await readiness(world) == READY
    free[0].sim.sponsor_id = next(id for id in (await world.network()).sponsors if id != free[0].sim.sponsor_id)
    world.clock.advance(6)
    assert await readiness(world) == against("no_free_esim")
    free[1].sim.status = "FREE"
    world.clock.advance(6)
    assert await readiness(world) == READY


async def test_many_who_ask_cost_the_charging_system_one_count(house: ServiceHouse) -> None:
    world = house.world
    await opened(world)
    for _ in range(20):
        assert await readiness(world) == READY
    assert calls(world).count("esimStatusPerAccount") == 1
    world.clock.advance(6)
    await readiness(world)
    assert calls(world).count("esimStatusPerAccount") == 2


@pytest.mark.cases
@pytest.mark.rule("4.6.7")
@pytest.mark.parametrize("method", ["esimStatusPerAccount", "listPrepaidPackageTemplate", "*"])
@pytest.mark.parametrize("trouble", [{"drop_before": True}, {"code": 3}, {"malformed": True}, {"status": 503}])
async def test_a_failing_charging_system_is_502_and_never_a_guess(house: ServiceHouse, method: str, trouble: dict[str, object]) -> None:
    world = house.world
    await opened(world)
    world.clock.advance(61)  # putting the plan has read its template
    world.sandbox.faults.add(NetworkFault(method, times=None, **trouble))  # pyright: ignore[reportArgumentType]  # checked by the fault
    said = await readiness(world)
    assert said.status == 502
    assert said.body["error"] == "The charging system could not be asked, so nobody knows whether the plan can be bought now"
    assert set(said.body) == {"error", "code", "request_id"}
    world.sandbox.faults.clear()
    assert await readiness(world) == READY


async def test_an_unknown_plan_is_not_found(house: ServiceHouse) -> None:
    world = house.world
    fjord, _ = await opened(world)
    other = await fjord.shop("other", status="published")
    foreign = (await fjord.put(other["id"], slug="others")).body
    before = len(calls(world))
    for plan in ("none", "sfp_" + "0" * 26, foreign["id"], "others", "%20"):
        said = await readiness(world, plan)
        assert (said.status, said.body["param"]) == (404, "planId"), plan
    assert calls(world)[before:] == []
