"""The simulated network of a served process: it begins anew with every start, and what is stored of it does not outlive it."""

from pathlib import Path

import httpx

from tests.running import start, stop


def assigned(base_url: str, key: str) -> httpx.Response:
    """One package for the first line of the fleet, under one idempotency key."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base_url, headers=headers, timeout=30) as http:
        iccid = http.get("/v1/subscribers", params={"limit": 1, "fields": "iccid"}).json()["data"][0]["iccid"]
        body = {"packageTemplateId": http.get(f"/v1/subscribers/{iccid}/packages").json()["data"][0]["templateId"]}
        return http.post(f"/v1/subscribers/{iccid}/packages", json=body, headers={"Idempotency-Key": "first"})


def test_keys_of_a_network_that_is_gone_are_free_again_and_a_real_one_ends_the_simulated_connection(tmp_path: Path) -> None:
    server = start(tmp_path / "data", {})
    key = server.api_key
    assert key is not None
    first = assigned(server.base_url, key)
    again = assigned(server.base_url, key)
    assert (first.status_code, again.headers.get("idempotent-replayed"), again.content) == (201, "true", first.content)
    assert stop(server) == 0
    server = start(tmp_path / "data", {})
    anew = assigned(server.base_url, key)
    assert stop(server) == 0
    assert (anew.status_code, anew.headers.get("idempotent-replayed")) == (201, None)
    server = start(tmp_path / "data", {"SERVICE_OCS_URL": "http://127.0.0.1:9/v1", "SERVICE_OCS_TOKEN": "a-token-of-no-system"})
    answer = httpx.get(f"{server.base_url}/v1/accounts", headers={"Authorization": f"Bearer {key}"})
    assert stop(server) == 0
    assert (answer.status_code, answer.json()["code"]) == (409, "org_not_connected")
