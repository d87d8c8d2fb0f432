"""Products: define, list, read."""

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.connectivity.requests import issued
from tests.network_facts import ACCOUNT
from tests.storefronts.asking import PRODUCT, UNCOMPARED
from tests.world import World

PRODUCTS = "/v1/connectivity/products"


async def define(http: httpx.AsyncClient, key: str = "k", **changes: object) -> httpx.Response:
    return await http.post(PRODUCTS, json=PRODUCT | changes, headers={"Idempotency-Key": key})


@pytest.mark.rule("2.2.3")
@pytest.mark.rule("2.3.1")
@pytest.mark.rule("2.3.2")
@pytest.mark.rule("4.1.4")
async def test_a_product_is_answered_as_a_plan(pro: httpx.AsyncClient) -> None:
    answer = await define(pro)
    assert answer.status_code == 201
    assert answer.json() == snapshot(
        {
            "id": "cnp_01mcckg2g00000000000000009",
            "object": "connectivity.plan",
            "name": "Nordic 5 GB",
            "data_mb": 5000,
            "unlimited": False,
            "validity_days": 30,
            "countries": ["DK", "NO", "SE"],
            "livemode": True,
            "price": {"amount": 1490, "currency": "EUR"},
            "adapt": False,
            "warnings": UNCOMPARED,
        }
    )
    read = await pro.get(f"{PRODUCTS}/{answer.json()['id']}")
    assert (read.status_code, read.json()) == (200, answer.json())


@pytest.mark.long
@pytest.mark.rule("4.1.2")
@pytest.mark.rule("8.5")
async def test_products_are_listed_newest_first_and_in_pages(pro: httpx.AsyncClient) -> None:
    made = [(await define(pro, key, name=key)).json()["id"] for key in map(str, range(101))]
    page = (await pro.get(PRODUCTS)).json()
    assert ([plan["id"] for plan in page["data"]], page["has_more"]) == (made[:0:-1], True)
    rest = (await pro.get(PRODUCTS, params={"limit": 2, "starting_after": made[2]})).json()
    assert ([plan["id"] for plan in rest["data"]], rest["has_more"]) == (made[1::-1], False)


@pytest.mark.rule("8.1")
@pytest.mark.rule("8.2")
async def test_a_product_at_the_limits_of_its_fields_is_taken(pro: httpx.AsyncClient) -> None:
    assert (await define(pro, name="ü" * 80)).json()["name"] == "ü" * 80
    for name in ("data_mb", "validity_days", "price_cents", "package_template_id", "account_id"):
        assert (await define(pro, name, **{name: 1})).status_code == 201
        refused = await define(pro, name, **{name: 0})
        assert (refused.status_code, refused.json()["param"]) == (400, name)


@pytest.mark.rule("4.1.19")
async def test_a_product_changes_nothing_in_the_network_and_reads_nothing_but_its_template(world: World) -> None:
    caller = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    async with world.client(caller.secret) as http:
        assert (await define(http)).status_code == 201
    assert [call.method for call in world.sandbox.calls] == snapshot(
        ["listPrepaidPackageTemplate", "getResellerInfo", "listDetailedLocationZone"]
    )


@pytest.mark.rule("4.1.20")
async def test_a_test_plan_asks_nothing_of_the_network(world: World) -> None:
    caller = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    async with world.client(caller.secret) as http:
        assert (await issued(http))["status"] == "succeeded"
    assert world.sandbox.calls == []
