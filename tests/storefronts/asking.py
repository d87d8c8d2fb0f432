"""Calls of this folder."""

from typing import Any, NamedTuple

import pytest

from registry.caller import Tier
from tests.world import Credentials, World

on_both = pytest.mark.parametrize("world", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True)
"""What a database may decide in its own way."""
SHOPS = "/v1/storefronts"
SHOP_BODY = {"slug": "fjord-travel", "name": "Fjord Travel SIM", "currency": "EUR"}
PLAN_BODY: dict[str, Any] = {
    "slug": "nordic-5gb",
    "name": "Nordic 5 GB",
    "data_mb": 5000,
    "validity_days": 30,
    "countries": ["DK", "NO", "SE"],
    "price_cents": 1490,
    "package_template_id": 55011,
}
SHOWN = {name: value for name, value in PLAN_BODY.items() if name not in ("slug", "package_template_id")} | {"currency": "EUR"}
"""What everybody is told of this plan."""
UNCOMPARED = [
    {
        "code": "template_not_compared",
        "message": "Your organisation is not connected to the charging system, so nothing compared this with its template",
    }
]
PRODUCT = {name: value for name, value in PLAN_BODY.items() if name != "slug"} | {"currency": "EUR"}


class StoreAnswer(NamedTuple):
    status: int
    body: Any


class ShopSeller:
    def __init__(self, world: World, who: Credentials | None) -> None:
        self.world, self.who = world, who

    async def ask(self, method: str, path: str, body: object = None, *, key: str | None = None, **query: Any) -> StoreAnswer:
        headers = {} if key is None else {"Idempotency-Key": key}
        async with self.world.client(None if self.who is None else self.who.secret) as http:
            answer = await http.request(method, path, json=body, params=query, headers=headers)
        return StoreAnswer(answer.status_code, answer.json())

    async def shop(self, slug: str = "fjord-travel", **fields: object) -> Any:
        said = await self.ask("POST", SHOPS, {**SHOP_BODY, "slug": slug, **fields}, key=f"shop-{slug}")
        assert said.status == 201, said
        return said.body

    async def put(self, shop: str, **fields: object) -> StoreAnswer:
        return await self.ask("POST", f"{SHOPS}/{shop}/plans", {**PLAN_BODY, **fields})

    async def change(self, shop: str, **fields: object) -> StoreAnswer:
        return await self.ask("PATCH", f"{SHOPS}/{shop}", fields)

    async def change_plan(self, shop: str, slug: str = "nordic-5gb", /, **fields: object) -> StoreAnswer:
        return await self.ask("PATCH", f"{SHOPS}/{shop}/plans/{slug}", fields)

    async def product(self, **fields: object) -> Any:
        said = await self.ask("POST", "/v1/connectivity/products", {**PRODUCT, **fields}, key=self.world.ids.new("key-"))
        assert said.status == 201, said
        return said.body


async def seller(world: World, tier: Tier = Tier.PRO, **connection: Any) -> ShopSeller:
    return ShopSeller(world, await world.caller(tier, **connection))


def everybody(world: World) -> ShopSeller:
    return ShopSeller(world, None)
