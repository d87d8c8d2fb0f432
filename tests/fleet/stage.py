"""The stage of these tests: the whole service on either database before a small network, and the worker's chore done by hand."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import httpx

from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from operations.catalogue import CATALOGUE
from operations.fleet.sync import FleetSync
from registry.caller import Restrictions, Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.entities import DAY_SECONDS, Line
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.bridge.pushing import PUSH_SECRET
from tests.copies import Original
from tests.fleet.truth import StoredFleet, current_fleets, model_differences, stored_fleet
from tests.network_facts import ACCOUNT
from tests.world import NOON, Credentials, SettableClock, World, no_sleep, open_world
from transports.upstream import SIMULATED_OCS_URL, SimulatedOutbound

LINES = "/v1/fleet/lines"
SYNC_STATUS = "/v1/fleet/sync-status"
NAMES = "/v1/fleet/names"
ROUNDS = 200
HISTORY_DAYS = 10


@cache
def thirty_lines() -> Original[Network]:
    """Thirty lines: thirteen of the account 8101, six of 8102. None is said to be older than its history: only those days are read."""
    world = build_world(1, int(NOON), history_days=HISTORY_DAYS, lines=30)
    for line in world.lines.values():
        if line.activated_at is not None:
            line.activated_at = max(line.activated_at, int(NOON) - HISTORY_DAYS * DAY_SECONDS)
            line.sim.affected_at = max(line.sim.affected_at or 0, line.activated_at)
    return Original(world)


class HeldSleep:
    """What the network does in a delay that it was told to make: nothing, or once what a test has put here. Others wait for `until`."""

    def __init__(self) -> None:
        self.act: Callable[[], Awaitable[None]] | None = None
        self.until: anyio.Event | None = None

    async def __call__(self, seconds: float) -> None:
        act, self.act = self.act, None
        if act is not None:
            await act()
        elif self.until is not None:
            await self.until.wait()
        else:
            await no_sleep(seconds)


@dataclass(slots=True)
class ReadModelStage:
    """One organisation of account 8101, its fleet, and the network behind it."""

    world: World
    who: Credentials
    http: httpx.AsyncClient
    clients: AsyncExitStack = field(repr=False)
    sleep: HeldSleep
    reports: list[str] = field(default_factory=list[str])
    """What the chore reported."""

    @property
    def network(self) -> Network:
        network = self.world.sandbox.world
        assert network is not None
        return network

    @property
    def clock(self) -> SettableClock:
        return self.world.clock

    def line(self, number: int = 0, account: int = ACCOUNT) -> Line:
        """A line in service."""
        return [line for line in self.network.lines_of(account) if line.status == "ACTIVE"][number]

    def new_sync(self) -> FleetSync:
        """The chore of one more process."""
        return FleetSync(self.world.pipeline.deps, self.reports.append)

    async def sync(self) -> None:
        """The chore, until nothing is due."""
        await self.new_sync().step()

    async def pass_time(self, seconds: float) -> None:
        """The network lives through it; nobody reads meanwhile."""
        self.clock.advance(seconds)
        await self.world.sandbox.handle("GET", "/control/state")

    async def query(self, *, http: httpx.AsyncClient | None = None, answers: int = 200, **params: Any) -> dict[str, Any]:
        said = await (http or self.http).get(LINES, params={name: text_of(value) for name, value in params.items()})
        assert said.status_code == answers, said.text
        return said.json()

    async def count(self, *, http: httpx.AsyncClient | None = None, **params: Any) -> int:
        return (await self.query(http=http, countOnly=True, **params))["count"]

    async def iccids(self, *, http: httpx.AsyncClient | None = None, **params: Any) -> list[str]:
        return [row["iccid"] for row in (await self.query(http=http, **params))["data"]]

    async def status(self, http: httpx.AsyncClient | None = None) -> dict[str, Any]:
        said = await (http or self.http).get(SYNC_STATUS)
        assert said.status_code == 200, said.text
        return said.json()

    async def write(self, method: str, path: str, **body: Any) -> httpx.Response:
        """A writing call, confirmed where that is asked for."""
        headers = {"Idempotency-Key": self.world.ids.new("key")} if method == "POST" else {}
        given = None if method == "DELETE" else body
        said = await self.http.request(method, path, headers=headers, json=given)
        if said.status_code == 202:
            headers["X-Confirm-Token"] = said.json()["confirm_token"]
            said = await self.http.request(method, path, headers=headers, json=given)
        assert said.status_code < 300, said.text
        return said

    def calls(self, *methods: str) -> list[Any]:
        """What was sent to the network under these names; without names, everything."""
        return [call.payload for call in self.world.sandbox.calls if not methods or call.method in methods]

    def trouble(self, method: str, **kind: Any) -> None:
        self.world.sandbox.faults.add(NetworkFault(method, **kind))

    async def beside(self, tier: Tier = Tier.ENTERPRISE, **organisation: Any) -> tuple[Credentials, httpx.AsyncClient]:
        """One more organisation and its client: with an `account` of the same reseller, or with a `token` of its own."""
        mode = None if "token" in organisation else "managed"
        who = await self.world.caller(tier, mode=mode, **organisation)
        return who, await self.clients.enter_async_context(self.world.client(who.secret))

    async def restricted(self, **restrictions: Any) -> httpx.AsyncClient:
        """A client whose key may do less."""
        _, secret = await self.world.key(self.who.person, self.who.organisation, restrictions=Restrictions(**restrictions))
        return await self.clients.enter_async_context(self.world.client(secret))

    async def stored(self, organisation: str | None = None) -> StoredFleet:
        """What stands in the tables of the organisation's one fleet."""
        (fleet,) = await self.world.store.read(current_fleets, organisation=organisation or self.who.organisation)
        return await self.world.store.read(stored_fleet, fleet=fleet)

    async def differences(self, organisation: str | None = None, accounts: frozenset[int] = frozenset({ACCOUNT})) -> list[str]:
        """Where the model is not what the network is."""
        await self.world.sandbox.handle("GET", "/control/state")
        return model_differences(await self.stored(organisation), self.network, accounts, self.clock.now())


def text_of(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


@asynccontextmanager
async def open_read_model_stage(folder: Path, *, url: str | None = None) -> AsyncGenerator[ReadModelStage]:
    clock, sleep = SettableClock(), HeldSleep()
    sandbox = SimulatedNetwork(thirty_lines().copy(), wall=lambda: clock.now(), following=True, sleep=sleep)
    limits, secrets = Limits(burst_enabled=False), SharedSecrets(bridge=PUSH_SECRET)
    opened = open_world(folder, CATALOGUE, url=url, sandbox=sandbox, limits=limits, secrets=secrets)
    async with opened as world, AsyncExitStack() as clients:
        clock, former = world.clock, world.pipeline.deps
        wire = OcsSettings(url=SIMULATED_OCS_URL, backoff_seconds=0.0)
        pool = OcsPool(SimulatedOutbound(ocs_limits(wire), lambda: sandbox), wire, clock)
        world.pipeline.deps = replace(former, ocs=pool)
        who = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        http = await clients.enter_async_context(world.client(who.secret))
        yield ReadModelStage(world, who, http, clients, sleep)
        await pool.aclose()
        await former.ocs.aclose()
        assert world.faults == []
