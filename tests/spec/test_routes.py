"""Rules 3.1, 4.1 and 6 of tests/spec/rules.tsv: what the connectivity routes do, and which events come of it."""

import httpx
import pytest

from clients.webhooks.signature import sign_delivery
from registry.caller import Tier
from registry.errors import OcsError
from storage.engine.sql import Connection
from storage.intents import IntentRow, insert_intent
from tests.contract.fleet import writes
from tests.contract.stage import ServiceHouse
from tests.spec.bodies import V1, intent, listed, post
from tests.storefronts.asking import PRODUCT
from tests.world import NOON

TEST = {"plan": "test_eu_1gb"}


@pytest.mark.rule("2.4.5")
@pytest.mark.rule("3.1.1")
async def test_without_a_plan_nothing_is_drawn(free: httpx.AsyncClient) -> None:
    made = await intent(free, metadata={})
    assert (made["status"], made["plan"], made["esim"]) == ("requires_plan", None, None)
    assert await listed(free, "/events") == []


@pytest.mark.rule("3.1.2")
@pytest.mark.rule("6.1")
@pytest.mark.parametrize("plan", ["test_global_1gb", "test_eu_1gb"])
async def test_a_test_plan_succeeds_at_once_and_is_told(free: httpx.AsyncClient, plan: str) -> None:
    await post(free, "/webhook_endpoints", {"url": "https://hooks.example.com/esim"})
    made = await intent(free, plan=plan)
    assert (made["status"], made["livemode"], made["plan"]["id"]) == ("succeeded", False, plan)
    (event,) = await listed(free, "/events")
    assert event["type"] == "esim.issued"
    assert "LPA:" not in str(event) and made["esim"]["matching_id"] not in str(event)
    (delivery,) = await listed(free, f"/events/{event['id']}/deliveries")
    assert delivery["state"] == "pending"


@pytest.mark.rule("3.1.3")
async def test_a_live_plan_draws_from_the_caller_s_own_account(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    connected = await house.world.caller(Tier.PRO, mode="managed", account=8101)
    for who, status, told in ((caller, 409, "org_not_connected"), (connected, 201, "succeeded")):
        async with house.world.client(who.secret) as http:
            product = (await post(http, "/products", {**PRODUCT, "package_template_id": 55011})).json()
            for plan in (product["id"], "nordic-1gb-30d"):
                answer = await post(http, "/intents", {"plan": plan}, plan)
                assert (answer.status_code, answer.json().get("code", answer.json().get("status"))) == (status, told)
            assert [made["esim"] is not None for made in await listed(http, "/intents")] == [True] * (2 if status == 201 else 0)
    asked = [(call.method, call.payload) for call in house.world.sandbox.calls if writes([call.method])]
    # Packages alone: nobody's balance is changed.
    assert asked == [("affectPackageToSubscriber", {"packageTemplateId": template, "accountForSubs": 8101}) for template in (55011, 55010)]


@pytest.mark.rule("4.1.18")
async def test_a_connected_account_sees_its_products_and_its_templates_as_plans(house: ServiceHouse) -> None:
    connected, lonely = await house.world.caller(Tier.PRO, mode="managed", account=8101), await house.world.caller(Tier.PRO)
    async with house.world.client(connected.secret) as http, house.world.client(lonely.secret) as other:
        product = (await post(http, "/products", {**PRODUCT, "package_template_id": 581423})).json()
        plans = await listed(http, "/plans", limit=100)
        assert plans[:3] == [*await listed(other, "/plans"), product]
    live = plans[3:]
    assert "nordic-1gb-30d" in [plan["id"] for plan in live]
    assert {(plan["object"], plan["livemode"], plan["price"]) for plan in live} == {("connectivity.plan", True, None)}


@pytest.mark.rule("4.1.19")
@pytest.mark.rule("4.1.20")
async def test_neither_a_product_nor_a_test_plan_asks_anything_of_the_network(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO, mode="managed", account=8101)
    async with house.world.client(caller.secret) as http:
        assert (await post(http, "/products", PRODUCT)).status_code == 201
        waiting = await intent(http, "waiting", metadata={})
        for made in (await intent(http, plan="test_eu_1gb"), await http.post(f"{V1}/intents/{waiting['id']}/confirm", json=TEST)):
            assert (made if isinstance(made, dict) else made.json())["status"] == "succeeded"
    assert house.world.sandbox.calls == []


@pytest.mark.rule("4.1.3")
@pytest.mark.rule("7.4")
async def test_a_live_plan_needs_write_access_also_where_an_intent_does_not(free: httpx.AsyncClient) -> None:
    for answer in (await post(free, "/intents", {"plan": "nordic-1gb-30d"}), await post(free, "/products", PRODUCT)):
        assert (answer.status_code, answer.json()["required_tier"]) == (402, "pro")


@pytest.mark.rule("3.1.4")
async def test_confirming_attaches_the_plan_and_issues(free: httpx.AsyncClient) -> None:
    waiting = await intent(free, metadata={"order": "1"})
    answer = await free.post(f"{V1}/intents/{waiting['id']}/confirm", json={"plan": "test_eu_1gb"})
    done = answer.json()
    assert (answer.status_code, done["status"], done["metadata"]) == (200, "succeeded", {"order": "1"})
    again = await free.post(f"{V1}/intents/{waiting['id']}/confirm", json={"plan": "test_eu_1gb"})
    assert again.json() == done
    other = await free.post(f"{V1}/intents/{waiting['id']}/confirm", json={"plan": "test_global_1gb"})
    assert (other.status_code, other.json()["code"]) == (409, "intent_not_confirmable")
    assert len(await listed(free, "/events")) == 1


@pytest.mark.rule("3.1.5")
@pytest.mark.rule("4.1.5")
async def test_the_key_is_required_and_returns_the_original(free: httpx.AsyncClient) -> None:
    missing = await free.post(f"{V1}/intents", json={})
    assert (missing.status_code, missing.json()["code"]) == (400, "idempotency_key_required")
    first = await intent(free)
    assert await intent(free) == first
    assert len(await listed(free, "/intents")) == 1
    assert (await post(free, "/intents", {}, "i")).json()["code"] == "idempotency_key_reused"


@pytest.mark.rule("4.1.2")
@pytest.mark.rule("4.1.3")
@pytest.mark.rule("8.5")
async def test_products_are_listed_newest_first_up_to_100(pro: httpx.AsyncClient) -> None:
    assert (await pro.post(f"{V1}/products", json=PRODUCT)).json()["code"] == "idempotency_key_required"
    made = [(await post(pro, "/products", PRODUCT, f"p{number}")).json()["id"] for number in range(101)]
    assert (await post(pro, "/products", PRODUCT, "p0")).json()["id"] == made[0]
    assert [each["id"] for each in await listed(pro, "/products")] == made[:0:-1]


@pytest.mark.rule("2.7.3")
@pytest.mark.rule("4.1.8")
@pytest.mark.rule("4.1.10")
async def test_usage_is_reported_once_per_key_and_listed_by_intent(free: httpx.AsyncClient) -> None:
    made, other = await intent(free, "a"), await intent(free, "b")
    body = {"intent": made["id"], "quantity_mb": 1.5}
    assert (await free.post(f"{V1}/usage_records", json=body)).json()["code"] == "idempotency_key_required"
    first = await post(free, "/usage_records", body)
    assert (await post(free, "/usage_records", body)).json() == first.json()
    assert (await post(free, "/usage_records", {**body, "quantity_mb": 2})).status_code == 409
    assert await listed(free, "/usage_records", intent=made["id"]) == [first.json()]
    assert await listed(free, "/usage_records", intent=other["id"]) == []
    assert (await free.get(f"{V1}/usage_records")).status_code == 400


def live(connection: Connection, *, row: IntentRow) -> None:
    insert_intent(connection, row=row, event=None, ids=None)  # pyright: ignore[reportArgumentType]  # without an event nothing is named


@pytest.mark.rule("4.1.9")
async def test_usage_of_a_live_intent_is_metered_by_the_network(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    row = IntentRow("cni_live", caller.organisation, "succeeded", 1, "cnp_1", None, "{}", "8988303000000912345", None, None, int(NOON))
    await house.world.store.write(live, row=row)
    async with house.world.client(caller.secret) as http:
        answer = await post(http, "/usage_records", {"intent": "cni_live", "quantity_mb": 1})
        assert answer.status_code == 200
        assert answer.json() == {"object": "connectivity.usage_record", "status": "network_metered", "intent": "cni_live"}
        assert await listed(http, "/usage_records", intent="cni_live") == []


@pytest.mark.rule("4.1.11")
@pytest.mark.rule("6.3")
async def test_a_metered_line_counts_once_by_its_ref(free: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    made = await intent(free)
    line = {"ref": "r1", "iccid": made["esim"]["iccid"], "bytes": 500_000_000, "usage_type": "data", "occurred_at": NOON}
    answers = [(await bridge.post(f"{V1}/usage_records/ingest", json=line)).json() for _ in range(2)]
    assert answers == [{"stored": True}, {"stored": False}]
    reached = [event["data"] for event in await listed(free, "/events") if event["type"] == "usage.threshold_reached"]
    assert [(data["threshold_percent"], data["used_mb"], data["data_mb"]) for data in reached] == [(50, 500, 1000)]
    assert (await free.post(f"{V1}/usage_records/ingest", json=line)).status_code == 401


@pytest.mark.rule("2.6.2")
@pytest.mark.rule("4.1.12")
@pytest.mark.rule("6.4")
@pytest.mark.rule("8.6")
async def test_events_are_the_20_newest_or_those_of_one_intent(free: httpx.AsyncClient) -> None:
    made = [(await intent(free, f"i{number}"))["id"] for number in range(21)]
    assert [event["data"]["intent"] for event in await listed(free, "/events")] == made[:0:-1]
    assert [event["data"]["intent"] for event in await listed(free, "/events", intent=made[0])] == made[:1]
    assert (await free.get(f"{V1}/events", params={"limit": 21})).status_code == 400


@pytest.mark.rule("4.1.14")
async def test_a_retry_makes_no_second_event(free: httpx.AsyncClient) -> None:
    await post(free, "/webhook_endpoints", {"url": "https://hooks.example.com/esim"})
    await intent(free)
    (event,) = await listed(free, "/events")
    for _ in range(3):
        assert (await free.post(f"{V1}/events/{event['id']}/retry")).json() == event
    assert await listed(free, "/events") == [event]
    assert len(await listed(free, f"/events/{event['id']}/deliveries")) == 1


@pytest.mark.rule("4.1.15")
@pytest.mark.rule("6.2")
async def test_the_first_observed_country_is_told_once(free: httpx.AsyncClient, bridge: httpx.AsyncClient) -> None:
    made = await intent(free)
    observe = f"{V1}/events/observe"
    assert (await bridge.post(observe, json={"bridge_type": "weather.report"})).json() == {"ignored": True}
    seen = {"bridge_type": "network.attach", "iccid": made["esim"]["iccid"], "data": {"mcc": "208", "mnc": "01"}}
    for _ in range(2):
        assert (await bridge.post(observe, json=seen)).json() == {"ignored": False, "intent": made["id"]}
    attached = [event["data"] for event in await listed(free, "/events") if event["type"] == "esim.first_attach"]
    assert [(data["mcc"], data["country"]) for data in attached] == [("208", "FR")]
    assert (await free.post(observe, json=seen)).status_code == 401


@pytest.mark.rule("2.1.2")
@pytest.mark.rule("7.8")
def test_an_upstream_error_carries_the_upstream_s_code() -> None:
    assert (OcsError.status, OcsError("The upstream refused", ocs_code=17).body("req_1")) == (
        502,
        {"error": "The upstream refused", "code": "ocs_error", "request_id": "req_1", "ocs_code": 17},
    )
    assert "ocs_code" not in OcsError("The upstream failed").body("req_1")


@pytest.mark.rule("5.5.1")
def test_a_delivery_is_signed_with_the_endpoint_s_secret() -> None:
    signed = sign_delivery(["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="], "evt_1", 1700000000, b'{"a":1}')
    assert signed == {
        "webhook-id": "evt_1",
        "webhook-timestamp": "1700000000",
        "webhook-signature": "v1,hUVxIYXs8Zy9GDiZD1uQbBwXoZGMAB6RVLdZZ3ffmek=",
        "Connectivity-Signature": "t=1700000000,v1=7ca151e4fc23256c89e882261933d6af9a8be1f09f32dd687e83b0e34da7e68f",
    }
