"""Call records over HTTP: batches taken, and months summed, beside FastAPI on the same tables and DuckDB over the same rows."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agreement import Disagreement, compare
from benchmarks.cdr_batches import BATCH, IN_ORDER, SCATTERED, Batches, asked, posted
from benchmarks.cdr_cast import POSTGRES, SQLITE, Entrant, entrants
from benchmarks.cdr_fill import EXACT, UNCOVERED, YEAR, empty, run, settle
from benchmarks.cdr_page import AGGREGATE, INGEST
from benchmarks.contestant import ROOT, Seed, environment
from benchmarks.load import Make, run_ask, run_drive
from benchmarks.measure import WARM, Plan, fsync_ms
from benchmarks.names import CDR_TUTORIAL, DUCKDB, OURS

SENDERS = (1, 4)
ASKING = 0.4
"""Seconds of a turn that sums, of one that takes records."""


@dataclass(frozen=True)
class Duck:
    """A file of DuckDB's."""

    file: Path
    organisation: str
    size: int


def cdr(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """All of it, one kind of database after the other: both together would be more than the disk has to hold."""
    folder = seed.folder.parent / "cdr"
    folder.mkdir()
    batches = Batches()
    found: list[dict[str, object]] = []
    for kind in (SQLITE, POSTGRES):
        plan.say(f"cdr on {kind}: tables of {plan.rows} records are made")
        with entrants(kind, (0, *plan.rows), folder / kind) as cast:
            if cast:
                found += [{"kind": kind, **row} for row in measured(cast, ducks(cast, folder / kind), batches, plan, seed.folder)]
    return found


def measured(cast: Sequence[Entrant], beside: Sequence[Duck], batches: Batches, plan: Plan, disk: Path) -> list[dict[str, object]]:
    """First the months, which taking records would change."""
    agree(cast, beside)
    found = [row for number in range(plan.rounds) for row in sums(cast, beside, plan, number)]
    for one in cast:
        if one.name == CDR_TUTORIAL and one.size:  # records are taken without the index that only GROUP BY needs
            run(one.url, [UNCOVERED])
            settle(one.url)
    found += [row for number in range(plan.rounds) for row in taking(cast, batches, plan, number, fsync_ms(disk))]
    for one in cast:
        if any(run(one.url, [EXACT])[0]):
            raise Disagreement(f"{one.name}, {one.size} records: the sums are not those of the records")
    return found


def ducks(cast: Sequence[Entrant], folder: Path) -> list[Duck]:
    """The same rows in a native table of DuckDB's, one file for each size."""
    found: list[Duck] = []
    for one in cast:
        if one.name == OURS and one.size:
            duck = Duck(folder / f"{one.size}.duckdb", one.organisation, one.size)
            if told(file=str(duck.file), organisation=duck.organisation, rows=duck.size) != {"rows": one.size}:
                raise Disagreement("DuckDB has other rows")
            found.append(duck)
    return found


def told(**given: Any) -> dict[str, Any]:
    """What DuckDB's process found out."""
    command = [sys.executable, "-m", "benchmarks.cdr_duckdb", json.dumps(given)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, timeout=600)
    return json.loads(done.stdout)


def agree(cast: Sequence[Entrant], beside: Sequence[Duck]) -> None:
    """The same answers, refusals and rows from everybody, and the same sums of the big tables."""
    compare({one.name: behaviour(one) for one in cast if not one.size})
    for duck in beside:
        seen = {one.name: {"month": summed(one)} for one in cast if one.size == duck.size}
        rows = told(file=str(duck.file), organisation=duck.organisation, seconds=0.0)["rows"]
        lines = [dict(zip(("iccid", "bytes_up", "bytes_down", "bytes_total", "events"), row, strict=False)) for row in rows[:1000]]
        compare(seen | {DUCKDB: {"month": [rows[0][5], len(rows) > 1000, lines]}})


def summed(one: Entrant) -> list[Any]:
    """A month as a contestant sums it."""
    answer = json.loads(run_ask(one.contestant.port, asked(one.key)).body)
    return [answer["total_bytes"], answer["truncated"], answer["data"]]


def behaviour(one: Entrant) -> dict[str, Any]:
    """What a contestant answers, and what it has stored then."""
    small = Batches(5, 2)
    request = small.requests(one.key, IN_ORDER)()
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    again = {**body["events"][0], "bytes_up": 1}
    new = {**again, "id": "new", "occurred_at": f"{YEAR}-11-01T01:30:00+02:00", "country": "no"}
    mixed = {"events": [new, again, {**new, "bytes_up": 5}, {**new, "id": "newer", "network": None, "occurred_at": 1_700_000_000}]}
    bad = [{**new, **wrong} for wrong in ({"iccid": "1"}, {"occurred_at": "2999-01-01T00:00:00Z"}, {"bytes_up": -1}, {"more": 1})]

    def send(given: object) -> bytes:
        return posted(one.key, json.dumps(given).encode())

    port = one.contestant.port
    answers = [run_ask(port, sent) for sent in (request, request, send(mixed))]
    seen = {
        "answers": [(answer.status, json.loads(answer.body)) for answer in answers],
        "refused": [run_ask(port, send({"events": [body["events"][1], wrong]})).status // 100 for wrong in bad],
        "no key": run_ask(port, request.replace(b"Bearer ak_", b"Bearer ax_")).status,
        "month": summed(one),
    }
    for table in ("cdr_event", "cdr_sum", "cdr_month"):
        seen[table] = sorted(run(one.url, [f"select * from {table}"]), key=str)
    seen["periods"] = run(one.url, ["select month, invoiced from invoice_period order by month"])
    return seen


def sums(cast: Sequence[Entrant], beside: Sequence[Duck], plan: Plan, number: int) -> list[dict[str, object]]:
    """A round of months summed: everybody at every size."""
    plan.say(f"{AGGREGATE} round {number + 1}/{plan.rounds}")
    turns: list[Entrant | Duck] = [one for one in [*cast, *beside] if one.size]
    shift = number * 2 % len(turns)
    found: list[dict[str, object]] = []
    for one in [*turns[shift:], *turns[:shift]]:
        named: dict[str, object] = {"case": AGGREGATE, "connections": 1, "round": number, "table": one.size}
        if isinstance(one, Duck):
            seen = told(file=str(one.file), organisation=one.organisation, seconds=plan.seconds * ASKING)
            found.append(named | {"contestant": DUCKDB} | figures(seen["times"], seen["seconds"], seen["cpu"], 0.0))
        else:
            request = asked(one.key)
            found.append(named | {"contestant": one.name} | turn(one, lambda request=request: request, 1, plan.seconds * ASKING))
    return found


def taking(cast: Sequence[Entrant], batches: Batches, plan: Plan, number: int, disk: float) -> list[dict[str, object]]:
    """A round of records taken: everybody at every size, in rotated order."""
    plan.say(f"{INGEST} round {number + 1}/{plan.rounds}")
    load = os.getloadavg()[0]
    turns = [(one, ids, senders) for senders in SENDERS for ids in (IN_ORDER, SCATTERED) for one in cast if ids in ids_for(one)]
    shift = number * 4 % len(turns)
    found: list[dict[str, object]] = []
    for one, ids, senders in [*turns[shift:], *turns[:shift]]:
        if not one.size:
            empty(one.url)
        seen = turn(one, batches.requests(one.key, ids), senders, plan.seconds)
        named = {"case": INGEST, "contestant": one.name, "connections": senders, "round": number, "table": one.size, "ids": ids}
        found.append(named | seen | {"batch": BATCH, "fsync_ms": round(disk, 3), "load": round(load, 1)})
    return found


def ids_for(one: Entrant) -> tuple[str, ...]:
    """Scattered ids only where there are others, and where a record is not so dear that its place does not matter."""
    return (IN_ORDER, SCATTERED) if one.size and one.name != CDR_TUTORIAL else (IN_ORDER,)


def turn(one: Entrant, make: Make, connections: int, seconds: float) -> dict[str, object]:
    """Warm up, measure; whoever answers otherwise than with 200 is not measured at all."""
    run_drive(one.contestant.port, make, connections=connections, seconds=WARM, expect=200)
    before = one.cpu()
    load = run_drive(one.contestant.port, make, connections=connections, seconds=seconds, expect=200)
    used, database = (now - then for now, then in zip(one.cpu(), before, strict=True))
    if load.errors or load.unanswered:
        raise Disagreement(f"{one.name}: {load.errors} answers were no 200, {load.unanswered} did not come")
    generator = {"generator_us": round(load.own_cpu / load.requests * 1e6, 1)}
    return figures(sorted(load.latencies), load.seconds, used, database) | generator


def figures(times: Sequence[float], seconds: float, cpu: float, database: float) -> dict[str, object]:
    """A turn's, from the times of its requests in order. `database_us` is what PostgreSQL used."""
    return {
        "requests": len(times),
        "errors": 0,
        "seconds": round(seconds, 4),
        "cpu_us": round(cpu / len(times) * 1e6, 1),
        "database_us": round(database / len(times) * 1e6, 1),
        "p50_ms": round(times[len(times) // 2] * 1000, 3),
        "p99_ms": round(times[min(len(times) - 1, int(len(times) * 0.99))] * 1000, 3),
    }
