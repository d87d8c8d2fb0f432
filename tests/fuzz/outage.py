"""`python3 ./run fuzz outage [--tree DIR] [--seconds S] [--rate N]`: what others meet while the charging system hangs.

A server reaches a charging system that takes every call and answers none. Ten organisations make calls that need it, so many a second.
Beside that everything is asked that does not need it: the 99th percentile and the errors of that are printed, once before the outage and
once during it, and how long after the return of the charging system a call of each organisation is answered again.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import cycle
from pathlib import Path

import orjson

from registry.caller import Tier
from tests.fuzz.loop import HEALTH_REQUEST, LOOP_ACCOUNT, new_key, p99, processor_seconds, say, serving_tree
from tests.fuzz.loop_attack import answered
from tests.fuzz.loop_shapes import http
from tests.harness.processes import ROOT

ORGANISATIONS = 10
OTHERS_A_SECOND = 20
QUIET_SECONDS = 5.0
AIM_MS, AIM_RETURN_SECONDS = 50.0, 5.0
PATIENCE = 60.0
STOCK = {"account": [{"id": LOOP_ACCOUNT, "sponsor": []}]}
ANSWER = orjson.dumps({"status": {"code": 0, "msg": "OK"}, "getResellerInfo": {"id": 7001}, "esimStatusPerAccount": STOCK})
NEEDS_IT = f"/v1/accounts/{LOOP_ACCOUNT}/esim-status"
"""One call, of which nothing is kept."""
Requests = dict[str, Callable[[int], bytes]]
Asking = Callable[[bytes], Awaitable[tuple[int, float]]]
"""Sends a request; its status (0: no answer) and milliseconds."""


class ChargingSystem:
    """Takes calls, and answers them or not."""

    def __init__(self) -> None:
        self.hangs, self.calls = False, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
                self.calls += 1
                if self.hangs:
                    await reader.read()  # until the other side gives up
                    break
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
        writer.close()


@asynccontextmanager
async def charging_system() -> AsyncGenerator[tuple[ChargingSystem, int]]:
    system = ChargingSystem()
    server = await asyncio.start_server(system.serve, "127.0.0.1", 0)
    try:
        yield system, server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def timed_request(port: int, request: bytes, patience: float = PATIENCE) -> tuple[int, float]:
    """Status (0: no answer) and milliseconds of one request over a connection of its own."""
    began, status = time.perf_counter(), 0
    with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(request)
                status = await answered(reader)
            finally:
                writer.close()
    return status, (time.perf_counter() - began) * 1000


async def at_rate(rate: float, seconds: float, begin: Callable[[int], None], stop: asyncio.Event | None = None) -> None:
    """Begin something so often, on time however late the one before was; so long, or until it is stopped."""
    begun = time.perf_counter()
    for number in range(int(rate * seconds)):
        if stop is not None and stop.is_set():
            return
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        begin(number)


class Beside:
    """What is asked that does not need the charging system: each of `requests` so often a second."""

    def __init__(self, asking: Asking, requests: Requests, rate: float = OTHERS_A_SECOND) -> None:
        self._asking, self._requests, self._rate = asking, requests, rate
        self.waits: dict[str, list[float]] = defaultdict(list)
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, seconds: float, stop: asyncio.Event | None = None) -> None:
        """Ask, so long or until it is stopped, and wait for the last answers."""
        names = cycle(self._requests)
        await at_rate(self._rate * len(self._requests), seconds, lambda number: self._begin(next(names), number), stop)
        await asyncio.gather(*self._tasks)

    def _begin(self, name: str, number: int) -> None:
        task = asyncio.ensure_future(self._one(name, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, name: str, number: int) -> None:
        status, waited = await self._asking(self._requests[name](number))
        self.waits[name].append(waited)
        self.statuses[name][status] += 1

    def errors(self) -> int:
        """Calls without an answer, or with one that is none."""
        return sum(count for of in self.statuses.values() for status, count in of.items() if not 200 <= status < 400)

    def tell(self, what: str) -> bool:
        """A line for each; whether all of it is as good as it is to be."""
        for name, waits in self.waits.items():
            statuses = " ".join(f"{status}:{count}" for status, count in sorted(self.statuses[name].items()))
            say(f"{what:<8} {name:<28} p50 {statistics.median(waits):8.1f} ms   p99 {p99(waits):8.1f} ms   {statuses}")
        return not self.errors() and all(p99(waits) <= AIM_MS for waits in self.waits.values())


def beside_of(key: str, shop: str = "demo") -> Requests:
    plan = '{"plan": "test_eu_1gb"}'
    return {
        "GET /health": lambda number: HEALTH_REQUEST,
        "GET /v1/connectivity/products": lambda number: http("GET", "/v1/connectivity/products", authorization=f"Bearer {key}"),
        "POST an intent, test plan": lambda number: http(
            "POST", "/v1/connectivity/intents", plan, authorization=f"Bearer {key}", idempotency_key=f"{time.time_ns()}"
        ),
        "GET the page of a shop": lambda number: http("GET", f"/shop/{shop}"),
    }


async def back_again(asking: Asking, keys: Sequence[str]) -> float:
    """Seconds until a call of every organisation has been answered; so many at most."""
    began = time.perf_counter()

    async def until(key: str) -> None:
        while time.perf_counter() < began + PATIENCE and (await asking(http("GET", NEEDS_IT, authorization=f"Bearer {key}")))[0] != 200:
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(until, keys))
    return time.perf_counter() - began


async def trial(given: argparse.Namespace, folder: Path) -> bool:
    async with charging_system() as (system, at):
        settings = {"SERVICE_OCS_URL": f"http://127.0.0.1:{at}/v1", "SERVICE_OCS_TOKEN": "outage-token", "SERVICE_BURST_LIMIT": "false"}
        with serving_tree(given.tree, folder / "data", settings) as server:
            keys = [await new_key(server.data, f"outage {number}", Tier.ENTERPRISE) for number in range(ORGANISATIONS)]
            requests = beside_of(await new_key(server.data, "beside", Tier.ENTERPRISE))
            asking = partial(timed_request, server.port)
            quiet, during = Beside(asking, requests), Beside(asking, requests)
            await Beside(asking, requests).run(QUIET_SECONDS / 2)  # what is imported at the first call has been, as on any server
            await back_again(asking, keys)
            await quiet.run(QUIET_SECONDS)
            quiet.tell("before")
            system.hangs, system.calls = True, 0
            statuses: Counter[int] = Counter()
            used, own = processor_seconds(server.pid), time.process_time()
            hanging: set[asyncio.Task[None]] = set()

            async def call(number: int) -> None:
                key = keys[number % len(keys)]
                statuses[(await timed_request(server.port, http("GET", NEEDS_IT, authorization=f"Bearer {key}")))[0]] += 1

            def begin(number: int) -> None:
                task = asyncio.ensure_future(call(number))
                hanging.add(task)
                task.add_done_callback(hanging.discard)

            await asyncio.gather(at_rate(given.rate, given.seconds, begin), during.run(given.seconds))
            used, own = processor_seconds(server.pid) - used, time.process_time() - own
            good = during.tell("during")
            say(f"processor time: {used / given.seconds:.2f} of a core for the server, {own / given.seconds:.2f} for this command")
            system.hangs = False
            seconds = await back_again(asking, keys)
            await asyncio.gather(*hanging)
            shown = " ".join(f"{status}:{count}" for status, count in sorted(statuses.items()))
            say(f"calls that need it: {shown}; {system.calls} reached it; every organisation was answered {seconds:.1f} s after its return")
            return good and seconds <= AIM_RETURN_SECONDS


def main(arguments: Sequence[str]) -> int:
    """The command; fails when others wait longer than they are to, or are refused, or it takes long to go on."""
    parser = argparse.ArgumentParser(prog="run fuzz outage", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="sources whose server is measured, for a comparison with others")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the outage")
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second that need the charging system")
    given = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a socket for each call that hangs
    with tempfile.TemporaryDirectory(prefix="outage-") as folder:
        good = asyncio.run(trial(given, Path(folder)))
    say("as it is to be" if good else f"not as it is to be: p99 {AIM_MS:.0f} ms, no errors, {AIM_RETURN_SECONDS:.0f} s", sys.stdout)
    return int(not good)
