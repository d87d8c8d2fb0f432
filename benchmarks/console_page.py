"""The section on the console at 100,000 lines."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.tables import table

NAME = "console"
NOTE = """One organisation on SQLite: {rows}. Every page was asked for again and again over one connection at a load of {load}. The times of
the clock are the browser's, and where the machine had other work they say little: CPU is what the server spent on a request, all threads,
the middle one of them. A page holds the seal of its forms, so it is sent as it is, not compressed; the style sheet and the
script are compressed. Upstream calls are those of a network in another process, by visit.
"""
SLOW = """Economics and high_cost_subscribers spend their time in the sums over the days of all lines, Fleet in counting the lines that fit.
"""
HEAD = ("Page", "Aim ms", "CPU ms, p50", "p50 ms", "p99 ms", "kB", "Upstream calls", "CPU within the aim")


def samples(folder: Path) -> dict[str, Any]:
    """What was measured, where it was."""
    file = folder / f"{NAME}.json"
    return {NAME: json.loads(file.read_text())} if file.exists() else {}


def section(sample: Mapping[str, Any]) -> str:
    """All pages, the first visit and the streams; what is to be known of this run alone is its `remark`."""
    facts = sample["facts"]
    rows = ", ".join(f"{count:,} rows of {name}" for name, count in facts["rows"].items())
    lines = [
        [
            row["page"],
            f"{row['aim']:g}",
            f"{row['cpu_ms']:.1f}",
            f"{row['p50_ms']:.1f}",
            f"{row['p99_ms']:.1f}",
            f"{row['kb']:.1f}",
            f"{row['calls']:.1f}",
            "yes" if row["cpu_ms"] <= row["aim"] else "**no**",
        ]
        for row in sample["rows"]
    ]
    parts = ["## The console at 100,000 lines", NOTE.format(rows=rows, load=facts["load"]), table(HEAD, lines), *first_visit(facts)]
    return "\n".join((*parts, *streams(facts), SLOW, facts.get("remark", "")))


def first_visit(facts: Mapping[str, Any]) -> list[str]:
    """What a browser that was never here asks for."""
    if "first_visit" not in facts:
        return []
    asked = facts["first_visit"]
    sent = sum(kb for _, kb in asked)
    named = ", ".join(f"{name} {kb:.1f}" for name, kb in asked)
    return [f"First visit (aim: 60 kB in 3 requests): {sent:.1f} kB in {len(asked)} requests: {named}.\n"]


def streams(facts: Mapping[str, Any]) -> list[str]:
    """The streams of one address."""
    if "streams" not in facts:
        return ["The memory of 200 streams was not measured in this run.\n"]
    told = facts["streams"]
    return [
        f"Streams of one address (aim: 200 for 60 MB): {told['opened']} open, {told['of_console']} of them the console's, "
        f"{told['before_mb']:.0f} MB before and {told['with_mb']:.0f} MB with them. One more of the console: {told['refused']}.\n"
    ]
