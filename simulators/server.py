"""A simulated system as a server: requests and answers over ASGI, and what it posts by itself while the server runs."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import NamedTuple, TypeAlias, cast

import anyio

from clients.http import Outbound, OutboundFailed

AsgiMessage: TypeAlias = MutableMapping[str, object]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiHandler: TypeAlias = Callable[[AsgiMessage, AsgiReceive, AsgiSend], Awaitable[None]]
PostBody: TypeAlias = Callable[[str, bytes, Mapping[str, str]], Awaitable[int]]
"""Posts a body with headers to an address, and returns the status; 0: nobody answered."""

JSON_CONTENT: Mapping[str, str] = {"content-type": "application/json"}
REQUEST_BODY_LIMIT = 1 << 20
ANSWER_CHUNK_BYTES = 1 << 18
SLOW_ANSWER_SECONDS = 60.0


class WireRequest(NamedTuple):
    """One request; names of headers are in lower case, `client` is the caller's address."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    client: str


class WireAnswer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = JSON_CONTENT


class AnswerLost(Exception):
    """There is no answer. `slow`: the caller waits until it gives up; else the connection is closed."""

    def __init__(self, *, slow: bool = False) -> None:
        super().__init__("no answer")
        self.slow = slow


class SimulatorApp:
    """An ASGI application. While the server runs, it calls `deliver` every `interval` seconds, for what the system posts by itself."""

    def __init__(self, handler: AsgiHandler, deliver: Callable[[PostBody], Awaitable[object]], interval: float) -> None:
        self._handler, self._deliver, self._interval = handler, deliver, interval

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "lifespan":
            return await self._handler(scope, receive, send)
        await receive()
        outbound = Outbound()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_delivering, outbound)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            tasks.cancel_scope.cancel()
        await outbound.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _keep_delivering(self, outbound: Outbound) -> None:
        async def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
            try:
                return (await outbound.exchange("POST", url, headers=headers, content=body)).status
            except OutboundFailed:
                return 0

        while True:
            await anyio.sleep(self._interval)
            await self._deliver(post)


def asgi_handler(handle: Callable[[WireRequest], Awaitable[WireAnswer]], too_long: bytes) -> AsgiHandler:
    """Answers requests by `handle`, and longer bodies than 1 MiB with 413 and `too_long`. A request that broke off gets no answer."""

    async def handler(scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        try:
            body = await read_request_body(receive, REQUEST_BODY_LIMIT)
            answer = WireAnswer(413, too_long) if body is None else await handle(wire_request(scope, body))
        except ConnectionAbortedError:
            return
        except AnswerLost as lost:
            await anyio.sleep(SLOW_ANSWER_SECONDS if lost.slow else 0)
            # A body that is promised and never comes: the server closes the connection.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1024")]})
            return
        await send_answer(send, answer)

    return handler


def wire_request(scope: AsgiMessage, body: bytes) -> WireRequest:
    headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
    client = cast("tuple[str, int] | None", scope.get("client"))
    return WireRequest(
        cast(str, scope["method"]),
        cast(str, scope["path"]),
        cast(bytes, scope["query_string"]).decode("latin-1"),
        {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers},
        body,
        client[0] if client else "",
    )


async def read_request_body(receive: AsgiReceive, longest: int) -> bytes | None:
    """The whole body; None when it has more than `longest` bytes. Raises ConnectionAbortedError when the caller left before its end."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError
        body += cast(bytes, message.get("body", b""))
        more = bool(message.get("more_body", False))
        if len(body) > longest:
            return None
    return bytes(body)


async def send_answer(send: AsgiSend, answer: WireAnswer, *, head_only: bool = False) -> None:
    """Send an answer, a long one in pieces; `head_only` without its body."""
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    length = (b"content-length", b"%d" % len(answer.body))
    await send({"type": "http.response.start", "status": answer.status, "headers": [*headers, length]})
    body = b"" if head_only else answer.body
    for start in range(0, max(1, len(body)), ANSWER_CHUNK_BYTES):
        more = start + ANSWER_CHUNK_BYTES < len(body)
        await send({"type": "http.response.body", "body": body[start : start + ANSWER_CHUNK_BYTES], "more_body": more})
