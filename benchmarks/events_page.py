"""The section on the log of events, and its aims."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.names import BEFORE_LOG, POSTGRES, SQLITE, WITH_LOG
from benchmarks.tables import Aim, Row, of, speed, spread, table

PARTS = ("cost", "messages", "places", "matching", "posts", "webhooks", "stream", "pages")
ENGINES = (SQLITE, POSTGRES)
COST_AIM_US, POSTS_AIM, MATCH_AIM_US, STREAM_AIM_MS, PAGE_AIM_MS, WEBHOOKS_AIM = 15.0, 0.97, 30.0, 1000.0, 20.0, 1.0
ALONE = 1

INTRO = """## The log of events

Made by `python -m benchmarks.events --before CHECKOUT`: this revision beside the last one before the log, on databases of their own of the
same kind, in turns, now the one first and now the other. Ratios and differences are made within a round; shown is the median with the
lowest and the highest. No endpoint has chosen any types, as it is where nobody has heard of the log. Load is that of the machine in the
minute before, what is measured included.
"""

COST = """### An event that nobody has subscribed to

`esim.issued` is recorded as before and written to the log. CPU of the process for each event, in transactions of one and of fifty, as
many as share a commit under load; on PostgreSQL that of the server's process is told apart, and the aim is for both together.
"""

MESSAGES = """### Statements and round trips

One transaction, as the driver sees it, BEGIN and COMMIT counted where they are messages of their own: a write, the same write with an event
of a new type, and an event of an old type.
"""

PLACES = """### Places

An event gets its place from the worker, after the commit that made it true: its CPU for each event (on PostgreSQL without the server's),
when 500 wait and when one does. It comes on top of the first table, in another process where the worker is one.
"""

MATCHING = """### Matching

One event against 16 endpoints that have chosen 40 globs each, no two of them alike: CPU of this process. "First" is an endpoint's first
event, for which its globs are read.
"""

POSTS = """### Calls that write events

POST of an intent (`esim.issued`), of an order in a shop (`order.created`) and of an invoice (`invoice.created`). On PostgreSQL the worker
is a process of its own, whose CPU stands behind the +; on SQLite it is in the server's.
"""

WEBHOOKS = """### Deliveries of both revisions

The worker on a backlog for the 180 endpoints of the section on webhooks, with 50 POSTs under way, to the same receivers.
"""

STREAM = """### From the commit to the frame

Server and worker are two processes. Twenty test intents a second are posted, and eight readers follow stream_events; the time is from the
sending of a POST, which is a little before its commit, to its frame at each reader.
"""

PAGES = """### A million events kept

{events} events of ninety days of one organisation, of all types by turns but for one that is rare, each with a delivery to one of 16
endpoints. Every call begins at another place of the log, drawn at random. Times are from the request to the whole page over HTTP, one
call at a time, of a stream to its first page of 100; events/poll makes a connection for each call.
"""


def name_of(part: str) -> str:
    """Of the file of samples."""
    return f"events-{part}"


def samples(folder: Path) -> dict[str, Any]:
    """What there is of each part."""
    files = {part: folder / f"{name_of(part)}.json" for part in PARTS}
    return {name_of(part): json.loads(file.read_text()) for part, file in files.items() if file.exists()}


def among(found: Mapping[str, Any]) -> dict[str, Any]:
    """The parts on the log among all samples."""
    names = [name_of(part) for part in PARTS]
    return {name: found[name] for name in names if name in found}


def section(found: Mapping[str, Any]) -> str:
    """All parts that were measured."""
    shown = {
        "cost": (COST, cost_table),
        "messages": (MESSAGES, messages_table),
        "places": (PLACES, places_table),
        "matching": (MATCHING, matching_table),
        "posts": (POSTS, posts_table),
        "webhooks": (WEBHOOKS, webhooks_table),
        "stream": (STREAM, stream_table),
        "pages": (PAGES, pages_table),
    }
    parts = [INTRO]
    for part, (text, make) in shown.items():
        if (sample := found.get(name_of(part))) is not None:
            rows = sample["rows"]
            note = sample["facts"].get("note", "")
            told = text.format(events=f"{rows[0]['events']:,}") if part == "pages" else text
            parts.append(f"{told}\n{make(rows)}" + (f"\n{note}\n" if note else ""))
    return "\n".join(parts)


def cpu_of(row: Row) -> float:
    """Of the process and of PostgreSQL's."""
    return row["cpu_us"] + row["server_cpu_us"]


def engines_of(rows: Sequence[Row]) -> list[str]:
    return [engine for engine in ENGINES if any(row["engine"] == engine for row in rows)]


def more_than_before(rows: Sequence[Row], engine: str, batch: int) -> list[float]:
    """What an event costs more than before, round by round, in microseconds of CPU."""
    pairs = zip(of(rows, WITH_LOG, engine=engine, batch=batch), of(rows, BEFORE_LOG, engine=engine, batch=batch), strict=True)
    return [cpu_of(a) - cpu_of(b) for a, b in pairs]


def loads(rows: Sequence[Row]) -> str:
    found = [row["load"] for row in rows]
    return f"{min(found):.1f} - {max(found):.1f}"


def cost_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for engine in engines_of(rows):
        for batch in dict.fromkeys(row["batch"] for row in rows):
            mine = [row for row in rows if row["engine"] == engine and row["batch"] == batch]
            ours, theirs = of(mine, WITH_LOG), of(mine, BEFORE_LOG)
            parts = [
                " / ".join(f"{median(row[name] for row in side):.0f}" for side in (ours, theirs)) for name in ("cpu_us", "server_cpu_us")
            ]
            lines.append([engine, str(batch), spread(more_than_before(rows, engine, batch)), *parts, loads(mine)])
    head = ["", "events in a transaction", "more CPU, us", "CPU us, with the log / before", "PostgreSQL's CPU us", "load"]
    return table(head, lines)


def messages_table(rows: Sequence[Row]) -> str:
    lines = [[row["engine"], row["case"], str(row["statements"]), str(row["round_trips"] or "")] for row in rows]
    return table(["", "a transaction", "statements", "round trips"], lines)


def extra_round_trips(rows: Sequence[Row]) -> int:
    """Round trips that a new event adds on PostgreSQL."""
    trips = {row["case"]: row["round_trips"] for row in rows if row["engine"] == POSTGRES}
    return trips["with one"] - trips["without an event"]


def extra_statements(rows: Sequence[Row], engine: str) -> int:
    counted = {row["case"]: row["statements"] for row in rows if row["engine"] == engine}
    return counted["with one"] - counted["without an event"]


def places_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for engine in engines_of(rows):
        mine = [row for row in rows if row["engine"] == engine]
        costs = [spread([row["cpu_us"] for row in mine if row["case"] == case]) for case in ("many", "alone")]
        lines.append([engine, *costs, loads(mine)])
    return table(["", "CPU us, 500 at once", "CPU us, alone", "load"], lines)


def matching_table(rows: Sequence[Row]) -> str:
    costs = [spread([row[name] for row in rows]) for name in ("us", "first_us")]
    return table(["endpoints", "globs of each", "us an event", "us, first", "load"], [["16", "40", *costs, loads(rows)]])


def post_ratios(rows: Sequence[Row], engine: str, case: str, connections: int) -> list[float]:
    """Requests a second with the log over those before it, round by round."""
    by = {"engine": engine, "case": case, "connections": connections}
    return [speed(a) / max(speed(b), 1e-9) for a, b in zip(of(rows, WITH_LOG, **by), of(rows, BEFORE_LOG, **by), strict=True)]


def post_cases(rows: Sequence[Row]) -> list[tuple[str, str, int]]:
    return list(dict.fromkeys((row["engine"], row["case"], row["connections"]) for row in rows))


def posts_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for engine, case, connections in post_cases(rows):
        mine = [row for row in rows if (row["engine"], row["case"], row["connections"]) == (engine, case, connections)]
        pair = [of(mine, name) for name in (WITH_LOG, BEFORE_LOG)]
        cpu = " / ".join(post_cpu(side) for side in pair)
        times = [" / ".join(f"{median(row[name] for row in side):.2f}" for side in pair) for name in ("p50_ms", "p99_ms")]
        errors = " / ".join(str(sum(row["errors"] for row in side)) for side in pair)
        rates = " / ".join(f"{median(map(speed, side)):.0f}" for side in pair)
        lines.append(
            [
                engine,
                case,
                f"c={connections}",
                spread(post_ratios(rows, engine, case, connections)),
                rates,
                cpu,
                *times,
                errors,
                loads(mine),
            ]
        )
    head = ["", "POST of an", "", "ratio", "per second here, with the log / before", "CPU us", "p50 ms", "p99 ms", "errors", "load"]
    return table(head, lines)


def post_cpu(side: Sequence[Row]) -> str:
    """Of the server, and of a worker beside it."""
    worker = median(row["worker_cpu_us"] for row in side)
    return f"{median(row['cpu_us'] for row in side):.0f}" + (f" + {worker:.0f}" if worker else "")


def webhook_ratios(rows: Sequence[Row], engine: str) -> list[float]:
    return [
        speed(a) / max(speed(b), 1e-9) for a, b in zip(of(rows, WITH_LOG, engine=engine), of(rows, BEFORE_LOG, engine=engine), strict=True)
    ]


def webhooks_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for engine in engines_of(rows):
        pair = [of(rows, name, engine=engine) for name in (WITH_LOG, BEFORE_LOG)]
        rates = " / ".join(f"{median(map(speed, side)):.0f}" for side in pair)
        cpu = " / ".join(f"{median(row['cpu_us'] for row in side):.0f}" for side in pair)
        lines.append([engine, spread(webhook_ratios(rows, engine)), rates, cpu, loads([*pair[0], *pair[1]])])
    return table(["", "deliveries, ratio", "per second here, with the log / before", "CPU us", "load"], lines)


def stream_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for engine in engines_of(rows):
        mine = [row for row in rows if row["engine"] == engine]
        times = [f"{median(row[name] for row in mine):.0f}" for name in ("p50_ms", "p99_ms")]
        lines.append([engine, str(sum(row["count"] for row in mine)), *times, f"{max(row['most_ms'] for row in mine):.0f}", loads(mine)])
    return table(["", "frames", "p50 ms", "p99 ms", "longest", "load"], lines)


def pages_table(rows: Sequence[Row]) -> str:
    lines = list[list[str]]()
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = {row["engine"]: row for row in rows if row["case"] == case}
        figures = [" / ".join(f"{mine[engine][name]:.1f}" for engine in mine) for name in ("p50_ms", "p99_ms", "most_ms")]
        lines.append([case, *figures, " / ".join(f"{mine[engine]['load']:.1f}" for engine in mine)])
    return table(["", f"p50 ms, {' / '.join(engines_of(rows))}", "p99 ms", "longest", "load"], lines)


def aims(found: Mapping[str, Any]) -> list[Aim]:
    """What was aimed at with the log."""
    rows = {part: found[name_of(part)]["rows"] for part in PARTS if name_of(part) in found}
    return [*cost_aims(rows), *post_aims(rows), *reading_aims(rows)]


def cost_aims(rows: Mapping[str, Sequence[Row]]) -> list[Aim]:
    """Of writing."""
    made = list[Aim]()
    for engine in engines_of(rows.get("cost", ())):
        for batch in dict.fromkeys(row["batch"] for row in rows["cost"]):
            value = median(more_than_before(rows["cost"], engine, batch))
            how = "alone in its transaction" if batch == ALONE else f"{batch} in a transaction"
            text = f"CPU of an event without a subscriber beside before the log, {engine}, {how}"
            made.append(Aim(text, f"<= {COST_AIM_US:g} us more", f"{value:.0f} us", value <= COST_AIM_US))
    if "messages" in rows:
        statements = max(extra_statements(rows["messages"], engine) for engine in engines_of(rows["messages"]))
        made.append(Aim("Statements that an event of a new type adds to its transaction", "1", str(statements), statements == 1))
        if POSTGRES in engines_of(rows["messages"]):
            trips = extra_round_trips(rows["messages"])
            made.append(Aim("Round trips that it adds on PostgreSQL", "0", str(trips), trips <= 0))
    if "matching" in rows:
        value = median(row["us"] for row in rows["matching"])
        made.append(
            Aim("Match of an event with 16 endpoints of 40 globs", f"<= {MATCH_AIM_US:g} us", f"{value:.1f} us", value <= MATCH_AIM_US)
        )
    return made


def post_aims(rows: Mapping[str, Sequence[Row]]) -> list[Aim]:
    """Beside the revision before."""
    made = list[Aim]()
    for engine, case, connections in post_cases(rows.get("posts", ())):
        value = median(post_ratios(rows["posts"], engine, case, connections))
        text = f"POST of an {case} beside before the log, {engine}, c={connections}"
        made.append(Aim(text, f">= {POSTS_AIM}", f"{value:.2f}", value >= POSTS_AIM))
    for engine in engines_of(rows.get("webhooks", ())):
        value = median(webhook_ratios(rows["webhooks"], engine))
        made.append(
            Aim(f"Webhooks per second beside before the log, {engine}", f">= {WEBHOOKS_AIM:g}", f"{value:.2f}", value >= WEBHOOKS_AIM)
        )
    return made


def reading_aims(rows: Mapping[str, Sequence[Row]]) -> list[Aim]:
    """Of streams and lists."""
    made = list[Aim]()
    for engine in engines_of(rows.get("stream", ())):
        value = median(row["p99_ms"] for row in rows["stream"] if row["engine"] == engine)
        made.append(Aim(f"Commit to SSE frame, p99, {engine}", f"<= {STREAM_AIM_MS:.0f} ms", f"{value:.0f} ms", value <= STREAM_AIM_MS))
    for engine in engines_of(rows.get("pages", ())):
        worst = max((row for row in rows["pages"] if row["engine"] == engine), key=lambda row: row["p99_ms"])
        text = f"A page of any list of a million events, p99, {engine}; the worst: {worst['case']}"
        made.append(Aim(text, f"<= {PAGE_AIM_MS:.0f} ms", f"{worst['p99_ms']:.1f} ms", worst["p99_ms"] <= PAGE_AIM_MS))
    return made
