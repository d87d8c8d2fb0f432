"""RESULTS.md, made from the raw samples beside it and from nothing else."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import cdr_page, console_page, endurance_page, events_page, issuing_page, scale_page, upstream_page, webhooks_page
from benchmarks.names import BARE, FASTMCP, HANDWRITTEN, LOWLEVEL, OURS, TUNED, TUTORIAL
from benchmarks.reasons import reason
from benchmarks.tables import Aim, Row, middle, of, ratios, spread, table, versus

FOLDER = Path(__file__).parent
SAMPLES, RESULTS = FOLDER / "samples", FOLDER / "RESULTS.md"
SCENARIOS = ("get", "post", "mcp", "route", "start", "upstream", "webhooks", "issuing", "cdr", "scale")

INTRO = """# Side-by-side measurements

Made by `python3 ./run bench`: this file is written from `samples/*.json` by `benchmarks/results.py`, and a test
compares the two. Nothing here is asserted anywhere. Ratios above 1 are in favour of this service.

## Rules

1. Every contestant does all of the work: the same tables on its own copy of one database, the same API key looked up
   in it, the same rows, the same sealing (AES-256-GCM), the same answer. Before anything is timed, answers (status,
   shape and values but what is drawn), replays, refusals and the number of rows written are compared, and a
   difference ends the run.
2. Rivals run as their documentation says and as an expert would tune them; both are shown.
3. Contestants run as processes of their own under uvicorn with uvloop and httptools, one worker, without an access
   log; each round gives everybody a turn, in rotated order. Ratios are medians of per-round ratios, with the lowest
   and highest round in brackets; rows of different runs are never divided. CPU is user and system time of the whole
   process tree per request.
4. SQLite in WAL mode with synchronous=FULL for everybody: an answered POST is on disk.
5. Why a slow one is slow is said below its table.
6. Limits: one shared virtual machine and disk, loopback without TLS, load generator on the same cores. Read ratios
   and CPU, never requests per second.
"""
WORK = """A POST rechecks key and membership, inserts the claim with the sealed answer, charges the quota, inserts the intent
with its sealed eSIM and the event, looks for enabled endpoints and inserts the audit row: one transaction. A GET
looks up the key's change counter, takes one call from a leased quota block, selects the intent, opens its eSIM and
buffers the audit row and a log line.

- **Starlette + msgspec by hand** is tuned: msgspec Structs, stored JSON spliced in unparsed, raw sqlite3 with
  constant statements, time-ordered ids, a checkpointer thread, a key cache, a frozen collector, 176 routes in the
  order of the specification. It checks neither host, origin nor header sizes, and has no confirmations, tiers, error
  texts or schema.
- **FastAPI tuned**: async handlers, the same raw store, orjson bytes returned as they are, 176 routes.
- **FastAPI tutorial + SQLModel**: def handlers, Depends, a Session per request, response models, 176 routes. Each
  call makes several thread hops and builds ORM objects. In its favour: WAL, a pool of 64 connections, leased quota
  and buffered audit rows for reads, no log line.
"""
MCP_NOTE = """`tools/call` of get_connectivity_intent at 16 connections, without a session; each side registers the very tools that
this service lists ({tools}). Rivals do the GET of the hand-written server in their tool. All answer
plain JSON. This service does so after the SDK's own checks but past the rest of it, for a call that asks for no progress,
no confirmation and nobody outside (SERVICE_MCP_EDGE); a client that hangs up cancels its call all the same. FastMCP gives
the SDK no `get_tool_input_schema`, so every call with arguments lists all tools first: its cost grows with their number.
"""
ROUTE_NOTE = """A GET without a credential (401) at the first and at the last GET route of the table, and at the one with the most
segments and parameters: the same work but for finding the route. This service's table has {ours} operations today; the
hand-written server has 176 routes.
"""
START_NOTE = """From the start of the process to the first 200 of `/health`, on an existing database, warm disk cache; memory
(resident, idle for a second) counts mapped pages. Bare import: `import sqlmodel, starlette.applications, uvicorn,
orjson, pydantic` in a new interpreter.
"""


def load(folder: Path = SAMPLES) -> dict[str, Any]:
    """The sample files, by scenario."""
    found = {name: json.loads((folder / f"{name}.json").read_text()) for name in SCENARIOS if (folder / f"{name}.json").exists()}
    return found | events_page.samples(folder) | endurance_page.samples(folder) | console_page.samples(folder)


def render(samples: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [INTRO, aims(samples)]
    if "get" in samples or "post" in samples:
        parts.append("## GET and POST of an intent\n\n" + WORK)
    for name, title in (("get", "### GET by id"), ("post", "### POST")):
        if name in samples:
            rows = samples[name]["rows"]
            why = reason("get") if name == "get" else why_post(rows)
            parts.append(f"{title}\n\n{versus(rows, (HANDWRITTEN, TUNED, TUTORIAL))}\n{disk(rows)}{why}")
    if "mcp" in samples:
        note = MCP_NOTE.format(tools=samples["mcp"]["facts"]["tools"])
        parts.append(f"## MCP\n\n{note}\n{versus(samples['mcp']['rows'], (LOWLEVEL, FASTMCP), by_connections=False)}")
    if "upstream" in samples:
        parts.append(upstream_page.section(samples["upstream"]["rows"]))
    if "webhooks" in samples:
        parts.append(webhooks_page.section(samples["webhooks"]["rows"]))
    if "issuing" in samples:
        parts.append(issuing_page.section(samples["issuing"]["rows"]))
    if "cdr" in samples:
        parts.append(cdr_page.section(samples["cdr"]["rows"]))
    if "scale" in samples:
        parts.append(scale_page.section(samples["scale"]["rows"]))
    if "route" in samples:
        note = ROUTE_NOTE.format(ours=samples["route"]["facts"]["operations"])
        parts.append(f"## Position in the route table\n\n{note}\n{positions(samples['route']['rows'])}")
    if "start" in samples:
        parts.append(f"## Start and memory\n\n{START_NOTE}\n{starts(samples['start']['rows'])}{reason('start')}")
    if events := events_page.among(samples):
        parts.append(events_page.section(events))
    if endurance := endurance_page.among(samples):
        parts.append(endurance_page.section(endurance))
    if console_page.NAME in samples:
        parts.append(console_page.section(samples[console_page.NAME]))
    parts.append("## Where and when\n\n" + places({name: samples[name] for name in samples if name not in endurance}))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def disk(rows: Sequence[Row]) -> str:
    """What an fsync cost meanwhile."""
    times = [row["fsync_ms"] for row in rows if row["fsync_ms"]]
    if not times:
        return ""
    found = f"{min(times):.2f} - {max(times):.2f} ms, median {median(times):.2f}"
    return f"\nAppend of 4 KiB and fsync on this disk during these rounds: {found}.\n"


def why_post(rows: Sequence[Row]) -> str:
    """What the time of an fsync makes of the aim, by the rows of one run."""
    fsync = median(row["fsync_ms"] for row in rows)
    ours, theirs = (middle(of(rows, name, connections=64), "cpu_us") for name in (OURS, HANDWRITTEN))
    whole = theirs + fsync * 1000
    return reason("post", fsync=fsync, ours=ours, theirs=theirs, whole=whole, most=whole / ours)


def positions(rows: Sequence[Row]) -> str:
    """The last route and the longest against the first."""
    lines: list[list[str]] = []
    others = others_of(rows)
    for name in (OURS, HANDWRITTEN):
        costs = [f"{middle(of(rows, name, case=case), 'cpu_us'):.0f}" for case in ("first", *others)]
        lines.append([name, *costs, *(spread(against_first(rows, name, case)) for case in others)])
    return table(["", "CPU us, first route", *others, *(f"{case} / first" for case in others)], lines)


def others_of(rows: Sequence[Row]) -> list[str]:
    """What the first route was compared with."""
    return [case for case in dict.fromkeys(row["case"] for row in rows) if case != "first"]


def against_first(rows: Sequence[Row], name: str, case: str) -> list[float]:
    """What a route costs, as a multiple of the first, round by round."""
    return [b["cpu_us"] / a["cpu_us"] for a, b in zip(of(rows, name, case="first"), of(rows, name, case=case), strict=True)]


def starts(rows: Sequence[Row]) -> str:
    """Start and memory of everybody."""
    bare = of(rows, BARE)
    lines = [[BARE, f"{middle(bare, 'ms'):.0f}", "1", f"{middle(bare, 'cpu_ms'):.0f}", "1", ""]]
    for name in dict.fromkeys(row["contestant"] for row in rows if row["contestant"] != BARE):
        own = of(rows, name)
        times = [a["ms"] / b["ms"] for a, b in zip(own, bare, strict=True)]
        works = [a["cpu_ms"] / b["cpu_ms"] for a, b in zip(own, bare, strict=True)]
        costs = [f"{middle(own, 'cpu_ms'):.0f}", spread(works), f"{middle(own, 'rss_mb'):.0f}"]
        lines.append([name, f"{middle(own, 'ms'):.0f}", spread(times), *costs])
    return table(["", "ms to the first answer", "x bare import", "CPU ms", "x bare import", "RSS MB, idle"], lines)


def aims(samples: Mapping[str, Any]) -> str:
    """What was aimed at and what was reached."""
    found: list[Aim] = []

    def at_least(scenario: str, rival: str, aim: float, text: str, **by: Any) -> None:
        if scenario in samples:
            value = median(ratios(samples[scenario]["rows"], rival, **by))
            found.append(Aim(text, f">= {aim}", f"{value:.2f}", value >= aim))

    for connections in (1, 16, 64):
        at_least("get", HANDWRITTEN, 1.0, f"GET by id against {HANDWRITTEN}, c={connections}", connections=connections)
    for connections, aim in ((1, 0.8), (16, 2.0), (64, 3.0)):
        at_least("post", HANDWRITTEN, aim, f"POST against {HANDWRITTEN}, c={connections}", connections=connections)
    for scenario in ("get", "post"):
        for connections in (1, 16, 64):
            at_least(scenario, TUTORIAL, 8, f"{scenario.upper()} against {TUTORIAL}, c={connections}", connections=connections)
    at_least("mcp", FASTMCP, 2, "MCP tools/call against FastMCP, 2025-11-25", case="2025-11-25")
    at_least("mcp", FASTMCP, 10, "MCP tools/call against FastMCP, 2026-07-28", case="2026-07-28")
    if "route" in samples:
        rows = samples["route"]["rows"]
        most = max(median(against_first(rows, OURS, case)) for case in others_of(rows))
        found.append(Aim("CPU of the last and the longest route against the first", "<= 1.05", f"{most:.2f}", most <= 1.05))
    if "start" in samples:
        rows = samples["start"]["rows"]
        times = median([a["ms"] / b["ms"] for a, b in zip(of(rows, OURS), of(rows, BARE), strict=True)])
        memory = middle(of(rows, OURS), "rss_mb")
        found.append(Aim("Start to first answer against the bare import", "<= 1.5", f"{times:.2f}", times <= 1.5))
        found.append(Aim("Memory at idle", "< 90 MB", f"{memory:.0f} MB", memory < 90))
    if "upstream" in samples:
        found += upstream_page.aims(samples["upstream"]["rows"])
    if "webhooks" in samples:
        found += webhooks_page.aims(samples["webhooks"]["rows"])
    if "issuing" in samples:
        found += issuing_page.aims(samples["issuing"]["rows"])
    if "cdr" in samples:
        found += cdr_page.aims(samples["cdr"]["rows"])
    if "scale" in samples:
        found += scale_page.aims(samples["scale"]["rows"])
    found += events_page.aims(events_page.among(samples)) + endurance_page.aims(endurance_page.among(samples))
    return "## Aims\n\n" + table(
        ["", "aim", "reached", ""], [[aim.text, aim.aim, aim.reached, "yes" if aim.met else "**not yet**"] for aim in found]
    )


def places(samples: Mapping[str, Any]) -> str:
    """The machine, the versions and the length of each run."""
    lines: list[list[str]] = []
    for name, sample in samples.items():
        run = sample["run"]
        lines.append([name, run["date"], str(run["rounds"]), f"{run['seconds']:g}", run["machine"], run["revision"]])
    versions = next(iter(samples.values()))["run"]["versions"] if samples else {}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return table(["scenario", "date", "rounds", "seconds per turn", "machine", "revision"], lines) + f"\n{listed}.\n"
