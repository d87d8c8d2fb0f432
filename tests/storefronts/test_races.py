"""Changes at the same time, on both databases."""

import anyio

from tests.storefronts.asking import SHOP_BODY, SHOPS, StoreAnswer, on_both, seller
from tests.world import World

pytestmark = on_both


async def test_of_many_who_want_a_slug_one_has_it(world: World) -> None:
    sellers = [await seller(world) for _ in range(8)]
    said: list[StoreAnswer] = []

    async def make(number: int) -> None:
        said.append(await sellers[number].ask("POST", SHOPS, SHOP_BODY, key="k"))

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(make, number)
    assert sorted(each.status for each in said) == [201] + [409] * 7
    assert {each.body["code"] for each in said if each.status == 409} == {"slug_taken"}


async def test_of_many_who_move_to_a_slug_one_gets_there(world: World) -> None:
    fjord = await seller(world)
    shops = [await fjord.shop(f"shop-{number}") for number in range(8)]
    said: list[StoreAnswer] = []

    async def move(id: str) -> None:
        said.append(await fjord.change(id, slug="wanted"))

    async with anyio.create_task_group() as group:
        for shop in shops:
            group.start_soon(move, shop["id"])
    assert sorted(each.status for each in said) == [200] + [409] * 7
    slugs = [shop["slug"] for shop in (await fjord.ask("GET", SHOPS)).body["data"]]
    assert slugs.count("wanted") == 1 and len(set(slugs)) == 8


async def test_changes_of_different_fields_at_once_are_all_kept(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    await fjord.put(shop["id"])
    changes = {"name": "A", "tagline": "B", "accent": "#000000", "support_email": "a@b.example", "status": "published"}
    plan_changes = {"price_cents": 1, "on_sale": False, "position": 9}

    async with anyio.create_task_group() as group:
        for field, value in changes.items():
            group.start_soon(lambda field, value: fjord.change(shop["id"], **{field: value}), field, value)
        for field, value in plan_changes.items():
            group.start_soon(lambda field, value: fjord.change_plan(shop["id"], **{field: value}), field, value)
    whole = (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body
    assert {field: whole[field] for field in changes} == changes
    assert {field: whole["plans"][0][field] for field in plan_changes} == plan_changes


async def test_a_currency_never_changes_under_a_plan(world: World) -> None:
    fjord = await seller(world)
    euros, francs = await fjord.product(), await fjord.product(currency="CHF")
    for number in range(6):
        shop = await fjord.shop(f"shop-{number}")
        said: dict[str, StoreAnswer] = {}

        async def put(product: str, shop: str = shop["id"], said: dict[str, StoreAnswer] = said) -> None:
            said[product] = await fjord.ask("POST", f"{SHOPS}/{shop}/plans", {"slug": product[-3:], "product_id": product})

        async def change(shop: str = shop["id"], said: dict[str, StoreAnswer] = said) -> None:
            said["change"] = await fjord.change(shop, currency="CHF")

        async with anyio.create_task_group() as group:
            group.start_soon(put, euros["id"])
            group.start_soon(change)
            group.start_soon(put, francs["id"])
        whole = (await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body
        assert (said["change"].status == 200) == (whole["currency"] == "CHF")
        kept = {"EUR": euros["id"], "CHF": francs["id"]}[whole["currency"]]
        assert {plan["product_id"] for plan in whole["plans"]} <= {kept}


async def test_one_slug_of_a_shop_is_one_plan(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop()
    said: list[StoreAnswer] = []

    async def put(price: int) -> None:
        said.append(await fjord.put(shop["id"], price_cents=price))

    async with anyio.create_task_group() as group:
        for price in range(1, 9):
            group.start_soon(put, price)
    assert sorted(each.status for each in said) == [200] * 7 + [201]
    assert len({each.body["id"] for each in said}) == 1
    assert len((await fjord.ask("GET", f"{SHOPS}/{shop['id']}")).body["plans"]) == 1
