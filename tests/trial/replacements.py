"""Servers and workers are replaced one after the other under load: a restart, a new encryption key, the next release."""

import asyncio
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import NamedTuple

import httpx

from tests.cli.test_key_rotation import NEW
from tests.fuzz.outage import Beside
from tests.harness.cluster import KEYS
from tests.harness.processes import environment
from tests.replicas.next_release import next_release
from tests.trial.door import CALLS_A_SECOND, Door, door_of, figures, mixed, shortened, warm_up
from tests.trial.installation import LOOK_SECONDS, SERVERS, WORKERS, Installation, installed
from tests.trial.plan import TrialPlan
from tests.trial.proof import ProofRow

AROUND_SECONDS, LONGEST, PATIENCE = 1.0, 3600.0, 20.0
AIM = "no call fails, no answer changes"


async def replace(plan: TrialPlan) -> list[ProofRow]:
    async with installed(plan.place, drain=plan.drain) as made:
        door = door_of(made)
        await warm_up(made, door)
        proofs = [await drain(made, door), await keys(made, door), await upgrade(made)]
        door.aclose()
    return proofs


async def under_load(made: Installation, door: Door, work: Callable[[], None]) -> Beside:
    """Calls of all kinds before, while and after something is done."""
    calls, stop = Beside(door.ask, mixed(made), CALLS_A_SECOND), asyncio.Event()
    calling = asyncio.ensure_future(calls.run(LONGEST, stop))
    try:
        await asyncio.sleep(AROUND_SECONDS)
        await asyncio.to_thread(work)
        await asyncio.sleep(AROUND_SECONDS)
    finally:
        stop.set()
        await calling
    return calls


def proof_of(made: Installation, door: Door, name: str, done: str, calls: Beside, more: str = "") -> ProofRow:
    """Of what was done under load."""
    complaints = made.house.complaints()
    reached = f"{figures(calls)}; answers that changed: {door.changed}{more}{shortened(complaints)}"
    return ProofRow(name, done, reached, AIM, not (calls.errors() or door.changed or complaints))


async def drain(made: Installation, door: Door) -> ProofRow:
    """A server ends as a supervisor ends it."""
    last: Ending | None = None

    def end_and_start() -> None:
        nonlocal last
        last = watched_end(made, SERVERS[0])
        made.start(SERVERS[0])

    calls = await under_load(made, door, end_and_start)
    assert last is not None
    more = f"; ready failed after {last.unready:.1f} s, the port closed after {last.closed:.1f} s"
    done = f"SIGTERM of one server of two, with {made.settings['SERVICE_DRAIN_SECONDS']} s to drain, and its start"
    proof = proof_of(made, door, "drain", done, calls, more)
    return proof._replace(aim="ready fails first; " + AIM, met=bool(proof.met) and last.unready < last.closed)


class Ending(NamedTuple):
    """Seconds from SIGTERM until /health/ready failed, and until no connection was taken any more."""

    unready: float
    closed: float


def watched_end(made: Installation, name: str) -> Ending:
    """End a server, and ask it meanwhile."""
    port, running = made.port(name), made.house.processes[name]
    assert port is not None
    ending = ThreadPoolExecutor(1)
    began, unready, ended = time.perf_counter(), inf, ending.submit(made.end, name)
    while running.poll() is None:
        try:
            status = httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=5).status_code
        except httpx.TransportError:
            break
        if status == 503:
            unready = min(unready, time.perf_counter() - began)
        time.sleep(LOOK_SECONDS)
    closed = time.perf_counter() - began
    ended.result()
    ending.shutdown()
    return Ending(unready, closed)


async def keys(made: Installation, door: Door) -> ProofRow:
    """In two phases, as the guide for operators says."""
    found: list[str] = []

    def rotate() -> None:
        for ring in (f"{KEYS},{NEW}", f"{NEW},{KEYS}"):
            made.settings["SERVICE_SECRET_KEYS"] = ring
            for name in (*SERVERS, *WORKERS):
                made.replace(name)
        found.extend(made.command("keys", "rekey").splitlines())

    calls = await under_load(made, door, rotate)
    gone = any(line.startswith("key k1: no longer needed") for line in found)
    done = "the new key appended, every process restarted, the new key in front, every process restarted, all sealed again"
    proof = proof_of(made, door, "new encryption key", done, calls, "" if gone else f"; the old key is still needed: {found}")
    return proof._replace(met=bool(proof.met) and gone)


async def upgrade(made: Installation) -> ProofRow:
    """Its schema first, while this program serves; then its processes, side by side with this program's. Nobody is asked to end."""
    release = await asyncio.to_thread(next_release, made.house.place, expands=True)
    door = door_of(made, PATIENCE)

    def take_over() -> None:
        release.run("db", "upgrade", environment=environment(made.settings))
        made.replace(SERVERS[0], signal.SIGKILL)  # of this release, on the schema of the next
        made.replace(WORKERS[0], signal.SIGKILL)
        made.program = release.program
        for name in (SERVERS[1], WORKERS[1], SERVERS[0], WORKERS[0]):
            made.replace(name, signal.SIGKILL)

    calls = await under_load(made, door, take_over)
    door.aclose()
    done = "schema of the next release, kill -9 of every process, first this release in its place, then the next one, side by side"
    more = f"; {door.again} calls had no answer of a killed server and were made again with the same key"
    return proof_of(made, door, "upgrade", done, calls, more)
