"""The stage of the alerts: the service before the simulated network, its fleet read, and the worker's chore done minute by minute."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import orjson

from operations.catalogue import CATALOGUE
from operations.event_types import alerts
from operations.event_types.catalogue import EVENT_TYPES
from operations.event_types.declaration import EventType
from operations.fleet.sync import FleetSync
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.entities import Line
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from storage.event_log import events_behind, place_events
from tests.copies import Original
from tests.network_facts import ACCOUNT, HOUR, TEMPLATE
from tests.world import NOON, Credentials, SettableClock, World, no_sleep, open_world
from transports.worker.chores import Chore, alerts_chore

ALERTS = "/v1/connectivity/alerts"
MICRO = 1_000_000


@cache
def network_of(lines: int) -> Original[Network]:
    """A network with so many lines; of 100, the account 8101 has four free eSIMs."""
    return Original(build_world(1, int(NOON), history_days=1, lines=lines))


ALERT_TYPES = frozenset(each.name for each in vars(alerts).values() if isinstance(each, EventType))


@dataclass(slots=True)
class AlertStage:
    """An organisation of account 8101 and its admin's client."""

    world: World
    who: Credentials
    http: httpx.AsyncClient
    chore: Chore
    reports: list[str] = field(default_factory=list[str])
    issued: int = 0

    @property
    def network(self) -> Network:
        network = self.world.sandbox.world
        assert network is not None
        return network

    async def sync(self) -> None:
        """The fleet is read until nothing is due."""
        await FleetSync(self.world.pipeline.deps, self.reports.append).step()

    async def look(self, minutes: int = 1) -> None:
        """So many minutes pass, at the end of each of which the chore looks."""
        for _ in range(minutes):
            self.world.clock.advance(60)
            await self.run_chore()

    async def run_chore(self, chore: Chore | None = None) -> None:
        """One look of this process, or of another one, whose chore is given."""
        await (chore or self.chore).run()

    def set_balance(self, euro: float) -> None:
        self.network.accounts[ACCOUNT].balance = round(euro * MICRO)

    def free(self) -> list[Line]:
        return [line for line in self.network.lines_of(ACCOUNT) if line.sim.status == "FREE" and line.sim.esim]

    async def live_day(self, balance: float, used: float, *, listed: bool = False) -> float:
        """A day passes in which `used` EUR are used; what is left. The chore looks every eight hours. `listed`: the fleet is read twice."""
        for third in range(3):
            self.world.clock.advance(8 * HOUR - 60)
            if listed and third != 1:
                await self.sync()
            balance -= used / 3
            self.set_balance(balance)
            await self.look()
        return balance

    async def issue(self, count: int) -> None:
        for _ in range(count):
            self.issued += 1
            body = {"accountId": ACCOUNT, "packageTemplateId": TEMPLATE}
            headers = {"X-Idempotency-Key": f"esim-{self.issued}"}
            said = await self.http.post("/v1/subscribers/issue-from-inventory", json=body, headers=headers)
            assert said.status_code == 201, said.text

    async def events(self, organisation: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """The alerts in the log so far: the name behind the dot, and the data."""
        await self.world.store.write(place_events, most=1000)
        organisation = organisation or self.who.organisation
        rows = await self.world.store.read(events_behind, organisation=organisation, position=0, last=1000, types=EVENT_TYPES, most=1000)
        assert all(EVENT_TYPES[name].admin for name in ALERT_TYPES)
        return [(row.type.partition(".")[2], orjson.loads(row.data)) for row in rows if row.type in ALERT_TYPES]

    async def names(self) -> list[str]:
        return [name for name, _ in await self.events()]

    async def shown(self) -> dict[str, Any]:
        said = await self.http.get(ALERTS)
        assert said.status_code == 200, said.text
        return said.json()

    async def choose(self, **settings: Any) -> httpx.Response:
        return await self.http.put(ALERTS, json=settings)


@asynccontextmanager
async def open_alert_stage(
    folder: Path,
    *,
    url: str | None = None,
    limits: Limits | None = None,
    token: str | None = None,
    tier: Tier = Tier.ENTERPRISE,
    lines: int = 12,
) -> AsyncGenerator[AlertStage]:
    clock = SettableClock()
    sandbox = SimulatedNetwork(network_of(lines).copy(), wall=lambda: clock.now(), following=True, sleep=no_sleep)
    async with open_world(folder, CATALOGUE, url=url, sandbox=sandbox, limits=limits or Limits(burst_enabled=False)) as world:
        clock = world.clock
        world.pipeline.deps = replace(world.pipeline.deps, rate_limiter=world.pipeline.rate_limiter)
        reach: dict[str, Any] = {"mode": "managed", "account": ACCOUNT} if token is None else {"token": token}
        who = await world.caller(tier, **reach)
        reports: list[str] = []
        chore = alerts_chore(world.pipeline.deps, reports.append, lambda: True)
        async with world.client(who.secret) as http:
            stage = AlertStage(world, who, http, chore, reports)
            await stage.sync()
            yield stage
        assert world.faults == [] and reports == []
