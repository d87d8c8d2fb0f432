"""`python -m benchmarks.fleet_sync`: how long the first sync of a fleet takes, and for how long it holds the event loop; prints a table.

The charging system is simulated in another process, and each of its answers takes a while longer. The aim is the calls times that while,
divided by the places that the background has: a sync that takes a fifth longer is as fast as it may be. Beside it a task wakes up every
millisecond and notes how late it was: that is for how long everybody else's calls wait. `listing` is the same for one more listing of a
fleet that has not changed, in which nothing but the lists is read. How late it was is also told in processor time of the loop's thread,
which other programs of the machine do not lengthen.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.fleet_runs import TOKEN, network, slow
from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from operations.deps import Deps
from operations.fleet.sync import FleetSync, open_fleet
from operations.upstream.connection import upstream_of_organisation
from registry.caller import Tier
from registry.clock import SystemClock
from storage.engine.migrate import upgrade_database
from storage.fleet_lines import lines_of_fleet
from storage.fleets import FleetState, fleet_state, list_fleet_again
from storage.organisations import create_organisation
from transports.http.server import freeze_memory
from transports.service import build_service
from transports.settings_files import load_settings

ACCOUNT, SMALL_ACCOUNT = 8101, 8104
AIM, LOOP_AIM_MS = 1.2, 10.0
PROBE_SECONDS = 0.001
KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SETTLED_ROUNDS = 100_000


class Held(NamedTuple):
    """For how long a probe was late, in milliseconds: the longest time, and how often it was more than the aim; then processor time."""

    longest: float
    over: int
    longest_cpu: float
    over_cpu: int


class SyncRun(NamedTuple):
    """One fleet that was read."""

    engine: str
    lines: int
    delay: float
    what: str
    seconds: float
    calls: int
    aim: float
    cpu: float
    held: Held


class LoopProbe:
    """Wakes up every millisecond."""

    def __init__(self) -> None:
        self._late: list[tuple[float, float]] = []

    async def run(self) -> None:
        while True:
            asked, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(PROBE_SECONDS)
            self._late.append(((time.perf_counter() - asked - PROBE_SECONDS) * 1000, (time.thread_time() - used) * 1000))

    def held(self) -> Held:
        """Since the last time."""
        late, self._late = self._late, []
        walls, cpus = [each[0] for each in late], [each[1] for each in late]
        return Held(max(walls), sum(each > LOOP_AIM_MS for each in walls), max(cpus), sum(each > LOOP_AIM_MS for each in cpus))


def main() -> None:
    """Measure and print."""
    asked = parse()
    found: list[SyncRun] = []
    with network(asked.lines, asked.history_days) as port, ExitStack() as stack:
        for engine in asked.engine:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
            url = f"sqlite:///{folder / 'service.db'}" if engine == "sqlite" else stack.enter_context(database())
            if url is not None:
                upgrade_database(url)
                slow(port, asked.delay)
                found += asyncio.run(measured(engine, folder, url, port, asked))
    print(page(found, asked.concurrency))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_sync", description="The first sync of a fleet on this machine.")
    parser.add_argument("--lines", type=int, default=2000, help="lines of the simulated network (2000)")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that every answer of it takes longer (0.02)")
    parser.add_argument("--concurrency", type=int, default=16, help="calls under way at once with one token (16)")
    parser.add_argument("--history-days", type=int, default=20, help="days of its life before the start (20)")
    parser.add_argument("--engine", type=lambda text: text.split(","), default=["sqlite", "postgresql"], help="sqlite,postgresql")
    return parser.parse_args()


@asynccontextmanager
async def service_deps(folder: Path, url: str, port: int, concurrency: int) -> AsyncGenerator[Deps]:
    """What a process of the service has, without its doors and its worker."""
    given: Mapping[str, str] = {
        "SERVICE_DATA": str(folder),
        "SERVICE_DATABASE_URL": "" if url.startswith("sqlite") else url,
        "SERVICE_OCS_URL": f"http://127.0.0.1:{port}/v1",
        "SERVICE_OCS_TOKEN": TOKEN,
        "SERVICE_OCS_CONCURRENCY": str(concurrency),
        "SERVICE_DEMO": "false",
        "SERVICE_SECRET_KEYS": KEYS,
    }
    service = build_service(load_settings(given, worker=True), "http://127.0.0.1", report=lambda text: None)
    deps = service.pipeline.deps
    try:
        yield deps
    finally:
        await deps.ocs.aclose()
        await deps.payments.aclose()
        await deps.store.aclose()


async def measured(engine: str, folder: Path, url: str, port: int, asked: argparse.Namespace) -> list[SyncRun]:
    """The first sync, and one more listing."""
    async with service_deps(folder, url, port, asked.concurrency) as deps:
        probe = LoopProbe()
        watch = asyncio.create_task(probe.run())
        # What a process does once, such as imports, is done by a small fleet.
        await timed(deps, engine, asked, "", await begun_fleet(deps, SMALL_ACCOUNT), probe)
        gc.collect()
        freeze_memory()  # as a server does
        fleet = await begun_fleet(deps, ACCOUNT)
        found = [await timed(deps, engine, asked, "first sync", fleet, probe)]
        await deps.store.write(list_fleet_again, fleet=fleet.id, now=SystemClock().now())
        found.append(await timed(deps, engine, asked, "listing", fleet, probe))
        watch.cancel()
        return found


async def begun_fleet(deps: Deps, account: int) -> FleetState:
    """The fleet of a new organisation of this account."""
    organisation, now = deps.ids.new("org_"), deps.clock.now()
    await deps.store.write(
        create_organisation, id=organisation, name="Fleet", tier=Tier.ENTERPRISE, now=now, mode="managed", account_id=account
    )
    return await open_fleet(deps, await upstream_of_organisation(deps, organisation))


async def timed(deps: Deps, engine: str, asked: argparse.Namespace, what: str, fleet: FleetState, probe: LoopProbe) -> SyncRun:
    """The chore until nothing is due."""
    sync = FleetSync(deps, lambda text: None)
    await asyncio.sleep(0.2)
    before = await deps.store.read(fleet_state, fleet=fleet.id)
    probe.held()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(SETTLED_ROUNDS):
        await sync.step()
        state = await deps.store.read(fleet_state, fleet=fleet.id)
        if state is None or state.due > deps.clock.now() or state.backoff_until > deps.clock.now():
            break
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    after = await deps.store.read(fleet_state, fleet=fleet.id)
    assert before is not None and after is not None and not after.error, after
    calls, places = after.calls - before.calls, max(1, asked.concurrency // 2)
    lines = await deps.store.read(lines_of_fleet, fleet=fleet.id)
    return SyncRun(engine, lines, asked.delay, what, seconds, calls, calls * asked.delay / places, spent, probe.held())


def page(runs: Sequence[SyncRun], concurrency: int) -> str:
    """The table, with whether each aim was reached."""
    names = {"sqlite": OURS_SQLITE, "postgresql": OURS_POSTGRES}
    head = "| | What | Lines | Calls | Seconds | Aim | Times the aim | CPU s | Loop held, longest ms | > 10 ms | processor ms | > 10 ms |"
    rows = [head, "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for run in runs:
        times = f"{run.seconds / run.aim:.2f}" if run.aim and run.what == "first sync" else ""
        cells = [names[run.engine], run.what, run.lines, run.calls, f"{run.seconds:.2f}", f"{run.aim:.2f}", times, f"{run.cpu:.2f}"]
        rows.append(f"| {' | '.join(str(cell) for cell in (*cells, *(f'{each:.2f}' for each in run.held)))} |")
    rows.append(f"{concurrency} calls at once with one token, half of them in the background; aims: {AIM} times, {LOOP_AIM_MS:g} ms.")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
