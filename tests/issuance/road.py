"""The way to the simulated network, on which a test may stand: it refuses, holds and exchanges what passes."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx
import orjson

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from clients.outside_system import WAITING_LIMIT
from registry.clock import Clock
from simulators.network.simulated_network import SimulatedNetwork
from simulators.transport import SimulatorTransport
from transports.upstream import SIMULATED_OCS_URL


class RoadGate:
    """Holds the requests of one method on their way there, or their answers on the way back."""

    def __init__(self, *, back: bool = False) -> None:
        self.back = back
        self.entered, self.open = anyio.Event(), anyio.Event()

    async def pass_through(self) -> None:
        self.entered.set()
        await self.open.wait()


@asynccontextmanager
async def held(gate: RoadGate, call: Callable[[], Awaitable[httpx.Response]]) -> AsyncGenerator[list[httpx.Response]]:
    """A call that waits at the gate until the block has ended; its answer is there afterwards."""
    answers: list[httpx.Response] = []

    async def run() -> None:
        answers.append(await call())

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await gate.entered.wait()
        try:
            yield answers
        finally:
            gate.open.set()


class Road(httpx.AsyncBaseTransport):
    """Every request of one pool."""

    def __init__(self, sandbox: SimulatedNetwork) -> None:
        self._network = SimulatorTransport(sandbox)
        self.refused: set[str] = set()
        """Methods whose connections are refused before a byte is sent; `*` is every method."""
        self.seen: Callable[[str], None] = lambda method: None
        """Told of every request on its way there."""
        self.gates: dict[str, RoadGate] = {}
        self.answers: dict[str, bytes] = {}
        """What is answered in place of the network's own answer, which it gives all the same."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        method = next(iter(orjson.loads(await request.aread())))
        self.seen(method)
        gate = self.gates.get(method)
        if gate is not None and not gate.back:
            await gate.pass_through()
        if self.refused & {method, "*"}:
            raise httpx.ConnectError("connection refused", request=request) from ConnectionRefusedError()
        response = await self._network.handle_async_request(request)
        if gate is not None and gate.back:
            await gate.pass_through()
        if method in self.answers:
            return httpx.Response(200, stream=httpx.ByteStream(self.answers[method]), request=request)
        return response

    def pool(self, clock: Clock, concurrency: int = 8, *, seconds: float = 20.0, most_waiting: int = WAITING_LIMIT) -> OcsPool:
        """A pool whose calls go this way."""
        wire = OcsSettings(url=SIMULATED_OCS_URL, concurrency=concurrency, backoff_seconds=0.0, total_seconds=seconds)
        return OcsPool(Outbound(ocs_limits(wire), transport=self), wire, clock, most_waiting=most_waiting)
