"""`python3 ./run fuzz limits [--tree DIR] [--servers N] [--engine E] [--seconds S] [--tier R:B]`: what several servers let through.

The servers reach a charging system that holds every call for a moment and counts how many are under way. First an organisation asks all
of them as fast as it can, so long; what was answered is held against the limit of its tier. Then it makes more calls to the charging
system than there are places. Prints what was let through, and the bounds.
"""

import argparse
import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from registry.caller import Tier
from registry.shared_limits import bucket_portion
from tests.databases import postgres_url
from tests.fuzz.loop import TreeServer, key_in, say, serving_tree
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import ANSWER, NEEDS_IT, timed_request
from tests.harness.cluster import KEYS
from tests.harness.processes import ROOT

COMMAND = (sys.executable, "-P", "-m", "transports.cli")
CALLS_A_DAY = 1_000_000
PLACES = 8
HELD_SECONDS = 0.25
AT_ONCE = 12
"""Requests to each server at a time."""
FREE = "/v1/connectivity/products"
"""A call that needs no charging system."""


class Holding:
    """A charging system that answers after a moment; how many calls it has, and the most that it had at once."""

    def __init__(self) -> None:
        self.under_way = self.most = self.calls = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
                self.calls += 1
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                try:
                    await asyncio.sleep(HELD_SECONDS)
                finally:
                    self.under_way -= 1
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
        writer.close()


@asynccontextmanager
async def holding() -> AsyncGenerator[tuple[Holding, int]]:
    system = Holding()
    server = await asyncio.start_server(system.serve, "127.0.0.1", 0)
    try:
        yield system, server.sockets[0].getsockname()[1]
    finally:
        server.close()


@dataclass(slots=True)
class Found:
    """What servers let through: of a rate in `seconds`, and of calls under way at once."""

    let_through: int = 0
    seconds: float = 0.0
    most_under_way: int = 0
    answered: int = 0


async def hammer(ports: Sequence[int], key: str, path: str, seconds: float, at_once: int = AT_ONCE) -> tuple[Counter[int], float]:
    """Ask each server without a pause, so many at a time; the statuses, and how long it took altogether."""
    statuses: Counter[int] = Counter()
    began = time.perf_counter()
    request = http("GET", path, authorization=f"Bearer {key}")

    async def again(port: int) -> None:
        while time.perf_counter() < began + seconds:
            statuses[(await timed_request(port, request))[0]] += 1

    await asyncio.gather(*(again(port) for port in ports for _ in range(at_once)))
    return statuses, time.perf_counter() - began


async def try_rate(ports: Sequence[int], key: str, seconds: float) -> Found:
    """What of a tier's calls is let through."""
    statuses, took = await hammer(ports, key, FREE, seconds)
    assert set(statuses) <= {200, 429}, statuses
    return Found(let_through=statuses[200], seconds=took)


async def try_places(ports: Sequence[int], key: str, seconds: float, system: Holding) -> Found:
    """How many calls are under way at once."""
    system.most = 0
    statuses, took = await hammer(ports, key, NEEDS_IT, seconds)
    assert set(statuses) <= {200}, statuses
    return Found(seconds=took, most_under_way=system.most, answered=statuses[200])


def rate_bound(rate: float, size: int, seconds: float, servers: int) -> float:
    """The most that may be let through in so many seconds: the limit, and a portion of each process."""
    return size + rate * seconds + servers * bucket_portion(size)


def settings_of(port: int, rate: float, size: int) -> dict[str, str]:
    """Of a server: the charging system, and the limits of the tier pro."""
    return {
        "SERVICE_OCS_URL": f"http://127.0.0.1:{port}/v1",
        "SERVICE_OCS_TOKEN": "limits-token",
        "SERVICE_SECRET_KEYS": KEYS,
        "SERVICE_OCS_CONCURRENCY": str(PLACES),
        "SERVICE_LIMITS_PRO": f"calls_per_day={CALLS_A_DAY},burst_per_second={rate:g},burst_size={size}",
    }


@contextmanager
def servers(tree: Path, folder: Path, given: dict[str, str], count: int) -> Generator[list[TreeServer]]:
    """So many on one database, which `given` names; without a name all use the file of one directory."""
    with ExitStack() as stack:
        yield [stack.enter_context(serving_tree(tree, folder / "data", given)) for _ in range(count)]


async def trial(given: argparse.Namespace, folder: Path, url: str | None) -> bool:
    """Rate, places, and one server alone."""
    rate, size = (float(part) for part in given.tier.split(":"))
    async with holding() as (system, port):
        settings = settings_of(port, rate, int(size)) | ({} if url is None else {"SERVICE_DATABASE_URL": url})
        with servers(given.tree, folder, settings, given.servers) as all_of_them:
            address = url or f"sqlite:///{folder / 'data' / 'service.db'}"
            ports = [server.port for server in all_of_them]
            paced = await try_rate(ports, await key_in(address, "paced", Tier.PRO), given.seconds)
            placed = await try_places(ports, await key_in(address, "placed", Tier.ENTERPRISE), given.seconds, system)
    bound = rate_bound(rate, int(size), paced.seconds, given.servers)
    a_second = (paced.let_through - size) / paced.seconds
    say(f"{given.servers} servers on {given.engine}, {rate:g} calls a second, burst {size:g}:")
    say(f"{paced.let_through} let through in {paced.seconds:.1f} s, {a_second:.0f} a second after the burst; {math.floor(bound)} allowed")
    say(f"{PLACES} places: {placed.most_under_way} calls under way at once, {placed.answered / placed.seconds:.0f} answered a second")
    return paced.let_through <= bound and placed.most_under_way <= PLACES


def environment_of(tree: Path, url: str) -> dict[str, str]:
    """Of a command of those sources, on that database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    return {**kept, "SERVICE_DATABASE_URL": url, "PYTHONPATH": str(tree)}


def main(arguments: Sequence[str]) -> int:
    """The command; fails when more is let through than the limits say."""
    parser = argparse.ArgumentParser(prog="run fuzz limits", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="sources whose servers are measured, for a comparison with others")
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--tier", default="100:200", help="calls a second, and burst")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="limits-") as folder, ExitStack() as stack:
        url = None if given.engine == "sqlite" else stack.enter_context(postgres_url())
        if url is not None:
            subprocess.run([*COMMAND, "db", "upgrade"], cwd=given.tree, env=environment_of(given.tree, url), check=True)
        good = asyncio.run(trial(given, Path(folder), url))
    say("within the limits" if good else "more than the limits", sys.stdout)
    return int(not good)
