"""The storefront key unset, empty, blank or wrong: what is always behind it stays shut, and nothing equals nothing."""

from pathlib import Path

import pytest

from registry.ids import BASE32_ALPHABET, SystemIds
from tests.orders.stage import ADA_MAIL, ORDERS_KEY, SLUG, OrdersShop, open_orders_shop
from tests.world import SettableClock

LIST = f"/api/orders?storefront={SLUG}&email={ADA_MAIL}"
HEADERS = [
    None,
    "",
    " ",
    "Bearer",
    "Bearer ",
    "Bearer   ",
    "bearer ",
    "Bearer \t",
    f"Bearer {ORDERS_KEY}",
    "Bearer null",
    "Bearer ''",
    f"Basic {ORDERS_KEY}",
    ORDERS_KEY,
]


async def refusals(shop: OrdersShop, method: str, path: str, headers: list[str | None]) -> list[tuple[str, str]]:
    """What is not answered 401 without a word of what is there."""
    found: list[tuple[str, str]] = []
    for header in headers:
        shown = {} if header is None else {"Authorization": header}
        answer = await shop.buyer.request(method, path, headers=shown)
        refused = answer.status_code == 401 and "www-authenticate" in answer.headers and answer.json()["code"] == "unauthorized"
        if not refused or ADA_MAIL in answer.text:
            found.append((str(header), answer.text))
    return found


@pytest.mark.cases
@pytest.mark.rule("4.6.9")
@pytest.mark.rule("4.6.11")
@pytest.mark.rule("5.1.3")
@pytest.mark.parametrize("key", ["", " ", "   ", "\t"], ids=["unset", "a space", "spaces", "a tab"])
async def test_without_a_key_the_list_and_the_roll_back_are_shut_whatever_is_shown(tmp_path: Path, key: str) -> None:
    async with open_orders_shop(tmp_path, key=key) as shop:
        id = await shop.ready()
        headers = [*HEADERS, f"Bearer {key}", f"Bearer {shop.me.secret}"]
        assert await refusals(shop, "GET", LIST, headers) == []
        assert await refusals(shop, "DELETE", f"/api/orders/{id}", headers) == []
        assert (await shop.stored(id)).ledger == "issued"
        assert (await shop.buyer.get(f"/api/orders/{await shop.opener(id)}")).json()["status"] == "ready"


@pytest.mark.rule("4.6.10")
@pytest.mark.rule("4.6.11")
@pytest.mark.rule("5.1.3")
async def test_with_a_key_everything_of_orders_is_shut_to_whoever_shows_another_or_none(tmp_path: Path) -> None:
    async with open_orders_shop(tmp_path) as shop:
        id = await shop.ready()
        headers = [header for header in HEADERS if header != f"Bearer {ORDERS_KEY}"]
        headers += [f"Bearer {ORDERS_KEY}x", f"Bearer {ORDERS_KEY[:-1]}", f"Bearer {ORDERS_KEY.upper()}", f"Bearer {shop.me.secret}"]
        paths = [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/usage"), ("GET", "/top-up-options")]
        for method, path in [("GET", LIST), *((method, f"/api/orders/{id}{way}") for method, way in paths)]:
            assert await refusals(shop, method, path, headers) == [], (method, path)
        row = await shop.stored(id)
        assert (row.ledger, row.cancelled_at) == ("issued", None)


def test_every_character_of_an_order_s_id_is_drawn_at_random_and_none_tells_the_time() -> None:
    ids = SystemIds(SettableClock())
    made = [ids.secret("ord_") for _ in range(2000)]
    assert {len(id) for id in made} == {30} and len(set(made)) == 2000
    assert [set(place) for place in zip(*(id.removeprefix("ord_") for id in made), strict=True)] == [set(BASE32_ALPHABET)] * 26  # 130 bits
    assert sorted(made) != made
