"""An operator with one of everything: every operation that reaches the network, ready to be called over and over."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from simulators.transport import SimulatorTransport
from tests.contract.stage import request_of
from tests.faults.inputs import BY_OWN_TOKEN, UPSTREAM_OPERATIONS, Inputs
from tests.faults.rows import CallRow
from tests.registry import ledgers
from tests.world import NOON, World, open_world, pristine
from transports.upstream import SIMULATED_OCS_TOKEN, SIMULATED_OCS_URL

Wait = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Ready:
    """A call that may be sent again and again."""

    http: httpx.AsyncClient
    request: Callable[[], httpx.Request]
    since: int

    async def send(self) -> httpx.Response:
        return await self.http.send(self.request())


@dataclass(slots=True)
class FaultsStage:
    """The service, its network, and two clients: one of a managed organisation, one with a token of its own."""

    world: World
    network: Network
    managed: httpx.AsyncClient
    own: httpx.AsyncClient
    inputs: Inputs

    def renew(self) -> None:
        """What former calls made is gone, nothing is remembered, no trouble is left."""
        self.inputs.renew()
        self.world.pipeline.deps.reads.forget()
        self.world.sandbox.faults.clear()

    async def ready(self, row: CallRow, key: str) -> Ready:
        operation = UPSTREAM_OPERATIONS.operations[row.operation]
        self.renew()
        given = self.inputs.fitted(row)
        http = self.own if row.operation == BY_OWN_TOKEN else self.managed
        headers: dict[str, str] = {}

        def request() -> httpx.Request:
            made = request_of(http, operation, given, key)
            made.headers.update(headers)
            return made

        if operation.confirm:
            challenge = await http.send(request())
            assert challenge.status_code == 202, challenge.text
            headers["X-Confirm-Token"] = challenge.json()["confirm_token"]
            self.world.pipeline.deps.reads.forget()
        return Ready(http, request, len(self.world.sandbox.calls))

    def sent(self, ready: Ready, method: str | None = None) -> list[str]:
        return [call.method for call in self.world.sandbox.calls[ready.since :] if method in (None, call.method)]

    def trouble(self, method: str, **kind: Any) -> None:
        self.world.sandbox.faults.add(NetworkFault(method, **kind))

    async def claims(self) -> dict[str, str]:
        return {row.key: row.state for row in await self.world.store.read(ledgers.claimed)}


def patient(world: World, sandbox: SimulatedNetwork, seconds: float) -> OcsPool:
    """A way to the network that waits between two tries for no time."""
    wire = OcsSettings(url=SIMULATED_OCS_URL, backoff_seconds=0.0, concurrency=64, total_seconds=seconds)
    return OcsPool(Outbound(ocs_limits(wire), transport=lambda: SimulatorTransport(sandbox)), wire, world.clock)


async def too_late(seconds: float) -> None:
    """A delay is longer than anybody waits; the test does not wait for it."""
    raise TimeoutError(seconds)


@asynccontextmanager
async def open_faults_stage(folder: Path, *, wait: Wait = too_late, seconds: float = 20.0) -> AsyncGenerator[FaultsStage]:
    """Everything connected; a template and a zone are the managed organisation's own."""
    sandbox = SimulatedNetwork(lambda: pristine(1, int(NOON), 3).copy(), wall=lambda: NOON, sleep=wait)
    async with open_world(folder, UPSTREAM_OPERATIONS, limits=Limits(burst_enabled=False), sandbox=sandbox) as world:
        network = await world.network()
        world.pipeline.deps = replace(world.pipeline.deps, ocs=patient(world, world.sandbox, seconds))
        managed = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
        own = await world.caller(Tier.ENTERPRISE, token=SIMULATED_OCS_TOKEN)
        async with world.client(managed.secret) as first, world.client(own.secret) as second:
            stage = FaultsStage(world, network, first, second, Inputs(network))
            body = {"name": "Mine", "locationZoneId": 2301, "validityDays": 30, "dataLimit": 1 << 30, "cost": 4.5}
            stage.inputs.template = (await first.post("/v1/package-templates", json=body)).json()["data"]["templateId"]
            body = {"locationZoneName": "Mine", "tadigList": ["SWEAA"], "networkProfileId": 412}
            stage.inputs.zone = (await first.post("/v1/location-zones", json=body)).json()["data"]["id"]
            default = await first.put("/v1/network-default", json={"mode": "custom", "listId": 17})
            assert (default.status_code, stage.inputs.template > 0, stage.inputs.zone > 0) == (200, True, True)
            yield stage
        assert world.faults == []
        await world.pipeline.deps.ocs.aclose()
