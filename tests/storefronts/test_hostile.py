"""What nobody should send: it is refused with 400, names its field, and changes nothing."""

from base64 import b64encode
from typing import Any

import pytest

from tests.storefronts.asking import PLAN_BODY, SHOP_BODY, SHOPS, ShopSeller, StoreAnswer, everybody, seller
from tests.world import World, open_world

WHOLE = ("\x00", 2**53)
"""Nothing that holds one of these is read at all."""
HIDDEN = ["\x00", "a\x1bb", "a\nb", "a\u202eb", "a\u2066b", "a\u200bb", "\ufeffa", "a\u2028b", "a\U000e0041b", "   ", ""]
BIG = "data:image/png;base64," + "A" * (32 * 1024)
BAD: dict[str, list[Any]] = {
    "slug": [
        *("ab", "a" * 41, "Fjord", "fjord travel", "-fjord", "fjord-", "fj\u00f8rd", "fjord\n", "../etc", "fjord.travel"),
        *("\u0661\u0662\u0663", None),
    ],
    "name": [*HIDDEN, "a" * 81, None, 5],
    "tagline": [*HIDDEN, "a" * 161, ["x"]],
    "logo": [
        "data:image/svg+xml;base64," + b64encode(b"<svg onload='alert(1)'/>").decode(),
        *("data:image/png,plain", "data:image/png;base64,", "data:image/png;base64,A", "data:image/png;base64,AAAA'onerror="),
        *("data:text/html;base64,AAAA", "data:image/png;charset=utf-8;base64,AAAA", "DATA:image/png;base64,AAAA"),
        *("https://evil.example/logo.png", "javascript:alert(1)", " data:image/png;base64,AAAA", "data:image/png;base64,AAAA\n", BIG),
    ],
    "accent": ["red", "#fff", "#12345g", "#1234567", "#123456;background:url(x)", "#123456\n", "\uff03123456"],
    "support_email": ["nobody", "a@b\n", "Ada <ada@example.com>", "a@b,c@d", "javascript:alert(1)@x y", "a" * 250 + "@x.example"],
    "currency": ["eur", "JPY", "", None, 978],
    "status": ["open", "deleted", None],
}
BAD_PLAN: dict[str, list[Any]] = {
    "slug": ["", "A", "a b", "-a", "a-", "a" * 65, "sfp_1", "a\n"],
    "name": [*HIDDEN, "a" * 81],
    "data_mb": [0, -1, 1.5, "5", True, 10**9 + 1],
    "validity_days": [0, -1, 36_501, "30"],
    "countries": [[], ["de"], ["DEU"], ["QQ"], ["UK"], ["EU"], ["DE\n"], "DE", ["DE"] * 251, [None], [["DE"]]],
    "price_cents": [0, -1, 100_000_000, 14.9, "1490"],
    "package_template_id": [0, -1, 2**53],
    "account_id": [0, -1, 2**53, "8101"],
    "on_sale": ["yes", 1, None],
    "position": [-1, 1_000_001, None],
    "payments_price_mode": ["prod", 1],
    "payments_price_id": ["", "price 1", "price_\n", "a" * 256, "'; drop table storefront; --"],
    "product_id": ["a" * 65, 5],
    "currency": ["EUR"],
}


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from operations.catalogue import CATALOGUE
    from registry.limits import Limits

    async with open_world(tmp_path_factory.mktemp("hostile"), CATALOGUE, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []


def refused_field(said: StoreAnswer) -> str | None:
    """Which field is at fault, as far as one is."""
    param = said.body.get("param")
    return None if param is None else param.partition(".")[0].partition("[")[0]


async def state(who: ShopSeller, shop: str) -> tuple[Any, Any]:
    return (await who.ask("GET", SHOPS)).body, (await who.ask("GET", f"{SHOPS}/{shop}")).body


@pytest.mark.cases
@pytest.mark.parametrize("field", list(BAD))
async def test_a_shop_takes_no_hostile_field(shared: World, field: str) -> None:
    fjord = await seller(shared)
    shop = await fjord.shop(shared.ids.new("shop-"))
    before = await state(fjord, shop["id"])
    for number, value in enumerate(BAD[field]):
        if not (value is None and field == "status"):
            made = await fjord.ask("POST", SHOPS, {**SHOP_BODY, field: value}, key=f"k{number}")
            assert (made.status, refused_field(made)) == (400, field if value not in WHOLE else None), value
        changed = await fjord.change(shop["id"], **{field: value})
        assert (changed.status, refused_field(changed)) == (400, field if value not in WHOLE else None), value
    assert await state(fjord, shop["id"]) == before


@pytest.mark.cases
@pytest.mark.parametrize("field", list(BAD_PLAN))
async def test_a_plan_takes_no_hostile_field(shared: World, field: str) -> None:
    fjord = await seller(shared)
    shop = await fjord.shop(shared.ids.new("shop-"))
    await fjord.put(shop["id"])
    before = await state(fjord, shop["id"])
    changeable = ("price_cents", "on_sale", "position", "payments_price_id", "payments_price_mode")
    for value in BAD_PLAN[field]:
        said = [await fjord.put(shop["id"], **{field: value})]
        said += [await fjord.change_plan(shop["id"], **{field: value})] if field in changeable else []
        for each in said:
            assert (each.status, refused_field(each)) == (400, field if value not in WHOLE else None), (value, each)
    assert await state(fjord, shop["id"]) == before


async def test_what_is_odd_but_honest_is_kept_and_shown_as_it_is(shared: World) -> None:
    fjord = await seller(shared)
    name = "<script>alert('\u00fc')</script> & \"Sons\" \u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469\u200d\U0001f467"
    logo = "data:image/webp;base64," + b64encode(b"x" * 24_000).decode()
    assert len(logo) <= 32 * 1024
    slug = "odd"
    shop = await fjord.shop(slug, name=f"  {name} ", logo=logo, status="published")
    assert (shop["name"], shop["logo"]) == (name, logo)
    countries = ["XK", "AQ", "DE", "DE"]
    assert (await fjord.put(shop["id"], name="=HYPERLINK(1)", countries=countries, price_cents=99_999_999)).status == 201
    hosted = (await everybody(shared).ask("GET", f"/api/hosted/{slug}")).body
    assert (hosted["name"], hosted["plans"][0]["name"], hosted["plans"][0]["countries"]) == (name, "=HYPERLINK(1)", ["XK", "AQ", "DE"])


async def test_no_caller_sets_what_is_the_service_s(shared: World) -> None:
    fjord = await seller(shared)
    shop = await fjord.shop(shared.ids.new("shop-"))
    for field in ("id", "organisation", "created", "updated", "object", "plans"):
        made = await fjord.ask("POST", SHOPS, {**SHOP_BODY, field: "x"}, key=f"k-{field}")
        assert (made.status, made.body["param"]) == (400, field)
        assert (await fjord.change(shop["id"], **{field: "x"})).status == 400
    for field in ("storefront", "currency", "created", "place"):
        put = await fjord.ask("POST", f"{SHOPS}/{shop['id']}/plans", {**PLAN_BODY, field: "x"})
        assert (put.status, put.body["code"]) == (400, "unknown_field")
