"""The simulated network as an ASGI application, for a server of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from clients.http import Outbound, OutboundFailed
from simulators.network.simulated_network import ConnectionDropped, SimulatedNetwork
from simulators.network.world_runtime import NetworkAnswer

ANSWER_CHUNK_BYTES = 1 << 18
NETWORK_BODY_LIMIT = 1 << 20
PUSH_INTERVAL_SECONDS = 0.2


def make_network_app(sandbox: SimulatedNetwork) -> Starlette:
    """The wire and the control API; notifications are delivered while it runs."""
    return Starlette(routes=[Mount("/", app=NetworkWire(sandbox))], lifespan=delivery_lifespan(sandbox))


def delivery_lifespan(sandbox: SimulatedNetwork) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """A lifespan with a task beside the server that sends what the network has to say."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        outbound = Outbound()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver_pushes, sandbox, outbound)
            yield
            tasks.cancel_scope.cancel()
        await outbound.aclose()

    return lifespan


async def deliver_pushes(sandbox: SimulatedNetwork, outbound: Outbound) -> None:
    """Again and again; each notification is sent once."""

    async def post(url: str, body: bytes) -> int:
        try:
            return (await outbound.exchange("POST", url, headers={"content-type": "application/json"}, content=body)).status
        except OutboundFailed:  # nobody there: the log of deliveries says so
            return 0

    while True:
        await sandbox.deliver(post)
        await anyio.sleep(PUSH_INTERVAL_SECONDS)


class NetworkWire:
    """HTTP around the sandbox."""

    def __init__(self, sandbox: SimulatedNetwork) -> None:
        self._sandbox = sandbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = Request(scope, receive)
        try:
            body = await read_network_body(request)
        except ClientDisconnect:
            return
        if body is None:
            await send_network_answer(send, NetworkAnswer(413, b'{"error":"the body is longer than 1 MiB"}'))
            return
        client = request.client.host if request.client else ""
        try:
            answer = await self._sandbox.handle(request.method, request.url.path, request.url.query, dict(request.headers), body, client)
        except ConnectionDropped:
            await drop_connection(send)
            return
        await send_network_answer(send, answer)


async def read_network_body(request: Request) -> bytes | None:
    """All of the body; None when it is too long."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > NETWORK_BODY_LIMIT:
            return None
    return bytes(body)


async def drop_connection(send: Send) -> None:
    """Promise a body and return: the server closes the connection, and the other side has no answer to read."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1024")]})


async def send_network_answer(send: Send, answer: NetworkAnswer) -> None:
    """An answer, a long one in pieces."""
    headers = [(b"content-type", answer.media_type.encode()), (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for start in range(0, max(1, len(answer.body)), ANSWER_CHUNK_BYTES):
        rest = start + ANSWER_CHUNK_BYTES < len(answer.body)
        await send({"type": "http.response.body", "body": answer.body[start : start + ANSWER_CHUNK_BYTES], "more_body": rest})
