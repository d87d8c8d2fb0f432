"""`python -m benchmarks.change_pace`: how evenly the rows of a change set are sent, and whether people's calls wait for them; a table.

The charging system is simulated in another process, answers a while later, and refuses what is more than its limit of writes a second.
Rows are sent as the worker sends them. Beside them somebody reads lines, so many a second: first without a set, then with one. The aims:
as many rows a second as the limit says, no answer that the limit was passed, and a 99th percentile of the reads that a set lengthens by a
fifth at most.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.fleet_runs import ask, network
from benchmarks.fleet_sync import service_deps
from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from operations.changes.sending.change_work import ChangeWork
from operations.deps import Deps
from registry.answer import answer_call
from registry.call import Call
from registry.caller import Caller, Role, Tier
from storage.directory import CallerRecord, acting_caller
from storage.engine.migrate import upgrade_database
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from storage.replicas import renew_replica

ACCOUNT = 8101
WRITES_A_SECOND = 10
PACE_AIM, READS_AIM = 0.95, 1.2
METHOD = "modifySubscriberStatus"
PAGE_LINES = 1000
LOOK_SECONDS = 0.5
LIMIT_CODE = 100


class PaceRun(NamedTuple):
    """One set that was sent. `reads` and `reads_beside`: milliseconds of the 99th percentile without and with a set."""

    engine: str
    rows: int
    seconds: float
    done: int
    refused: int
    writes: int
    reads: float
    reads_beside: float


class PaceStage(NamedTuple):
    """A service, and somebody who calls it."""

    deps: Deps
    caller: Caller
    port: int


def main() -> None:
    """Measure and print."""
    asked = parse()
    found: list[PaceRun] = []
    with network(asked.lines, 3) as port, ExitStack() as stack:
        for engine in asked.engine:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="changes-")))
            url = f"sqlite:///{folder / 'service.db'}" if engine == "sqlite" else stack.enter_context(database())
            if url is not None:
                upgrade_database(url)
                limit_writes(port, asked.delay)
                found.append(asyncio.run(measured(engine, folder, url, port, asked)))
    print(page(found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.change_pace", description="The pace of a change set on this machine.")
    parser.add_argument("--lines", type=int, default=10_300, help="lines of the simulated network (10300)")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the set (10000)")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that every answer takes longer (0.02)")
    parser.add_argument("--reads", type=float, default=5.0, help="lines that are read beside it, a second (5)")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds of reading without a set (60)")
    parser.add_argument("--engine", type=lambda text: text.split(","), default=["sqlite", "postgresql"], help="sqlite,postgresql")
    return parser.parse_args()


def limit_writes(port: int, delay: float) -> None:
    """From now on the network takes so many writes a second, and each of its answers takes a while longer."""
    ask(f"http://127.0.0.1:{port}/control/faults", method="DELETE")
    ask(f"http://127.0.0.1:{port}/control/faults", {"method": METHOD, "burst": WRITES_A_SECOND, "times": None})
    ask(f"http://127.0.0.1:{port}/control/faults", {"method": "*", "delay": delay, "times": None})


async def measured(engine: str, folder: Path, url: str, port: int, asked: argparse.Namespace) -> PaceRun:
    """A set of so many rows, from its application to its end."""
    async with service_deps(folder, url, port, 16) as deps:
        stage = PaceStage(deps, await new_caller(deps), port)
        keeper = asyncio.create_task(keep_replica(deps))
        iccids = (await own_lines(stage))[: asked.rows]
        reads = await percentile_of_reads(stage, iccids, asked.reads, asyncio.sleep(asked.quiet))
        status = {"sqlite": "SUSPENDED", "postgresql": "INACTIVE"}[engine]
        set_id = await applied_set(stage, iccids, status)
        began, writes = time.perf_counter(), WriteCount(port)
        reads_beside = await percentile_of_reads(stage, iccids, asked.reads, sent_set(stage, set_id, writes))
        seconds = time.perf_counter() - began
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        counts = (await made(stage, "get_change_set", {"id": set_id, "limit": 1}))["counts"]
        return PaceRun(engine, counts["planned"], seconds, counts["done"], writes.refused, writes.made, reads, reads_beside)


async def keep_replica(deps: Deps) -> None:
    """The lease of this process, which its claims are under."""
    while True:
        await deps.store.write(renew_replica, replica=deps.replica, now=deps.clock.now())
        await asyncio.sleep(10)


async def new_caller(deps: Deps) -> Caller:
    """Somebody of a new organisation."""
    organisation, person, now = deps.ids.new("org_"), deps.ids.new("usr_"), deps.clock.now()
    await deps.store.write(
        create_organisation, id=organisation, name="Pace", tier=Tier.ENTERPRISE, now=now, mode="managed", account_id=ACCOUNT
    )
    await deps.store.write(create_person, id=person, now=now)
    await deps.store.write(add_member, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    record = CallerRecord("session", person, organisation, "")
    caller = await deps.store.read(acting_caller, record=record, now=now)
    assert caller is not None
    return caller


async def made(stage: PaceStage, operation: str, arguments: Mapping[str, Any], key: str | None = None) -> Any:
    """The answer of a call; a refusal ends the measurement."""
    pipeline = stage.deps.internal_calls.pipeline
    declared, request = pipeline.catalogue.operations[operation], stage.deps.ids.new("req_")
    call = Call(declared, "http", request, caller=stage.caller, arguments=dict(arguments), idempotency_key=key)
    reply = await answer_call(pipeline, call, lambda call, error: print(call.operation.id, repr(error), file=sys.stderr))
    if reply.refusal is not None:
        raise SystemExit(f"{operation}: {reply.refusal.body(request)}")
    return orjson.loads(reply.body)


async def own_lines(stage: PaceStage) -> list[str]:
    """The lines that can be suspended."""
    found, after = list[str](), dict[str, str]()
    while True:
        fields = ["iccid", "currentStatus", "subscriberId"]
        rows = (await made(stage, "list_subscribers", {"accountId": ACCOUNT, "limit": PAGE_LINES, "fields": fields, **after}))["data"]
        found += [row["iccid"] for row in rows if row["currentStatus"] == "Active"]
        if len(rows) < PAGE_LINES:
            return found
        after = {"starting_after": str(rows[-1]["subscriberId"])}


async def applied_set(stage: PaceStage, iccids: Sequence[str], status: str) -> str:
    """A set whose lines have been read, and which is to be sent from now on."""
    change, lines = {"action": "set_status", "status": status}, {"csv": "\n".join(iccids)}
    begun = await made(stage, "plan_changes", {"change": change, "lines": lines}, key=stage.deps.ids.new("key_"))
    work = ChangeWork(stage.deps, print)
    while (plan := await made(stage, "get_change_set", {"id": begun["id"], "limit": 1}))["state"] == "planning":
        await work.step()
    await made(stage, "apply_changes", {"id": plan["id"], "digest": plan["digest"]})
    return plan["id"]


async def sent_set(stage: PaceStage, id: str, writes: "WriteCount") -> None:
    """The worker's chore until the set is at its end."""
    work = ChangeWork(stage.deps, print)
    while (await made(stage, "get_change_set", {"id": id, "limit": 1}))["state"] == "applying":
        await work.step()
        await asyncio.to_thread(writes.look)
        await asyncio.sleep(LOOK_SECONDS)


async def percentile_of_reads(stage: PaceStage, iccids: Sequence[str], a_second: float, until: Any) -> float:
    """Reads lines evenly until `until` is over; the 99th percentile in milliseconds."""
    ending, found, number = asyncio.ensure_future(until), list[float](), 0
    while not ending.done():
        began = time.perf_counter()
        await made(stage, "get_subscriber", {"iccid": iccids[number % len(iccids)]})
        found.append(time.perf_counter() - began)
        number += 7
        await asyncio.sleep(max(0.0, 1 / a_second - found[-1]))
    await ending
    return sorted(found)[int(len(found) * 0.99)] * 1000


class WriteCount:
    """The writes that reached the network, counted while its log holds them."""

    def __init__(self, port: int) -> None:
        self._port, self._last = port, 0
        self.made = self.refused = 0
        self.look()
        self.made = self.refused = 0

    def look(self) -> None:
        """Counts those that came since the last look."""
        rows = orjson.loads(ask(f"http://127.0.0.1:{self._port}/control/calls?limit=10000"))["calls"]
        found = [row for row in rows if row["number"] > self._last]
        self._last = max((row["number"] for row in found), default=self._last)
        self.made += sum(row["method"] == METHOD for row in found)
        self.refused += sum(row["method"] == METHOD and row["code"] == LIMIT_CODE for row in found)


def page(runs: Sequence[PaceRun]) -> str:
    """The table, with whether each aim was reached."""
    names = {"sqlite": OURS_SQLITE, "postgresql": OURS_POSTGRES}
    head = "| | Rows | Done | Seconds | Rows a second | Refused | Writes | p99 of reads, ms | beside the set | Times |"
    rows = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for run in runs:
        pace = run.rows / run.seconds
        cells = [names[run.engine], run.rows, run.done, f"{run.seconds:.1f}", f"{pace:.2f}", run.refused, run.writes]
        cells += [f"{run.reads:.1f}", f"{run.reads_beside:.1f}", f"{run.reads_beside / run.reads:.2f}"]
        rows.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    rows.append(f"Aims: {WRITES_A_SECOND} rows a second, at least {PACE_AIM:.0%} of them; none refused; {READS_AIM} times.")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
