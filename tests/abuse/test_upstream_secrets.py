"""The token of the charging system never comes back out, however the charging system repeats it; nor do PINs, PUKs and activation codes."""

import asyncio
import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from storage.api_keys import insert_key
from storage.engine.store import Store, open_store
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from storage.sealing import OWN_TOKEN_FIELD, Keyring
from storage.upstream_connections import set_connection
from tests.abuse.canaries import bearer_headers, everything_below, hits, probe, text_of
from tests.abuse.token_echo_server import PIN, SQUAWKS, TokenEchoServer, token_echo_server
from tests.cli.reseller import run_reseller
from tests.contract.stage import request_of
from tests.faults.inputs import BY_OWN_TOKEN, UPSTREAM_OPERATIONS, Inputs
from tests.faults.rows import ROWS, CallRow
from tests.harness.processes import Running, start, stop
from tests.world import CountingIds, SettableClock

MANAGED = "managed-token-canary-8c51f0d2e7"
OWN = "own-token-canary/+=-3b9e77a4"
BRIDGE = "bridge-secret-canary-90ab12cd34"
SECRETS = {"managed token": MANAGED, "own token": OWN, "bridge secret": BRIDGE, "PIN or PUK": PIN}
BRIDGE_PATH = "/v1/webhooks/bridge4ip"


class Tenant(NamedTuple):
    organisation: str
    key: str


async def tenant(store: Store, ids: CountingIds, keyring: Keyring, *, own: bool) -> Tenant:
    """A managed organisation, or one with a token of its own."""
    organisation, person, key, now = ids.new("org_"), ids.new("usr_"), new_api_key(ids), 1_800_000_000.0
    mode, account = (None, None) if own else ("managed", 8101)
    await store.write(create_organisation, id=organisation, name="Canary", tier=Tier.ENTERPRISE, now=now, mode=mode, account_id=account)
    if own:
        sealed = keyring.seal(OWN, org_id=organisation, field=OWN_TOKEN_FIELD)
        await store.write(set_connection, organisation=organisation, mode="own", account_id=None, own_token=sealed)
    await store.write(create_person, id=person, now=now)
    await store.write(add_member, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    named: dict[str, Any] = {"digest": key.digest, "prefix": key.prefix, "organisation": organisation, "person": person}
    await store.write(insert_key, id=ids.new("key_"), **named, name="canary", now=now)
    return Tenant(organisation, key.secret)


async def tenants(data: Path) -> tuple[Tenant, Tenant]:
    ids = CountingIds(SettableClock())
    store, keyring = open_store(f"sqlite:///{data / 'service.db'}"), Keyring((data / "keyring").read_text().strip(), ids.bytes)
    made = await tenant(store, ids, keyring, own=False), await tenant(store, ids, keyring, own=True)
    await store.aclose()
    return made


def furnish(http: httpx.Client, managed: Tenant, upstream: TokenEchoServer) -> Inputs:
    """A template and a zone that are the managed organisation's own."""
    inputs, own = Inputs(upstream.world), bearer_headers(managed.key)
    body: dict[str, object] = {"name": "Mine", "locationZoneId": 2301, "validityDays": 30, "dataLimit": 1 << 30, "cost": 4.5}
    made = http.post("/v1/package-templates", json=body, headers=own)
    assert made.status_code == 201, made.text
    inputs.template = made.json()["data"]["templateId"]
    body = {"locationZoneName": "Mine", "tadigList": ["SWEAA"], "networkProfileId": 412}
    inputs.zone = http.post("/v1/location-zones", json=body, headers=own).json()["data"]["id"]
    return inputs


def over_http(http: httpx.Client, row: CallRow, given: dict[str, Any], who: Tenant, number: int) -> Iterator[str]:
    """A call; a confirm challenge is answered with its token; then the same again."""
    client = httpx.AsyncClient(base_url=http.base_url)  # only to build requests as the contract tests do
    request = request_of(client, UPSTREAM_OPERATIONS.operations[row.operation], given, f"http-{number}")
    request.headers.update(bearer_headers(who.key))
    for _ in range(3):
        answer = http.send(httpx.Request(request.method, request.url, headers=request.headers, content=request.content))
        yield text_of(answer)
        if answer.status_code == 202:
            request.headers["X-Confirm-Token"] = answer.json()["confirm_token"]
        elif row.write is None:
            return


def over_mcp(http: httpx.Client, server: Running, row: CallRow, given: dict[str, Any], who: Tenant, number: int) -> str:
    key = {} if UPSTREAM_OPERATIONS.operations[row.operation].once is None else {"idempotency_key": f"mcp-{number}"}
    params = {"name": row.operation, "arguments": {**given, **key}}
    return text_of(probe(http, f"{server.mcp_url}?toolsets=all", who.key, "tools/call", params))


def converse(http: httpx.Client, server: Running, upstream: TokenEchoServer, inputs: Inputs, made: tuple[Tenant, Tenant]) -> list[str]:
    """Every operation, in trouble of a kind and in none; kinds, organisations and doors take turns."""
    told: list[str] = []
    squawks = cycle(name for name in SQUAWKS if name != "code 100")  # which costs half a second each
    for number, row in enumerate(ROWS):
        for place, name in enumerate((next(squawks), "no trouble")):
            who = made[1] if row.operation == BY_OWN_TOKEN else made[(number + place) % 2]
            inputs.renew()
            given, turn = inputs.fitted(row), number * 2 + place
            upstream.strikes = row.uses[-1 if number % 2 else 0]
            upstream.squawk = SQUAWKS.get(name)
            tool = UPSTREAM_OPERATIONS.operations[row.operation].tool
            if name == "no trouble" or not tool or number % 4 < 2:  # what fails, fails at one door or at the other
                told += [f"{row.name} {name} {text}" for text in over_http(http, row, given, who, turn)]
            if tool and (name == "no trouble" or number % 4 >= 2):
                told.append(f"{row.name} {name} {over_mcp(http, server, row, given, who, turn)}")
    return told


def push(http: httpx.Client) -> list[str]:
    body = {"iccid": "8988303000000912345", "eid": "89049032000000000000000000000123", "subsId": 1, "status": "Enable"}
    told = [text_of(http.post(BRIDGE_PATH, params={"token": BRIDGE}, json=body))]
    assert told[0].startswith("200")
    told.append(text_of(http.post(BRIDGE_PATH, params={"token": f"{BRIDGE}x"}, json=body)))
    told.append(text_of(http.post(f"{BRIDGE_PATH}?token={BRIDGE}&token={BRIDGE}", json=body)))
    told.append(text_of(http.get(BRIDGE_PATH, params={"token": BRIDGE})))
    told.append(text_of(http.post(f"{BRIDGE_PATH}/more", params={"token": BRIDGE}, json=body)))
    told.append(text_of(http.post(BRIDGE_PATH, params={"token": BRIDGE}, content=b"{" + BRIDGE.encode())))
    told.append(text_of(http.get("/v1/accounts", params={"token": BRIDGE})))
    return told


def at_the_command_line(
    upstream: TokenEchoServer, data: Path, made: tuple[Tenant, Tenant], settings: dict[str, str], iccid: str
) -> list[str]:
    """Calls of a person at the machine that the service runs on."""
    told: list[str] = []
    commands = (("get_subscriber", "--iccid", iccid), ("send_sms", "--iccid", iccid, "--message", "Hello", "--yes"))
    methods, kinds = ("getSingleSubscriber", "sendMtSms"), ("code 100", "a new member")
    for words, method, name, who in zip(commands, methods, kinds, made, strict=True):
        upstream.strikes, upstream.squawk = method, SQUAWKS[name]
        done = run_reseller("call", *words, "--data", data, "--org", who.organisation, cwd=data.parent, **settings)
        told += [done.stdout, done.stderr]
    return told


@pytest.mark.long
def test_no_token_pin_or_activation_code_comes_back_out_of_an_upstream_that_repeats_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with token_echo_server(MANAGED, OWN) as upstream:
        settings = {"SERVICE_OCS_URL": upstream.url, "SERVICE_OCS_TOKEN": MANAGED, "SERVICE_BRIDGE_WEBHOOK_SECRET": BRIDGE}
        server = start(data, {**settings, "SERVICE_BURST_LIMIT": "false"})
        try:
            made = asyncio.run(tenants(data))
            with httpx.Client(base_url=server.base_url, timeout=60) as http:
                inputs = furnish(http, made[0], upstream)
                told = converse(http, server, upstream, inputs, made)
                pushed = push(http)
            spoken = at_the_command_line(upstream, data, made, settings, inputs.line("cli").iccid)
            running = everything_below(data, but="keyring")
        finally:
            assert stop(server) == 0
    log = (tmp_path / "data.log").read_bytes()
    written = {
        **running,
        "log": log,
        "answers": "\n".join(told).encode(),
        "bridge": "\n".join(pushed).encode(),
        "command line": "\n".join(spoken).encode(),
    }
    assert upstream.heard == {MANAGED, OWN}  # it was the real thing that was repeated
    assert hits(SECRETS, written) == []
    codes = {f"activation code {line.id}": line.sim.activation_code for line in upstream.world.lines.values() if line.sim.activation_code}
    assert hits(codes, {"log": log, **running}) == []
    assert not [text for text in told if '"pin1"' in text or '"puk1"' in text or '"pin2"' in text or '"puk2"' in text]
    statuses = {int(text.split(" {'")[0].rsplit(" ", 1)[1]) for text in told}
    assert statuses <= {200, 201, 202, 400, 404, 409, 502}, statuses
    worked = {row.name for row in ROWS for text in told if text.startswith((f"{row.name} no trouble 200", f"{row.name} no trouble 201"))}
    assert worked == {row.name for row in ROWS}  # every answer was seen whole, too
    assert b'"kind":"fault"' not in log and b"Traceback" not in log
    assert {"Traceback" in text for text in spoken} == {False}
    assert json.loads(pushed[0].partition("} ")[2]) == {"result": {"code": 0, "msg": "OK"}}
