"""Two operators on the simulated network: one whose account is 8101 of a shared reseller, one with a reseller token of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from operations.accounts import accounts, line_moves, resellers
from operations.subscribers import line_status, locations, network_access, subscribers, usage
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits, Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.world import World, open_world

ACCOUNTS = Toolset("accounts", "Accounts.", (accounts, accounts, accounts, line_moves, resellers, resellers, resellers))
LINES = Toolset("subscribers", "Lines.", (network_access, locations, locations, usage, subscribers, line_status, usage, subscribers))
CATALOGUE = Catalogue([ACCOUNTS, LINES])
TOKEN = "sandbox-7001-token"


@dataclass(slots=True)
class Stage:
    """The service, its network, and one client of each operator."""

    world: World
    network: Network
    managed: httpx.AsyncClient
    own: httpx.AsyncClient
    operator: str
    """The organisation in managed mode."""

    def calls(self, *methods: str) -> list[Any]:
        """What was sent to the network under these names; without names, everything."""
        return [call.payload for call in self.world.sandbox.calls if not methods or call.method in methods]

    def lines(self, account: int) -> list[Line]:
        """The lines of an account."""
        return list(self.network.lines_of(account))

    def used(self) -> Line:
        """A line of 8101 that was seen and used."""
        return next(line for line in self.lines(8101) if line.sighting and line.cdrs)

    def fresh(self) -> Line:
        """A line of 8101 that waits in the drawer."""
        return next(line for line in self.lines(8101) if line.sim.status == "FREE")

    def trouble(self, method: str, **kind: object) -> None:
        """What the next call of a method meets."""
        self.world.sandbox.faults.add(NetworkFault(method, **kind))  # pyright: ignore[reportArgumentType]  # the kinds are checked by the fault


@asynccontextmanager
async def open_stage(folder: Path, sandbox: SimulatedNetwork | None = None) -> AsyncGenerator[Stage]:
    """A faultless service."""
    async with open_world(folder, CATALOGUE, limits=Limits(burst_enabled=False), sandbox=sandbox) as world:
        network = await world.network()
        managed = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
        own = await world.caller(Tier.ENTERPRISE, token=TOKEN)
        async with world.client(managed.secret) as first, world.client(own.secret) as second:
            yield Stage(world, network, first, second, managed.organisation)
        assert world.faults == []


async def confirmed(http: httpx.AsyncClient, path: str, body: dict[str, object]) -> httpx.Response:
    """A change whose confirm token is sent back."""
    asked = await http.put(path, json=body)
    assert asked.status_code == 202, asked.text
    return await http.put(path, json=body, headers={"X-Confirm-Token": asked.json()["confirm_token"]})
