"""The MCP door as Schemathesis calls it: a POST of arguments goes to /mcp as a tools/call and comes back as HTTP would have it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast
from zlib import crc32

import anyio
import orjson
from pydantic import TypeAdapter

from operations.catalogue import CATALOGUE
from registry.call import Call, Reply
from registry.catalogue import AnyOperation
from registry.schema import CONFIRM_TOKEN_SCHEMA, IDEMPOTENCY_KEY_SCHEMA, output_schema
from registry.signals import CallSignals
from tests.fuzz.app_under_test import AppUnderTest, Scope, plain_values, send_json
from tests.fuzz.furnished import FuzzInput
from tests.mcp.house import MODERN
from tests.mcp.refusals import refusal_in
from transports.http.asgi import Message, Receive, Send
from transports.mcp.door import MCP_PATH
from transports.mcp.tools import is_tool
from transports.openapi.schemas import SchemaRequest, build_schemas

TOOLS = {operation.id: operation for operation in CATALOGUE.operations.values() if is_tool(operation)}
TOOL_PATH = "/tools/"
OLDER = "2025-06-18"
KEY = {**IDEMPOTENCY_KEY_SCHEMA, "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
REFUSED = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "code": {"type": "string"}, "request_id": {"type": "string"}},
    "required": ["error", "code", "request_id"],
}
INTERNAL_ERROR = -32603


class ToolDoorFault(Exception):
    """The door answered what no answer to a tools/call is."""


class LastStatus(CallSignals):
    """What the last call came to by the pipeline: over MCP a refusal does not say its status."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 0

    def answered(self, call: Call, reply: Reply, seconds: float) -> None:
        super().answered(call, reply, seconds)
        self.status = reply.status


@dataclass
class ToolsUnderTest(AppUnderTest):
    """A house of which the tools are asked."""

    signals: LastStatus = field(default_factory=LastStatus)

    def document(self) -> Any:
        assert self.furnished is not None
        return tools_document(self.operation, self.furnished.inputs)

    def places(self, operation: AnyOperation, given: FuzzInput) -> Mapping[str, str | int | float]:
        return {f"body.{name}": value for name, value in plain_values(given).items()}

    async def ask(self, scope: Scope, body: bytes, rest: Receive, send: Send) -> None:
        """One call of a tool; half of those that have to be confirmed are at once."""
        assert self.house is not None
        if scope["method"] != "POST":
            await send_json(send, orjson.dumps(refusal("a tool is called with POST", "method_not_allowed")), 405, (b"allow", b"POST"))
            return
        self.house.world.pipeline.signals = self.signals
        tool, way = scope["path"].removeprefix(TOOL_PATH), crc32(body)
        status, said = await self._call(scope, tool, body, way)
        if status == 202 and way % 2 == 0 and "confirm_token" in said:
            sure = orjson.dumps({**orjson.loads(body), "confirm_token": said["confirm_token"]})
            status, said = await self._call(scope, tool, sure, way)
        await send_json(send, b"" if said is None else orjson.dumps(said), status)

    async def _call(self, scope: Scope, tool: str, arguments: bytes, way: int) -> tuple[int, Any]:
        """The status that HTTP would have, and the body. A fault of the door is a 500."""
        self.signals.status = 0
        status, kind, content = await self._post(scope, tool, message_of(tool, arguments, way), way)
        try:
            return self.read_answer(status, orjson.loads(content if kind == b"application/json" else last_event(content)))
        except (ToolDoorFault, AssertionError, LookupError, ValueError) as fault:
            shown = content.decode(errors="replace")[:400]
            return 500, refusal(f"{type(fault).__name__}: {fault} in the answer {status} {shown}", "tool_door_fault")

    def read_answer(self, status: int, said: Any) -> tuple[int, Any]:
        """What an answer says, after what every answer to a tools/call keeps to was looked for. Raises where it does not."""
        if "jsonrpc" not in said:  # refused in front of the protocol
            if status == 200:
                raise ToolDoorFault("no message of JSON-RPC")
            return status, said
        if (said["jsonrpc"], ("result" in said) + ("error" in said)) != ("2.0", 1):
            raise ToolDoorFault("neither a result nor an error, or both")
        if "error" in said:
            code = said["error"]["code"]
            return 500 if code == INTERNAL_ERROR or status >= 500 else 400, refusal(said["error"]["message"], f"json_rpc_{code}")
        result = said["result"]
        if (status, said["id"]) != (200, 1):
            raise ToolDoorFault("a result that is not told as one")
        if not result["content"] or {block["type"] for block in result["content"]} != {"text"}:
            raise ToolDoorFault("content that is no text")
        if "retryAfter" in (result.get("_meta") or {}):
            self.come_back_later(result["_meta"]["retryAfter"])
        decided = self.signals.status
        if result["isError"] != (decided >= 400 or decided == 202):
            raise ToolDoorFault(f"an error or none, where the status is {decided}")
        if result["isError"]:
            return decided, refusal_in(result)
        body, text = result["structuredContent"], result["content"][0]["text"]
        if (orjson.loads(text) if text else None) != body:
            raise ToolDoorFault("a text that is not what the structured content is")
        return 200, body

    async def _post(self, scope: Scope, tool: str, body: bytes, way: int) -> tuple[int, bytes, bytes]:
        """One message as bytes on the wire, with the credential of the call: the status, the type and the content of the answer."""
        assert self.house is not None
        own = [pair for pair in scope["headers"] if pair[0] in (b"host", b"authorization")]
        headers = {b"accept": b"application/json, text/event-stream", b"content-type": b"application/json"}
        headers |= {b"content-length": b"%d" % len(body)} | protocol_headers(tool, way)
        inner = {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), "query_string": b"toolsets=all", "state": {}}
        waiting, held = [body], list[Message]()

        async def receive() -> Message:
            if not waiting:
                await anyio.sleep_forever()  # nobody hangs up
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}

        async def hold(message: Message) -> None:
            held.append(message)

        await self.house.world.door({**inner, "headers": [*own, *headers.items()]}, receive, hold)
        said = dict(cast("list[tuple[bytes, bytes]]", held[0]["headers"]))
        content = b"".join(cast(bytes, message.get("body", b"")) for message in held)
        if b"retry-after" in said:
            self.come_back_later(int(said[b"retry-after"]))
        return cast(int, held[0]["status"]), said.get(b"content-type", b""), content


def refusal(message: str, code: str) -> dict[str, str]:
    return {"error": message, "code": code, "request_id": ""}


def is_older(way: int) -> bool:
    """Whether a client of before 2026 makes the call; the others name their protocol in each message."""
    return way >> 1 & 3 == 0


def protocol_headers(tool: str, way: int) -> dict[bytes, bytes]:
    if is_older(way):
        return {b"mcp-protocol-version": OLDER.encode()}
    return {b"mcp-protocol-version": MODERN.encode(), b"mcp-method": b"tools/call", b"mcp-name": tool.encode()}


def message_of(tool: str, arguments: bytes, way: int) -> bytes:
    """The message with the arguments as they were made, whatever they are. One of four wants to be told of progress."""
    envelope: dict[str, object] = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    meta: dict[str, object] = {} if is_older(way) else envelope
    meta |= {"progressToken": "p"} if way >> 3 & 3 == 0 else {}
    given = b',"arguments":' + arguments if arguments else b""
    params = orjson.dumps({"name": tool, "_meta": meta})[:-1] + given
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}}"


def last_event(content: bytes) -> bytes:
    """The data of the last event of a stream."""
    return [line[5:] for line in content.splitlines() if line.startswith(b"data:")][-1]


@cache
def whole_document() -> Any:
    """Every tool as a POST of its arguments. The input is described whole, as OpenAPI has it: what a model reads leaves lengths out."""
    wanted: list[SchemaRequest] = [(id, "validation", TypeAdapter(operation.params)) for id, operation in TOOLS.items()]
    schemas, models = build_schemas(wanted)
    components, paths = {name: with_nulls(schema) for name, schema in models.items()}, dict[str, Any]()
    for id, operation in TOOLS.items():
        answer = orjson.dumps(output_schema(operation.result).schema).replace(b'"#/$defs/', b'"#/components/schemas/' + id.encode() + b".")
        answered: Any = orjson.loads(answer)
        components |= {f"{id}.{name}": schema for name, schema in answered.pop("$defs", {}).items()}
        schema = arguments_schema(operation, schemas[id], models)
        made: dict[str, Any] = {"operationId": id, "security": [{"bearerAuth": []}]}
        made["requestBody"] = {"required": bool(schema["required"]), "content": json_content(schema)}
        made["responses"] = {
            "200": {"description": "The structured content", "content": json_content(answered)},
            "202": {"description": "Asked back", "content": json_content({"type": "object"})},
            "default": {"description": "A refusal", "content": json_content(REFUSED)},
        }
        paths[TOOL_PATH + id] = {"post": made}
    security = {"bearerAuth": {"type": "http", "scheme": "bearer"}}
    about = {"title": "Tools", "version": "1"}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": components, "securitySchemes": security}}


def json_content(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def arguments_schema(operation: AnyOperation, schema: Any, models: Mapping[str, Any]) -> Any:
    """The input model, and what HTTP sends as headers; what the door fills in may be left out."""
    model = models[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    extra = {"idempotency_key": KEY} if operation.once is not None else {}
    extra |= {"confirm_token": CONFIRM_TOKEN_SCHEMA} if operation.confirmable else {}
    needed = [name for name in model.get("required", []) if name not in operation.tool_defaults]
    needed += ["idempotency_key"] if operation.once is not None and operation.once.required else []
    whole = with_nulls({**model, "properties": {**model.get("properties", {}), **extra}, "required": needed})
    return whole if needed else {**whole, "type": [whole["type"], "null"]}  # arguments that are null are none


def with_nulls(schema: Any) -> Any:
    """The schema in which optional fields may be null, which is as much as leaving them out: some clients name every argument."""
    if isinstance(schema, list):
        return [with_nulls(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {word: with_nulls(value) for word, value in cast("dict[str, Any]", schema).items() if word != "properties"}
    if "properties" in schema:
        fields: dict[str, Any] = {name: with_nulls(field) for name, field in schema["properties"].items()}
        needed = schema.get("required", [])
        made["properties"] = {name: field if name in needed else {"anyOf": [field, {"type": "null"}]} for name, field in fields.items()}
    return made


def tools_document(operation: AnyOperation | None, inputs: Mapping[str, FuzzInput]) -> Any:
    """The document of one tool or of all, with examples of what is there."""
    whole = whole_document()
    paths: dict[str, Any] = {}
    for id in [operation.id] if operation else TOOLS:
        made = whole["paths"][TOOL_PATH + id]["post"]
        once = TOOLS[id].once
        example = {**inputs.get(id, {}), **({"idempotency_key": "as-documented"} if once is not None and once.required else {})}
        content = {**made["requestBody"]["content"]["application/json"], "examples": {"there": {"value": example}}}
        paths[TOOL_PATH + id] = {"post": {**made, "requestBody": {**made["requestBody"], "content": {"application/json": content}}}}
    return {**whole, "paths": paths}
