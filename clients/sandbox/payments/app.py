"""The simulated processor as an ASGI application, for a server of its own: API, pages and control API; events are told while it runs."""

from collections.abc import Mapping
from typing import cast

import anyio
import orjson

from clients.failure import OutboundFailed
from clients.http import Outbound
from clients.sandbox.payments.asgi import LONGEST_BODY, Headers, Receive, Scope, Send, read_body, reply
from clients.sandbox.payments.control_faults import NoAnswer
from clients.sandbox.payments.refusal import Members, Refusal
from clients.sandbox.payments.sandbox import PaymentsSandbox

BETWEEN_DELIVERIES = 0.5
SLOW_SECONDS = 60.0
JSON: Headers = [(b"content-type", b"application/json")]


class SandboxApp:
    """HTTP around the sandbox."""

    def __init__(self, sandbox: PaymentsSandbox) -> None:
        self._sandbox = sandbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive, LONGEST_BODY)
        if body is None:
            await reply(send, 413, JSON, b"{}")
            return
        method, path, query = cast(str, scope["method"]), cast(str, scope["path"]), cast(bytes, scope["query_string"]).decode("latin-1")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in cast(Headers, scope["headers"])}
        try:
            answer = await self._sandbox.handle(method, path, query, headers, body)
        except NoAnswer as lost:
            await anyio.sleep(SLOW_SECONDS if lost.slow else 0)
            # A body that is promised and never comes: the server closes the connection.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1024")]})
            return
        await reply(send, answer.status, [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()], answer.body)

    async def _control(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Choice: without a key, for it listens where its user says, which is this machine unless they say otherwise."""
        status, answer = await self._controlled(scope, await read_body(receive, LONGEST_BODY))
        await reply(send, status, JSON, orjson.dumps(answer, option=orjson.OPT_INDENT_2))

    async def _controlled(self, scope: Scope, body: bytes | None) -> tuple[int, object]:
        method, path = cast(str, scope["method"]), cast(str, scope["path"]).removeprefix("/control")
        try:
            told = orjson.loads(body) if body else None
            return 200, await self._sandbox.control(method, path, told)
        except orjson.JSONDecodeError:
            return 400, error("the body is not JSON")
        except Refusal as refusal:
            return refusal.status, error(refusal.message)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        outbound = Outbound()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_delivering, self._sandbox, outbound)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            tasks.cancel_scope.cancel()
        await outbound.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def error(message: str) -> Members:
    """Why not."""
    return {"error": {"message": message}}


async def keep_delivering(sandbox: PaymentsSandbox, outbound: Outbound) -> None:
    """Again and again, until cancelled."""

    async def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            return (await outbound.exchange("POST", url, headers=headers, content=body)).status
        except OutboundFailed:  # nobody there yet: it is posted again
            return 0

    while True:
        await anyio.sleep(BETWEEN_DELIVERIES)
        if sandbox.begun:
            await sandbox.deliver(post)
