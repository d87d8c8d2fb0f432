"""Operators who draw eSIMs from account 8101 of the simulated network, a network that loses answers, and the worker that finds out."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import orjson

from operations.catalogue import CATALOGUE
from operations.ledger.reconciliation import ISSUANCE_SOON_SECONDS, Reconciliation
from registry.caller import Tier
from registry.limits import Limits
from simulators.network import packages
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.world import World as Network
from storage.events import list_events
from storage.issuance import IssuanceRow, find_issuance
from tests.network_facts import ACCOUNT, MINUTE, TEMPLATE
from tests.world import Credentials, World, open_world

OTHER_ACCOUNT = 8102
AFFECT = "affectPackageToSubscriber"
OTHER_TEMPLATE = 55011


@dataclass(slots=True)
class Issuing:
    world: World
    operator: Credentials
    network: Network
    reports: list[str] = field(default_factory=list[str])
    steady: list[Reconciliation] = field(default_factory=list[Reconciliation])

    def worker(self) -> Reconciliation:
        return Reconciliation(self.world.pipeline.deps, self.reports.append)

    async def issue(self, key: str, *, template: int = TEMPLATE, operator: Credentials | None = None, **window: object) -> httpx.Response:
        body = {"accountId": ACCOUNT, "packageTemplateId": template, **window}
        async with self.world.client((operator or self.operator).secret) as http:
            return await http.post("/v1/subscribers/issue-from-inventory", json=body, headers={"X-Idempotency-Key": key})

    async def lose(self, key: str, *, drawn: bool, template: int = TEMPLATE, operator: Credentials | None = None, **window: object) -> None:
        """A draw without an answer, whether or not it was carried out."""
        self.strike(AFFECT, drop_after=drawn, drop_before=not drawn)
        answer = await self.issue(key, template=template, operator=operator, **window)
        assert (answer.status_code, answer.json()["code"]) == (502, "OUTCOME_UNKNOWN"), answer.text

    def strike(self, method: str, times: int | None = 1, **fault: object) -> None:
        self.world.sandbox.faults.add(NetworkFault(method, times=times, **fault))  # pyright: ignore[reportArgumentType]  # the tests name its fields

    async def intent(self, key: str) -> httpx.Response:
        async with self.world.client(self.operator.secret) as http:
            plans = (await http.get("/v1/connectivity/plans")).json()["data"]
            plan = next(plan["id"] for plan in plans if plan["livemode"])
            return await http.post("/v1/connectivity/intents", json={"plan": plan}, headers={"Idempotency-Key": key})

    async def look(self, *, later: float = 0) -> int:
        """One round of one worker after some time, always the same one; how many rows it settled."""
        self.world.clock.advance(later)
        if not self.steady:
            self.steady.append(self.worker())
        return await self.steady[0].step()

    async def work(self, seconds: float, every: float = 5 * MINUTE) -> int:
        """Rounds for so long: the first after half a minute, the last at the end, and no more than `every` seconds between two."""
        rest = seconds - ISSUANCE_SOON_SECONDS
        rounds = math.ceil(rest / every)
        return sum([await self.look(later=later) for later in (ISSUANCE_SOON_SECONDS, *[rest / rounds] * rounds)])

    async def row(self, key: str) -> IssuanceRow:
        row = await self.world.store.read(find_issuance, organisation=self.operator.organisation, key=key)
        assert row is not None
        return row

    async def state(self, key: str) -> str:
        return (await self.row(key)).state

    async def events(self) -> list[str]:
        """The ICCIDs that esim.issued told of."""
        rows = await self.world.store.read(list_events, organisation=self.operator.organisation, intent=None, after=None, most=100)
        return [orjson.loads(row.data)["iccid"] for row in rows if row.type == "esim.issued"]

    def drawn(self) -> list[str]:
        return [line.iccid for line in self.network.lines_of(ACCOUNT) if (line.sim.affected_at or 0) >= self.began]

    @property
    def began(self) -> int:
        return int(self.world.clock.wall - (self.world.clock.steady - 1000.0))

    def affects(self) -> int:
        return sum(call.method == AFFECT for call in self.world.sandbox.calls)

    def outsider(self, *, template: int = TEMPLATE, days: int | None = None) -> Line:
        """Somebody draws at the network, past us."""
        line = packages.draw_free_line(self.network, self.network.accounts[ACCOUNT])
        packages.assign_package(self.network, line, self.network.templates[template], period=None, validity_days=days)
        return line

    def line(self, iccid: str) -> Line:
        return next(line for line in self.network.lines.values() if line.iccid == iccid)


@asynccontextmanager
async def open_issuing(folder: Path, url: str | None = None) -> AsyncGenerator[Issuing]:
    limits = Limits(burst_enabled=False)
    async with open_world(folder, CATALOGUE, url=url, limits=limits) as world:
        operator = await world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
        yield Issuing(world, operator, await world.network())
