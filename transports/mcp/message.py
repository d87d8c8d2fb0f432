"""The body of an MCP request, read and measured before the SDK sees it.

Of a name that stands twice the SDK would take the last, and it goes over the whole body several times: 19,000 unknown arguments cost it
and pydantic 400 ms. So the body is counted first, and what is too much for the tool that it calls is shortened to what is refused alike.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

import orjson

from registry.catalogue import AnyOperation
from registry.errors import BadRequest
from registry.guard import JSON_DEPTH_LIMIT, JSON_UNDECIDED, parse_plain_json, unique_members
from registry.input_bounds import bound_value, model_bounds
from transports.http.asgi import HttpScope, Message, Receive
from transports.http.body import MCP_BODY, BodyReader, check_body_length
from transports.mcp.settings import MCP_BODY_BYTES

MESSAGE_DECODER = json.JSONDecoder(object_pairs_hook=unique_members)
MESSAGE_DEPTH = 4 * JSON_DEPTH_LIMIT
"""The pipeline refuses an input that is nested too deeply as the result of its tool; this is only what a reader can bear."""
MESSAGE_BYTES = 64 * 1024
MESSAGE_VALUES = 1_000
"""Of anything but the arguments of a tool."""
HEADER_ARGUMENTS = ("idempotency_key", "confirm_token", "approval_reason")
"""Arguments that no input model knows."""

OperationsById = Mapping[str, AnyOperation]


class MessageBody:
    """The body of one request. `is_shortened`: its arguments were cut, and the tool will refuse them."""

    def __init__(self, scope: HttpScope, receive: Receive) -> None:
        self._scope, self._receive, self._reader = scope, receive, BodyReader(MCP_BODY, scope, receive)
        self._waiting: list[Message] = []
        self.raw, self.is_shortened = b"", False

    @property
    def size(self) -> int:
        return self._reader.size

    async def read(self) -> None:
        check_body_length(MCP_BODY, dict(self._scope["headers"]), MCP_BODY_BYTES)
        self.raw = await self._reader.read(MCP_BODY_BYTES)

    def message(self, operations: OperationsById) -> object:
        """The decoded message, after duplicate names and excessive sizes were refused with BadRequest."""
        said = read_message(self.raw)
        short = shorten_message(said, self.size, operations)
        self.is_shortened = short is not said
        handed = json.dumps(short).encode() if self.is_shortened else self.raw  # orjson writes no whole number of more than 64 bits
        self._waiting.append({"type": "http.request", "body": handed, "more_body": False})
        return short

    async def again(self) -> Message:
        """Replaces `receive`: gives the body from its beginning."""
        return self._waiting.pop() if self._waiting else await self._receive()


def read_message(raw: bytes) -> object:
    """The JSON, in which a name twice in one object is refused; nothing of what only some readers take, which is the SDK's to answer."""
    with suppress(ValueError, RecursionError):
        encoding = json.detect_encoding(raw)  # the SDK takes each encoding, too
        text = raw if encoding == "utf-8" else raw.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
        found = parse_plain_json(text, depth=MESSAGE_DEPTH)
        if found is not JSON_UNDECIDED and text is raw:
            return found
        value: object = MESSAGE_DECODER.decode(raw.decode(encoding, "surrogatepass"))
        orjson.loads(raw)  # the strictest: no half characters, no numbers that are none
        return value
    return None


def shorten_message(said: object, size: int, operations: OperationsById) -> object:
    """The message, or one that is shorter and is answered alike. BadRequest: it is larger than any message has a reason to be."""
    calls = tool_call_parts(said)
    if calls is None:
        if size > MESSAGE_BYTES:
            raise MCP_BODY.too_large(MESSAGE_BYTES)
        check_message_values(said)
        return said
    message, params, arguments = calls
    rest = {**message, "params": {**params, "arguments": None}}
    check_message_values(rest)
    operation = operations.get(name) if isinstance(name := params.get("name"), str) else None
    if operation is None:  # no arguments change what is answered
        short = {}
    else:
        known = {name: member for name, member in arguments.items() if name in HEADER_ARGUMENTS}
        others = arguments if not known else {name: member for name, member in arguments.items() if name not in known}
        fit = cast("dict[str, object]", bound_value(others, model_bounds(operation.params), shorten=True))
        kept = {**fit, **known}
        short = arguments if fit is others else {name: kept[name] for name in arguments if name in kept}
    return said if short is arguments else {**message, "params": {**params, "arguments": short}}


def tool_call_parts(said: object) -> tuple[dict[str, object], dict[str, object], dict[str, object]] | None:
    """The message, params and arguments of a tool call that has arguments."""
    if not isinstance(said, dict):
        return None
    message = cast("dict[str, object]", said)
    params = message.get("params")
    if message.get("method") != "tools/call" or not isinstance(params, dict):
        return None
    arguments = cast("dict[str, object]", params).get("arguments")
    if not isinstance(arguments, dict):
        return None
    return message, cast("dict[str, object]", params), cast("dict[str, object]", arguments)


def check_message_values(root: object) -> None:
    """Count the values; a message has few."""
    count, containers = 0, [root]
    while containers:
        value = containers.pop()
        if isinstance(value, dict):
            members = list(cast("dict[str, object]", value).values())
        else:
            members = cast("list[object]", value) if isinstance(value, list) else []
        count += len(members)
        if count > MESSAGE_VALUES:
            raise BadRequest(
                f"The message has more than {MESSAGE_VALUES} values beside the arguments of a tool",
                code="invalid_json",
                hint="Leave out what no method of this server reads",
            )
        containers += [each for each in members if isinstance(each, dict | list)]
