"""What tests of intents and usage send again and again."""

from typing import Any

import httpx

INTENTS = "/v1/connectivity/intents"
USAGE = "/v1/connectivity/usage_records"
EVENTS = "/v1/connectivity/events"


async def create(http: httpx.AsyncClient, key: str, **body: object) -> httpx.Response:
    return await http.post(INTENTS, json=body, headers={"Idempotency-Key": key})


async def issued(http: httpx.AsyncClient, key: str = "issued", plan: str = "test_eu_1gb") -> dict[str, Any]:
    answer = await create(http, key, plan=plan)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def report(http: httpx.AsyncClient, key: str, intent: object, quantity_mb: object) -> httpx.Response:
    return await http.post(USAGE, json={"intent": intent, "quantity_mb": quantity_mb}, headers={"Idempotency-Key": key})


async def events(http: httpx.AsyncClient, type: str | None = None) -> list[dict[str, Any]]:
    found = (await http.get(EVENTS)).json()["data"]
    return [event for event in reversed(found) if type is None or event["type"] == type]
