"""GET /v1/connectivity/plans."""

import httpx
import pytest
from inline_snapshot import snapshot

from tests.storefronts.asking import PRODUCT
from tests.tables import tabled

PLANS = "/v1/connectivity/plans"


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
