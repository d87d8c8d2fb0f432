"""GET /v1/connectivity/plans."""

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.network_facts import ACCOUNT
from tests.storefronts.asking import PRODUCT
from tests.tables import tabled
from tests.world import World

PLANS = "/v1/connectivity/plans"


@pytest.mark.rule("2.2.1")
@pytest.mark.rule("2.2.3")
@pytest.mark.rule("2.2.4")
@pytest.mark.rule("4.1.1")
async def test_the_test_plans_come_first(http: httpx.AsyncClient) -> None:
    answer = await http.get(PLANS)
    assert answer.status_code == 200
    listed = answer.json()
    assert [" ".join(plan.pop("countries")) for plan in listed["data"]] == [
        "AE AU BR CA CH CN DE ES FR GB IN IT JP KR MX SG TH TR US ZA",
        "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK",
    ]
    assert tabled(listed) == snapshot(
        {
            "object": "list",
            "data": {
                "columns": ["id", "object", "name", "data_mb", "unlimited", "validity_days", "livemode", "price"],
                "rows": [
                    ["test_global_1gb", "connectivity.plan", "Test Global 1 GB", 1000, False, 30, False, None],
                    ["test_eu_1gb", "connectivity.plan", "Test Europe 1 GB", 1000, False, 30, False, None],
                ],
            },
            "has_more": False,
        }
    )


async def test_own_products_follow_the_test_plans_newest_first(pro: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    made = [
        (await pro.post("/v1/connectivity/products", json=PRODUCT | {"name": name}, headers={"Idempotency-Key": name})).json()["id"]
        for name in ("one", "two", "three")
    ]
    ids = [plan["id"] for plan in (await pro.get(PLANS)).json()["data"]]
    assert ids == ["test_global_1gb", "test_eu_1gb", *reversed(made)]
    assert [plan["id"] for plan in (await http.get(PLANS)).json()["data"]] == ["test_global_1gb", "test_eu_1gb"]


@pytest.mark.rule("2.2.2")
@pytest.mark.rule("4.1.18")
async def test_a_connected_account_sees_its_products_and_its_templates_as_plans(world: World, pro: httpx.AsyncClient) -> None:
    connected = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    async with world.client(connected.secret) as http:
        body = PRODUCT | {"package_template_id": 55011}
        product = await http.post("/v1/connectivity/products", json=body, headers={"Idempotency-Key": "k"})
        plans = (await http.get(PLANS, params={"limit": 100})).json()["data"]
    assert plans[:3] == [*(await pro.get(PLANS)).json()["data"], product.json()]
    live = plans[3:]
    assert "nordic-1gb-30d" in [plan["id"] for plan in live]
    assert {(plan["object"], plan["livemode"]) for plan in live} == {("connectivity.plan", True)}
    assert [plan["price"] for plan in live if plan["price"] is not None] == [product.json()["price"]]  # of the product's template alone
    for plan in plans:
        assert plan["data_mb"] == 0 if plan["unlimited"] else plan["data_mb"] > 0


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
async def test_pages_of_any_size_give_every_plan_once(pro: httpx.AsyncClient, limit: int) -> None:
    for name in ("one", "two", "three"):
        await pro.post("/v1/connectivity/products", json=PRODUCT | {"name": name}, headers={"Idempotency-Key": name})
    whole = [plan["id"] for plan in (await pro.get(PLANS)).json()["data"]]
    seen: list[str] = []
    query: dict[str, str | int] = {"limit": limit}
    while True:
        page = (await pro.get(PLANS, params=query)).json()
        seen += [plan["id"] for plan in page["data"]]
        if not page["has_more"]:
            break
        query["starting_after"] = seen[-1]
    assert seen == whole
    assert len(seen) == 5
