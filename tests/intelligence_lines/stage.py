"""The composites about how lines are used, behind both doors: over a small network, and over a planted one whose truth is known."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson

from operations.intelligence import churn_risk, usage_anomalies
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits, Tier
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.mcp.house import House, open_house, request
from tests.sandbox.planted import original
from tests.world import NOON, Credentials, World, no_sleep

CATALOGUE = Catalogue([Toolset("intelligence", "Lines.", (churn_risk, usage_anomalies))])
CHURN, ANOMALIES = "/v1/intelligence/churn-risk", "/v1/intelligence/detect-usage-anomalies"
SMALL, DEMO, PLANTED = 24, 400, 200
SEED = 1


@cache
def usual(lines: int) -> Original[Network]:
    """A network after seventy days of life: of 24 lines the account has ten, of 400 it has 140."""
    return Original(build_world(SEED, int(NOON), history_days=70, lines=lines))


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

    def asked(self, *methods: str) -> int:
        """How often the network was asked so."""
        return sum(call.method in methods for call in self.world.sandbox.calls)

    def trouble(self, method: str, **kind: Any) -> None:
        """What calls of a method meet."""
        self.world.sandbox.faults.add(NetworkFault(method, **kind))

    async def churn(self, **given: Any) -> dict[str, Any]:
        """Lines at risk."""
        return await found(self.http, CHURN, **given)

    async def anomalies(self, **given: Any) -> dict[str, Any]:
        """What stands out."""
        return await found(self.http, ANOMALIES, **given)

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A tool's result, as a model gets it."""
        said = await self.house.post(request("tools/call", name=name, arguments=arguments), secret=self.who.secret)
        return orjson.loads(said.content)["result"]


class Told(NamedTuple):
    """A fleet, and all that is told of it."""

    lines: list[Line]
    churn: dict[str, Any]
    anomalies: dict[str, Any]

    @property
    def iccids(self) -> set[str]:
        return {line.iccid for line in self.lines}


async def found(http: httpx.AsyncClient, path: str, **given: Any) -> dict[str, Any]:
    """An answer."""
    said = await http.post(path, json=given)
    assert said.status_code == 200, said.text
    return said.json()


@asynccontextmanager
async def open_stage(folder: Path, *, lines: int = SMALL, planted: bool = False) -> AsyncGenerator[Stage]:
    """A faultless service."""
    first = original(SEED, PLANTED) if planted else usual(lines)
    sandbox = SimulatedNetwork(first.copy, wall=lambda: NOON, sleep=no_sleep)
    async with open_house(folder, catalogue=CATALOGUE, limits=Limits(burst_enabled=False), sandbox=sandbox) as house:
        network, who = await house.world.network(), await house.world.caller(Tier.PRO, mode="managed", account=8101)
        house.world.clock.wall = float(network.now)
        async with house.world.client(who.secret) as http:
            yield Stage(house, network, who, http)
        assert house.world.faults == []
