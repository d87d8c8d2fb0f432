"""The composites about money behind both doors, over a small network and over the demo's 140 lines."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import orjson

from operations.intelligence import high_cost_subscribers, package_savings
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits, Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.mcp.house import House, open_house, request
from tests.world import NOON, Credentials, World, no_sleep

CATALOGUE = Catalogue([Toolset("intelligence", "Money.", (high_cost_subscribers, high_cost_subscribers, package_savings))])
COSTS, PACKAGES = "/v1/intelligence/high-cost-subscribers", "/v1/intelligence/optimize-package"
SMALL, DEMO = 24, 400
WINDOW = {"start": "2026-12-18", "end": "2027-01-14"}
"""The last four weeks that are over."""


@cache
def pristine(lines: int) -> Original[Network]:
    """A network after thirty days of life."""
    return Original(build_world(1, int(NOON), history_days=30, lines=lines))


@dataclass(slots=True)
class Stage:
    """The service, its network, and the operator of account 8101."""

    house: House
    network: Network
    who: Credentials
    http: httpx.AsyncClient

    @property
    def world(self) -> World:
        return self.house.world

    def lines(self, account: int = 8101) -> list[Line]:
        """The lines of an account."""
        return list(self.network.lines_of(account))

    def asked(self, method: str) -> int:
        """How often the network was asked so."""
        return sum(call.method == method for call in self.world.sandbox.calls)

    def trouble(self, method: str, **kind: Any) -> None:
        """What calls of a method meet."""
        self.world.sandbox.faults.add(NetworkFault(method, **kind))

    async def costs(self, **given: Any) -> dict[str, Any]:
        """What lines cost."""
        said = await self.http.post(COSTS, json={**WINDOW, **given})
        assert said.status_code == 200, said.text
        return said.json()

    async def packages(self, **given: Any) -> dict[str, Any]:
        """What packages lines should have."""
        said = await self.http.post(PACKAGES, json=given)
        assert said.status_code == 200, said.text
        return said.json()

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A tool's result, as a model gets it."""
        said = await self.house.post(request("tools/call", name=name, arguments=arguments), secret=self.who.secret)
        return orjson.loads(said.content)["result"]


@asynccontextmanager
async def open_stage(folder: Path, *, lines: int = SMALL, kind: type[SimulatedNetwork] = SimulatedNetwork) -> AsyncGenerator[Stage]:
    """A faultless service."""
    sandbox = kind(lambda: pristine(lines).copy(), wall=lambda: NOON, following=True, sleep=no_sleep)
    async with open_house(folder, catalogue=CATALOGUE, limits=Limits(burst_enabled=False), sandbox=sandbox) as house:
        network, who = await house.world.network(), await house.world.caller(Tier.PRO, mode="managed", account=8101)
        async with house.world.client(who.secret) as http:
            yield Stage(house, network, who, http)
        assert house.world.faults == []
