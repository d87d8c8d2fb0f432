"""Interleaved rounds: every contestant in turn, in another order each round, and one sample per turn."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import requests
from benchmarks.agreement import agree_on_http, agree_on_mcp
from benchmarks.contestant import HTTP, MCP, Contestant, Seed, started
from benchmarks.load import Make, run_ask, run_drive
from benchmarks.names import HANDWRITTEN, OURS
from benchmarks.processes import cpu_seconds

CONNECTIONS = (1, 16, 64)
WARM = 0.15
ROWS = (1_000_000, 10_000_000)


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int
    seconds: float
    say: Callable[[str], None]
    rows: tuple[int, ...] = ROWS


@dataclass(frozen=True)
class Sample:
    """One turn of one contestant."""

    case: str
    contestant: str
    connections: int
    round: int
    requests: int
    errors: int
    seconds: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    generator_us: float
    fsync_ms: float


@dataclass(frozen=True)
class Turn:
    """What one contestant is asked."""

    contestant: Contestant
    make: Make
    expect: int


def get(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """GET an intent by id."""
    with running(HTTP, seed) as contestants:
        agree_on_http(contestants, seed)
        turns = [Turn(one, requests.read(seed.key, seed.intents), 200) for one in contestants]
        return [row for connections in CONNECTIONS for row in rounds("get", turns, connections, plan)]


def post(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """POST an intent."""
    with running(HTTP, seed) as contestants:
        agree_on_http(contestants, seed)
        turns = [Turn(one, requests.create(seed.key), 201) for one in contestants]
        return [row for connections in CONNECTIONS for row in rounds("post", turns, connections, plan, fsync=seed.folder)]


def mcp(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """tools/call, in both protocol eras."""
    found: list[dict[str, object]] = []
    with running(MCP, seed) as contestants:
        for era in requests.ERAS:
            agree_on_mcp(contestants, seed, era)
            turns = [Turn(one, requests.tool_call(seed.key, era, seed.intents), 200) for one in contestants]
            found += rounds(era, turns, 16, plan)
    return found


def route(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """The first route of the table against the last and the longest: the same 401, so that only the way to it differs."""
    found: list[dict[str, object]] = []
    with running((OURS, HANDWRITTEN), seed) as contestants:
        for one in contestants:
            for path in places(one).values():
                if run_ask(one.port, requests.without_key(path)()).status != 401:
                    raise SystemExit(f"{one.name}: {path} gives no 401 without a credential")
        for number in range(plan.rounds):
            for one in contestants:
                for case, path in places(one).items():
                    turn = Turn(one, requests.without_key(path), 401)
                    found.append(asdict(take(case, turn, 16, number, plan.seconds, 0.0)))
    return found


def places(one: Contestant) -> dict[str, str]:
    """The first GET route of a contestant's table, the last, and the one with the most segments and parameters."""
    from benchmarks.rivals.routes import operations

    if one.name == OURS:
        from operations.catalogue import CATALOGUE

        paths = [op.path for op in CATALOGUE.operations.values() if op.method == "GET" and not op.public]
    else:
        paths = [op.path for op in operations() if op.method == "GET" and op.path != "/health"]
    longest = max(paths, key=lambda path: (path.count("/"), path.count("{")))
    return {"first": filled(paths[0]), "last": filled(paths[-1]), "longest": filled(longest)}


def filled(path: str) -> str:
    """The path with something in every parameter."""
    return "/".join("1" if part.startswith("{") else part for part in path.split("/"))


@contextmanager
def running(names: Sequence[str], seed: Seed, upstream: int | None = None) -> Generator[list[Contestant]]:
    """All contestants of a scenario, each on its own copy of the seed."""
    with ExitStack() as stack:
        yield [stack.enter_context(started(name, seed.copy(name), upstream)) for name in names]


def rounds(case: str, turns: Sequence[Turn], connections: int, plan: Plan, *, fsync: Path | None = None) -> list[dict[str, object]]:
    """Everybody's turn, `plan.rounds` times; the order rotates so that nobody always follows the same neighbour."""
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{case} c={connections} round {number + 1}/{plan.rounds}")
        disk = fsync_ms(fsync) if fsync else 0.0
        shift = number % len(turns)
        for turn in [*turns[shift:], *turns[:shift]]:
            found.append(asdict(take(case, turn, connections, number, plan.seconds, disk)))
    return found


def take(case: str, turn: Turn, connections: int, number: int, seconds: float, disk: float) -> Sample:
    """One turn: warm up, measure."""
    one = turn.contestant
    run_drive(one.port, turn.make, connections=connections, seconds=WARM, expect=turn.expect)
    before = cpu_seconds(one.pid)
    load = run_drive(one.port, turn.make, connections=connections, seconds=seconds, expect=turn.expect)
    used = cpu_seconds(one.pid) - before
    ordered = sorted(load.latencies) or [load.seconds]
    answered = max(1, load.requests)
    return Sample(
        case=case,
        contestant=one.name,
        connections=connections,
        round=number,
        requests=load.requests,
        errors=load.errors + load.unanswered,
        seconds=round(load.seconds, 4),
        cpu_us=round(used / answered * 1e6, 1),
        p50_ms=round(ordered[len(ordered) // 2] * 1000, 3),
        p99_ms=round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000, 3),
        generator_us=round(load.own_cpu / answered * 1e6, 1),
        fsync_ms=round(disk, 3),
    )


def fsync_ms(folder: Path) -> float:
    """What one append of 4 KiB and an fsync costs on this disk at this moment: the median of 20."""
    times: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(20):
            begun = time.perf_counter()
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)
