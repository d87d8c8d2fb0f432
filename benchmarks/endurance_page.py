"""The section on endurance: a long mixed load on both databases."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.reasons import reason
from benchmarks.tables import Aim, Row, table

ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
INTRO = """## Endurance

Made by `python3 ./run endure`: real servers over sockets under a mixed load at {share:.0%} of the capacity that was measured
right before under the same circumstances (a closed loop of 16 callers). Calls come when they come (Poisson), so a time counts
from when a call was due. Reads, test eSIMs with keys of which a tenth is used again, MCP tools/call, call records in
overlapping batches, invoices; beside them eSIMs from stock, most of them given back, and paid orders of a shop, while the
network and the payment processor delay, refuse, break off or lose answers every few seconds, and receivers of webhooks are
slow, fail or hang up. At the end every ledger is held against every other: keys against the network's own log, events against
deliveries and receivers, quota and audit rows against the calls that were answered, sums of call records and of invoices,
orders against payments and eSIMs.

A shop visit ends after 60 seconds without an eSIM (`after order`), and more than one in a hundred does, so that this is its p99. The
charging system's answer to such a buyer's draw was lost: none is sent a second time before it is proved that nothing was drawn, which
takes 15 minutes in which nothing happens. `overloaded` is the limit of 512 connections: four hundred calls may be under way, and in the
first half minute two hundred clients who send a byte a second hold theirs.

Memory is flat when the median of the last third after the warm-up (the first fifth) is at most 5 % or 3 MB above that of
the first third; runs of less than {shortest} minutes are not judged by it. The slope is by least
squares. It is the memory that is a process's own: what SQLite maps of its file is
resident beside it, and grows with the file up to 256 MB.
"""
MOST_MB, MOST_GROWTH = 3.0, 0.05
SHORTEST_MINUTES = 10
"""Caches, pools and the allocator fill in the first minutes, which is no leak."""


def name_of(engine: str) -> str:
    """Of the file of samples."""
    return f"endurance-{engine}"


def samples(folder: Path) -> dict[str, Any]:
    """What there is of both databases."""
    files = {engine: folder / f"{name_of(engine)}.json" for engine in ENGINES}
    return {name_of(engine): json.loads(file.read_text()) for engine, file in files.items() if file.exists()}


def among(found: Mapping[str, Any]) -> dict[str, Any]:
    """Those of them that are runs of endurance."""
    names = [name_of(engine) for engine in ENGINES]
    return {name: found[name] for name in names if name in found}


def judges_memory(facts: Mapping[str, Any]) -> bool:
    """Whether the run was long enough."""
    return facts["seconds"] >= SHORTEST_MINUTES * 60


def judgement(facts: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """What did not hold; empty when all did."""
    grown = [
        f"memory of {row['process']}: {row['first_mb']} MB in the first third, {row['last_mb']} MB in the last"
        for row in rows
        if row["row"] == "memory" and not row["flat"] and judges_memory(facts)
    ]
    unspecified = [f"{count} x {what}: not a specified answer" for what, count in facts["unspecified"].items()]
    return [*facts["broken"], *unspecified, *grown, *facts["complaints"]]


LONGEST_MS = {"GET intent": 30, "POST intent": 150, "POST invoice": 150, "POST records": 150}
"""The 99th percentile of calls that ask no outside system, in milliseconds."""


def aims(found: Mapping[str, Any]) -> list[Aim]:
    """What was aimed at under the load, of each database."""
    return [aim for sample in found.values() for aim in aims_of(sample["facts"], sample["rows"])]


def aims_of(facts: Mapping[str, Any], rows: Sequence[Row]) -> list[Aim]:
    place = f"under the load of endurance, {ENGINES[facts['engine']]}"
    times = {row["kind"]: row["p99_ms"] for row in rows if row["row"] == "kind"}
    asked = {kind: most for kind, most in LONGEST_MS.items() if kind in times}
    reached = [Aim(f"{kind}, p99, {place}", f"<= {most} ms", f"{times[kind]:.0f} ms", times[kind] <= most) for kind, most in asked.items()]
    away = sum(row["count"] for row in rows if row["row"] == "status" and row["code"] == "overloaded")
    return [*reached, Aim(f"Calls refused as `overloaded` {place}", "0", str(away), away == 0)]


def section(found: Mapping[str, Any]) -> str:
    """Both databases, one after the other."""
    first = next(iter(found.values()))["facts"]
    parts = [INTRO.format(share=first["rate"] / first["capacity"], shortest=SHORTEST_MINUTES)]
    parts += [of_engine(sample["facts"], sample["rows"], sample["run"]) for sample in found.values()]
    if any(not aim.met for aim in aims(found)):
        parts.append(reason("endurance"))
    return "\n".join(parts)


def of_engine(facts: Mapping[str, Any], rows: Sequence[Row], run: Mapping[str, Any]) -> str:
    """One database."""
    wrong = judgement(facts, rows)
    calls = sum(row["count"] for row in rows if row["row"] == "status")
    load = f"{facts['seconds'] / 60:.0f} minutes at {facts['rate']:.0f} of {facts['capacity']:.0f} calls per second, seed {facts['seed']}"
    place = f"{run['date']}, {run['machine']}, {run['revision']}"
    held = "**not all held**" if wrong else "all held"
    away = ", ".join(f"the {name} for {seconds:.0f} s" for name, seconds in facts.get("outages", {}).items())
    outages = f" In the middle there was no answer of {away}." if away else ""
    # Earlier runs measured the capacity for 20 seconds, of calls alone.
    worked = f" The capacity includes all that calls leave to later; the processors worked {facts.get('busy', 0):.0%} of the time."
    beside = worked if "busy" in facts else ""
    text = f"""### On {ENGINES[facts["engine"]]}

{load}, {place}: {calls:,} calls, {facts["faults_outside"]} faults outside; {held}.{beside}{outages}
"""
    parts = [text, *(f"- {line}\n" for line in wrong[:10]), memories(rows), kinds(rows), statuses(rows)]
    return "\n".join(parts)


def memories(rows: Sequence[Row]) -> str:
    """Each process."""
    lines = [
        [
            row["process"],
            f"{row['first_mb']:.1f}",
            f"{row['last_mb']:.1f}",
            f"{row['mb_per_hour']:+.2f}",
            "yes" if row["flat"] else "**no**",
            f"{row['resident_first_mb']:.0f} / {row['resident_last_mb']:.0f}",
            " ".join(f"{mb:.0f}" for mb in row.get("course_mb", ())),
        ]
        for row in rows
        if row["row"] == "memory"
    ]
    return table(["process", "own MB, first third", "last third", "MB per hour", "flat", "resident MB", "own MB in each fifteenth"], lines)


def kinds(rows: Sequence[Row]) -> str:
    """How long calls took, from when they were due."""
    lines = [[row["kind"], f"{row['calls']:,}", f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}"] for row in rows if row["row"] == "kind"]
    return table(["call", "calls", "p50 ms", "p99 ms"], lines)


def statuses(rows: Sequence[Row]) -> str:
    """What was answered but success."""
    lines = [
        [row["kind"], str(row["status"]), row["code"], f"{row['count']:,}"]
        for row in rows
        if row["row"] == "status" and not 200 <= row["status"] < 400
    ]
    return table(["call", "status", "code", "count"], lines) if lines else ""
