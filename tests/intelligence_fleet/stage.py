"""The composites over a whole fleet behind both doors, on the simulated network: one caller of account 8101, one of all its siblings."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from operations.intelligence import fleet_health, marketing_intelligence
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.network_facts import OWN_TOKEN
from tests.stage import OperatorStage, open_operator
from tests.world import NOON, Credentials, no_sleep

CATALOGUE = Catalogue(
    [Toolset("intelligence", "Fleets.", (fleet_health, marketing_intelligence))], core=("fleet_health", "marketing_intelligence")
)
FLEET_HEALTH = "/v1/intelligence/fleet-health"
MARKET = "/v1/intelligence/marketing-intelligence"


@dataclass(slots=True)
class FleetStage(OperatorStage):
    own: Credentials = field(init=False)
    all: httpx.AsyncClient = field(init=False)
    """Of the caller with a token of its own."""

    @property
    def managed(self) -> Credentials:
        return self.who

    def forget(self) -> None:
        """So much time passes that nothing is believed any more which a minute ago was."""
        self.house.world.clock.advance(61)


@cache
def few_lines() -> Original[Network]:
    """A network after six weeks of life, in which the account has 23 lines, and not 140."""
    return Original(build_world(1, int(NOON), history_days=42, lines=60))


@asynccontextmanager
async def open_fleet_stage(folder: Path, *, few: bool = False) -> AsyncGenerator[FleetStage]:
    sandbox = SimulatedNetwork(few_lines().copy, wall=lambda: NOON, sleep=no_sleep) if few else None
    async with open_operator(folder, CATALOGUE, FleetStage, tier=Tier.FREE, limits=Limits(), sandbox=sandbox) as stage:
        stage.own = await stage.world.caller(Tier.FREE, token=OWN_TOKEN)
        stage.all = await stage.clients.enter_async_context(stage.world.client(stage.own.secret))
        yield stage


async def fleet_answer(http: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    said = await http.post(path, json=body)
    assert said.status_code == 200, said.text
    return said.json()


def total_of(rows: Iterable[dict[str, Any]], name: str) -> Any:
    return sum(row[name] for row in rows)
