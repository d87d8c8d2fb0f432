"""Answers of the charging system that are wrong in one member: refused as unreadable or put right, never a fault of ours, never a lie."""

from collections.abc import AsyncGenerator, Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
import orjson
import pytest
from pydantic import TypeAdapter

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings, TokenRedaction
from simulators.network.simulated_network import SimulatedNetwork
from simulators.transport import SimulatorTransport
from tests.faults.inputs import UPSTREAM_OPERATIONS
from tests.faults.rows import ROWS, CallRow
from tests.faults.stage import FaultsStage, open_faults_stage
from transports.upstream import SIMULATED_OCS_TOKEN, SIMULATED_OCS_URL

Change = Callable[[Any], bytes]
Place = tuple[str | int, ...]
DEEP = "deeply nested"
PIN = "pin-0417-canary"
WRONG: tuple[object, ...] = (None, 1e300, "x", {}, [], True, 2**63, "12")


class Twisting(httpx.AsyncBaseTransport):
    """The simulated network; answers of one method are changed on their way."""

    def __init__(self, sandbox: SimulatedNetwork) -> None:
        self._network = SimulatorTransport(sandbox)
        self.method, self.change = "", cast(Change, orjson.dumps)
        self.seen: dict[str, Any] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._network.handle_async_request(request)
        method, body = next(iter(orjson.loads(request.content))), await answer.aread()
        self.seen[method] = orjson.loads(body)
        changed = self.change(deepcopy(self.seen[method])) if method == self.method else body
        return httpx.Response(answer.status_code, stream=httpx.ByteStream(changed), request=request)


def twist(stage: FaultsStage) -> Twisting:
    """Put it between the service and its network."""
    world, wire = stage.world, OcsSettings(url=SIMULATED_OCS_URL, backoff_seconds=0.0, concurrency=64)
    between = Twisting(world.sandbox)
    world.pipeline.deps = replace(world.pipeline.deps, ocs=OcsPool(Outbound(ocs_limits(wire), transport=between), wire, world.clock))
    return between


def places(value: object, at: Place = ()) -> Iterator[Place]:
    """Where something can be wrong: every member, and of an array the first row."""
    if at:
        yield at
    if isinstance(value, dict):
        for name, part in cast(dict[str, object], value).items():
            yield from places(part, (*at, name))
    elif isinstance(value, list) and value:
        yield from places(cast(list[object], value)[0], (*at, 0))


def wrong_at(place: Place, value: object) -> Change:
    def change(document: Any) -> bytes:
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
        return orjson.dumps(document)

    return change


async def ask(stage: FaultsStage, between: Twisting, row: CallRow, method: str, change: Change, key: str) -> httpx.Response:
    """The operation, whose network answers this method so."""
    between.method = ""
    ready = await stage.ready(row, key)
    between.method, between.change = method, change
    return await ready.send()


@pytest.mark.long
async def test_a_member_of_another_type_is_put_right_or_refused_and_is_never_a_fault_of_ours(tmp_path: Path) -> None:
    turns, number = cycle(WRONG), 0
    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        for row in ROWS:
            shape: TypeAdapter[object] = TypeAdapter(UPSTREAM_OPERATIONS.operations[row.operation].result)
            passed = "verbose=True" in row.name  # handed on as it comes
            between.seen.clear()
            clean = await ask(stage, between, row, "", orjson.dumps, f"clean-{number}")  # to see what there is to be wrong
            assert clean.status_code < 300, (row.name, clean.text)
            for place in list(places(between.seen[method := row.uses[-1]]))[number % 8 :: 8]:
                value, number = next(turns), number + 1
                answer = await ask(stage, between, row, method, wrong_at(place, value), f"k{number}")
                assert answer.status_code in (200, 201, 400, 404, 409, 502), (row.name, place, value, answer.text)
                if answer.status_code < 300 and not passed:
                    shape.validate_json(answer.content)
        assert stage.world.faults == [] and number > 100


@pytest.mark.long
async def test_a_status_code_that_is_no_code_is_unreadable(tmp_path: Path) -> None:
    codes = (b"1e300", b"-1e30", b"1" + b"0" * 400, b'"9999999999999999999"', b"18446744073709551615", b"true", b"null")
    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        for number, code in enumerate(codes):
            changed = b'{"status":{"code":%s,"msg":"no"}}' % code
            for name in ("get_subscriber", "modify_subscriber_status", "get_tariff verbose=True"):
                row = next(row for row in ROWS if row.name == name)
                answer = await ask(stage, between, row, row.uses[-1], lambda _, changed=changed: changed, f"k{number}")
                assert (answer.status_code, answer.json()["code"], "ocs_code" in answer.json()) == (502, "ocs_error", False), answer.text


async def test_an_answer_that_is_nested_too_deeply_to_be_written_again_is_a_502(tmp_path: Path) -> None:
    nested = b'{"x":' * 400 + b"1" + b"}" * 400

    def deep(document: Any) -> bytes:
        key = next(name for name in document if name != "status")
        return orjson.dumps({**document, key: {**document[key], "more": DEEP}}).replace(b'"%s"' % DEEP.encode(), nested)

    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        for name, unknown in (("get_subscriber", False), ("assign_package", True)):
            row = next(row for row in ROWS if row.name == name)
            answer = await ask(stage, between, row, row.uses[-1], deep, "deep")
            assert (answer.status_code, answer.json()["code"]) == (502, "ocs_error"), answer.text
            assert ((await stage.claims()).get("deep") == "unknown") is unknown
        assert stage.world.faults == []


async def test_a_reseller_that_is_nested_too_deeply_is_a_502(tmp_path: Path) -> None:
    nested = b'{"a":' * 900 + b"1" + b"}" * 900
    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        between.method = "getResellerInfo"
        between.change = lambda _: b'{"status":{"code":0},"getResellerInfo":{"id":7001,"notifications":%s}}' % nested
        for path in ("/v1/reseller", "/v1/reseller/webhook-config"):
            assert (await stage.own.get(path)).status_code == 502
        assert stage.world.faults == []


def with_pins(value: object) -> object:
    """What unlocks a card, in every object."""
    if isinstance(value, list):
        return [with_pins(part) for part in cast(list[object], value)]
    if isinstance(value, dict):
        inner = {name: with_pins(part) for name, part in cast(dict[str, object], value).items()}
        return {**inner, "pin1": PIN, "pin2": PIN, "puk1": PIN, "puk2": PIN}
    return value


async def test_pin_and_puk_are_dropped_wherever_a_newer_server_writes_them(tmp_path: Path) -> None:
    about_lines = [
        row for row in ROWS if row.operation.startswith(("list_subscribers", "get_subscriber", "assign_", "list_subscriber_pack"))
    ]
    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        for number, row in enumerate(about_lines):
            answer = await ask(stage, between, row, row.uses[-1], lambda document: orjson.dumps(with_pins(document)), f"k{number}")
            assert answer.status_code < 300 and PIN not in answer.text, row.name


async def test_the_zone_that_a_refusal_names_is_an_id_and_a_name(tmp_path: Path) -> None:
    zone = {"Id": {"nested": [1]}, "name": ["not", "a", "name"], "secret": "x"}
    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        row = next(row for row in ROWS if row.operation == "create_location_zone")
        answer = await ask(
            stage,
            between,
            row,
            "createLocationZone",
            lambda _: orjson.dumps({"status": {"code": 10002}, "createLocationZone": {"existingLZ": zone}}),
            "k",
        )
        assert (answer.status_code, answer.json()["details"]) == (409, {"existingLZ": {}})


@pytest.mark.parametrize("path", ["/v1/tariffs/7001?verbose=true", "/v1/location-zones/detailed?verbose=true"])
async def test_a_token_inside_an_array_that_is_handed_on_is_taken_out(tmp_path: Path, path: str) -> None:
    def laden(document: Any) -> bytes:
        value = next(value for name, value in document.items() if name != "status")
        for row in cast(list[dict[str, object]], value["rule"] if isinstance(value, dict) else value):
            row["credential"] = f"Token {SIMULATED_OCS_TOKEN}"
        return orjson.dumps(document)

    async with open_faults_stage(tmp_path) as stage:
        between = twist(stage)
        between.method, between.change = {"t": "getCustomerTariff", "l": "listDetailedLocationZone"}[path[4]], laden
        answer = await stage.managed.get(path)
        assert answer.status_code == 200 and len(answer.content) > 100_000
        assert SIMULATED_OCS_TOKEN not in answer.text
        assert {row["credential"] for row in answer.json()["data"]} == {"Token ***"}


async def test_a_token_is_taken_out_in_every_spelling_and_wherever_an_answer_is_cut() -> None:
    token = 'own-"token"/+=&-canary'
    spellings = [token.replace('"', '\\"'), token.replace('"', '\\"').replace("/", "\\/"), quote(token, safe=""), "own-token"]
    spellings.append(token.replace('"', '\\"').replace("=", "\\u003d").replace("&", "\\u0026"))
    whole = " ".join(spellings).encode()
    for size in range(1, len(whole) + 1):

        async def cut(size: int = size) -> AsyncGenerator[bytes]:
            for start in range(0, len(whole), size):
                yield whole[start : start + size]

        assert b"".join([part async for part in TokenRedaction(token).parts(cut())]) == b"*** *** *** own-token ***"
    assert TokenRedaction(token).whole(whole) == b"*** *** *** own-token ***"
    assert TokenRedaction("short").whole(b"a short text") == b"a short text"
