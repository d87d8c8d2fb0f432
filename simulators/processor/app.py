"""The simulated processor as an ASGI application, for a server of its own: API, pages and control API; events are order while it runs."""

from collections.abc import Mapping
from typing import cast

import anyio
import orjson

from clients.http import Outbound, OutboundFailed
from simulators.processor.asgi import (
    PROCESSOR_BODY_LIMIT,
    AsgiHeaders,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    read_processor_body,
    send_processor_answer,
)
from simulators.processor.call import ProcessorRefusal
from simulators.processor.entities import JsonObject
from simulators.processor.faults import ProcessorNoAnswer
from simulators.processor.simulated_processor import SimulatedProcessor

WEBHOOK_INTERVAL_SECONDS = 0.5
SLOW_SECONDS = 60.0
JSON_HEADERS: AsgiHeaders = [(b"content-type", b"application/json")]


class ProcessorApp:
    """HTTP around the sandbox."""

    def __init__(self, sandbox: SimulatedProcessor) -> None:
        self._sandbox = sandbox

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """A request, or the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        path = cast(str, scope["path"])
        if path.startswith(("/v1/", "/oauth/token", "/oauth/deauthorize")):
            await self._api(scope, receive, send)
        elif path == "/control" or path.startswith("/control/"):
            await self._control(scope, receive, send)
        else:
            await self._sandbox.pages(scope, receive, send)

    async def _api(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        body = await read_processor_body(receive, PROCESSOR_BODY_LIMIT)
        if body is None:
            await send_processor_answer(send, 413, JSON_HEADERS, b"{}")
            return
        method, path, query = cast(str, scope["method"]), cast(str, scope["path"]), cast(bytes, scope["query_string"]).decode("latin-1")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in cast(AsgiHeaders, scope["headers"])}
        try:
            answer = await self._sandbox.handle(method, path, query, headers, body)
        except ProcessorNoAnswer as lost:
            await anyio.sleep(SLOW_SECONDS if lost.slow else 0)
            # A body that is promised and never comes: the server closes the connection.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1024")]})
            return
        await send_processor_answer(
            send, answer.status, [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()], answer.body
        )

    async def _control(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Choice: without a key, for it listens where its user says, which is this machine unless they say otherwise."""
        status, answer = await self._controlled(scope, await read_processor_body(receive, PROCESSOR_BODY_LIMIT))
        await send_processor_answer(send, status, JSON_HEADERS, orjson.dumps(answer, option=orjson.OPT_INDENT_2))

    async def _controlled(self, scope: AsgiScope, body: bytes | None) -> tuple[int, object]:
        method, path = cast(str, scope["method"]), cast(str, scope["path"]).removeprefix("/control")
        try:
            order = orjson.loads(body) if body else None
            return 200, await self._sandbox.control(method, path, order)
        except orjson.JSONDecodeError:
            return 400, processor_error("the body is not JSON")
        except ProcessorRefusal as refusal:
            return refusal.status, processor_error(refusal.message)

    async def _lifespan(self, receive: AsgiReceive, send: AsgiSend) -> None:
        await receive()
        outbound = Outbound()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver_webhooks, self._sandbox, outbound)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            tasks.cancel_scope.cancel()
        await outbound.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def processor_error(message: str) -> JsonObject:
    """Why not."""
    return {"error": {"message": message}}


async def deliver_webhooks(sandbox: SimulatedProcessor, outbound: Outbound) -> None:
    """Again and again, until cancelled."""

    async def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            return (await outbound.exchange("POST", url, headers=headers, content=body)).status
        except OutboundFailed:  # nobody there yet: it is posted again
            return 0

    while True:
        await anyio.sleep(WEBHOOK_INTERVAL_SECONDS)
        if sandbox.begun:
            await sandbox.deliver(post)
