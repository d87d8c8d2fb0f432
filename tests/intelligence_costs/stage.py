"""The composites about money behind both doors, over a small network and over the demo's 140 lines."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from operations.intelligence import high_cost_subscribers, savings
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from simulators.network.entities import Line
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


@dataclass(slots=True)
class DemoAnswers:
    """What the demo's fleet of 140 lines is told, each question asked once: the first answer about a fleet has to read all of it."""

    network: Network
    own: list[Line]
    answers: dict[bytes, Any] = field(default_factory=dict[bytes, Any])
    calls_for_pages: int = 0
    """Calls of the network that pages behind the first ones took."""

    def lines(self) -> list[Line]:
        return self.own

    async def costs(self, **given: Any) -> dict[str, Any]:
        return self.told("costs", given)

    async def packages(self, **given: Any) -> dict[str, Any]:
        return self.told("packages", given)

    def told(self, question: str, given: dict[str, Any]) -> Any:
        return orjson.loads(orjson.dumps(self.answers[key_of(question, given)]))

    async def ask(self, stage: CostsStage) -> None:
        """Asks all that the tests look at."""
        for limit in (2, 6, 500):
            self.answers[key_of("costs", {"limit": limit})] = await stage.costs(limit=limit)
        for limit in (10, 500):
            self.answers[key_of("packages", {"limit": limit})] = await stage.packages(limit=limit)
        before = stage.asked()
        self.answers[key_of("cost pages", {})] = await all_pages(stage, COSTS, {**WINDOW, "limit": 17})
        self.answers[key_of("package pages", {})] = await all_pages(stage, PACKAGES, {"limit": 50})
        for tool, arguments in (("high_cost_subscribers", dict(WINDOW)), ("optimize_package", {})):
            first = await stage.tool(tool, arguments)
            further = await stage.tool(tool, {**arguments, "starting_after": first["_meta"]["next"]})
            self.answers[key_of(tool, {})] = [first, further]
        self.calls_for_pages = stage.asked() - before


def key_of(question: str, given: dict[str, Any]) -> bytes:
    return orjson.dumps([question, given], option=orjson.OPT_SORT_KEYS)


async def all_pages(stage: CostsStage, path: str, asked: dict[str, Any]) -> list[Any]:
    """The rows of all pages."""
    rows, after = list[Any](), None
    while True:
        said = await stage.http.post(path, json={**asked, **({"starting_after": after} if after else {})})
        rows += said.json()["data"]["lines"]
        if "link" not in said.headers:
            return rows
        after = said.links["next"]["starting_after"]


async def ask_demo(folder: Path) -> DemoAnswers:
    async with open_costs_stage(folder, lines=DEMO) as stage:
        answers = DemoAnswers(stage.network, stage.lines())
        await answers.ask(stage)
        return answers
