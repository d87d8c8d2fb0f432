"""The short way of plain calls beside the long way through the SDK: whatever is sent, both answer the same status and the same JSON."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pytest

from operations.catalogue import CATALOGUE as OPERATIONS
from registry.caller import Tier
from tests.mcp.house import MODERN, House, open_house, request, wire_headers
from tests.world import HOST, ORIGIN
from transports.mcp.tools import tool_definition

LEGACY = "2025-11-25"
DRAWN = re.compile(r"req_\w+|(?<![\w-])[\w-]{43}(?![\w-])")
NOTE: dict[str, Any] = {"name": "get_note", "arguments": {"name": "first"}}


class Case(NamedTuple):
    name: str
    body: Any
    headers: Mapping[str, str | None] = MappingProxyType({})
    path: str = "/mcp"
    raw: bytes | None = None


def call(name: str = "get_note", /, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", name=name, arguments=arguments)


def old(params: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **members}


def of_era(version: str | None) -> dict[str, str | None]:
    return {"mcp-protocol-version": version, "mcp-method": None, "mcp-name": None}


OLD = of_era(LEGACY)
FIRST = call(name="first")
SHORT = (
    Case("a read", call(name="first")),
    Case("nothing found", call(name="absent")),
    Case("an argument that is missing", call()),
    Case("an argument that is unknown", call(name="first", colour="red")),
    Case("an argument of another type", call(name=7)),
    Case("a number of more than 64 bits", call("count_slowly", steps=1 << 70)),
    Case("no arguments member", request("tools/call", name="list_names")),
    Case("arguments that are null", request("tools/call", name="list_names", arguments=None)),
    Case("a list with a next page", call("list_notes", limit=1)),
    Case("a default of tools", call("list_short_notes")),
    Case("a bare array", call("list_names")),
    Case("characters that nobody sees", call("read_hidden")),
    Case("a write", call("create_note", name="second")),
    Case("a write with its key", call("copy_note", name="third", idempotency_key="key-1")),
    Case("a write again", call("copy_note", name="third", idempotency_key="key-1")),
    Case("a write with another's key", call("copy_note", name="fourth", idempotency_key="key-1")),
    Case("an optional argument that is null", call("list_notes", limit=None)),
    Case("a needed argument that is null", call(name=None)),
    Case("a write without its key", call("copy_note", name="third")),
    Case("a key that is no text", call("copy_note", name="third", idempotency_key=5)),
    Case("a fault of ours", call("break_down")),
    Case("more scope than the caller has", call("put_note", name="first")),
    Case("an id that is a text", {**call(name="first"), "id": "one"}),
    Case("an empty id", {**call(name="first"), "id": ""}),
    Case("other metadata", request("tools/call", meta={"traceparent": "x", "io.modelcontextprotocol/logLevel": "debug"}, **NOTE)),
    Case("a selection that holds it", call(name="first"), path="/mcp?toolsets=connectivity"),
    Case("an encoded name", call(name="first"), {"mcp-name": "=?base64?Z2V0X25vdGU=?="}),
    Case("accepts anything", call(name="first"), {"accept": "*/*"}),
    Case("an allowed origin", call(name="first"), {"origin": ORIGIN}),
    Case("white space in a header", call(name="first"), {"mcp-method": "tools/call \t"}),
    Case("2025: a read", old(NOTE), OLD),
    Case("2025: an envelope of 2026", FIRST, {"mcp-protocol-version": LEGACY}),
    Case("2025: metadata", old({**NOTE, "_meta": {"x": 1}}), OLD),
    Case("2025: nothing found", old({"name": "get_note", "arguments": {"name": "absent"}}), OLD),
    Case("2025: a list with a next page", old({"name": "list_notes", "arguments": {"limit": 1}}), OLD),
    Case("2025: a write again", old({"name": "copy_note", "arguments": {"name": "third", "idempotency_key": "key-1"}}), OLD),
    Case("2025: a write", old({"name": "create_note", "arguments": {"name": "fourth"}}), OLD),
    *(
        Case(f"{version}: {name}", old({"name": tool, "arguments": arguments}), of_era(version))
        for version in ("2025-06-18", "2025-03-26", "2024-11-05", None)
        for name, tool, arguments in (
            ("a read", "get_note", {"name": "first"}),
            ("nothing found", "get_note", {"name": "absent"}),
            ("a list with a next page", "list_notes", {"limit": 1}),
            ("a bare array", "list_names", {}),
            ("a write again", "copy_note", {"name": "third", "idempotency_key": "key-1"}),
        )
    ),
    Case("an envelope of 2026 without its version", FIRST, {"mcp-protocol-version": None}),
)
LONG = (
    Case("asks for progress", request("tools/call", meta={"progressToken": "p"}, name="count_slowly", arguments={})),
    Case("asks for progress by null", request("tools/call", meta={"progressToken": None}, name="count_slowly", arguments={})),
    Case("a confirmation", call("delete_note", name="first")),
    Case("state of a question", request("tools/call", requestState="x", **NOTE)),
    Case("answers to a question", request("tools/call", inputResponses={}, **NOTE)),
    Case("an unknown member", request("tools/call", colour="red", **NOTE)),
    Case("an unknown tool", call("no_such_tool")),
    Case("a tool outside the selection", call("read_ledger", id="1")),
    Case("an unknown toolset", call(name="first"), path="/mcp?toolsets=none"),
    Case("another method", request("tools/list")),
    Case("a name that is a number", request("tools/call", name=5, arguments={}), {"mcp-name": "5"}),
    Case("arguments that are a list", request("tools/call", name="get_note", arguments=[])),
    Case("no parameters", {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
    Case("parameters that are a list", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}),
    Case("a notification", {name: value for name, value in FIRST.items() if name != "id"}),
    Case("an id that is null", {**FIRST, "id": None}),
    Case("an id that is a fraction", {**FIRST, "id": 1.5}),
    Case("an id that is true", {**FIRST, "id": True}),
    Case("an id of more than 64 bits", {**FIRST, "id": 1 << 70}),
    Case("another JSON-RPC", {**FIRST, "jsonrpc": "1.0"}),
    Case("a member too many", {**FIRST, "result": {}}),
    Case("a batch", [FIRST]),
    Case("no envelope", old(NOTE)),
    Case("an envelope without capabilities", old({**NOTE, "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}})),
    Case(
        "capabilities that are none",
        request("tools/call", capabilities=None, meta={"io.modelcontextprotocol/clientCapabilities": 5}, **NOTE),
    ),
    Case("another method in the header", FIRST, {"mcp-method": "tools/list"}),
    Case("another name in the header", FIRST, {"mcp-name": "list_notes"}),
    Case("no method header", FIRST, {"mcp-method": None}),
    Case("no name header", FIRST, {"mcp-name": None}),
    Case("an argument in a header", FIRST, {"mcp-param-name": "first"}),
    Case("a version nobody knows", FIRST, {"mcp-protocol-version": "2031-01-01"}),
    Case("another content type", FIRST, {"content-type": "text/plain"}),
    Case("a content type with a parameter", FIRST, {"content-type": "application/json; charset=utf-8"}),
    Case("no content type", FIRST, {"content-type": None}),
    Case("accepts no stream", FIRST, {"accept": "application/json"}),
    Case("accepts only pages", FIRST, {"accept": "text/html"}),
    Case("no accept", FIRST, {"accept": None}),
    Case("another host", FIRST, {"host": "elsewhere.example"}),
    Case("another origin", FIRST, {"origin": "https://elsewhere.example"}),
    Case("no credential", FIRST, {"authorization": None}),
    Case("a name twice", None, raw=b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{}}'),
    Case("no JSON", None, raw=b"{"),
    Case("no number", None, raw=json.dumps(call("count_slowly", steps=float("nan"))).encode()),
    Case("half a character", None, raw=json.dumps(call(name="\ud800")).encode()),
    Case("half a character, 2025", None, OLD, raw=json.dumps(old({**NOTE, "arguments": {"name": "\ud800"}})).encode()),
    Case("another encoding", None, raw=json.dumps(FIRST).encode("utf-16")),
    Case("another encoding, 2025", None, OLD, raw=json.dumps(old(NOTE)).encode("utf-16")),
    Case("nested deeply", None, raw=b'{"a":' * 3000 + b"1" + b"}" * 3000),
    Case("nothing", None, raw=b""),
    Case("a large body", call(name="x" * 70_000)),
    Case("2025: asks for progress", old({"name": "count_slowly", "arguments": {}, "_meta": {"progressToken": 1}}), OLD),
    Case("2025: a member too many", old(NOTE, error={"code": 1, "message": "x"}), OLD),
    Case("2025: an unknown tool", old({"name": "no_such_tool"}), OLD),
    Case("2025: metadata that is a text", old({**NOTE, "_meta": "x"}), OLD),
    Case("2025: a confirmation", old({"name": "delete_note", "arguments": {"name": "first"}}), OLD),
)
CASES = (
    Case("the first note", call("create_note", name="first")),
    Case("another note", call("create_note", name="zebra")),
    *SHORT,
    *LONG,
)


class Told(NamedTuple):
    """What came back, without what is drawn anew each time."""

    status: int
    body: Any
    short: bool


async def told(house: House, secret: str, case: Case) -> Told:
    body = case.body if isinstance(case.body, dict) and isinstance(case.body.get("params"), dict) else FIRST
    headers = {"content-type": "application/json", **wire_headers(body), "authorization": f"Bearer {secret}", **case.headers}
    content = json.dumps(case.body).encode() if case.raw is None else case.raw
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=house.app), base_url=f"http://{HOST}") as http:
        bare = http.build_request("POST", case.path, content=content)
        del bare.headers["accept"]
        bare.headers.update({name: value for name, value in headers.items() if value is not None})
        answer = await http.send(bare)
    text = answer.text
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    short = answer.status_code == 200 and "x-content-type-options" in answer.headers  # the SDK sends none
    return Told(answer.status_code, json.loads(DRAWN.sub("drawn", text)) if text[:1] == "{" else text, short)


async def answers(folder: Path, *, edge: bool) -> list[Told]:
    """Everything asked of one house, one after the other, so that writes meet the same rows in each."""
    folder.mkdir()
    async with open_house(folder, edge=edge) as house:
        caller = await house.world.caller(Tier.PRO)
        return [await told(house, caller.secret, case) for case in CASES]


@pytest.mark.long
async def test_both_ways_answer_alike_whatever_is_sent(tmp_path: Path) -> None:
    short, long = await answers(tmp_path / "short", edge=True), await answers(tmp_path / "long", edge=False)
    pairs = zip(CASES, short, long, strict=True)
    assert [(case.name, one[:2], other[:2]) for case, one, other in pairs if one[:2] != other[:2]] == []
    assert [case.name for case, one in zip(CASES, short, strict=True) if one.short] == [
        case.name for case in CASES[: len(CASES) - len(LONG)]
    ]
    assert not any(one.short for one in long)


@pytest.mark.long
def test_no_argument_travels_in_a_header_so_none_is_compared_with_one() -> None:
    assert not [tool.name for tool in map(tool_definition, OPERATIONS.operations.values()) if "x-mcp-header" in str(tool.input_schema)]
