"""POST /v1/connectivity/intents/{id}/confirm."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from tests.connectivity.requests import INTENTS, create, events, issued
from tests.stage import without_request_id


async def confirm(http: httpx.AsyncClient, id: object, plan: object, **headers: str) -> httpx.Response:
    return await http.post(f"{INTENTS}/{id}/confirm", json={"plan": plan}, headers=headers)


async def waiting(http: httpx.AsyncClient) -> dict[str, Any]:
    return (await create(http, "w", metadata={"order": "1042"})).json()


@pytest.mark.rule("3.1.4")
async def test_a_waiting_intent_takes_a_plan_and_gets_its_esim(http: httpx.AsyncClient) -> None:
    before = await waiting(http)
    answer = await confirm(http, before["id"], "test_eu_1gb")
    assert answer.status_code == 200
    after = answer.json()
    assert {**after, "plan": None, "esim": None, "status": "requires_plan"} == before
    assert (after["status"], after["plan"]["id"], after["esim"]["iccid"][:4]) == ("succeeded", "test_eu_1gb", "8999")
    assert (await http.get(f"{INTENTS}/{before['id']}")).json() == after
    assert [event["data"] for event in await events(http)] == [
        {"intent": after["id"], "iccid": after["esim"]["iccid"], "plan": "test_eu_1gb"}
    ]


async def test_confirming_again_with_the_same_plan_returns_the_same_esim(http: httpx.AsyncClient) -> None:
    id = (await waiting(http))["id"]
    first, second = await confirm(http, id, "test_eu_1gb"), await confirm(http, id, "test_eu_1gb")
    assert (second.status_code, second.content) == (200, first.content)
    assert len(await events(http)) == 1


async def test_a_succeeded_intent_takes_no_other_plan(http: httpx.AsyncClient) -> None:
    intent = await issued(http)
    answer = await confirm(http, intent["id"], "test_global_1gb")
    assert answer.status_code == 409
    assert without_request_id(answer) == snapshot(
        {
            "error": "This intent is succeeded; only an intent in requires_plan takes a plan",
            "code": "intent_not_confirmable",
            "hint": "Read it with get_connectivity_intent, or create a new one with create_connectivity_intent",
        }
    )
    assert (await http.get(f"{INTENTS}/{intent['id']}")).json() == intent


@pytest.mark.rule("2.1.1")
@pytest.mark.rule("7.2")
@pytest.mark.parametrize(
    ("body", "param"), [({}, "plan"), ({"plan": None}, "plan"), ({"plan": "x", "id": "y"}, "id"), ({"plan": 5}, "plan")]
)
async def test_a_confirmation_names_its_plan(http: httpx.AsyncClient, body: dict[str, object], param: str) -> None:
    id = (await waiting(http))["id"]
    answer = await http.post(f"{INTENTS}/{id}/confirm", json=body)
    assert (answer.status_code, answer.json()["param"]) == (400, param)
    assert (await http.get(f"{INTENTS}/{id}")).json()["status"] == "requires_plan"


async def test_a_plan_that_does_not_exist_leaves_the_intent_waiting(http: httpx.AsyncClient) -> None:
    id = (await waiting(http))["id"]
    assert (await confirm(http, id, "test_mars")).status_code == 404
    assert (await confirm(http, id, "nordic-1gb-30d")).status_code == 402
    assert (await http.get(f"{INTENTS}/{id}")).json()["status"] == "requires_plan"
