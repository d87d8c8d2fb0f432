"""The systems behind the service stand still: connections are taken, and nothing comes of them."""

import asyncio
import signal
import statistics
import time
from collections import Counter
from contextlib import suppress

from tests.endurance.wires import Wires
from tests.fuzz.loop import LOOP_ACCOUNT, p99
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import (
    AIM_MS,
    AIM_RETURN_SECONDS,
    NEEDS_IT,
    ORGANISATIONS,
    OTHERS_A_SECOND,
    QUIET_SECONDS,
    Beside,
    at_rate,
    back_again,
    timed_request,
)
from tests.trial.door import CALLS_A_SECOND, Door, alone, door_of, failures, waits_of, warm_up
from tests.trial.installation import SERVERS, Installation, installed
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow

HEALTH = "GET /health"
AIM_503_SECONDS, AIM_READY_MS, PATIENCE = 3.0, 5.0, 60.0
PROBE_EVERY, SCRAPE_EVERY = 0.1, 1.0
IN_A_ROW = 20
"""So many intents without a failure: both servers have answered some."""


async def outage(plan: TrialPlan) -> list[ProofRow]:
    """First the charging system, then the database."""
    async with installed(plan.place, drain=plan.drain) as made:
        door = door_of(made)
        await warm_up(made, door)
        proofs = [await charging_system(made, door, plan), await database(made, door, max(6.0, plan.seconds / 4))]
        door.aclose()
    return proofs


async def charging_system(made: Installation, door: Door, plan: TrialPlan) -> ProofRow:
    """The nginx before it is stopped, while so many calls a second need it."""
    keys = await made.new_keys(ORGANISATIONS, LOOP_ACCOUNT)
    await back_again(door.ask, keys)
    before = Beside(door.ask, alone(made), OTHERS_A_SECOND)
    await before.run(min(QUIET_SECONDS, plan.seconds))
    during, statuses = Beside(door.ask, alone(made), OTHERS_A_SECOND), Counter[int]()
    hanging: set[asyncio.Task[None]] = set()

    async def call(number: int) -> None:
        statuses[(await door.ask(http("GET", NEEDS_IT, authorization=f"Bearer {keys[number % len(keys)]}")))[0]] += 1

    def begin(number: int) -> None:
        task = asyncio.ensure_future(call(number))
        hanging.add(task)
        task.add_done_callback(hanging.discard)

    made.hang_upstream(signal.SIGSTOP)
    try:
        await asyncio.gather(at_rate(plan.rate, plan.seconds, begin), during.run(plan.seconds))
    finally:
        made.hang_upstream(signal.SIGCONT)
    back = await back_again(door.ask, keys)
    await asyncio.gather(*hanging)
    waits = waits_of(during)
    times = f"p99 {p99(waits):.0f} ms (before it {p99(waits_of(before)):.0f} ms)"
    beside = f"beside it {len(waits)} calls, {during.errors()} failed{failures(during)}, {times}"
    health = f"/health p99 {p99(sorted(during.waits[HEALTH])):.0f} ms"
    need = " ".join(f"{status}:{count}" for status, count in sorted(statuses.items()))
    return ProofRow(
        "charging system hangs",
        f"for {plan.seconds:.0f} s, with {plan.rate:g} calls a second of {ORGANISATIONS} organisations that need it",
        f"{beside}, {health}; those that need it {need}; every organisation answered {back:.1f} s after its return",
        f"0 failed, p99 {AIM_MS:.0f} ms, back within {AIM_RETURN_SECONDS:.0f} s",
        not during.errors() and p99(waits) <= AIM_MS and back <= AIM_RETURN_SECONDS,
    )


async def database(made: Installation, door: Door, seconds: float) -> ProofRow:
    """All processes of PostgreSQL are stopped."""
    during, probes, processes = Beside(door.ask, alone(made), CALLS_A_SECOND), Probes(made), made.stopped_postgres()
    processes.stop()
    try:
        await asyncio.gather(during.run(seconds), probes.run(seconds))
    finally:
        processes.go_on()
        probes.aclose()
    began = time.perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            await answered_in_a_row(made, door)
    back = time.perf_counter() - began
    total = sum(during.statuses.values(), Counter[int]())
    others = sum(count for status, count in total.items() if not (200 <= status < 400 or status == 503))
    health = sum(count for status, count in during.statuses[HEALTH].items() if status != 200)
    longest = waits_of(during)[-1] / 1000
    at_health = f"{health} of /health failed; /health/ready p50 {probes.ready_ms:.1f} ms, said unready {probes.unready} times"
    metrics = f"/metrics answered {probes.metrics} of {probes.metrics_asked}, the longest wait {probes.metrics_seconds:.1f} s"
    return ProofRow(
        "PostgreSQL hangs",
        f"its processes stopped for {seconds:.0f} s under {CALLS_A_SECOND * len(during.waits):.0f} calls a second",
        f"{total[503]} of {total.total()} calls answered 503, the longest wait of any {longest:.2f} s, {others} answered otherwise wrong; "
        f"{at_health}; {metrics}; all answered again {back:.1f} s after its return",
        f"503 within {AIM_503_SECONDS:.0f} s, nothing else; /health and /metrics always; ready within {AIM_READY_MS:.0f} ms (p50); "
        f"back within {AIM_RETURN_SECONDS:.0f} s",
        longest <= AIM_503_SECONDS and not (others or health) and total[503] > 0 and back <= AIM_RETURN_SECONDS and probes.good(),
    )


class Probes:
    """What a load balancer and Prometheus ask each server for, past nginx."""

    def __init__(self, made: Installation) -> None:
        self._ready = [Wires(port) for port in made.house.ports]
        self._metrics = [made.metrics_ports[name] for name in SERVERS]
        self.waits: list[float] = []
        self.unready = self.wrong = self.metrics = self.metrics_asked = 0
        self.metrics_seconds = 0.0

    @property
    def ready_ms(self) -> float:
        """Half of the answers of /health/ready were there sooner."""
        return statistics.median(self.waits)

    def good(self) -> bool:
        """Whether all were answered, and in time."""
        return not self.wrong and self.unready > 0 and self.ready_ms <= AIM_READY_MS and self.metrics == self.metrics_asked > 0

    async def run(self, seconds: float) -> None:
        scraping = asyncio.gather(*(self._scrape(port, time.perf_counter() + seconds) for port in self._metrics))
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            for wires in self._ready:
                began = time.perf_counter()
                status = (await wires.ask(http("GET", "/health/ready"))).status
                self.waits.append((time.perf_counter() - began) * 1000)
                self.unready += status == 503
                self.wrong += status not in (200, 503)
            await asyncio.sleep(PROBE_EVERY)
        await scraping

    async def _scrape(self, port: int, ends: float) -> None:
        while time.perf_counter() < ends:
            status, waited = await timed_request(port, http("GET", "/metrics"))
            self.metrics_asked += 1
            self.metrics += status == 200
            self.metrics_seconds = max(self.metrics_seconds, waited / 1000)
            await asyncio.sleep(SCRAPE_EVERY)

    def aclose(self) -> None:
        for wires in self._ready:
            wires.aclose()


async def answered_in_a_row(made: Installation, door: Door) -> None:
    """Until enough intents were made one after the other."""
    row = 0
    while row < IN_A_ROW:
        asked = {"authorization": f"Bearer {made.key}", "idempotency_key": f"{time.time_ns()}"}
        status, _ = await door.ask(http("POST", "/v1/connectivity/intents", '{"plan": "test_eu_1gb"}', **asked))
        row = row + 1 if status == 201 else 0
