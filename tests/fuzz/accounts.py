"""`python3 ./run fuzz accounts [--tree DIR] [--lines N] [--seconds S] [--rate N] [--cold]`: lists and draws of a large account.

A server reaches a simulated network of its own process, which has tens of thousands of lines and lists a thousand at once. First it is
counted how many upstream calls a page of two lines and a draw take, the first time and later; then so many lists and as many draws a second
are asked for: every draw must succeed, and 99 of 100 within three seconds.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from registry.caller import Tier
from tests.fuzz.loop import LOOP_ACCOUNT, new_key, p99, processor_seconds, say, serving_tree
from tests.fuzz.loop_shapes import http
from tests.fuzz.outage import at_rate, timed_request
from tests.harness.processes import COMMAND, ROOT, environment

TOKEN, TEMPLATE = "sandbox-7001-token", 55010
ROW_CAP = 1000
AIM_SECONDS, AIM_FIRST, AIM_LATER = 3.0, 12, 2
PATIENCE = 60.0


class Network:
    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid

    def calls(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/control/calls?limit=1", timeout=PATIENCE) as answer:
            calls = json.loads(answer.read())["calls"]
        return calls[-1]["number"] if calls else 0


@contextmanager
def network(lines: int, folder: Path) -> Generator[Network]:
    """`reseller sandbox ocs` with so many lines, most of them in one account."""
    options = ("--port", "0", "--lines", str(lines), "--history-days", "0", "--row-cap", str(ROW_CAP), "--clock", "frozen")
    with (folder / "network.log").open("ab") as log:
        process = subprocess.Popen([*COMMAND, "sandbox", "ocs", *options], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    try:
        found = re.search(rb"http://[0-9.]+:(\d+)", process.stdout.readline())
        assert found is not None, (folder / "network.log").read_text()
        yield Network(int(found[1]), process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


class Requests:
    def __init__(self, key: str, lines: int, seed: int) -> None:
        self._key, self._lines, self._chance = key, lines, random.Random(seed)

    def first_page(self) -> bytes:
        return http("GET", "/v1/subscribers?limit=2", authorization=f"Bearer {self._key}")

    def some_page(self) -> bytes:
        """Two lines somewhere in the account. Ids of lines begin with 910001."""
        after = 910_001 + self._chance.randrange(self._lines)
        return http("GET", f"/v1/subscribers?limit=2&starting_after={after}", authorization=f"Bearer {self._key}")

    def draw(self, number: int) -> bytes:
        body = json.dumps({"accountId": LOOP_ACCOUNT, "packageTemplateId": TEMPLATE})
        key = f"accounts-{os.getpid()}-{number}"
        return http("POST", "/v1/subscribers/issue-from-inventory", body, authorization=f"Bearer {self._key}", x_idempotency_key=key)


async def counted(port: int, made: Network, name: str, request: bytes) -> int:
    """How many upstream calls a request takes, and how long it is."""
    before = made.calls()
    status, waited = await timed_request(port, request, PATIENCE)
    calls = made.calls() - before
    say(f"{name:<44} {calls:4} upstream calls {waited:9.0f} ms   {status}")
    return calls


async def singles(port: int, made: Network, requests: Requests) -> bool:
    """One request after another: what each costs upstream."""
    first = await counted(port, made, "a page of two lines, the first time", requests.first_page())
    draw = await counted(port, made, "a draw, the first time", requests.draw(-1))
    for turn in range(6):
        await counted(port, made, f"a page from the middle, turn {turn}", requests.some_page())
    later = [await counted(port, made, "a page of two lines, later", requests.first_page()) for _ in range(2)]
    later += [await counted(port, made, "a page from the middle, later", requests.some_page()) for _ in range(3)]
    await asyncio.sleep(6)
    await counted(port, made, "a draw, later", requests.draw(-2))
    return first <= AIM_FIRST and draw <= AIM_FIRST + 3 and max(later) <= AIM_LATER


class Load:
    """Lists and draws, each begun on time however late the ones before are."""

    def __init__(self, port: int, requests: Requests) -> None:
        self._port, self._requests = port, requests
        self.waits: dict[str, list[float]] = defaultdict(list)
        self.statuses: dict[str, Counter[int]] = defaultdict(Counter)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, rate: float, seconds: float) -> None:
        """So many of each a second."""
        await at_rate(rate, seconds, self._begin)
        await asyncio.gather(*self._tasks)

    def _begin(self, number: int) -> None:
        page = self._requests.first_page() if number % 2 else self._requests.some_page()
        for name, request in (("lists", page), ("draws", self._requests.draw(number))):
            task = asyncio.ensure_future(self._one(name, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _one(self, name: str, request: bytes) -> None:
        status, waited = await timed_request(self._port, request, PATIENCE)
        self.waits[name].append(waited)
        self.statuses[name][status] += 1

    def tell(self) -> bool:
        for name, waits in self.waits.items():
            statuses = " ".join(f"{status}:{count}" for status, count in sorted(self.statuses[name].items()))
            say(f"{name}: p50 {statistics.median(waits):8.0f} ms   p99 {p99(waits):8.0f} ms   longest {max(waits):8.0f} ms   {statuses}")
        return set(self.statuses["draws"]) == {201} and p99(self.waits["draws"]) <= AIM_SECONDS * 1000


async def trial(given: argparse.Namespace, folder: Path, made: Network) -> bool:
    settings = {
        "SERVICE_OCS_URL": f"http://127.0.0.1:{made.port}/v1",
        "SERVICE_OCS_TOKEN": TOKEN,
        "SERVICE_BURST_LIMIT": "false",
    }
    with serving_tree(given.tree, folder / "data", settings) as server:
        requests = Requests(await new_key(server.data, "accounts", Tier.ENTERPRISE), given.lines, given.seed)
        cheap = given.cold or await singles(server.port, made, requests)
        load, before = Load(server.port, requests), made.calls()
        used, network_used = processor_seconds(server.pid), processor_seconds(made.pid)
        began = time.perf_counter()
        await load.run(given.rate, given.seconds)
        seconds = time.perf_counter() - began
        good = load.tell()
        server_share, network_share = processor_seconds(server.pid) - used, processor_seconds(made.pid) - network_used
        say(
            f"{(made.calls() - before) / seconds:.1f} upstream calls a second; processor time: "
            f"{server_share / seconds:.2f} of a core for the server, {network_share / seconds:.2f} for the simulated network"
        )
        return good and cheap


def main(arguments: Sequence[str]) -> int:
    """The command; fails when a draw does, or takes too long, or a page takes more upstream calls than it may."""
    parser = argparse.ArgumentParser(prog="run fuzz accounts", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="sources whose server is measured, for a comparison with others")
    parser.add_argument("--lines", type=int, default=30_000, help="lines of the network, all but 260 of them in one account")
    parser.add_argument("--seconds", type=float, default=300.0, help="of lists and draws")
    parser.add_argument("--rate", type=float, default=4.0, help="lists a second, and draws a second")
    parser.add_argument("--cold", action="store_true", help="begin with the load, while nothing is known of the account")
    parser.add_argument("--seed", type=int, default=1, help="of the pages that are asked for")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="accounts-") as folder, network(given.lines, Path(folder)) as made:
        good = asyncio.run(trial(given, Path(folder), made))
    aim = f"every draw 201, p99 {AIM_SECONDS:.0f} s, a page {AIM_FIRST} upstream calls at first and {AIM_LATER} later"
    say("as it is to be" if good else f"not as it is to be: {aim}", sys.stdout)
    return 0 if good else 1
