"""Requests that the rules are asked with."""

from typing import Any

import httpx

V1 = "/v1/connectivity"


async def post(http: httpx.AsyncClient, path: str, body: object, key: str = "k") -> httpx.Response:
    return await http.post(V1 + path, json=body, headers={"Idempotency-Key": key})


async def intent(http: httpx.AsyncClient, key: str = "i", **body: object) -> dict[str, Any]:
    """An intent, with a test eSIM unless the body says otherwise."""
    answer = await post(http, "/intents", body or {"plan": "test_eu_1gb"}, key)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def listed(http: httpx.AsyncClient, path: str, **query: object) -> list[dict[str, Any]]:
    answer = await http.get(V1 + path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200 and answer.json()["object"] == "list", answer.text
    return answer.json()["data"]
