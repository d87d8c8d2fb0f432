"""Secrets that a search recognises, and everything a running server has written or said."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import httpx

from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from storage.api_keys import insert_key
from storage.engine.store import open_store
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from tests.mcp.refusals import refusal_in
from tests.world import CountingIds, SettableClock

JsonObject = dict[str, object]
CANARY_SETTINGS = {
    "SERVICE_INTERNAL_API_KEY": "internal-canary-5f1d2c7a90",
    "SERVICE_STOREFRONT_API_KEY": "ocs-token-canary-b64e01c9d3",
    "SERVICE_BRIDGE_WEBHOOK_SECRET": "whsec_YnJpZGdlLWNhbmFyeS03N2EwZTFiMmMz",
    "SERVICE_MCP_STATE_KEYS": "mcp-state-canary-0123456789-0123456789",
    "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8",
}
SESSION = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJzdWIiOiJjYW5hcnktc3ViamVjdCJ9.c2Vzc2lvbi1jYW5hcnktc2lnbmF0dXJl"
LOST_KEY = "ak_canarycanarycanarycanarycanarycanary00000000"


async def second_tenant(database: Path) -> str:
    """Another organisation of the same database; the key of its admin."""
    store, clock = open_store(f"sqlite:///{database}"), SettableClock()
    ids = CountingIds(clock)
    organisation, person, key = ids.new("org_"), ids.new("usr_"), new_api_key(ids)
    now = clock.now()
    await store.write(create_organisation, id=organisation, name="Rival", tier=Tier.ENTERPRISE, now=now)
    await store.write(create_person, id=person, now=now)
    await store.write(add_member, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    id = ids.new("key_")
    await store.write(
        insert_key, id=id, digest=key.digest, prefix=key.prefix, organisation=organisation, person=person, name="rival", now=now
    )
    await store.aclose()
    return key.secret


def bearer_headers(secret: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}", **more}


def text_of(answer: httpx.Response) -> str:
    """Status line, headers and body as one text."""
    return f"{answer.status_code} {dict(answer.headers)} {answer.text}"


def probe(http: httpx.Client, url: str, secret: str, method: str, params: Mapping[str, object]) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = "application/json, text/event-stream"
    return http.post(url, json=body, headers=bearer_headers(secret, Accept=accept, **{"MCP-Protocol-Version": "2025-11-25"}))


def call_tool(http: httpx.Client, url: str, secret: str, name: str, arguments: JsonObject) -> JsonObject:
    """What a tool answers, whether the answer came plain or as a stream."""
    answer = probe(http, url, secret, "tools/call", {"name": name, "arguments": arguments})
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line[5:] for line in text.splitlines() if line.startswith("data:"))
    result = cast(dict[str, JsonObject], json.loads(text))["result"]
    return cast(JsonObject, refusal_in(result) if result["isError"] else result["structuredContent"])


def everything_below(folder: Path, *, but: str) -> dict[str, bytes]:
    """Every file of a folder by name, but for one."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != but}


def hits(planted: Mapping[str, str], haystacks: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Which secret stands where, plain or as JSON or a URL would write it."""
    found: list[tuple[str, str]] = []
    for name, secret in planted.items():
        forms = {secret, json.dumps(secret)[1:-1], secret.replace("$", "%24").replace(":", "%3A"), secret.removeprefix("LPA:")}
        found += [(name, place) for place, text in haystacks.items() if any(form.encode() in text for form in forms)]
    return found
