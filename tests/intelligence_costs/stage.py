"""The composites about money behind both doors, over a small network and over the demo's 140 lines."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from operations.intelligence import high_cost_subscribers, savings
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.stage import OperatorStage, open_operator
from tests.world import NOON, no_sleep

CATALOGUE = Catalogue([Toolset("intelligence", "Money.", (high_cost_subscribers, high_cost_subscribers, savings))])
COSTS, PACKAGES = "/v1/intelligence/high-cost-subscribers", "/v1/intelligence/optimize-package"
SMALL, DEMO = 24, 400
WINDOW = {"start": "2026-12-18", "end": "2027-01-14"}
"""The last four weeks that are over."""


@cache
def pristine(lines: int) -> Original[Network]:
    """A network after thirty days of life."""
    return Original(build_world(1, int(NOON), history_days=30, lines=lines))


@dataclass(slots=True)
class CostsStage(OperatorStage):
    async def costs(self, **given: Any) -> dict[str, Any]:
        return await self.answer(COSTS, 200, **{**WINDOW, **given})

    async def packages(self, **given: Any) -> dict[str, Any]:
        return await self.answer(PACKAGES, 200, **given)


@asynccontextmanager
async def open_costs_stage(
    folder: Path, *, lines: int = SMALL, kind: type[SimulatedNetwork] = SimulatedNetwork
) -> AsyncGenerator[CostsStage]:
    sandbox = kind(lambda: pristine(lines).copy(), wall=lambda: NOON, following=True, sleep=no_sleep)
    async with open_operator(folder, CATALOGUE, CostsStage, tier=Tier.PRO, sandbox=sandbox) as stage:
        yield stage
