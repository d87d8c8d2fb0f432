"""Whatever stands in a field: no fault of ours, nothing done by what was refused, and no input that costs seconds to refuse."""

import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, unquote

import httpx
import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from operations.catalogue import CATALOGUE
from registry.answer import answer_call
from registry.binding import binding_of
from registry.call import Call
from registry.caller import Tier
from registry.catalogue import AnyOperation
from registry.errors import Refusal
from registry.limits import Limits
from registry.operation import Auth
from registry.ports import SharedSecrets
from storage.engine.sql import Connection, Query
from storage.metadata import SQLModel
from tests.abuse.nasty import instead
from tests.draw import drawn
from tests.world import World, open_world

INTERNAL = "internal-key-0123456789"
KEPT = ("intent", "event", "delivery", "claim", "product", "usage_record", "metered_line", "network_event", "webhook_endpoint", "api_key")
EACH = 7
"""Of what is refused as no input, so many go through a door as one: every value of every field takes its turn at some operation."""
OPERATIONS = [pytest.param(operation, id=operation.id) for operation in CATALOGUE.operations.values()]


class Rows(NamedTuple):
    rows: int


COUNTS = Query(Rows, sa.union_all(*(sa.select(sa.func.count().label("rows")).select_from(SQLModel.metadata.tables[name]) for name in KEPT)))


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    """One for all: each test calls as an organisation of its own."""
    folder, secrets = tmp_path_factory.mktemp("world"), SharedSecrets(internal=INTERNAL)
    async with open_world(folder, CATALOGUE, limits=Limits(burst_enabled=False), secrets=secrets) as world:
        yield world


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


class Sent(NamedTuple):
    """What a client without scruples writes: the texts in the path, the query and the body."""

    path: dict[str, str]
    query: str
    body: bytes

    @classmethod
    def of(cls, operation: AnyOperation, values: dict[str, object]) -> "Sent":
        path = {name: escaped(values.get(name)) or "%20" for name in re.findall(r"\{(\w+)\}", operation.path)}
        rest = {name: value for name, value in values.items() if name not in path}
        if operation.method in ("GET", "DELETE"):
            return cls(path, "&".join(f"{escaped(name)}={escaped(value)}" for name, value in rest.items()), b"")
        return cls(path, "", json.dumps(rest).encode())

    def input_json(self, operation: AnyOperation) -> bytes:
        return binding_of(operation).gather({name: unquote(text) for name, text in self.path.items()}, self.query, self.body)


async def send(http: httpx.AsyncClient, operation: AnyOperation, sent: Sent, secret: str, key: str) -> httpx.Response:
    path, headers = operation.path, {"Authorization": f"Bearer {secret}", "Idempotency-Key": key}
    for name, text in sent.path.items():
        path = path.replace("{" + name + "}", text)
    if operation.method in ("GET", "DELETE"):
        return await http.request(operation.method, f"{path}?{sent.query}", headers=headers)
    return await http.request(operation.method, path, content=sent.body, headers={**headers, "Content-Type": "application/json"})


def escaped(value: object) -> str:
    """For a URL; half a surrogate pair goes as its three bytes."""
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text.encode("utf-8", "surrogatepass")[:1500], safe="")


def admitted(operation: AnyOperation, read: Callable[[], bytes]) -> bool:
    """Whether the operation gets it: what is none of its input is refused before, by one piece of code for all operations."""
    try:
        operation.params.model_validate_json(read())
    except (Refusal, ValidationError):
        return False
    return True


@pytest.mark.parametrize("operation", drawn(OPERATIONS, __file__))
async def test_no_value_of_any_field_is_a_fault_and_a_refusal_changes_nothing(world: World, operation: AnyOperation) -> None:
    owner = await world.caller(Tier.ENTERPRISE)
    caller = await world.pipeline.directory.by_key(owner.secret, world.clock.now())
    secret = INTERNAL if operation.auth is Auth.INTERNAL else owner.secret
    faults: list[object] = []
    place = list(CATALOGUE.operations).index(operation.id)
    async with world.client(owner.secret) as http:
        whole, before = await whole_input(http, operation), await world.store.read(counted)
        for number, values in enumerate(instead(whole, tuple(operation.params.model_fields)), place):
            turn, sent, status = number % EACH == 0, Sent.of(operation, values), 0
            if operation.tool and number % 2:  # the doors take turns
                if turn or admitted(operation, partial(binding_of(operation).arguments, values)):
                    call = Call(operation, "mcp", "req_x", caller=caller, arguments=values, idempotency_key=f"m{number}")
                    reply = await answer_call(world.pipeline, call, lambda call, error: faults.append((call.arguments, error)))
                    status = reply.status
            elif turn or admitted(operation, partial(sent.input_json, operation)):
                reply = await send(http, operation, sent, secret, f"h{number}")
                status = reply.status_code
                assert status < 500 or status == 501, (values, reply.text)
            if status and not operation.read_only:
                after = await world.store.read(counted)
                assert status < 400 or after == before, values
                before = after
        assert not operation.read_only or await world.store.read(counted) == before
    assert faults == [] == world.faults


@pytest.mark.cases
@pytest.mark.parametrize("member", ["mcc", "mnc", "country", "used_bytes", "status", "unknown"])
async def test_no_member_of_an_observation_is_a_fault(world: World, member: str) -> None:
    async with world.client(INTERNAL) as bridge:
        for data in instead({}, (member,)):
            body = {"bridge_type": "package.usage", "iccid": "8999123412341234123", "data": data}
            content = json.dumps(body)
            headers = {"Content-Type": "application/json"}
            reply = await bridge.post("/v1/connectivity/events/observe", content=content, headers=headers)
            assert reply.status_code in (200, 400), (data, reply.text)
    assert world.faults == []


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
        assert reply.status_code == 400 and world.faults == []
        assert time.thread_time() - begun < 0.8
