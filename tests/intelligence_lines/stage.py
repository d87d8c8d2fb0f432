"""The composites about how lines are used, behind both doors: over a small network, and over a planted one whose truth is known."""

import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from operations.intelligence import churn_risk, usage_anomalies
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from simulators.network.entities import Line
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.copies import Original
from tests.sandbox.planted import original
from tests.stage import OperatorStage, open_operator
from tests.world import NOON, no_sleep

CATALOGUE = Catalogue([Toolset("intelligence", "Lines.", (churn_risk, usage_anomalies))])
CHURN, ANOMALIES = "/v1/intelligence/churn-risk", "/v1/intelligence/detect-usage-anomalies"
SMALL, FEWER, MIDDLE, PLANTED = 24, 80, 160, 200
SEED = 1


@cache
def usual(lines: int) -> Original[Network]:
    """A network after seventy days of life: of 24 lines the account has ten, of 80 it has 28, of 160 it has 56."""
    return Original(build_world(SEED, int(NOON), history_days=70, lines=lines))


@dataclass(slots=True)
class UsageStage(OperatorStage):
    async def churn(self, **given: Any) -> dict[str, Any]:
        return await self.answer(CHURN, **given)

    async def anomalies(self, **given: Any) -> dict[str, Any]:
        return await self.answer(ANOMALIES, **given)


class FleetAnswers(NamedTuple):
    """A fleet, and all that one question is told of it."""

    lines: list[Line]
    answer: dict[str, Any]

    @property
    def iccids(self) -> set[str]:
        return {line.iccid for line in self.lines}


async def lines_answer(http: httpx.AsyncClient, path: str, **given: Any) -> dict[str, Any]:
    said = await http.post(path, json=given)
    assert said.status_code == 200, said.text
    return said.json()


@asynccontextmanager
async def open_usage_stage(folder: Path, *, lines: int = SMALL, planted: bool = False) -> AsyncGenerator[UsageStage]:
    first = original(SEED, PLANTED) if planted else usual(lines)
    sandbox = SimulatedNetwork(first.copy, wall=lambda: NOON, sleep=no_sleep)
    async with open_operator(folder, CATALOGUE, UsageStage, tier=Tier.PRO, sandbox=sandbox) as stage:
        stage.world.clock.wall = float(stage.network.now)
        yield stage


@cache
def planted_answers() -> dict[str, FleetAnswers]:
    """What was told already of the planted network, by path."""
    return {}


async def planted_answer(folder: Path, path: str) -> FleetAnswers:
    """What a fleet is told in which some lines have a part to play, asked once for all tests of a process."""
    known = planted_answers()
    if path not in known:
        async with open_usage_stage(folder, planted=True) as fleet:
            known[path] = FleetAnswers(fleet.lines(), await fleet.answer(path, limit=500))
    lines, answer = known[path]
    return FleetAnswers(lines, copy.deepcopy(answer))
