"""The simulated network of a served process: it begins anew with every start, and what it issued is all that outlives it."""

from pathlib import Path

import httpx
import pytest

from tests.harness.processes import start, stop

NO_BURSTS = {"SERVICE_BURST_LIMIT": "false"}
"""More calls come at once than a demo's organisation may make."""


def assigned(base_url: str, key: str) -> httpx.Response:
    """One package for the first line of the fleet, under one idempotency key."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as http:
        iccid = http.get("/v1/subscribers", params={"limit": 1, "fields": "iccid"}).json()["data"][0]["iccid"]
        body = {"packageTemplateId": http.get(f"/v1/subscribers/{iccid}/packages").json()["data"][0]["templateId"]}
        return http.post(f"/v1/subscribers/{iccid}/packages", json=body, headers={"Idempotency-Key": "first"})


def issued(http: httpx.Client, key: str, **window: object) -> httpx.Response:
    body = {"accountId": 8101, "packageTemplateId": 55010, **window}
    return http.post("/v1/subscribers/issue-from-inventory", json=body, headers={"X-Idempotency-Key": key})


def rolled_back(http: httpx.Client, key: str) -> httpx.Response:
    path, named = f"/v1/subscribers/issue-from-inventory/{key}", {"Idempotency-Key": f"back-{key}"}
    first = http.delete(path, headers=named)
    if first.status_code != 202:
        return first
    return http.delete(path, headers={**named, "X-Confirm-Token": first.json()["confirm_token"]})


def packages_of(http: httpx.Client, iccid: str) -> list[tuple[int, str | None]]:
    return [(package["packageId"], package.get("expiresAt")) for package in http.get(f"/v1/subscribers/{iccid}/packages").json()["data"]]


@pytest.mark.long
def test_a_network_begins_anew_with_every_start_but_for_what_was_issued_and_a_real_one_ends_the_connection(tmp_path: Path) -> None:
    server = start(tmp_path / "data", NO_BURSTS)
    key = server.api_key
    assert key is not None
    headers = {"Authorization": f"Bearer {key}"}
    first, repeated = assigned(server.base_url, key), assigned(server.base_url, key)
    assert (first.status_code, repeated.headers.get("idempotent-replayed"), repeated.content) == (201, "true", first.content)
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as http:
        given = [issued(http, "one", validityPeriod=30), issued(http, "two"), issued(http, "three")]
        assert [answer.status_code for answer in given] == [201, 201, 201], given[0].text
        back = rolled_back(http, "two")
        assert back.json()["data"]["status"] == "rolled_back"
        iccids = [answer.json()["data"]["iccid"] for answer in given]
        before = [http.get(f"/v1/subscribers/{iccid}").json()["data"]["sim"]["status"] for iccid in iccids]
        packages = [packages_of(http, iccid) for iccid in iccids]
    assert stop(server) == 0
    server = start(tmp_path / "data", NO_BURSTS)
    anew = assigned(server.base_url, key)
    assert (anew.status_code, anew.headers.get("idempotent-replayed")) == (201, None), "the network that knew the key is gone"
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as http:
        again = [issued(http, "one", validityPeriod=30), issued(http, "three")]
        assert [answer.headers.get("idempotent-replayed") for answer in again] == ["true"] * 2
        assert [answer.content for answer in again] == [given[0].content, given[2].content]
        assert issued(http, "two").json()["code"] == "issuance_taken_back"
        assert [http.get(f"/v1/subscribers/{iccid}").json()["data"]["sim"]["status"] for iccid in iccids] == before
        assert [packages_of(http, iccid) for iccid in iccids] == packages
        repeated = rolled_back(http, "two")
        assert (repeated.content, repeated.headers.get("idempotent-replayed")) == (back.content, "true")
        fresh = [issued(http, "four").json()["data"]["iccid"], issued(http, "five").json()["data"]["iccid"]]
        assert iccids[0] not in fresh
        assert iccids[2] not in fresh
        assert fresh[0] == iccids[1], "what was given back is the first in stock again"
        assert rolled_back(http, "one").json()["data"]["status"] == "rolled_back"
        assert http.get(f"/v1/subscribers/{iccids[0]}").json()["data"]["sim"]["status"] == "FREE"
    assert stop(server) == 0
    server = start(tmp_path / "data", {"SERVICE_OCS_URL": "http://127.0.0.1:9/v1", "SERVICE_OCS_TOKEN": "a-token-of-no-system"})
    answer = httpx.get(f"{server.base_url}/v1/accounts", headers=headers)
    assert stop(server) == 0
    assert (answer.status_code, answer.json()["code"]) == (409, "org_not_connected")
