"""An operator of account 8101, one healthy line of theirs, and what can happen to it on the simulated network."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from mcp.client.client import Client

from clients.ocs.client import Ocs
from operations.bridge import notifications
from operations.intelligence import country_entry, high_cost_subscribers, line_diagnosis, network_coverage, savings
from operations.intelligence.fleet import fleet_problems
from operations.subscribers import line_status, network_access, notes
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.entities import DATA, DAY_SECONDS, Line, NetworkEvent
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from simulators.network.world import Zone
from tests.copies import Original
from tests.network_facts import INTERNAL
from tests.stage import OperatorStage, open_operator
from tests.world import NOON, SettableClock, World, no_sleep, open_world

MODULES = (network_coverage, line_diagnosis, country_entry)
QUESTIONS = Catalogue(
    [
        Toolset("intelligence", "Questions.", MODULES),
        Toolset("money", "Costs and packages.", (high_cost_subscribers, savings)),
        Toolset("lines", "What advice tells to call.", (network_access, line_status, notes)),
        Toolset("fleet", "All lines.", (fleet_problems,)),
        Toolset("bridge", "Pushes.", (notifications,)),
    ]
)
COVERAGE_AUDIT = "/v1/intelligence/audit-network-coverage"
DIAGNOSE = "/v1/intelligence/diagnose-subscriber"
COUNTRY = "/v1/intelligence/detect-country-entry"
FIRST_LINES, LAST_LINES = 28, 14
"""Of an account; some of the last ones are in stock or have ended."""
FLEET_LINES = FIRST_LINES + LAST_LINES
WORLD_1GB, NORDIC_1GB = "World 1GB 30d", "Nordic 1GB 30d"


@dataclass(slots=True)
class DiagnosisStage(OperatorStage):
    """A line that is in use in Norway with a package for the Nordics."""

    ocs: Ocs = field(init=False)
    """The charging system as whoever has its token reaches it."""
    line: Line = field(init=False)

    async def diagnosis(self, **body: Any) -> Any:
        return await self.answer(DIAGNOSE, iccid=self.line.iccid, **body)

    async def causes(self) -> list[str]:
        data = (await self.diagnosis())["data"]
        found = [cause["cause"] for cause in data["causes"]]
        assert data["first_cause"] == found[0]
        return found

    async def control(self, path: str, **body: object) -> Any:
        answer = await self.world.sandbox.handle("POST", f"/control/{path}", body=orjson.dumps(body))
        assert answer.status == 200, answer.body
        return orjson.loads(answer.body)

    async def attach(self, iso2: str, place: int = 0, line: Line | None = None) -> int:
        """The line comes to a network of a country, of those that its sponsor has; the network's number."""
        line = line or self.line
        found = [network.network_id for network in self.network.networks.values() if network.iso2 == iso2]
        allowed = [id for id in found if id in self.network.profiles[line.profile_id].network_ids]
        await self.control("attach", iccid=line.iccid, networkId=allowed[place])
        return allowed[place]

    async def use(self, quantity: int, network_id: int, line: Line | None = None) -> None:
        await self.control("usage", iccid=(line or self.line).iccid, networkId=network_id, usageType=DATA, quantity=quantity)

    async def advance(self, days: int) -> None:
        self.world.clock.advance(days * DAY_SECONDS)
        await self.world.network()

    async def package(self, name: str, line: Line | None = None, **window: Any) -> int:
        """The line gets a package, and has no other; the package's number."""
        line = line or self.line
        await self.ocs.subscriber.clean_all_packages(line.id)
        made = await self.ocs.packages.affect_to_subscriber(self.template(name), line.id, **window)
        return made.get("subsPackageId", 0)

    def registered(self, result: str, at: int) -> None:
        """A registration in the line's signalling; the control API knows none that is refused."""
        seen = self.line.sighting
        assert seen is not None
        network = next(network for network in self.network.networks.values() if (seen.mcc, seen.mnc) in network.codes)
        self.line.events.append(NetworkEvent(at, "s6a", "ULR", network.network_id, seen.mcc, seen.mnc, result, f"refused.{at}"))

    def fail(self, method: str, **kind: Any) -> None:
        self.world.sandbox.faults.add(NetworkFault(method, times=None, **(kind or {"code": 3})))

    def zone(self, name: str, network_ids: tuple[int, ...]) -> int:
        id = max(self.network.zones) + 1
        self.network.zones[id] = Zone(id, name, 7001, 412, network_ids)
        return id

    @asynccontextmanager
    async def agent(self) -> AsyncGenerator[Client]:
        async with self.house.connect(self.who, query="?toolsets=intelligence") as client:
            yield client


@cache
def small_fleets() -> Original[Network]:
    """The usual network with the first and last lines of each account: every test reads its whole fleet."""
    made = build_world(1, int(NOON), history_days=3)
    for account in made.accounts:
        for line in list(made.lines_of(account))[FIRST_LINES:-LAST_LINES]:
            del made.lines[line.id]
    for package in [each for each in made.packages.values() if each.line_id not in made.lines]:
        del made.packages[package.id]
    made.forget()
    return Original(made)


class SmallNetwork(SimulatedNetwork):
    """Small fleets, whose clock is the world's as soon as there is one."""

    def __init__(self) -> None:
        self.clock = SettableClock()
        super().__init__(small_fleets().copy, wall=lambda: self.clock.now(), following=True, sleep=no_sleep)


@asynccontextmanager
async def open_small_world(folder: Path) -> AsyncGenerator[World]:
    """The questions before small fleets, and a bridge that tells places."""
    sandbox = SmallNetwork()
    async with open_world(folder, QUESTIONS, sandbox=sandbox, limits=Limits(burst_enabled=False), secrets=BRIDGE_SECRETS) as world:
        sandbox.clock = world.clock
        yield world


@asynccontextmanager
async def open_diagnosis_stage(folder: Path) -> AsyncGenerator[DiagnosisStage]:
    sandbox = SmallNetwork()
    async with open_operator(folder, QUESTIONS, DiagnosisStage, sandbox=sandbox) as stage:
        sandbox.clock = stage.world.clock
        deps = stage.world.pipeline.deps
        stage.ocs, stage.line = deps.ocs.for_token(deps.ocs_token), healthy(stage.network)
        await stage.package(NORDIC_1GB)
        await stage.use(1 << 20, await stage.attach("no"))
        yield stage


def healthy(network: Network) -> Line:
    """A line in use that pays use outside packages from a balance of its own."""
    lines = (line for line in network.lines_of(8101) if line.status == "ACTIVE" and line.sighting is not None and not line.use_account)
    return next(line for line in lines if line.sim.esim and line.allowed_data and line.bitrate == "UNLIMITED")


BRIDGE_SECRETS = SharedSecrets(internal=INTERNAL)
