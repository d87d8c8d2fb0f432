"""`python -m benchmarks.fleet_reads`: how fast answers about a whole fleet are, over HTTP, on both databases; prints tables.

A fleet is read from a simulated network of another process, with 90 days, and copied in the database until it has so many lines; no
statistics of the database are made, as in use. Then a server answers: pages and counts of query_fleet and fleet_problems, each several
times, and every composite as the first question of a process that has just begun, so that nothing is kept. At the end four clients ask
for composites and pages without a pause, while one client gets the same intent again and again.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple
from urllib.parse import urlencode

import sqlalchemy as sa

from benchmarks.contestant import Contestant, await_health, command, environment, free_port, printed_key
from benchmarks.fleet_copies import TableRows, grow_fleet
from benchmarks.fleet_runs import COMPOSITES, TOKEN, ask, input_of, network, path_of
from benchmarks.fleet_sync import KEYS
from benchmarks.load import Load, run_ask, run_drive
from benchmarks.names import OURS, OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from benchmarks.processes import machine, memory_mb
from benchmarks.requests import create, read
from benchmarks.tables import table
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Command
from storage.engine.store import open_store
from storage.organisations import ORGANISATION

PAGES: Mapping[str, Mapping[str, str]] = {
    "all, by number": {"limit": "200"},
    "last used, newest first": {"limit": "200", "sort": "-last_used"},
    "suspended": {"limit": "200", "status": "SUSPENDED", "sort": "-last_used"},
    "in a country, package running, little left": {"limit": "200", "country": "NO", "packageState": "running", "leftBelow": "100000000"},
    "with a problem": {"limit": "200", "problem": "high_cost", "sort": "data_left"},
    "part of a name": {"limit": "200", "text": "an"},
    "ending of an identifier": {"limit": "200", "text": "0286"},
    "text that nobody has": {"limit": "200", "text": "zzzz"},
}
PAGE_AIM_MS, COUNT_AIM_MS, PROBLEMS_AIM_MS, COMPOSITE_AIM_MS, INTENT_AIM_MS = 50.0, 100.0, 150.0, 2000.0, 15.0
TIMES_ASKED, COMPOSITE_TIMES = 30, 3
SYNC_SECONDS = 600.0
LOAD_SECONDS, CLIENTS = 20.0, 4
WATCH_SECONDS = 0.1


class Timed(NamedTuple):
    """How long answers took, in milliseconds: the middle one and the longest but one in a hundred."""

    what: str
    aim: float
    middle: float
    p99: float


class Memory(NamedTuple):
    """What a server holds in memory: of its own, and of files that are mapped into it."""

    own_mb: float
    mapped_mb: float

    @classmethod
    def of(cls, pid: int) -> "Memory":
        return cls(memory_mb(pid, "RssAnon:"), memory_mb(pid, "RssFile:"))

    @classmethod
    def most(cls, seen: Sequence["Memory"]) -> "Memory":
        return cls(max(each.own_mb for each in seen), max(each.mapped_mb for each in seen))


class EngineRun(NamedTuple):
    """Everything of one database."""

    engine: str
    rows: list[TableRows]
    megabytes: float
    filled: float
    timed: list[Timed]
    intents: list[tuple[str, Load]]
    before: "Memory"
    peak: "Memory"


def main() -> None:
    """Measure and print."""
    asked = parse()
    found: list[EngineRun] = []
    with network(asked.network, 90) as upstream, ExitStack() as stack:
        for engine in asked.engine:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
            url = f"sqlite:///{folder / 'service.db'}" if engine == "sqlite" else stack.enter_context(database())
            if url is not None:
                found.append(measured(engine, folder, url, upstream, asked.lines))
                print(page(found[-1:]), file=sys.stderr, flush=True)
    print(page(found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_reads", description="Answers about a whole fleet on this machine.")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of the fleet (100000)")
    parser.add_argument("--network", type=int, default=400, help="lines of the simulated network that they are copied from (400)")
    parser.add_argument("--engine", type=lambda text: text.split(","), default=["sqlite", "postgresql"], help="sqlite,postgresql")
    return parser.parse_args()


@contextmanager
def server(folder: Path, url: str, upstream: int | None, settings: Mapping[str, str] | None = None) -> Generator[Contestant]:
    """The service on this database; without a charging system of another process it simulates one."""
    port = free_port()
    told = {} if upstream is None else {"SERVICE_OCS_URL": f"http://127.0.0.1:{upstream}/v1", "SERVICE_OCS_TOKEN": TOKEN}
    told |= {} if url.startswith("sqlite") else {"SERVICE_DATABASE_URL": url, "SERVICE_SECRET_KEYS": KEYS, "SERVICE_DEMO": "true"}
    told |= settings or {}
    with (folder / "log").open("ab") as log, (folder / "out").open("wb") as out:
        process = subprocess.Popen(command(OURS, port, folder), cwd=folder, env={**environment(), **told}, stdout=out, stderr=log)
        try:
            await_health(port, process, folder)
            yield Contestant(OURS, port, process.pid, folder)
        finally:
            process.terminate()
            process.wait(30)


def measured(engine: str, folder: Path, url: str, upstream: int, lines: int) -> EngineRun:
    """Fills a database and asks."""
    if not url.startswith("sqlite"):
        upgrade_database(url)
    with server(folder, url, None) as one:
        key = printed_key(folder / "out")
        intent = json.loads(run_ask(one.port, create(key)()).body)["id"]
    asyncio.run(keep_connected(url))
    with server(folder, url, upstream) as one:
        await_sync(one.port, key)
    began = time.perf_counter()
    rows = asyncio.run(grown(url, lines))
    filled = time.perf_counter() - began
    timed: list[Timed] = []
    with server(folder, url, upstream) as one:
        for name, asked in PAGES.items():
            timed.append(repeated(f"page: {name}", PAGE_AIM_MS, one.port, key, f"/v1/fleet/lines?{urlencode(asked)}", TIMES_ASKED))
        for name, asked in PAGES.items():
            counted = {**{each: value for each, value in asked.items() if each not in ("limit", "sort")}, "countOnly": "true"}
            timed.append(repeated(f"count: {name}", COUNT_AIM_MS, one.port, key, f"/v1/fleet/lines?{urlencode(counted)}", TIMES_ASKED))
        timed.append(repeated("fleet_problems", PROBLEMS_AIM_MS, one.port, key, "/v1/fleet/problems?limit=100", TIMES_ASKED))
    for name in COMPOSITES:
        timed.append(first_answers(name, folder, url, upstream, key))
    with server(folder, url, upstream) as one:
        before = Memory.of(one.pid)
        with watched_memory(one.pid) as seen:
            intents = under_load(one.port, key, intent)
    return EngineRun(engine, rows, megabytes(engine, folder, url), filled, timed, intents, before, Memory.most(seen))


async def keep_connected(url: str) -> None:
    """The demo's account stays connected where a real charging system begins."""
    store = open_store(url)
    await store.write(lambda connection: connection.run(Command(sa.update(ORGANISATION).values(simulated=0))))
    await store.aclose()


def await_sync(port: int, key: str) -> None:
    """Until all days of all lines are known."""
    deadline = time.perf_counter() + SYNC_SECONDS
    ask(f"http://127.0.0.1:{port}/v1/fleet/problems", key=key)
    while time.perf_counter() < deadline:
        said = json.loads(ask(f"http://127.0.0.1:{port}/v1/fleet/sync-status", key=key))
        if said["status"] == "up_to_date":
            return
        time.sleep(0.5)
        composite(port, key, "churn_risk")  # where no worker runs, questions read the fleet
    raise SystemExit("the fleet was not read in time")


async def grown(url: str, lines: int) -> list[TableRows]:
    store = open_store(url)
    rows = await grow_fleet(store, lines)
    await store.aclose()
    return rows


def repeated(what: str, aim: float, port: int, key: str, path: str, times: int) -> Timed:
    """The same request again and again."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        ask(f"http://127.0.0.1:{port}{path}", key=key)
        took.append((time.perf_counter() - began) * 1000)
    return Timed(what, aim, sorted(took)[len(took) // 2], max(took))


def first_answers(name: str, folder: Path, url: str, upstream: int, key: str) -> Timed:
    """A composite as the first thing that a process is asked, so that nothing is kept."""
    took: list[float] = []
    for _ in range(COMPOSITE_TIMES):
        with server(folder, url, upstream) as one:
            ask(f"http://127.0.0.1:{one.port}/v1/fleet/lines?limit=1", key=key)
            began = time.perf_counter()
            ask(f"http://127.0.0.1:{one.port}{path_of(name)}", input_of(name), key=key)
            took.append((time.perf_counter() - began) * 1000)
    return Timed(name, COMPOSITE_AIM_MS, sorted(took)[len(took) // 2], max(took))


def under_load(port: int, key: str, intent: str) -> list[tuple[str, Load]]:
    """GETs of an intent, alone and while four clients ask for whole fleets."""
    make = read(key, [intent])
    alone = run_drive(port, make, connections=1, seconds=LOAD_SECONDS / 2, expect=200)
    with asking(port, key):
        beside = run_drive(port, make, connections=1, seconds=LOAD_SECONDS, expect=200)
    return [("alone", alone), (f"while {CLIENTS} clients ask for whole fleets", beside)]


@contextmanager
def watched_memory(pid: int) -> Generator[list[Memory]]:
    """What a server holds, several times a second."""
    seen, over = [Memory.of(pid)], Event()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            seen.append(Memory.of(pid))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


@contextmanager
def asking(port: int, key: str) -> Generator[None]:
    """Clients that ask for composites and pages without a pause."""
    over = Event()

    def client(place: int) -> None:
        turns: list[Callable[[], bytes]] = [lambda name=name: composite(port, key, name) for name in COMPOSITES]
        turns += [
            lambda asked=asked: ask(f"http://127.0.0.1:{port}/v1/fleet/lines?{urlencode(asked)}", key=key) for asked in PAGES.values()
        ]
        number = place
        while not over.is_set():
            turns[number % len(turns)]()
            number += 1

    threads = [Thread(target=client, args=(place * 4,)) for place in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def lines_page(port: int, key: str, asked: Mapping[str, str]) -> bytes:
    return ask(f"http://127.0.0.1:{port}/v1/fleet/lines?{urlencode(asked)}", key=key)


def composite(port: int, key: str, name: str) -> bytes:
    return ask(f"http://127.0.0.1:{port}{path_of(name)}", input_of(name), key=key)


def megabytes(engine: str, folder: Path, url: str) -> float:
    """The size of the database."""
    if engine == "sqlite":
        return sum(path.stat().st_size for path in folder.glob("service.db*")) / 1e6
    made = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with made.connect() as connection:
        size = connection.execute(sa.text("select pg_database_size(current_database())")).scalar_one()
    made.dispose()
    return size / 1e6


def page(runs: Sequence[EngineRun]) -> str:
    """The tables."""
    names = {"sqlite": OURS_SQLITE, "postgresql": OURS_POSTGRES}
    parts = [f"{machine()}."]
    for run in runs:
        rows = ", ".join(f"{each.name} {each.rows:,}" for each in run.rows)
        parts.append(f"### {names[run.engine]}\n\nRows: {rows}; {run.megabytes:,.0f} MB, copied in {run.filled:.0f} s.\n")
        cells = [
            [one.what, f"{one.middle:.1f}", f"{one.p99:.1f}", f"{one.aim:g}", "" if one.p99 <= one.aim else "missed"] for one in run.timed
        ]
        parts.append(table(["What", "Middle ms", "Longest ms", "Aim ms", ""], cells))
        parts.append(
            table(["GET intent", "p50 ms", "p99 ms", "Aim ms", "a second"], [load_cells(name, load) for name, load in run.intents])
        )
        parts.append(
            f"The server's own memory: {run.before.own_mb:.0f} MB before the clients, {run.peak.own_mb:.0f} MB at most. Files mapped, "
            f"which the system takes back when needed: {run.before.mapped_mb:.0f} MB, {run.peak.mapped_mb:.0f} MB at most."
        )
    return "\n".join(parts)


def timed_cells(one: Timed) -> list[str]:
    return [one.what, f"{one.middle:.1f}", f"{one.p99:.1f}", f"{one.aim:g}", "" if one.p99 <= one.aim else "missed"]


def load_cells(name: str, load: Load) -> list[str]:
    took = sorted(load.latencies)
    middle, high = took[len(took) // 2] * 1000, took[int(len(took) * 0.99)] * 1000
    return [name, f"{middle:.1f}", f"{high:.1f}", f"{INTENT_AIM_MS:g}", f"{load.requests / load.seconds:.0f}"]


if __name__ == "__main__":
    sys.exit(main())
