"""The simulated processor behind httpx, without a socket."""

import httpx  # slow to import: whoever builds this client imports this file when it does

from simulators.processor.faults import ProcessorNoAnswer
from simulators.processor.simulated_processor import SimulatedProcessor


class ProcessorTransport(httpx.AsyncBaseTransport):
    """Every request goes to the sandbox, whatever its host. An answer that never comes is a read that timed out, at once."""

    def __init__(self, sandbox: SimulatedProcessor) -> None:
        self._sandbox = sandbox

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange."""
        body = await request.aread()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            answer = await self._sandbox.handle(request.method, request.url.path, request.url.query.decode(), headers, body)
        except ProcessorNoAnswer as lost:
            if lost.slow:
                raise httpx.ReadTimeout("the simulated processor took too long", request=request) from None
            raise httpx.ReadError("the simulated processor closed the connection", request=request) from None
        stream = httpx.ByteStream(answer.body)  # not `content`: what was read already cannot be read raw
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=stream, request=request)
