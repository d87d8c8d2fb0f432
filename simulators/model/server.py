"""A model on a socket of its own: enough HTTP for the chat-completions wire, and every way to break it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias, cast

ModelJson = dict[str, object]
AnswerFault = Literal["unauthorized", "busy", "broken", "redirect", "endless_error", "not_events", "silent"]
TextFault = Literal["stalls", "breaks_off", "unfinished", "cut_short", "filtered"]
EventFault = Literal["garbage", "deep", "wrong_types", "error_event", "endless", "endless_line"]
ModelFault = Literal[""] | AnswerFault | TextFault | EventFault
"""How a turn fails: `silent` sends nothing, `stalls` and `breaks_off` stop after half of the text."""
EVENT_STREAM = "text/event-stream"
FAULT_STATUSES: dict[ModelFault, str] = {
    "unauthorized": "401 Unauthorized",
    "busy": "429 Too Many Requests",
    "broken": "500 Internal Server Error",
    "redirect": "302 Found",
}
FAILURE_TEXT = "sk-live-endpoint-secret told by http://10.0.0.7/internal"
"""What the endpoint says of its failures, which nobody may hear."""
MODEL_BODY_LIMIT = 32 << 20
HOSTILE_EVENTS: dict[ModelFault, str] = {
    "garbage": "{no json" + FAILURE_TEXT,
    "deep": "[" * 100_000,
    "wrong_types": json.dumps({"choices": [{"delta": {"content": 7, "tool_calls": ["x", 3]}, "finish_reason": 4}]}),
    "error_event": json.dumps({"error": {"message": FAILURE_TEXT}}),
}
ARGUMENT_CHUNK = 7


class ToolUse(NamedTuple):
    """The model asks for a tool; arguments that are a text are sent as they are."""

    name: str
    arguments: Mapping[str, object] | str = {}


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What the model says: tools to use, or a text."""

    text: str = ""
    uses: tuple[ToolUse, ...] = ()
    fault: ModelFault = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    body: ModelJson
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def messages(self) -> list[ModelJson]:
        return cast("list[ModelJson]", self.body.get("messages", []))

    @property
    def question(self) -> str:
        """What the user said last."""
        return next((str(each["content"]) for each in reversed(self.messages) if each["role"] == "user"), "")

    @property
    def tools(self) -> list[str]:
        tools = cast("list[dict[str, ModelJson]]", self.body.get("tools", []))
        return [str(tool["function"]["name"]) for tool in tools]

    @property
    def results(self) -> list[ModelJson]:
        """What the tools answered since the user's question, in order."""
        asked = max(index for index, each in enumerate(self.messages) if each["role"] == "user")
        return [cast(ModelJson, json.loads(str(each["content"]))) for each in self.messages[asked:] if each["role"] == "tool"]


ModelScript: TypeAlias = Callable[[ModelRequest], ModelTurn]


class ModelServer:
    """Answers by a script. `calls` is what it heard; `hung_up` counts clients that left in the middle of an answer."""

    def __init__(self, script: ModelScript, *, key: str = "") -> None:
        self.script, self.key = script, key
        self.calls: list[ModelRequest] = []
        self.hung_up = 0
        self.open = 0
        self.changed = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    async def until(self, true: Callable[[], bool]) -> None:
        """Waits until `true` holds: it is asked whenever `calls`, `hung_up` or `open` has changed."""
        async with self.changed:
            await self.changed.wait_for(true)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def stop(self) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up += 1
        finally:
            self.open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            async with self.changed:
                self.changed.notify_all()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = await read_model_request(reader)
        if heard is None:  # the list of its models: it has any
            await ModelReply(writer, "").status("200 OK", {"object": "list", "data": []})
            return
        self.calls.append(heard)
        async with self.changed:
            self.changed.notify_all()
        wrong = self.key and heard.headers.get("authorization") != f"Bearer {self.key}"
        turn = ModelTurn(fault="unauthorized") if wrong else self.script(heard)
        talk = asyncio.ensure_future(ModelReply(writer, str(heard.body.get("model"))).say(turn))
        leaving = asyncio.ensure_future(reader.read(1))  # the client has nothing more to say: this ends when it leaves
        try:
            await asyncio.wait((talk, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not talk.done():
                raise ConnectionResetError("the client has left")
            talk.result()
        finally:
            for task in (talk, leaving):
                task.cancel()
            await asyncio.gather(talk, leaving, return_exceptions=True)


class ModelReply:
    def __init__(self, writer: asyncio.StreamWriter, model: str) -> None:
        self._writer, self._model = writer, model

    async def say(self, turn: ModelTurn) -> None:
        if turn.fault in FAULT_STATUSES:
            await self.status(FAULT_STATUSES[turn.fault], {"error": {"message": FAILURE_TEXT, "type": "sandbox", "code": FAILURE_TEXT}})
        elif turn.fault == "endless_error":
            await self._head("500 Internal Server Error", "application/json")
            await self._for_ever(b"x" * 65_536)
        elif turn.fault == "not_events":
            await self._head("200 OK", "text/html")
            await self._end(b"<html>" + FAILURE_TEXT.encode() + b"</html>")
        elif turn.fault == "silent":
            await asyncio.Event().wait()
        else:
            await self._head("200 OK", EVENT_STREAM)
            await self._stream(turn)

    async def _stream(self, turn: ModelTurn) -> None:
        if turn.fault in HOSTILE_EVENTS:
            await self._send(f"data: {HOSTILE_EVENTS[turn.fault]}\n\n".encode())
        elif turn.fault == "endless":
            await self._for_ever(event_bytes(_completion_chunk(self._model, {"content": "again and " * 400})))
        elif turn.fault == "endless_line":
            await self._for_ever(b"data: " + b"x" * 65_536)
        elif turn.fault:
            await self._half(turn)
        else:
            for each in _turn_chunks(turn, self._model):
                await self._send(event_bytes(each))
        await self._send(b"data: [DONE]\n\n")
        await self._end(b"")

    async def _half(self, turn: ModelTurn) -> None:
        """The first half of the text, then something else than the other half."""
        parts = text_chunks(turn.text)
        for part in parts[: len(parts) // 2]:
            await self._send(event_bytes(_completion_chunk(self._model, {"content": part})))
        if turn.fault == "stalls":
            await asyncio.Event().wait()
        if turn.fault == "breaks_off":
            raise ConnectionAbortedError
        if turn.fault in ("cut_short", "filtered"):
            await self._send(
                event_bytes(_completion_chunk(self._model, {}, finish="length" if turn.fault == "cut_short" else "content_filter"))
            )

    async def status(self, status: str, body: ModelJson) -> None:
        """An answer that is no stream."""
        content = json.dumps(body).encode()
        more = "location: http://127.0.0.1:9/elsewhere\r\n" if status.startswith("302") else ""
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {len(content)}\r\nconnection: close\r\n\r\n"
        self._writer.write(head.encode() + content)
        await self._writer.drain()

    async def _head(self, status: str, kind: str) -> None:
        self._writer.write(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode())
        await self._writer.drain()

    async def _send(self, part: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        await self._writer.drain()

    async def _for_ever(self, part: bytes) -> None:
        for each in repeat(part):
            await self._send(each)

    async def _end(self, rest: bytes) -> None:
        if rest:
            await self._send(rest)
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


def event_bytes(value: ModelJson) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


async def read_model_request(reader: asyncio.StreamReader) -> ModelRequest | None:
    """A whole request; None for one without a body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    length = int(headers.get("content-length", "0"))
    if head[0].startswith("GET "):
        return None
    if not head[0].startswith("POST ") or length > MODEL_BODY_LIMIT:
        raise ConnectionAbortedError
    return ModelRequest(json.loads(await reader.readexactly(length)), headers)


@asynccontextmanager
async def model_server(
    script: ModelScript, *, key: str = "", host: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[tuple[str, ModelServer]]:
    """Listens for the length of a block; port 0 takes a free one. Yields the base URL and the server."""
    made = ModelServer(script, key=key)
    server = await asyncio.start_server(made.connected, host, port)
    try:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}/v1", made
    finally:
        server.close()
        await made.stop()
        await server.wait_closed()


def _turn_chunks(turn: ModelTurn, model: str) -> Iterator[ModelJson]:
    yield _completion_chunk(model, {"role": "assistant", "content": ""})
    for part in text_chunks(turn.text):
        yield _completion_chunk(model, {"content": part})
    for index, use in enumerate(turn.uses):
        yield from tool_call_chunks(model, index, use)
    yield _completion_chunk(model, {}, finish="tool_calls" if turn.uses else "stop")


def tool_call_chunks(model: str, index: int, use: ToolUse) -> Iterator[ModelJson]:
    """A tool call: its name first, its arguments in bits."""
    text = use.arguments if isinstance(use.arguments, str) else json.dumps(dict(use.arguments))
    begun = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": use.name, "arguments": ""}}
    yield _completion_chunk(model, {"tool_calls": [begun]})
    for start in range(0, len(text), ARGUMENT_CHUNK):
        more = {"index": index, "function": {"arguments": text[start : start + ARGUMENT_CHUNK]}}
        yield _completion_chunk(model, {"tool_calls": [more]})


def _completion_chunk(model: str, delta: ModelJson, *, finish: str | None = None) -> ModelJson:
    choice: ModelJson = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-sandbox", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}


def text_chunks(text: str) -> list[str]:
    """The text in parts that end with a space."""
    return [part + " " for part in text.split(" ")[:-1]] + text.split(" ")[-1:] if text else []
