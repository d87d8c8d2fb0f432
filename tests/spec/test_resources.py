"""Rules 2 and 8 of tests/spec/rules.tsv: resources, their fields and their limits."""

import httpx
import pytest

from tests.contract.stage import ServiceHouse
from tests.spec.bodies import V1, intent, listed, post
from tests.storefronts.asking import PRODUCT
from tests.world import NOON

PLAN_FIELDS = {"id", "object", "name", "data_mb", "unlimited", "validity_days", "countries", "livemode", "price"}


@pytest.mark.rule("2.1.1")
@pytest.mark.rule("7.2")
async def test_a_bad_request_answers_with_error(free: httpx.AsyncClient) -> None:
    answer = await post(free, "/intents", {"plan": 5})
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str) and answer.json()["param"] == "plan"


@pytest.mark.rule("2.2.1")
@pytest.mark.rule("2.2.3")
@pytest.mark.rule("2.2.4")
@pytest.mark.rule("4.1.1")
async def test_the_free_tier_sees_the_test_plans(free: httpx.AsyncClient) -> None:
    plans = await listed(free, "/plans")
    assert [plan["id"] for plan in plans] == ["test_global_1gb", "test_eu_1gb"]
    for plan in plans:
        assert set(plan) == PLAN_FIELDS
        assert (plan["object"], plan["data_mb"], plan["unlimited"]) == ("connectivity.plan", 1000, False)
        assert (plan["validity_days"], plan["livemode"], plan["price"]) == (30, False, None)
        assert plan["name"] and {len(country) for country in plan["countries"]} == {2}


@pytest.mark.rule("2.2.2")
async def test_no_plan_is_unlimited_by_its_megabytes(pro: httpx.AsyncClient) -> None:
    await post(pro, "/products", PRODUCT)
    for plan in await listed(pro, "/plans"):
        assert set(plan) == PLAN_FIELDS and plan["object"] == "connectivity.plan"
        assert plan["data_mb"] == 0 if plan["unlimited"] else plan["data_mb"] > 0


@pytest.mark.rule("2.2.3")
@pytest.mark.rule("2.3.1")
@pytest.mark.rule("2.3.2")
@pytest.mark.rule("4.1.4")
async def test_a_product_takes_its_fields_and_answers_as_a_plan(pro: httpx.AsyncClient) -> None:
    for name in PRODUCT:
        without = {field: value for field, value in PRODUCT.items() if field != name}
        refused = await post(pro, "/products", without)
        assert (refused.status_code, refused.json()["param"]) == (400, name)
    assert (await post(pro, "/products", {**PRODUCT, "currency": "JPY"})).status_code == 400
    made = await post(pro, "/products", {**PRODUCT, "account_id": 7})
    assert made.status_code == 201
    plan = made.json()
    assert {**plan, "id": ""} == {
        "id": "",
        "object": "connectivity.plan",
        "name": "Nordic 5 GB",
        "data_mb": 5000,
        "unlimited": False,
        "validity_days": 30,
        "countries": ["DK", "NO", "SE"],
        "livemode": True,
        "price": {"amount": 1490, "currency": "EUR"},
    }
    assert plan["id"].startswith("cnp_")
    assert (await pro.get(f"{V1}/products/{plan['id']}")).json() == plan


@pytest.mark.rule("8.1")
@pytest.mark.rule("8.2")
async def test_a_product_s_limits(pro: httpx.AsyncClient) -> None:
    for name, good, bad in [
        ("name", "x" * 80, "x" * 81),
        ("data_mb", 1, 0),
        ("validity_days", 1, 0),
        ("price_cents", 1, 0),
        ("package_template_id", 1, 0),
        ("account_id", 1, 0),
    ]:
        refused = await post(pro, "/products", {**PRODUCT, name: bad}, name)
        assert (refused.status_code, refused.json()["param"]) == (400, name)
        assert (await post(pro, "/products", {**PRODUCT, name: good}, name)).status_code == 201


@pytest.mark.rule("2.4.1")
@pytest.mark.rule("2.4.3")
@pytest.mark.rule("4.1.7")
async def test_an_intent_has_all_its_fields(free: httpx.AsyncClient) -> None:
    made = await intent(free, plan="test_eu_1gb", metadata={"order": "1"})
    esim = made["esim"]
    assert set(esim) == {"iccid", "activation_code", "qr_code", "smdp_address", "matching_id"}
    assert esim["activation_code"] == esim["qr_code"] == f"LPA:1${esim['smdp_address']}${esim['matching_id']}"
    assert made["id"].startswith("cni_") and made["plan"]["id"] == "test_eu_1gb"
    assert {**made, "id": "", "esim": None, "plan": None} == {
        "id": "",
        "object": "connectivity.intent",
        "status": "succeeded",
        "livemode": False,
        "plan": None,
        "esim": None,
        "metadata": {"order": "1"},
        "error": None,
        "created": int(NOON),
    }
    assert (await free.get(f"{V1}/intents/{made['id']}")).json() == made


@pytest.mark.rule("2.4.2")
async def test_plan_and_metadata_are_optional_and_metadata_is_text(free: httpx.AsyncClient) -> None:
    assert (await post(free, "/intents", {})).json()["metadata"] == {}
    assert (await post(free, "/intents", {"metadata": {"order": "1"}}, "m")).json()["plan"] is None
    assert (await post(free, "/intents", {"metadata": {"order": 1}}, "n")).status_code == 400


@pytest.mark.rule("2.4.4")
@pytest.mark.rule("4.1.6")
@pytest.mark.rule("8.4")
async def test_the_intent_list_is_newest_first_20_by_default_and_100_at_most(free: httpx.AsyncClient) -> None:
    made = [(await intent(free, f"i{number}", metadata={}))["id"] for number in range(21)]
    assert [each["id"] for each in await listed(free, "/intents")] == made[:0:-1]
    assert [each["id"] for each in await listed(free, "/intents", limit=1)] == made[-1:]
    assert len(await listed(free, "/intents", limit=100)) == 21
    for limit in (0, 101, "x", 1.5):
        assert (await free.get(f"{V1}/intents", params={"limit": limit})).status_code == 400


@pytest.mark.rule("2.5.1")
@pytest.mark.rule("2.5.3")
@pytest.mark.rule("2.5.4")
@pytest.mark.rule("3.4.1")
@pytest.mark.rule("4.1.16")
async def test_an_endpoint_shows_its_secret_once_and_is_removed_by_delete(free: httpx.AsyncClient) -> None:
    made = (await post(free, "/webhook_endpoints", {"url": "https://hooks.example.com/esim"})).json()
    secret = made.pop("secret")
    assert secret.startswith("whsec_") and made["id"].startswith("we_")
    assert {**made, "id": ""} == {
        "id": "",
        "object": "connectivity.webhook_endpoint",
        "url": "https://hooks.example.com/esim",
        "status": "enabled",
        "created": int(NOON),
    }
    assert await listed(free, "/webhook_endpoints") == [made]
    gone = await free.delete(f"{V1}/webhook_endpoints/{made['id']}")
    assert gone.json() == {"id": made["id"], "object": "connectivity.webhook_endpoint", "deleted": True}
    assert await listed(free, "/webhook_endpoints") == []
    assert (await free.delete(f"{V1}/webhook_endpoints/{made['id']}")).status_code == 404


@pytest.mark.rule("2.5.2")
@pytest.mark.parametrize("url", ["http://hooks.example.com/", "/esim", "https://me:pw@hooks.example.com/", "ftp://x.example.com", ""])
async def test_an_endpoint_s_url_is_absolute_https_without_userinfo(free: httpx.AsyncClient, url: str) -> None:
    refused = await post(free, "/webhook_endpoints", {"url": url})
    assert (refused.status_code, refused.json()["param"]) == (400, "url")


@pytest.mark.rule("2.6.1")
@pytest.mark.rule("4.1.13")
async def test_an_event_has_all_its_fields(free: httpx.AsyncClient) -> None:
    made = await intent(free)
    (event,) = await listed(free, "/events")
    assert event["id"].startswith("evt_")
    assert {**event, "id": ""} == {
        "id": "",
        "object": "connectivity.event",
        "type": "esim.issued",
        "livemode": False,
        "created": int(NOON),
        "data": {"intent": made["id"], "iccid": made["esim"]["iccid"], "plan": "test_eu_1gb"},
    }
    assert (await free.get(f"{V1}/events/{event['id']}")).json() == event


@pytest.mark.rule("2.7.1")
@pytest.mark.rule("2.7.2")
@pytest.mark.rule("8.3")
async def test_a_usage_record_has_all_its_fields_and_its_quantity_is_in_range(free: httpx.AsyncClient) -> None:
    made = await intent(free)
    for number, quantity in enumerate((0, -1, 1_000_000.0001, "5", True, None)):
        refused = await post(free, "/usage_records", {"intent": made["id"], "quantity_mb": quantity}, f"bad{number}")
        assert (refused.status_code, refused.json()["param"]) == (400, "quantity_mb"), quantity
    for name in ("intent", "quantity_mb"):
        body = {field: value for field, value in {"intent": made["id"], "quantity_mb": 1}.items() if field != name}
        assert (await post(free, "/usage_records", body)).json()["param"] == name
    for number, quantity in enumerate((0.001, 1_000_000)):
        record = (await post(free, "/usage_records", {"intent": made["id"], "quantity_mb": quantity}, f"good{number}")).json()
        assert record.pop("id").startswith("ur_")
        assert record == {
            "object": "connectivity.usage_record",
            "intent": made["id"],
            "quantity_mb": quantity,
            "livemode": False,
            "created": int(NOON),
        }


@pytest.mark.rule("2.12.1")
@pytest.mark.rule("4.1.17")
@pytest.mark.rule("9.1")
@pytest.mark.rule("9.2")
async def test_health_tells_version_and_build(house: ServiceHouse) -> None:
    async with house.world.client() as http:
        answer = await http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "version": "1.0.0", "build_sha": "0123abc"})


@pytest.mark.rule("7.5")
@pytest.mark.rule("7.6")
async def test_unknown_things_are_404_and_unknown_methods_405(free: httpx.AsyncClient) -> None:
    for path in ("/intents/cni_0", "/products/cnp_0", "/events/evt_0", "/nothing"):
        answer = await free.get(V1 + path)
        assert answer.status_code == 404 and isinstance(answer.json()["error"], str)
    answer = await free.put(f"{V1}/intents", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
