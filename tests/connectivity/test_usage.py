"""Usage records, metered lines, and the thresholds both cross."""

from collections.abc import Sequence

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.connectivity.live import live_intent
from tests.connectivity.requests import USAGE, create, events, issued, report
from tests.length import examples
from tests.network_facts import ICCID
from tests.stage import without_request_id
from tests.world import Credentials, World

INGEST_USAGE = f"{USAGE}/ingest"
THRESHOLD = "usage.threshold_reached"
USAGE_LINE: dict[str, object] = {"ref": "r", "iccid": ICCID, "bytes": 48_000_000, "usage_type": "data", "occurred_at": 1_800_014_000}


async def percents(http: httpx.AsyncClient, intent: object) -> list[object]:
    """The thresholds told for an intent, in the order of their events."""
    found = (await http.get("/v1/connectivity/events", params={"intent": str(intent)})).json()["data"]
    return [event["data"]["threshold_percent"] for event in reversed(found) if event["type"] == THRESHOLD]


def key_of(parts: Sequence[int]) -> str:
    """A key of its own for each example; one that Hypothesis repeats is a replay, which changes nothing."""
    return "-".join(map(str, parts))


@pytest.mark.rule("2.7.1")
@pytest.mark.rule("2.7.3")
async def test_usage_of_a_test_intent_is_stored(http: httpx.AsyncClient) -> None:
    intent = await issued(http)
    answer = await report(http, "u", intent["id"], 12.5)
    assert answer.status_code == 201
    assert answer.json() == snapshot(
        {
            "id": "ur_01mcckg2g0000000000000000f",
            "object": "connectivity.usage_record",
            "intent": "cni_01mcckg2g00000000000000009",
            "quantity_mb": 12.5,
            "livemode": False,
            "created": 1800014400,
        }
    )
    listed = await http.get(USAGE, params={"intent": str(intent["id"])})
    assert listed.json() == {"object": "list", "data": [answer.json()], "has_more": False}


@pytest.mark.rule("4.1.8")
async def test_the_same_key_and_quantity_return_the_original_record(http: httpx.AsyncClient) -> None:
    id = (await issued(http))["id"]
    first, second = await report(http, "u", id, 600), await report(http, "u", id, 600.0)
    assert (second.status_code, second.content, second.headers["Idempotent-Replayed"]) == (201, first.content, "true")
    assert len((await http.get(USAGE, params={"intent": str(id)})).json()["data"]) == 1
    assert await percents(http, id) == [50]
    other = await report(http, "u", id, 601)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")


@pytest.mark.rule("4.1.9")
async def test_usage_of_a_live_intent_is_metered_by_the_network_and_not_stored(
    http: httpx.AsyncClient, world: World, caller: Credentials
) -> None:
    id = await live_intent(world, caller.organisation)
    answer = await report(http, "u", id, 900)
    assert (answer.status_code, answer.json()) == (
        200,
        {"object": "connectivity.usage_record", "status": "network_metered", "intent": id},
    )
    again = await report(http, "u", id, 900)
    assert (again.status_code, again.content) == (200, answer.content)
    assert (await http.get(USAGE, params={"intent": id})).json()["data"] == []
    assert await events(http) == []


async def test_the_least_quantity_is_taken(http: httpx.AsyncClient) -> None:
    id = (await issued(http))["id"]
    assert (await report(http, "u", id, 5e-324)).json()["quantity_mb"] == 5e-324


async def test_usage_before_there_is_an_esim_is_refused(http: httpx.AsyncClient) -> None:
    id = (await create(http, "k")).json()["id"]
    answer = await report(http, "u", id, 1)
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "This intent is requires_plan and has no eSIM yet",
            "code": "esim_not_issued",
            "param": "intent",
            "hint": "First give it a plan with confirm_connectivity_intent",
        }
    )


async def test_foreign_intents_take_and_show_no_usage(http: httpx.AsyncClient, pro: httpx.AsyncClient) -> None:
    id = (await issued(http))["id"]
    await report(http, "u", id, 1)
    for intent in (id, "cni_unknown"):
        answers = [await report(pro, "u", intent, 1), await pro.get(USAGE, params={"intent": str(intent)})]
        assert [(answer.status_code, answer.json()["param"]) for answer in answers] == [(404, "intent")] * 2
    assert len((await http.get(USAGE, params={"intent": str(id)})).json()["data"]) == 1


@pytest.mark.rule("2.7.2")
@pytest.mark.rule("4.1.10")
async def test_records_are_listed_for_one_intent_in_pages(http: httpx.AsyncClient) -> None:
    id, other = (await issued(http))["id"], (await issued(http, "other"))["id"]
    made = [(await report(http, f"u{n}", id, n + 1)).json()["id"] for n in range(5)]
    await report(http, "other", other, 1)
    page = (await http.get(USAGE, params={"intent": str(id), "limit": 3})).json()
    assert ([record["id"] for record in page["data"]], page["has_more"]) == (made[:1:-1], True)
    rest = (await http.get(USAGE, params={"intent": str(id), "limit": 3, "starting_after": made[2]})).json()
    assert ([record["id"] for record in rest["data"]], rest["has_more"]) == (made[1::-1], False)
    missing = await http.get(USAGE)
    assert (missing.status_code, missing.json()["param"]) == (400, "intent")


@pytest.mark.rule("6.3")
async def test_a_threshold_event_names_the_threshold_and_the_usage(http: httpx.AsyncClient) -> None:
    id = (await issued(http))["id"]
    await report(http, "u", id, 499.999999)
    assert await events(http, THRESHOLD) == []
    await report(http, "v", id, 0.000001)
    assert await events(http, THRESHOLD) == snapshot(
        [
            {
                "id": "evt_01mcckg2g0000000000000000n",
                "object": "connectivity.event",
                "type": "usage.threshold_reached",
                "livemode": False,
                "created": 1800014400,
                "data": {
                    "intent": "cni_01mcckg2g00000000000000009",
                    "iccid": "8999806986354554454",
                    "plan": "test_eu_1gb",
                    "threshold_percent": 50,
                    "used_mb": 500.0,
                    "data_mb": 1000,
                },
            }
        ]
    )


async def test_one_report_can_cross_every_threshold(http: httpx.AsyncClient) -> None:
    id = (await issued(http))["id"]
    await report(http, "u", id, 1_000_000)
    assert await percents(http, id) == [50, 80, 100]
    await report(http, "v", id, 1_000_000)
    assert await percents(http, id) == [50, 80, 100]


@pytest.mark.long
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.integers(1, 700_000_000), min_size=1, max_size=8))
async def test_any_split_and_order_of_usage_tells_each_crossed_threshold_once(http: httpx.AsyncClient, parts: Sequence[int]) -> None:
    id = (await issued(http, key_of(parts)))["id"]
    for number, part in enumerate(parts):
        await report(http, f"{id}-{number}", id, part / 1_000_000)
    assert await percents(http, id) == [percent for percent in (50, 80, 100) if sum(parts) * 100 >= percent * 10**9]


@pytest.mark.rule("4.1.11")
async def test_a_metered_line_is_stored_once(http: httpx.AsyncClient, bridge: httpx.AsyncClient, world: World, caller: Credentials) -> None:
    id = await live_intent(world, caller.organisation, data_mb=96)
    answers = [await bridge.post(INGEST_USAGE, json=USAGE_LINE) for _ in range(3)]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"stored": stored}) for stored in (True, False, False)]
    assert await percents(http, id) == [50]
    assert [event["data"]["used_mb"] for event in await events(http, THRESHOLD)] == [48.0]
    await bridge.post(INGEST_USAGE, json=USAGE_LINE | {"ref": "s"})
    assert await percents(http, id) == [50, 80, 100]


async def test_calls_messages_and_unlimited_plans_cross_nothing(
    http: httpx.AsyncClient, bridge: httpx.AsyncClient, world: World, caller: Credentials
) -> None:
    await live_intent(world, caller.organisation, data_mb=1)
    await live_intent(world, caller.organisation, iccid="8988303000000912352", unlimited=True)
    for usage_type in ("moc", "mtc", "mo_sms", "mt_sms"):
        assert (await bridge.post(INGEST_USAGE, json=USAGE_LINE | {"ref": usage_type, "usage_type": usage_type})).json() == {"stored": True}
    assert (await bridge.post(INGEST_USAGE, json=USAGE_LINE | {"iccid": "8988303000000912352"})).json() == {"stored": True}
    assert await events(http) == []


async def test_a_line_of_nobodys_sim_is_kept_and_counts_for_nobody(bridge: httpx.AsyncClient) -> None:
    assert [(await bridge.post(INGEST_USAGE, json=USAGE_LINE)).json()["stored"] for _ in range(2)] == [True, False]


async def test_the_sum_of_huge_lines_stays_a_number(
    http: httpx.AsyncClient, bridge: httpx.AsyncClient, world: World, caller: Credentials
) -> None:
    id = await live_intent(world, caller.organisation)
    for ref in "abc":
        assert (await bridge.post(INGEST_USAGE, json=USAGE_LINE | {"ref": ref, "bytes": 2**53 - 1})).status_code == 200
    assert await percents(http, id) == [50, 80, 100]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("iccid", "12345"),
        ("iccid", "89" + "٣" * 17),
        ("occurred_at", "yesterday"),
        ("occurred_at", "2026-11-20T09:00:00"),
        ("occurred_at", -1),
        ("occurred_at", True),
        ("occurred_at", 10**15),
    ],
)
async def test_a_line_that_breaks_a_rule_is_refused(bridge: httpx.AsyncClient, field: str, value: object) -> None:
    answer = await bridge.post(INGEST_USAGE, json=USAGE_LINE | {field: value})
    assert (answer.status_code, answer.json()["param"]) == (400, field)
    assert (await bridge.post(INGEST_USAGE, json=USAGE_LINE)).json() == {"stored": True}


@pytest.mark.parametrize("at", [0, 1_800_014_000.25, "2026-11-20T09:00:00Z", "2026-11-20T10:00:00.5+01:00"])
async def test_a_time_is_unix_seconds_or_rfc_3339(bridge: httpx.AsyncClient, at: object) -> None:
    assert (await bridge.post(INGEST_USAGE, json=USAGE_LINE | {"occurred_at": at})).status_code == 200
