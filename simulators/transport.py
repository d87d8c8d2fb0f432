"""A simulated system behind httpx, without a socket."""

from collections.abc import Mapping
from typing import Protocol

import anyio
import httpx  # slow to import: whoever builds this client imports this file when it does

from simulators.server import AnswerLost, WireAnswer


class SimulatedSystem(Protocol):
    """A simulated system that requests are handed to, instead of over a socket."""

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> WireAnswer:
        """Answers one request; names of `headers` are in lower case. Raises AnswerLost."""
        ...


class SimulatorTransport(httpx.AsyncBaseTransport):
    """Every request goes to `system`, whatever its host; a slow answer ends with the request's read time-out."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange. An answer that never comes is a read that timed out, at once; one that is lost is a broken connection."""
        body, url = await request.aread(), request.url
        headers = {name.lower(): value for name, value in request.headers.items()}
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        try:
            with anyio.fail_after(limits.get("read")):
                answer = await self._system.handle(request.method, url.path, url.query.decode(), headers, body)
        except (AnswerLost, TimeoutError) as lost:
            if isinstance(lost, TimeoutError) or lost.slow:
                raise httpx.ReadTimeout("the simulated system took too long", request=request) from None
            raise httpx.ReadError("the simulated system closed the connection", request=request) from None
        stream = httpx.ByteStream(answer.body)  # not `content`: what was read already cannot be read raw
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=stream, request=request)
