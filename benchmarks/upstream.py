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
from benchmarks.contestant import GATEWAYS, OCS_TOKEN, ROOT, Contestant, Seed, environment, started
from benchmarks.load import run_drive
from benchmarks.measure import CONNECTIONS, Plan, Sample, Turn, running, take
from benchmarks.names import CLIENT, HTTPX, HTTPX_TUNED, OURS, UPSTREAM
from benchmarks.processes import cpu_seconds, peak_mb, resident_mb, restart_peak
from benchmarks.rivals.fleet import ACCOUNT, RESELLER, iccid
from benchmarks.rivals.upstream import SINGLES
from benchmarks.upstream_page import LINE, LINES, RULES, SOME

BIG_GATEWAYS = (OURS, HTTPX_TUNED, HTTPX)
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
    with started(UPSTREAM, seed.copy(UPSTREAM)) as net:
        with running(GATEWAYS, seed, net.port) as gateways:
            agree_on_upstream(gateways, seed, net)
            found = [row for connections in CONNECTIONS for row in lines(seed, plan, net, gateways, connections)]
        for big in BIG:  # each on fresh processes: what the one before took they would keep
            with running(BIG_GATEWAYS, seed, net.port) as gateways:
                found += bigs(seed, plan, net, gateways, big)
        return found


def lines(seed: Seed, plan: Plan, net: Contestant, gateways: Sequence[Contestant], connections: int) -> list[dict[str, object]]:
    """One line by ICCID, from everybody."""
    call = requests.subscriber(seed.key, ICCIDS)
    direct = itertools.cycle([requests.ocs("getSingleSubscriber", {"iccid": name}) for name in ICCIDS])

    def turn(one: Contestant, make: Callable[[], bytes]) -> Callable[[int], Sample]:
        return lambda number: take(LINE, Turn(one, make, 200), connections, number, plan.seconds, 0.0)

    turns = [turn(one, call) for one in gateways]
    turns.append(turn(net, lambda: next(direct)))
    turns.append(lambda number: take_client(net, connections, number, plan.seconds))
    found: list[dict[str, object]] = []
    for number in range(plan.rounds):
        plan.say(f"{LINE} c={connections} round {number + 1}/{plan.rounds}")
        found += [asdict(taken(number)) for taken in rotated(turns, number)]
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
    """A big answer, from everybody in turn."""
    found: list[dict[str, object]] = []
    quiet = {one.name: level(one, seed) for one in gateways}
    for number in range(plan.rounds):
        plan.say(f"{big.case} round {number + 1}/{plan.rounds}")
        for one in rotated([*gateways, net], number):
            found.append(take_big(big, one, seed, number, quiet.get(one.name)))
    return found


def level(one: Contestant, seed: Seed) -> float:
    """Resident memory of a gateway that has served small answers and now rests."""
    run_drive(one.port, requests.subscriber(seed.key, ICCIDS), connections=4, seconds=0.3, expect=200)
    time.sleep(0.2)
    return statistics.median(resident_mb(one.pid) for _ in range(3))


def take_big(big: Big, one: Contestant, seed: Seed, number: int, quiet: float | None) -> dict[str, object]:
    """One turn. Memory is what a gateway added to its idle level; for the charging system itself, what its caller added."""
    restart_peak(one.pid)
    before = cpu_seconds(one.pid)
    seen = told(read=asked_of(big, one, None if quiet is None else seed.key))
    cpu = (cpu_seconds(one.pid) - before) / 2  # the caller asks twice
    return {
        "case": big.case,
        "contestant": one.name,
        "connections": 1,
        "round": number,
        "ms": round(seen["seconds"] * 1000, 2),
        "cpu_ms": round(cpu * 1000, 2),
        "caller_ms": round(seen["own_cpu"] * 1000, 2),
        "mb": round(seen["bytes"] / 1e6, 3),
        "idle_mb": None if quiet is None else round(quiet, 1),
        "added_mb": round(seen["memory_mb"] if quiet is None else max(0.0, peak_mb(one.pid) - quiet), 1),
    }


def asked_of(big: Big, one: Contestant, key: str | None) -> dict[str, object]:
    """The request to a gateway, or without a key to the charging system."""
    address = f"http://127.0.0.1:{one.port}"
    if key is not None:
        method, url, headers, content = "GET", address + big.path, {"authorization": f"Bearer {key}"}, None
    else:
        url, headers = f"{address}/v1?token={OCS_TOKEN}", {"content-type": "application/json"}
        method, content = "POST", json.dumps({big.method: big.params})
    return {"method": method, "url": url, "headers": headers, "content": content, "decode": big.decode}


def told(**asked: object) -> dict[str, Any]:
    """What a caller in a process of its own saw."""
    command = [sys.executable, "-m", "benchmarks.caller", json.dumps(asked)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


def rotated(turns: Sequence[Any], number: int) -> list[Any]:
    """The order changes from round to round, so that nobody always follows the same neighbour."""
    shift = number % len(turns)
    return [*turns[shift:], *turns[:shift]]
