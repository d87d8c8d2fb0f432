"""Operations that ask the charging system, beside asking it directly: one line, ten thousand lines, fifty megabytes."""

import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from benchmarks import requests
from benchmarks.agreement import agree_on_upstream
from benchmarks.contestant import GATEWAYS, ROOT, Contestant, Seed, environment, started
from benchmarks.load import run_ask, run_drive
from benchmarks.measure import CONNECTIONS, Plan, Sample, Turn, running, take
from benchmarks.names import CLIENT, OURS, UPSTREAM
from benchmarks.processes import cpu_seconds, peak_mb, resident_mb, restart_peak
from benchmarks.rivals.fleet import ACCOUNT, RESELLER, iccid
from benchmarks.rivals.upstream import SINGLES

LINE, RULES, LINES, SOME = "one line", "50 MB of prices", "10,000 lines", "20 of 10,000 lines"
ICCIDS = tuple(iccid(number) for number in range(SINGLES))


class Big(NamedTuple):
    """A big answer: how a gateway is asked for it, how the charging system, and whether the caller decodes it."""

    case: str
    path: str
    method: str
    params: object
    decode: bool


BIG = (
    Big(RULES, f"/v1/tariffs/{RESELLER}?verbose=true", "getCustomerTariff", RESELLER, False),
    Big(LINES, "/v1/subscribers", "listSubscriber", {"accountId": ACCOUNT}, True),
    Big(SOME, "/v1/subscribers?limit=20", "listSubscriber", {"accountId": ACCOUNT}, True),
)


def upstream(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """Everything that needs the charging system."""
    folder = seed.copy(UPSTREAM)
    with started(UPSTREAM, folder) as net, running(GATEWAYS, seed, net.port) as gateways:
        agree_on_upstream(gateways, seed, net)
        found = [row for connections in CONNECTIONS for row in lines(seed, plan, net, gateways, connections)]
        return found + [row for big in BIG for row in bigs(seed, plan, net, gateways, big)]


def lines(seed: Seed, plan: Plan, net: Contestant, gateways: Sequence[Contestant], connections: int) -> list[dict[str, object]]:
    """One line by ICCID, from everybody."""
    call = requests.subscriber(seed.key, ICCIDS)
    direct = itertools.cycle([requests.ocs("getSingleSubscriber", {"iccid": name}) for name in ICCIDS])
    turns: list[Callable[[int], Sample]] = [
        lambda number, turn=Turn(one, call, 200): take(LINE, turn, connections, number, plan.seconds, 0.0) for one in gateways
    ]
    turns.append(lambda number: take(LINE, Turn(net, lambda: next(direct), 200), connections, number, plan.seconds, 0.0))
    turns.append(lambda number: take_client(net, connections, number, plan.seconds))
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{LINE} c={connections} round {number + 1}/{plan.rounds}")
        found += [asdict(turn(number)) for turn in rotated(turns, number)]
    return found


def take_client(net: Contestant, connections: int, number: int, seconds: float) -> Sample:
    """One turn of the service's own client without the service."""
    asked = {"url": f"http://127.0.0.1:{net.port}/v1", "iccids": ICCIDS, "connections": connections, "seconds": seconds}
    seen = told(client=asked)
    ordered: list[float] = sorted(seen["latencies"])
    return Sample(
        case=LINE,
        contestant=CLIENT,
        connections=connections,
        round=number,
        requests=len(ordered),
        errors=0,
        seconds=round(seen["seconds"], 4),
        cpu_us=round(seen["cpu"] / len(ordered) * 1e6, 1),
        p50_ms=round(ordered[len(ordered) // 2] * 1000, 3),
        p99_ms=round(ordered[int(len(ordered) * 0.99)] * 1000, 3),
        generator_us=0.0,
        fsync_ms=0.0,
    )


def bigs(seed: Seed, plan: Plan, net: Contestant, gateways: Sequence[Contestant], big: Big) -> list[dict[str, object]]:
    """A big answer, from everybody who offers it."""
    found: list[dict[str, object]] = []
    offered = [one for one in gateways if run_ask(one.port, requests.without_key(big.path)()).status == 401]
    quiet = {one.name: level(one, seed) for one in offered}
    for number in range(plan.rounds):
        plan.say(f"{big.case} round {number + 1}/{plan.rounds}")
        turns = [*offered, net]
        for one in rotated(turns, number):
            request = requests.ocs(big.method, big.params, close=True) if one is net else requests.once(seed.key, big.path)
            found.append(take_big(big, one, request, number, quiet.get(one.name, 0.0)))
    return found


def level(one: Contestant, seed: Seed) -> float:
    """Resident memory of a gateway that has served small answers and now rests."""
    run_drive(one.port, requests.subscriber(seed.key, ICCIDS), connections=4, seconds=0.3, expect=200)
    time.sleep(0.2)
    return statistics.median(resident_mb(one.pid) for _ in range(3))


def take_big(big: Big, one: Contestant, request: bytes, number: int, quiet: float) -> dict[str, object]:
    """One turn. Memory is what the callee added; for the charging system itself, what the caller needed to hold the answer decoded."""
    restart_peak(one.pid)
    before = cpu_seconds(one.pid)
    seen = told(read={"port": one.port, "request": request.decode(), "decode": big.decode})
    cpu = (cpu_seconds(one.pid) - before) / 2  # the caller asks twice
    return {
        "case": big.case,
        "contestant": one.name,
        "connections": 1,
        "round": number,
        "ms": round(seen["seconds"] * 1000, 2),
        "first_ms": round(seen["first"] * 1000, 2),
        "cpu_ms": round(cpu * 1000, 2),
        "caller_ms": round(seen["own_cpu"] * 1000, 2),
        "mb": round(seen["bytes"] / 1e6, 3),
        "idle_mb": round(quiet, 1),
        "added_mb": round(peak_mb(one.pid) - quiet if quiet else seen["memory_mb"], 1),
    }


def told(**asked: object) -> dict[str, Any]:
    """What a caller in a process of its own saw."""
    command = [sys.executable, "-m", "benchmarks.caller", json.dumps(asked)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


def rotated(turns: Sequence[Any], number: int) -> list[Any]:
    """The order changes from round to round, so that nobody always follows the same neighbour."""
    shift = number % len(turns)
    return [*turns[shift:], *turns[:shift]]


__all__ = ["BIG", "LINE", "LINES", "OURS", "RULES", "SOME", "upstream"]
