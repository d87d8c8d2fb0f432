"""What everybody sees of shops."""

import pytest

from tests.storefronts.asking import SHOWN, StoreAnswer, everybody, on_both, seller
from tests.world import World


@on_both
@pytest.mark.rule("4.6.6")
@pytest.mark.rule("5.1.5")
async def test_a_published_shop_shows_what_it_has_on_sale_and_nothing_else(world: World) -> None:
    fjord = await seller(world)
    shop = await fjord.shop(tagline="Data for the north", accent="#0b6e4f", support_email="help@fjord.example", status="published")
    secret = {"account_id": 8101, "payments_price_id": "price_1", "payments_price_mode": "live"}
    await fjord.put(shop["id"], position=1, **secret)
    await fjord.put(shop["id"], slug="hidden", on_sale=False)
    await fjord.put(shop["id"], slug="first", name="First")
    said = await everybody(world).ask("GET", "/api/hosted/fjord-travel")
    assert said == StoreAnswer(
        status=200,
        body={
            "object": "storefront",
            "slug": "fjord-travel",
            "name": "Fjord Travel SIM",
            "tagline": "Data for the north",
            "logo": None,
            "accent": "#0b6e4f",
            "support_email": "help@fjord.example",
            "currency": "EUR",
            "plans": [
                {
                    "id": "sfp_01mcckg2g0000000000000000g",
                    "slug": "first",
                    **SHOWN,
                    "name": "First",
                    "position": 0,
                },
                {
                    "id": "sfp_01mcckg2g0000000000000000c",
                    "slug": "nordic-5gb",
                    **SHOWN,
                    "position": 1,
                },
            ],
        },
    )


async def test_an_unknown_shop_is_not_found(world: World) -> None:
    public = everybody(world)
    for slug in ("none", "UPPER", "a" * 64, "%F0%9F%92%A9", "..%2f"):
        said = await public.ask("GET", f"/api/hosted/{slug}")
        assert (said.status, said.body["code"]) == (404, "not_found"), slug
    assert [(await public.ask("GET", f"/api/hosted/{slug}")).status for slug in ("a" * 65, "%00")] == [400, 400]


@on_both
@pytest.mark.rule("4.6.8")
async def test_templates_are_a_bare_array_of_what_all_published_shops_sell(world: World) -> None:
    public = everybody(world)
    assert await public.ask("GET", "/api/templates") == (200, [])
    fjord, other = await seller(world), await seller(world)
    one, two = await fjord.shop("one", status="published"), await other.shop("two", status="published", currency="CHF")
    draft = await other.shop("draft")
    ids: list[str] = []
    for who, shop, slug, on_sale in ((fjord, one, "a", True), (other, two, "b", True), (fjord, one, "c", False), (other, draft, "d", True)):
        world.clock.advance(1)
        ids.append((await who.put(shop["id"], slug=slug, on_sale=on_sale)).body["id"])
    said = await public.ask("GET", "/api/templates")
    assert [(plan["id"], plan["storefront"], plan["currency"]) for plan in said.body] == [(ids[0], "one", "EUR"), (ids[1], "two", "CHF")]
    assert said.body[0] == {
        "storefront": "one",
        "id": "sfp_01mcckg3f8000000000000000q",
        "slug": "a",
        **SHOWN,
        "position": 0,
    }
    assert (await public.ask("GET", "/api/templates", limit=1)).body == said.body[:1]
    assert (await public.ask("GET", "/api/templates", limit=1, starting_after=ids[0])).body == said.body[1:]
