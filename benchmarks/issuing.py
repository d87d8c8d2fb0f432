"""Issuing from stock over HTTP, at the simulated network: this service on its two databases beside handlers written by hand."""

import itertools
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.agreement import Disagreement, compare
from benchmarks.contestant import Contestant, Seed
from benchmarks.issuing_cast import Tenant, bare_client, drawn, issue, network, rival, service, settled, unique
from benchmarks.issuing_page import DRAW, FEW_PLACES, LOOK, SIZED
from benchmarks.load import Answer, Make, run_ask
from benchmarks.measure import CONNECTIONS, Plan, Turn, fsync_ms, take
from benchmarks.names import CLIENT, KEYLESS, OURS_POSTGRES, OURS_SQLITE, SQLALCHEMY, SQLITE_TUNED
from benchmarks.postgres import database
from benchmarks.processes import cpu_seconds

RIVALS = {SQLALCHEMY: "issuing_fastapi", SQLITE_TUNED: "issuing_fastapi_tuned", KEYLESS: "issuing_fastapi_bare"}
FREE = 1000
ACCOUNTS = {name: 9001 + place for place, name in enumerate((OURS_SQLITE, OURS_POSTGRES, *RIVALS, CLIENT))}
PLACES = {8: 9201, 64: 9202}
SIZES = {9101: 100, 9102: 1000, 9103: 10_000}
STALE = 5.2
"""Seconds after which a look at the stock is out of date."""
SHORTER = 0.4
"""What a rival's turn lasts of ours, which is so long that it holds a look of its own."""


@dataclass
class Entrant:
    """Who issues, for whom, and how many answers said that something was drawn."""

    contestant: Contestant
    tenants: list[Tenant]
    made: Counter[int] = field(default_factory=Counter[int])

    def calls(self, tenant: Tenant) -> Make:
        """Requests with a key of their own each."""
        prefix, number = unique(), itertools.count()
        return lambda: issue(tenant, f"{prefix}-{next(number)}")


def issuing(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """All of it."""
    stock = dict.fromkeys([*ACCOUNTS.values(), *PLACES.values()], FREE) | SIZES
    folder = seed.folder.parent / "issuing"
    folder.mkdir()
    with network(folder / "network", stock) as net, ExitStack() as stack:
        entrants = stack.enter_context(running(net, folder))
        agree(list(entrants.values()), net)
        found = [row for connections in CONNECTIONS for row in draws(entrants, net, plan, connections, seed.folder)]
        found += few_places(net, folder, plan)
        found += looks(entrants[OURS_SQLITE], plan)
        found += sizes(entrants[OURS_SQLITE], plan)
        reconcile(list(entrants.values()), net)
        return found


@contextmanager
def running(net: Contestant, folder: Path) -> Generator[dict[str, Entrant]]:
    """Everybody over a database of their own; PostgreSQL where there is a server."""
    with ExitStack() as stack:
        found: dict[str, Entrant] = {}
        for name, module in {OURS_SQLITE: "", **RIVALS}.items():
            own = folder / (module or "sqlite")
            own.mkdir()
            tenants = settled(f"sqlite:///{own / 'service.db'}", [ACCOUNTS[name], *([] if module else SIZES)])
            starting = rival(name, module, own, net) if module else service(name, own, net)
            found[name] = Entrant(stack.enter_context(starting), tenants)
        if (url := stack.enter_context(database())) is not None:
            own = folder / "postgres"
            own.mkdir()
            tenants = settled(url, [ACCOUNTS[OURS_POSTGRES]])
            found[OURS_POSTGRES] = Entrant(stack.enter_context(service(OURS_POSTGRES, own, net, url=url)), tenants)
        yield found


def agree(entrants: list[Entrant], net: Contestant) -> None:
    """The same answer from everybody; the same key gives the same eSIM, and draws none, from all who have keys."""
    seen = {one.contestant.name: behaviour(one, net) for one in entrants}
    bare = seen.pop(KEYLESS)
    compare(seen)
    shape = {aspect: bare[aspect] for aspect in ("first", "no key")}
    compare({OURS_SQLITE: {aspect: seen[OURS_SQLITE][aspect] for aspect in shape}, KEYLESS: shape})


def behaviour(one: Entrant, net: Contestant) -> dict[str, Any]:
    """What a contestant answers, and what that drew."""
    tenant, port, before = one.tenants[0], one.contestant.port, drawn(net)
    asked = issue(tenant, unique())
    first, again = run_ask(port, asked), run_ask(port, asked)
    other = run_ask(port, asked.replace(b'"validityPeriod": 30', b'"validityPeriod": 31'))
    none = run_ask(port, asked.replace(b"Bearer ak_", b"Bearer ax_"))
    taken = drawn(net).get(tenant.account, 0) - before.get(tenant.account, 0)
    one.made[tenant.account] += taken
    return {
        "first": (first.status, shape_of(first)),
        "again": (again.status, json.loads(again.body) == json.loads(first.body)),
        "other input": other.status,
        "no key": none.status,
        "drawn": taken,
    }


def shape_of(answer: Answer) -> dict[str, str]:
    """Which members an answer has, and of which kind."""
    return {name: type(value).__name__ for name, value in sorted(json.loads(answer.body)["data"].items())}


def draws(entrants: dict[str, Entrant], net: Contestant, plan: Plan, connections: int, disk: Path) -> list[dict[str, object]]:
    """Everybody's turn in rotated order."""

    def turn(name: str) -> Callable[[int, float], dict[str, object]]:
        if name == CLIENT:
            return lambda number, _: take_client(net, connections, number, plan.seconds * SHORTER)
        seconds = plan.seconds * (1 if name in (OURS_SQLITE, OURS_POSTGRES) else SHORTER)
        return lambda number, fsync: taken(entrants[name], 0, DRAW, connections, number, seconds, fsync)

    names = [*entrants, CLIENT]
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{DRAW} c={connections} round {number + 1}/{plan.rounds}")
        fsync, shift = fsync_ms(disk), number % len(names)
        found += [turn(name)(number, fsync) for name in [*names[shift:], *names[:shift]]]
    return found


def taken(one: Entrant, place: int, case: str, connections: int, number: int, seconds: float, fsync: float) -> dict[str, object]:
    """One turn of a server. What it draws while it warms up is not in the sample, but is counted."""
    tenant = one.tenants[place]
    calls, sent = one.calls(tenant), itertools.count(1)
    last = 0

    def make() -> bytes:
        nonlocal last
        last = next(sent)
        return calls()

    sample = take(case, Turn(one.contestant, make, 201), connections, number, seconds, fsync)
    one.made[tenant.account] += last - sample.errors
    return asdict(sample)


def take_client(net: Contestant, connections: int, number: int, seconds: float) -> dict[str, object]:
    """One turn of the client alone."""
    seen = bare_client(net, ACCOUNTS[CLIENT], connections, seconds)
    return {
        "case": DRAW,
        "contestant": CLIENT,
        "connections": connections,
        "round": number,
        "requests": seen["requests"],
        "errors": 0,
        "seconds": round(seen["seconds"], 4),
        "cpu_us": round(seen["cpu"] / seen["requests"] * 1e6, 1),
        "p50_ms": round(seen["p50"] * 1000, 3),
        "p99_ms": round(seen["p99"] * 1000, 3),
        "generator_us": 0.0,
        "fsync_ms": 0.0,
    }


def few_places(net: Contestant, folder: Path, plan: Plan) -> list[dict[str, object]]:
    """64 connections with the default of 8 calls under way per token beside 64, each on a server and a database of its own."""
    found: list[dict[str, object]] = []
    with ExitStack() as stack:
        pair: list[tuple[Entrant, int]] = []
        for places, account in PLACES.items():
            own = folder / f"places-{places}"
            own.mkdir()
            tenants = settled(f"sqlite:///{own / 'service.db'}", [account])
            pair.append((Entrant(stack.enter_context(service(OURS_SQLITE, own, net, places=places)), tenants), places))
        for number in range(plan.rounds):
            plan.say(f"{FEW_PLACES} round {number + 1}/{plan.rounds}")
            for one, places in pair if number % 2 else reversed(pair):
                row = taken(one, 0, FEW_PLACES, 64, number, plan.seconds * SHORTER, 0.0)
                found.append({**row, "places": places})
        reconcile([one for one, _ in pair], net)
    return found


def looks(ours: Entrant, plan: Plan) -> list[dict[str, object]]:
    """A call that looks at the stock beside calls that need not, for stocks of several sizes."""
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{LOOK} round {number + 1}/{plan.rounds}")
        time.sleep(STALE)
        for place, (account, free) in enumerate(SIZES.items(), 1):
            calls = ours.calls(ours.tenants[place])
            first, *others = [timed(ours, calls()) for _ in range(9)]
            ours.made[account] += 9
            rest = sorted(others, key=lambda pair: pair[0])[len(others) // 2]
            milliseconds = {"ms": round((first[0] - rest[0]) * 1000, 2), "cpu_ms": round((first[1] - rest[1]) * 1000, 2)}
            found.append({"case": LOOK, "contestant": OURS_SQLITE, "connections": 1, "round": number, "free": free, **milliseconds})
    return found


def timed(one: Entrant, request: bytes) -> tuple[float, float]:
    """How long a call took, and how much of the processor."""
    cpu, begun = cpu_seconds(one.contestant.pid), time.perf_counter()
    if run_ask(one.contestant.port, request).status != 201:
        raise Disagreement("a call that was timed failed")
    return time.perf_counter() - begun, cpu_seconds(one.contestant.pid) - cpu


def sizes(ours: Entrant, plan: Plan) -> list[dict[str, object]]:
    """The same draws from a small, a middle and a large account."""
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{SIZED} round {number + 1}/{plan.rounds}")
        places = list(enumerate(SIZES.values(), 1))
        for place, free in [*places[number % 3 :], *places[: number % 3]]:
            found.append({**taken(ours, place, SIZED, 16, number, plan.seconds, 0.0), "free": free})
    return found


def reconcile(entrants: list[Entrant], net: Contestant) -> None:
    """As many eSIMs left each account as answers said; on SQLite the ledger of this service is counted, too."""
    given = drawn(net)
    for one in entrants:
        for tenant in one.tenants:
            if given.get(tenant.account, 0) != one.made[tenant.account]:
                name, told = one.contestant.name, one.made[tenant.account]
                raise Disagreement(f"{name}: {given.get(tenant.account, 0)} eSIMs were drawn, {told} were answered with")
        if one.contestant.name == OURS_SQLITE and (rows := ledger(one.contestant)) != one.made.total():
            raise Disagreement(f"the ledger has {rows} issued eSIMs, {one.made.total()} were answered with")


def ledger(one: Contestant) -> int:
    """Issued rows."""
    with closing(sqlite3.connect(f"file:{one.data / 'service.db'}?mode=ro", uri=True)) as raw:
        return int(raw.execute("select count(*) from issuance where state = 'issued'").fetchone()[0])
