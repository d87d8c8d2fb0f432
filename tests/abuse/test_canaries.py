"""Secrets planted through a real server stand in no byte of its log, its data, its errors and what other tenants are shown."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import httpx
import pytest

from tests.abuse.canaries import (
    CANARY_SETTINGS,
    LOST_KEY,
    SESSION,
    JsonObject,
    bearer_headers,
    call_tool,
    everything_below,
    hits,
    probe,
    second_tenant,
    text_of,
)
from tests.cli.reseller import printed
from tests.harness.processes import Running, start, stop
from tests.harness.thread_servers import serving_in_thread

INTENTS = "/v1/connectivity/intents"
ENDPOINTS = "/v1/connectivity/webhook_endpoints"
ECHOED = "receiver-canary-1f0e9d8c"
EARS = ("list_connectivity_intents", "list_connectivity_events", "list_connectivity_plans", "list_connectivity_webhook_endpoints")


class Receiver(BaseHTTPRequestHandler):
    """Answers 500 with words of its own, and sets a flag when it was called."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = ECHOED.encode()
        self.send_response(500, ECHOED)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-canary", ECHOED)
        self.end_headers()
        self.wfile.write(body)
        cast(Listening, self.server).called.set()

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


class Listening(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.called = threading.Event()


@contextmanager
def receiver() -> Generator[Listening]:
    with serving_in_thread(Listening()) as server:
        yield server


def plant(http: httpx.Client, server: Running, hook: str) -> dict[str, str]:
    """Make everything that is secret, through both doors."""
    assert server.api_key is not None
    own = bearer_headers(server.api_key)
    endpoint = http.post(ENDPOINTS, json={"url": hook}, headers=own).json()
    rotated = http.post(f"{ENDPOINTS}/{endpoint['id']}/rotate", headers=own).json()
    minted = http.post("/v1/api-keys", json={"name": "canary"}, headers=own).json()
    issued = http.post(INTENTS, json={"plan": "test_eu_1gb"}, headers={**own, "Idempotency-Key": "canary"}).json()
    arguments: JsonObject = {"plan": "test_global_1gb", "idempotency_key": "canary-mcp"}
    called = cast(dict[str, dict[str, str]], call_tool(http, server.mcp_url, server.api_key, "create_connectivity_intent", arguments))
    return {
        "first key": server.api_key,
        "minted key": minted["secret"],
        "webhook secret": endpoint["secret"],
        "rotated webhook secret": rotated["secret"],
        "activation code": issued["esim"]["activation_code"],
        "matching id": issued["esim"]["matching_id"],
        "activation code over MCP": called["esim"]["activation_code"],
        "matching id over MCP": called["esim"]["matching_id"],
        "session token": SESSION,
        "mistyped key": LOST_KEY,
        **{name: value for name, value in CANARY_SETTINGS.items() if "canary" in value or value.startswith("whsec_")},
    }


def blunder(http: httpx.Client, key: str, planted: dict[str, str]) -> list[str]:
    """Every secret in every wrong place: what the refusals say."""
    own, told = bearer_headers(key), list[str]()
    for number, (name, secret) in enumerate(planted.items()):
        told.append(text_of(http.get(INTENTS, headers=bearer_headers(secret)))) if "key" not in name else None
        told.append(text_of(http.post("/v1/connectivity/events/observe", json={}, headers=bearer_headers(f"{secret}x"))))
        told.append(text_of(http.get("/v1/connectivity/plans", params={"access_token": secret})))
        if name.startswith("SERVICE_") and "WEBHOOK" not in name:
            continue  # a text without a shape of its own cannot be told from a plan's name in its sender's own input
        headers = {**own, "Idempotency-Key": f"b{number}"}
        bodies: list[JsonObject] = [{"plan": secret}, {secret: 1}, {"metadata": {secret: "\x01"}}, {"metadata": {"a": f"{secret}\x01"}}]
        told += [text_of(http.post(INTENTS, json=body, headers=headers)) for body in bodies]
        told.append(text_of(http.post(ENDPOINTS, json={"url": f"https://u:{secret}@example.com/"}, headers=own)))
        told.append(text_of(http.post(ENDPOINTS, json={"url": f"http://127.0.0.2.example/{secret}"}, headers=own)))
        at = httpx.URL("/").copy_with(path=f"/v1/connectivity/events/{secret}").path
        told.append(text_of(http.get(at, headers=own)))
        told.append(text_of(http.delete(at.replace("events", "webhook_endpoints"), headers=own)))
        told.append(text_of(http.get("/v1/connectivity/events", params={"limit": secret}, headers=own)))
    return told


def overhear(http: httpx.Client, server: Running, rival: str, intent: str) -> list[str]:
    """All that another tenant, and a visitor without a credential, are shown."""
    heard = [
        text_of(http.get(path, headers=bearer_headers(rival)))
        for path in (INTENTS, f"{INTENTS}/{intent}", ENDPOINTS, "/v1/connectivity/events")
    ]
    heard += [probe(http, server.mcp_url, rival, "tools/call", {"name": name, "arguments": {}}).text for name in EARS]
    heard.append(probe(http, server.mcp_url, rival, "resources/read", {"uri": f"connectivity://intents/{intent}"}).text)
    heard += [probe(http, server.mcp_url, rival, method, {}).text for method in ("tools/list", "prompts/list", "resources/list")]
    replay = {"Idempotency-Key": "canary", **bearer_headers(rival)}
    heard.append(text_of(http.post(INTENTS, json={"plan": "test_eu_1gb"}, headers=replay)))
    heard += [text_of(http.get(path)) for path in ("/health", "/openapi.json", "/docs", "/docs/connectivity", "/mcp")]
    return heard


@pytest.mark.long
async def test_no_planted_secret_is_in_the_log_the_data_an_error_or_anothers_answer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with receiver() as hook:
        server = start(data, {**CANARY_SETTINGS, "SERVICE_BURST_LIMIT": "false"})
        try:
            with httpx.Client(base_url=server.base_url) as http:
                planted = plant(http, server, f"http://127.0.0.1:{hook.server_port}/hook")
                assert server.api_key is not None
                own = bearer_headers(server.api_key)
                shown = http.get(INTENTS, headers=own)
                listed = shown.json()["data"]
                event = http.get("/v1/connectivity/events", headers=own).json()["data"][-1]["id"]
                assert hook.called.wait(60)
                errors = blunder(http, server.api_key, planted)
                rival = await second_tenant(data / "service.db")
                heard = overhear(http, server, rival, listed[0]["id"])
                deliveries = text_of(http.get(f"/v1/connectivity/events/{event}/deliveries", headers=own))
            printed("db", "backup", tmp_path / "backup.db", "--data", data, cwd=tmp_path)
            running = everything_below(data, but="keyring")  # with the write-ahead log
        finally:
            assert stop(server) == 0
    ended = everything_below(data, but="keyring")
    written = {
        **running,
        **{f"{name} after the end": text for name, text in ended.items()},
        "log": (tmp_path / "data.log").read_bytes(),
        "backup": (tmp_path / "backup.db").read_bytes(),
        "errors": "\n".join(errors).encode(),
        "others": "\n".join(heard).encode(),
        "deliveries": deliveries.encode(),
    }
    assert len(planted) >= 12
    assert len(hits(planted, {"owner": shown.content})) == 4  # the search finds what is there: two codes, two matching ids
    assert not [answer for answer in [*errors, *heard] if answer.startswith("5")]
    assert len(listed) == 2 and "status:500" in deliveries  # it did happen
    assert b'"code":"unauthorized"' in written["log"]
    assert hits({**planted, "the receiver's words": ECHOED}, written) == []
    secret_file = (data / "keyring").read_text().strip().partition(":")[2]
    assert hits({"keyring": secret_file}, written) == []
    assert (data / "keyring").stat().st_mode & 0o077 == 0
    assert {Path(name).stat().st_mode & 0o077 for name in ended} == {0}
