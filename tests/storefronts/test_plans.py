"""What a shop sells."""

from typing import Any

import pytest

from registry.caller import Restrictions
from tests.storefronts.asking import PLAN_BODY, SHOPS, SHOWN, UNCOMPARED, ShopSeller, StoreAnswer, on_both, seller
from tests.world import Credentials, World


@on_both
@pytest.mark.rule("4.6.3")
async def test_a_plan_is_created_and_then_replaced_whole_under_its_slug(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    made = await fjord.put(shop["id"], account_id=8101, position=3, on_sale=False, payments_price_id="price_1", payments_price_mode="live")
    assert made == StoreAnswer(
        status=201,
        body={
            "id": "sfp_01mcckg2g0000000000000000c",
            "object": "storefront.plan",
            "slug": "nordic-5gb",
            **SHOWN,
            "on_sale": False,
            "position": 3,
            "product_id": None,
            "package_template_id": 55011,
            "account_id": 8101,
            "payments_price_id": "price_1",
            "payments_price_mode": "live",
            "adapt": False,
            "warnings": UNCOMPARED,
        },
    )
    world.clock.advance(60)
    replaced = await fjord.put(shop["id"], name="Nordic, 5 GB", price_cents=1290)
    assert replaced.status == 200
    assert replaced.body == {
        **made.body,
        "name": "Nordic, 5 GB",
        "price_cents": 1290,
        "on_sale": True,
        "position": 0,
        "account_id": None,
        "payments_price_id": None,
        "payments_price_mode": None,
    }
    assert (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"] == [replaced.body]


@on_both
async def test_plans_stand_by_place_and_then_by_age(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    for slug, position in (("c", 1), ("a", 1), ("b", 0)):
        world.clock.advance(1)
        await fjord.put(shop["id"], slug=slug, position=position)
    assert [plan["slug"] for plan in (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"]] == ["b", "c", "a"]


@on_both
async def test_two_shops_may_use_one_slug_for_their_plans(world: World) -> None:
    fjord = await seller(world)
    one, two = await fjord.shop("one"), await fjord.shop("two")
    first, second = await fjord.put(one["id"]), await fjord.put(two["id"])
    assert (first.status, second.status) == (201, 201)
    assert (await fjord.change_plan(two["id"], price_cents=1)).body["id"] == second.body["id"]
    assert (await fjord.ask("GET", f"{SHOPS}/{one['id']}")).body["plans"] == [first.body]


@on_both
@pytest.mark.rule("4.6.3")
async def test_product_id_copies_the_caller_s_own_product_once(world: World) -> None:
    fjord = await seller(world)
    shop, product = await fjord.shop(), await fjord.product(account_id=8101)
    copied = await fjord.ask("POST", f"{SHOPS}/{shop['id']}/plans", {"slug": "p", "product_id": product["id"]})
    assert copied == StoreAnswer(
        status=201,
        body={
            "id": "sfp_01mcckg2g0000000000000000g",
            "object": "storefront.plan",
            "slug": "p",
            **SHOWN,
            "on_sale": True,
            "position": 0,
            "product_id": "cnp_01mcckg2g0000000000000000d",
            "package_template_id": 55011,
            "account_id": 8101,
            "payments_price_id": None,
            "payments_price_mode": None,
            "adapt": False,
            "warnings": UNCOMPARED,
        },
    )
    path, body = f"{SHOPS}/{shop['id']}/plans", {"slug": "p", "product_id": product["id"], "name": "Ours", "price_cents": 2000}
    given = await fjord.ask("POST", path, {**body, "account_id": 8102, "countries": ["NO", "NO"]})
    assert given.status == 200
    assert given.body == {**copied.body, "name": "Ours", "price_cents": 2000, "account_id": 8102, "countries": ["NO"]}


@pytest.mark.rule("4.6.3")
async def test_another_s_product_is_answered_as_an_unknown_one(world: World) -> None:
    fjord, other = await seller(world), await seller(world)
    shop, foreign = await fjord.shop(), await other.product()
    said = [
        await fjord.ask("POST", f"{SHOPS}/{shop['id']}/plans", {"slug": "p", "product_id": id})
        for id in (foreign["id"], "cnp_" + "0" * 26, "")
    ]
    assert {(each.status, each.body["param"], each.body["error"]) for each in said} == {
        (404, "product_id", "Your organisation has no product with this id")
    }
    assert (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"] == []


async def test_a_product_must_be_in_the_shop_s_currency(world: World) -> None:
    fjord = await seller(world)
    shop, product = await fjord.shop(), await fjord.product(currency="USD")
    said = await fjord.put(shop["id"], product_id=product["id"])
    assert (said.status, said.body["param"]) == (400, "product_id")
    assert "USD" in said.body["error"] and "EUR" in said.body["error"]
    assert (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"] == []


@pytest.mark.cases
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "safe \u202egnp.exe"),
        ("name", "two\u200bwords"),
        ("countries", ["DE", "QQ"]),
        ("data_mb", 2**53 - 1),
        ("validity_days", 36_501),
        ("price_cents", 2**40),
    ],
)
async def test_what_of_a_product_buyers_may_not_be_shown_is_to_be_given(world: World, field: str, value: object) -> None:
    fjord = await seller(world)
    shop, product = await fjord.shop(), await fjord.product(**{field: value})
    path, body = f"{SHOPS}/{shop['id']}/plans", {"slug": "p", "product_id": product["id"]}
    said = await fjord.ask("POST", path, body)
    assert (said.status, said.body["param"]) == (400, field)
    assert (await fjord.ask("POST", path, {**body, field: PLAN_BODY[field]})).status == 201


@pytest.mark.parametrize("field", ["name", "data_mb", "validity_days", "countries", "price_cents", "package_template_id"])
async def test_without_a_product_a_plan_needs_all_its_fields(world: World, field: str) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    body = {name: value for name, value in PLAN_BODY.items() if name != field}
    said = await fjord.ask("POST", f"{SHOPS}/{shop['id']}/plans", body)
    assert (said.status, said.body["param"]) == (400, field)
    assert "product_id" in said.body["hint"]


@on_both
@pytest.mark.rule("4.6.4")
async def test_a_change_of_a_plan_leaves_the_rest(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    plan = (await fjord.put(shop["id"], payments_price_id="price_1", payments_price_mode="test")).body
    for change in ({"price_cents": 1290}, {"on_sale": False}, {"position": 7}, {"on_sale": True, "position": 0}, {}):
        plan = {**plan, **change}
        assert await fjord.change_plan(shop["id"], **change) == (200, plan)
    assert (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"] == [plan]


@pytest.mark.rule("4.6.4")
@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"payments_price_id": "price_2"}, "payments_price_mode"),
        ({"payments_price_mode": "live"}, "payments_price_id"),
        ({"payments_price_id": "price_2", "payments_price_mode": None}, "payments_price_mode"),
        ({"payments_price_id": None, "payments_price_mode": "live"}, "payments_price_id"),
    ],
)
async def test_a_price_without_its_mode_is_refused_by_the_name_of_what_is_missing(
    world: World, change: dict[str, Any], lacking: str
) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    plan = (await fjord.put(shop["id"], payments_price_id="price_1", payments_price_mode="test")).body
    for said in (await fjord.change_plan(shop["id"], **change), await fjord.put(shop["id"], **change)):
        assert (said.status, said.body["param"]) == (400, lacking)
    assert (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"] == [plan]


@pytest.mark.cases
@pytest.mark.rule("4.6.4")
@pytest.mark.parametrize("names", [("payments_price_id", "payments_price_mode"), ("payments_price_id",), ("payments_price_mode",)])
async def test_null_clears_price_and_mode_together(world: World, names: tuple[str, ...]) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    plan = (await fjord.put(shop["id"])).body
    set_ = (await fjord.change_plan(shop["id"], payments_price_id="price_1", payments_price_mode="test")).body
    assert set_ == {**plan, "payments_price_id": "price_1", "payments_price_mode": "test"}
    assert await fjord.change_plan(shop["id"], **dict.fromkeys(names)) == (200, plan)


@pytest.mark.parametrize("field", ["price_cents", "on_sale", "position"])
async def test_what_a_plan_always_has_is_not_cleared(world: World, field: str) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    await fjord.put(shop["id"])
    said = await fjord.change_plan(shop["id"], **{field: None})
    assert (said.status, said.body["param"]) == (400, field)


@pytest.mark.rule("4.6.4")
@pytest.mark.rule("7.16")
async def test_a_plan_of_another_shop_is_not_found(world: World) -> None:
    fjord = await seller(world)
    one, two = await fjord.shop("one"), await fjord.shop("two")
    await fjord.put(one["id"])
    for slug in ("nordic-5gb", "unknown", "a" * 64):
        said = await fjord.change_plan(two["id"], slug, price_cents=1)
        assert (said.status, said.body["param"]) == (404, "slug")
    assert (await fjord.ask("GET", f"{SHOPS}/{one['id']}")).body["plans"][0]["price_cents"] == 1490


@pytest.mark.long
async def test_a_shop_has_250_plans_at_most(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    for number in range(250):
        assert (await fjord.put(shop["id"], slug=f"p{number}")).status == 201
    said = await fjord.put(shop["id"])
    assert (said.status, said.body["code"]) == (409, "too_many_plans")
    assert (await fjord.put(shop["id"], slug="p7")).status == 200


async def test_a_key_for_named_accounts_puts_plans_of_those_alone(world: World) -> None:
    who = await world.caller()
    fjord = ShopSeller(world, who)
    shop, product = await fjord.shop(), await fjord.product(account_id=8102)
    id, secret = await world.key(who.person, who.organisation, restrictions=Restrictions(account_ids=(8101,)))
    held = ShopSeller(world, Credentials(who.organisation, who.person, id, secret))
    assert (await held.put(shop["id"], account_id=8101)).status == 201
    assert [(await held.put(shop["id"], **fields)).status for fields in ({}, {"account_id": 8102}, {"product_id": product["id"]})] == [
        403
    ] * 3
    assert (await held.change_plan(shop["id"], price_cents=1)).status == 403
