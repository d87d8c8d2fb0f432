"""The simulated network behind httpx, without a socket."""

import anyio
import httpx  # slow to import: whoever builds this client imports this file when it does

from simulators.network.simulated_network import ConnectionDropped, SimulatedNetwork


class NetworkTransport(httpx.AsyncBaseTransport):
    """Every request goes to the sandbox, whatever its host; delays keep the request's read time-out."""

    def __init__(self, sandbox: SimulatedNetwork) -> None:
        self._sandbox = sandbox

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange; a dropped answer is a broken connection."""
        body = await request.aread()
        url = request.url
        headers = {name.lower(): value for name, value in request.headers.items()}
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        try:
            with anyio.fail_after(limits.get("read")):
                answer = await self._sandbox.handle(request.method, url.path, url.query.decode(), headers, body)
        except TimeoutError:
            raise httpx.ReadTimeout("the sandbox took too long", request=request) from None
        except ConnectionDropped:
            raise httpx.ReadError("the sandbox dropped the connection", request=request) from None
        stream = httpx.ByteStream(answer.body)  # not `content`: what was read already cannot be read raw
        return httpx.Response(answer.status, headers={"content-type": answer.media_type}, stream=stream, request=request)
