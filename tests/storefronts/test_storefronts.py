"""Making, reading and changing shops."""

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.contract.stage import OPERATIONS, ServiceHouse
from tests.storefronts.asking import PLAN_BODY, SHOP_BODY, SHOPS, StoreAnswer, everybody, on_both, seller
from tests.world import World

PNG = "data:image/png;base64,iVBORw0KGgo="
LOOKS = {"tagline": "Data for the north", "logo": PNG, "accent": "#0B6E4F", "support_email": "help@fjord.example"}


@pytest.mark.rule("4.6.16")
@on_both
@pytest.mark.rule("4.6.1")
async def test_a_shop_is_made_as_a_draft_and_listed_newest_first(world: World) -> None:
    fjord, other = await seller(world), await seller(world)
    made = await fjord.ask("POST", SHOPS, {**SHOP_BODY, **LOOKS}, key="one")
    assert made == snapshot(
        StoreAnswer(
            status=201,
            body={
                "id": "sf_01mcckg2g0000000000000000d",
                "object": "storefront",
                "slug": "fjord-travel",
                "name": "Fjord Travel SIM",
                "tagline": "Data for the north",
                "logo": "data:image/png;base64,iVBORw0KGgo=",
                "accent": "#0b6e4f",
                "support_email": "help@fjord.example",
                "currency": "EUR",
                "status": "draft",
                "created": "2027-01-15T12:00:00Z",
                "updated": "2027-01-15T12:00:00Z",
            },
        )
    )
    world.clock.advance(1)
    second = await fjord.shop("fjord-winter")
    await other.shop("alpine")
    assert (await fjord.ask("GET", SHOPS)).body == {"object": "list", "data": [second, made.body], "has_more": False}
    first = (await fjord.ask("GET", SHOPS, limit=1)).body
    assert (first["data"], first["has_more"]) == ([second], True)
    assert (await fjord.ask("GET", SHOPS, limit=1, starting_after=second["id"])).body["data"] == [made.body]
    assert (await fjord.ask("GET", f"{SHOPS}/{made.body['id']}")).body == {**made.body, "plans": []}


@on_both
@pytest.mark.rule("4.6.2")
async def test_what_a_change_leaves_out_stays_and_null_clears(world: World) -> None:
    fjord = await seller(world)
    shop = (await fjord.ask("POST", SHOPS, {**SHOP_BODY, **LOOKS}, key="one")).body
    world.clock.advance(60)
    renamed = (await fjord.change(shop["id"], name="Fjord SIM")).body
    assert renamed == {**shop, "name": "Fjord SIM", "updated": "2027-01-15T12:01:00Z"}
    bare = (await fjord.change(shop["id"], tagline=None, logo=None, accent=None, support_email=None)).body
    assert bare == {**renamed, "tagline": None, "logo": None, "accent": None, "support_email": None}
    world.clock.advance(60)
    assert (await fjord.change(shop["id"])).body == bare
    assert (await fjord.change(shop["id"], name="Fjord SIM")).body == bare
    opened = (await fjord.change(shop["id"], status="published", slug="fjord")).body
    assert opened == {**bare, "status": "published", "slug": "fjord", "updated": "2027-01-15T12:02:00Z"}


@pytest.mark.parametrize("field", ["slug", "name", "currency", "status"])
async def test_what_a_shop_always_has_is_not_cleared(world: World, field: str) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    said = await fjord.change(shop["id"], **{field: None})
    assert (said.status, said.body["param"]) == (400, field)
    assert (await fjord.ask("GET", SHOPS)).body["data"] == [shop]


@on_both
async def test_an_address_that_a_shop_had_stays_its_organisation_s(world: World) -> None:
    fjord, other = await seller(world), await seller(world)
    shop, alpine = await fjord.shop("fjord"), await other.shop("alpine")
    assert (await fjord.change(shop["id"], slug="fjord-travel")).status == 200
    refused = [
        await other.ask("POST", SHOPS, {**SHOP_BODY, "slug": "fjord"}, key="x"),
        await other.change(alpine["id"], slug="fjord"),
        await other.change(alpine["id"], slug="fjord-travel"),
    ]
    assert [(said.status, said.body["code"], said.body["param"]) for said in refused] == [(409, "slug_taken", "slug")] * 3
    assert len({said.body["error"].replace("fjord-travel", "fjord") for said in refused}) == 1  # a former address is told by nothing
    assert (await other.ask("GET", SHOPS)).body["data"] == [alpine]
    assert (await fjord.ask("POST", SHOPS, {**SHOP_BODY, "slug": "fjord"}, key="y")).status == 201
    assert (await fjord.change(shop["id"], slug="fjord")).status == 409


@on_both
async def test_a_slug_is_one_shop_s_in_the_whole_service(world: World) -> None:
    fjord, other = await seller(world), await seller(world)
    await fjord.shop("taken")
    alpine = await other.shop("alpine")
    made = await other.ask("POST", SHOPS, {**SHOP_BODY, "slug": "taken"}, key="x")
    changed = await other.change(alpine["id"], slug="taken")
    for said in (made, changed):
        assert (said.status, said.body["code"], said.body["param"]) == (409, "slug_taken", "slug")
    assert (await other.ask("GET", SHOPS)).body["data"] == [alpine]
    assert (await other.change(alpine["id"], slug="alpine")).status == 200
    assert (await fjord.ask("POST", SHOPS, {**SHOP_BODY, "slug": "other"}, key="again")).status == 201


@on_both
async def test_the_currency_stays_once_there_is_a_plan(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    assert (await fjord.change(shop["id"], currency="CHF")).body["currency"] == "CHF"
    await fjord.put(shop["id"])
    said = await fjord.change(shop["id"], currency="EUR", name="Other")
    assert (said.status, said.body["code"], said.body["param"]) == (409, "storefront_has_plans", "currency")
    assert (await fjord.change(shop["id"], currency="CHF", name="Same")).body["name"] == "Same"
    assert (await fjord.ask("GET", SHOPS)).body["data"][0]["currency"] == "CHF"


@pytest.mark.long
@on_both
async def test_an_organisation_has_a_hundred_shops_at_most(world: World) -> None:
    fjord = await seller(world)
    for number in range(100):
        await fjord.shop(f"shop-{number}")
    said = await fjord.ask("POST", SHOPS, SHOP_BODY, key="more")
    assert (said.status, said.body["code"]) == (409, "too_many_storefronts")
    assert (await (await seller(world)).shop("another-seller-s"))["status"] == "draft"


async def test_tools_do_as_http_does(house: ServiceHouse) -> None:
    tools = {o.id: o for o in OPERATIONS}
    who = await house.world.caller(Tier.PRO)
    made = await house.mcp(tools["create_storefront"], who.secret, SHOP_BODY, key="k")
    assert made.status == 200
    replay = await house.http(tools["create_storefront"], who.secret, SHOP_BODY, key="k")
    assert replay.body == made.body
    plan = await house.mcp(tools["upsert_storefront_plan"], who.secret, {"id": made.body["id"], **PLAN_BODY})
    again = await house.http(tools["upsert_storefront_plan"], who.secret, {"id": made.body["id"], **PLAN_BODY})
    assert (again.status, again.body) == (200, plan.body)
    both = {"id": made.body["id"], "slug": "nordic-5gb", "payments_price_id": "price_1", "payments_price_mode": "test"}
    priced = await house.mcp(tools["update_storefront_plan"], who.secret, both)
    assert priced.body == {**plan.body, "payments_price_id": "price_1", "payments_price_mode": "test"}
    cleared = await house.mcp(tools["update_storefront_plan"], who.secret, {**both, "payments_price_id": None, "payments_price_mode": None})
    assert cleared.body == plan.body
    for door in (house.mcp, house.http):
        half = await door(
            tools["update_storefront_plan"], who.secret, {"id": made.body["id"], "slug": "nordic-5gb", "payments_price_id": "p"}
        )
        assert (half.status, half.body["param"]) == (400, "payments_price_mode")


async def test_a_draft_is_nobody_s(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    await fjord.put(shop["id"])
    public = everybody(world)
    paths = ("/api/hosted/fjord-travel", "/api/hosted/fjord-travel/plans/nordic-5gb/readiness")
    assert [(await public.ask("GET", path)).status for path in paths] == [404, 404]
    assert (await public.ask("GET", "/api/templates")) == (200, [])
    await fjord.change(shop["id"], status="published")
    assert [(await public.ask("GET", path)).status for path in paths] == [200, 200]
    await fjord.change(shop["id"], status="draft")
    assert [(await public.ask("GET", path)).status for path in paths] == [404, 404]
