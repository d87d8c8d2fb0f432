"""Whatever stands in a field: no fault of ours, nothing done by what was refused, and no input that costs seconds to refuse."""

import json
import re
import time
from typing import NamedTuple
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa

from operations.catalogue import CATALOGUE
from registry.answer import answer_call
from registry.call import Call
from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.limits import Limits
from registry.operation import Auth
from registry.ports import SharedSecrets
from storage.engine.sql import Connection, Query
from storage.metadata import SQLModel
from tests.abuse.nasty import instead
from tests.stage import opened
from tests.world import World, open_world

INTERNAL = "internal-key-0123456789"
KEPT = ("intent", "event", "delivery", "claim", "product", "usage_record", "metered_line", "network_event", "webhook_endpoint", "api_key")
OPERATIONS = [pytest.param(operation, id=operation.id) for operation in CATALOGUE.operations.values()]


class Rows(NamedTuple):
    rows: int


COUNTS = Query(Rows, sa.union_all(*(sa.select(sa.func.count().label("rows")).select_from(SQLModel.metadata.tables[name]) for name in KEPT)))


world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False), secrets=SharedSecrets(internal=INTERNAL))


def counted(connection: Connection) -> list[int]:
    """Rows of every table that a call may write."""
    return [row.rows for row in connection.all(COUNTS)]


async def whole_input(http: httpx.AsyncClient, operation: AnyOperation) -> dict[str, object]:
    """A documented input whose ids are real."""
    intent = (await http.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "a"})).json()
    event = (await http.get("/v1/connectivity/events")).json()["data"][0]
    endpoint = (await http.post("/v1/connectivity/webhook_endpoints", json={"url": "https://example.com/"})).json()
    real = {"cni_": intent["id"], "evt_": event["id"], "we_": endpoint["id"]}
    given = dict(operation.examples[0].input) if operation.examples else {}
    for name, value in given.items():
        if isinstance(value, str):
            given[name] = next((id for prefix, id in real.items() if value.startswith(prefix)), value)
    return given | ({"iccid": intent["esim"]["iccid"]} if "iccid" in given else {})


async def send(http: httpx.AsyncClient, operation: AnyOperation, values: dict[str, object], secret: str, key: str) -> httpx.Response:
    """The call as a client without scruples would make it."""
    path = operation.path
    for name in re.findall(r"\{(\w+)\}", path):
        path = path.replace("{" + name + "}", escaped(values.get(name)) or "%20")
    rest = {name: value for name, value in values.items() if "{" + name + "}" not in operation.path}
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": key}
    if operation.method in ("GET", "DELETE"):
        query = "&".join(f"{escaped(name)}={escaped(value)}" for name, value in rest.items())
        return await http.request(operation.method, f"{path}?{query}", headers=headers)
    return await http.request(operation.method, path, content=json.dumps(rest), headers={**headers, "Content-Type": "application/json"})


def escaped(value: object) -> str:
    """For a URL; half a surrogate pair goes as its three bytes."""
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text.encode("utf-8", "surrogatepass")[:1500], safe="")


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_no_value_of_any_field_is_a_fault_and_a_refusal_changes_nothing(world: World, operation: AnyOperation) -> None:
    owner = await world.caller(Tier.ENTERPRISE)
    caller = await world.pipeline.directory.by_key(owner.secret, world.clock.now())
    secret = INTERNAL if operation.auth is Auth.INTERNAL else owner.secret
    faults: list[object] = []
    async with world.client(owner.secret) as http:
        whole = await whole_input(http, operation)
        for number, values in enumerate(instead(whole, tuple(operation.params.model_fields))):
            before = await world.store.read(counted)
            reply = await send(http, operation, values, secret, f"h{number}")
            assert reply.status_code < 500 or reply.status_code == 501, (values, reply.text)
            if reply.status_code >= 400:
                assert await world.store.read(counted) == before, (values, reply.text)
            if operation.tool:
                call = Call(operation, "mcp", "req_x", caller=caller, arguments=values, idempotency_key=f"m{number}")
                await answer_call(world.pipeline, call, lambda call, error: faults.append((call.arguments, error)))
    assert faults == []


@pytest.mark.parametrize("member", ["mcc", "mnc", "country", "used_bytes", "status", "unknown"])
async def test_no_member_of_an_observation_is_a_fault(world: World, member: str) -> None:
    async with world.client(INTERNAL) as bridge:
        for data in instead({}, (member,)):
            body = {"bridge_type": "package.usage", "iccid": "8999123412341234123", "data": data}
            content = json.dumps(body)
            headers = {"Content-Type": "application/json"}
            reply = await bridge.post("/v1/connectivity/events/observe", content=content, headers=headers)
            assert reply.status_code in (200, 400), (data, reply.text)


QUOTES = b'{"a":[' + b"[]," * 40 + b'"' + b'\\"' * 130_000
LONG = [
    pytest.param(QUOTES, id="a string of escaped quotes that never ends"),
    pytest.param(b'{"a":[' + b'[],"' * 60_000, id="brackets and quotes by turns"),
    pytest.param(b'{"a":"' + b"\\" * 250_000, id="backslashes without end"),
    pytest.param(b"[" * 260_000, id="a quarter of a million arrays"),
    pytest.param(b'{"a":' * 50_000, id="fifty thousand objects"),
    pytest.param(b'{"plan":"' + b"a" * 65_000 + b'"}', id="a long word"),
    pytest.param(b'{"plan":"' + b"ak_" * 21_000 + b'"}', id="what begins like a key, over and over"),
    pytest.param(b'{"plan":"' + b"eyJa." * 13_000 + b'"}', id="what begins like a token, over and over"),
    pytest.param(b'{"plan":"' + b"+1" * 32_000 + b'"}', id="what begins like a number, over and over"),
    pytest.param(b'{"plan":"' + b"1$a." * 16_000 + b'"}', id="what begins like an activation code, over and over"),
    pytest.param(b'{"' + b"a" * 65_000 + b'":1}', id="a long name"),
    pytest.param(b'{"plan":' + b"9" * 200_000 + b"}", id="a long number"),
    pytest.param(b'{"metadata":{' + b",".join(b'"%d":1' % number for number in range(19_000)) + b"}}", id="many members"),
]


@pytest.mark.parametrize("body", LONG)
async def test_a_hostile_body_is_refused_before_anybody_waits(world: World, body: bytes) -> None:
    # The loop serves everybody: what one refusal costs, all wait for. These took up to 160 s, and take milliseconds.
    owner = await world.caller(Tier.FREE)
    async with world.client(owner.secret) as http:
        begun = time.thread_time()  # of this thread alone: how busy the machine is does not count
        headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
        reply = await http.post("/v1/connectivity/intents", content=body, headers=headers)
        assert reply.status_code == 400
        assert time.thread_time() - begun < 0.8
