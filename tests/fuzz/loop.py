"""`python3 ./run fuzz loop [--tree DIR] [--only WORDS] [--seconds S] [--rounds N]`: how long others wait while somebody sends the worst.

A server is asked for /health a hundred times a second, first by itself, then while one shape is sent to it: by eight addresses without
a credential, then by one free organisation over twelve connections. The p99 of both is printed, and the processor time of the server for
each answer, which says more where other programs run beside it.
"""

import argparse
import asyncio
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from operations.secret_tokens import new_api_key
from registry.caller import UNRESTRICTED, Role, Tier
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.api_keys import insert_key, write_restrictions
from storage.engine.store import open_store
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from tests.fuzz.loop_attack import answered
from tests.fuzz.loop_shapes import Attack, anonymous, http, organisation
from tests.harness.processes import COMMAND, ROOT, running

ADDRESSES = 8
PER_ADDRESS = 4
OF_ORGANISATION = 12
AIM_MS = 25.0
LOOP_ACCOUNT = 8101
HEALTH_REQUEST = http("GET", "/health")


class TreeServer(NamedTuple):
    pid: int
    port: int
    data: Path


class LoopAttack(NamedTuple):
    """What is measured, the process that attacks it, and for how many seconds."""

    server: TreeServer
    attacker: "subprocess.Popen[bytes]"
    seconds: float


@dataclass
class Row:
    """One attack, measured some times: milliseconds at the 99th percentile, and processor time of the server for each answer."""

    name: str
    alone: list[float]
    beside: list[float]
    cost: list[float]
    statuses: Counter[int]

    @property
    def added(self) -> float:
        """How much longer others wait: the median of the rounds, each against the quiet second before it."""
        return statistics.median(beside - alone for alone, beside in zip(self.alone, self.beside, strict=True))


@contextmanager
def serving_tree(tree: Path, data: Path, settings: Mapping[str, str] | None = None) -> Generator[TreeServer]:
    """`reseller serve` of a tree of sources, on an empty directory."""
    given = {**(settings or {}), "PYTHONPATH": str(tree)}
    with running(data, given, bare=True, program=COMMAND, folder=tree) as server:
        yield TreeServer(server.process.pid, int(server.base_url.rpartition(":")[2]), data)


@contextmanager
def attacking() -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.fuzz.loop_attack"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()


async def new_key(data: Path, name: str, tier: Tier = Tier.FREE) -> str:
    """The API key of a new organisation, which is connected to the network."""
    return await key_in(f"sqlite:///{data / 'service.db'}", name, tier)


async def key_in(url: str, name: str, tier: Tier) -> str:
    ids, now = SystemIds(SystemClock()), SystemClock().now()
    store = open_store(url)
    try:
        owner, person, key = ids.new("org_"), ids.new("usr_"), new_api_key(ids)
        await store.write(create_organisation, id=owner, name=name[:80], tier=tier, now=now, mode="managed", account_id=LOOP_ACCOUNT)
        await store.write(create_person, id=person, now=now, subject=None)
        await store.write(add_member, person=person, organisation=owner, role=Role.ADMIN, now=now)
        await store.write(
            insert_key,
            id=ids.new("key_"),
            digest=key.digest,
            prefix=key.prefix,
            organisation=owner,
            person=person,
            name="loop",
            now=now,
            expires_at=None,
            restrictions=write_restrictions(UNRESTRICTED),
        )
        return key.secret
    finally:
        await store.aclose()


async def waits(port: int, seconds: float, pause: float = 0.01) -> list[float]:
    """How long each /health took, in milliseconds; the next is asked on time, however late the one before was."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found: list[float] = []
    begun = time.perf_counter()
    while (due := begun + len(found) * pause) < begun + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked = time.perf_counter()
        writer.write(HEALTH_REQUEST)
        await answered(reader)
        found.append((time.perf_counter() - asked) * 1000)
        if time.perf_counter() > begun + 4 * seconds:  # held for so long that waiting for all would say no more
            break
    writer.close()
    return found


def say(line: str, to: TextIO = sys.stdout) -> None:
    to.write(line + "\n")
    to.flush()


def p99(found: Sequence[float]) -> float:
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def processor_seconds(pid: int) -> float:
    """User and system time of a process (man 3 clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)


def measure(stand: LoopAttack, row: Row, attack: Attack, addresses: Sequence[str], each: int) -> None:
    server, attacker, seconds = stand
    assert attacker.stdin is not None
    assert attacker.stdout is not None
    job = pickle.dumps((server.port, list(addresses), each, attack.make(), seconds))
    row.alone.append(p99(asyncio.run(waits(server.port, max(1.0, seconds / 2)))))
    used = processor_seconds(server.pid)
    attacker.stdin.write(job)
    attacker.stdin.flush()
    row.beside.append(p99(asyncio.run(waits(server.port, seconds))))
    statuses = pickle.load(attacker.stdout)
    row.statuses.update(statuses)
    row.cost.append((processor_seconds(server.pid) - used) * 1000 / max(1, statuses.total()))


def shown(row: Row) -> str:
    statuses = " ".join(f"{status}:{count}" for status, count in sorted(row.statuses.items()))
    alone, beside, cost = (statistics.median(each) for each in (row.alone, row.beside, row.cost))
    return f"{row.added:8.1f} {alone:8.1f} {beside:8.1f} {cost:8.2f}  {row.name:<64} {statuses}"


def campaign(stand: LoopAttack, given: argparse.Namespace) -> list[Row]:
    """All attacks, each by somebody who has attacked nothing before."""
    rows: dict[str, Row] = {}
    wanted = [word.lower() for word in given.only]
    number = 0
    for _ in range(given.rounds):
        for attack in anonymous():
            number += 1
            if not wanted or any(word in attack.name.lower() for word in wanted):
                addresses = [f"127.{1 + number // 200}.{1 + number % 200}.{2 + each}" for each in range(ADDRESSES)]
                row = rows.setdefault(attack.name, Row(f"8 addresses, {attack.name}", [], [], [], Counter()))
                measure(stand, row, attack, addresses, PER_ADDRESS)
                say(shown(row), sys.stderr)
        for place, known in enumerate(organisation("")):
            if not wanted or any(word in known.name.lower() for word in wanted):
                attack = organisation(asyncio.run(new_key(stand.server.data, known.name)))[place]
                row = rows.setdefault(attack.name, Row(f"1 organisation, {attack.name}", [], [], [], Counter()))
                measure(stand, row, attack, ["127.0.0.1"], OF_ORGANISATION)
                say(shown(row), sys.stderr)
    return sorted(rows.values(), key=lambda row: -row.added)


def main(arguments: Sequence[str]) -> int:
    """The command; fails when one attack adds more than the aim."""
    parser = argparse.ArgumentParser(prog="run fuzz loop", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="sources whose server is measured, for a comparison with others")
    parser.add_argument("--only", action="append", default=[], help="attacks whose name holds this; may be repeated")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each attack")
    parser.add_argument("--rounds", type=int, default=1, help="of which the median counts")
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="loop-") as folder,
        attacking() as attacker,
        serving_tree(given.tree, Path(folder) / "data") as server,
    ):
        rows = campaign(LoopAttack(server, attacker, given.seconds), given)
    say(f"{'added ms':>8} {'alone':>8} {'beside':>8} {'cpu ms':>8}  {'p99 of /health; processor time for an answer':<64} answers")
    for row in rows:
        say(shown(row))
    over = [row for row in rows if row.added > AIM_MS]
    say(f"{len(rows)} attacks, {len(over)} add more than {AIM_MS:.0f} ms")
    return int(bool(over))
