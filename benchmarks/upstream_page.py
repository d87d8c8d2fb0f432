"""The section of RESULTS.md on operations that ask the charging system."""

from collections.abc import Sequence
from statistics import median

from benchmarks.names import CLIENT, HTTPX, HTTPX_TUNED, OURS, PROXY, UPSTREAM
from benchmarks.reasons import reason
from benchmarks.tables import Aim, Row, middle, of, ratios, spread, table, versus

MOST_TIMES = 1.5
LINE, RULES, LINES, SOME = "one line", "50 MB of prices", "10,000 lines", "20 of 10,000 lines"
BESIDE = (HTTPX, HTTPX_TUNED, PROXY, CLIENT, UPSTREAM)

NOTE = """The charging system is a stand-in (raw ASGI) that speaks the wire from prebuilt bodies, in a process of its own on the
same two cores. The organisation is connected in managed mode. Every gateway looks up the key and the connection, takes
one call from the leased quota, asks for the line, checks whose it is, lifts what holds now out of its histories, strips
PIN and PUK, buffers the audit row and a log line; answers are compared before anything is timed.

- **FastAPI + httpx**: dependencies, one shared client, dictionaries in and out, as the two documentations say.
- **FastAPI + httpx tuned**: one dependency, raw bodies through orjson, bytes returned as they are, a frozen collector.
  Both use httpx's default limits (100 connections, 20 kept), its better setting: it searches its pool at every request.
- **bare proxy on our client**: an upper bound, Starlette around `clients/ocs` without key, quota, audit row or log line.
- **bare client**: `clients/ocs` alone, as many tasks as connections, no server and no load generator.
- **the upstream itself**: the load generator asks the stand-in directly; its CPU is the stand-in's.
"""
BIG_NOTE = """The caller is aiohttp in a process of its own, the same for everybody: it reads the whole answer and, of the lists,
decodes it with orjson. "x direct" is its time against asking the stand-in directly in the same round. Memory is the
most that was resident in any round above the idle level of a fresh gateway, which has served small calls before. For the
upstream itself it is what the caller needs to hold the answer, and the last column is relative to that. Of the prices
this service passes the bytes; the gateways of FastAPI decode and encode. Of the lists every gateway decodes all lines,
lifts, strips and sorts them, and encodes all or the first 20.
"""


def section(rows: Sequence[Row]) -> str:
    """All of it."""
    lines = [row for row in rows if row["case"] == LINE]
    parts = [
        "## Calls to the charging system\n",
        NOTE,
        "### One line by ICCID\n",
        versus(lines, BESIDE),
        f"{latency(lines)}\n",
        why_added(lines),
    ]
    cpu = middle(of(rows, OURS, case=RULES), "cpu_ms")
    return "\n".join([*parts, "### Big answers\n", BIG_NOTE, bigs(rows), reason("upstream_big", aim=MOST_TIMES, cpu=cpu)])


def why_added(lines: Sequence[Row]) -> str:
    """What of the added latency is whose."""
    ours, proxy, client = (median(added(lines, name)) for name in (OURS, PROXY, CLIENT))
    return reason("upstream_line", client=client, proxy=proxy, rest=ours - proxy)


def added(lines: Sequence[Row], contestant: str) -> list[float]:
    """Median latency at one connection over that of the upstream itself, round by round."""
    own, direct = of(lines, contestant, connections=1), of(lines, UPSTREAM, connections=1)
    return [a["p50_ms"] - b["p50_ms"] for a, b in zip(own, direct, strict=True)]


def latency(lines: Sequence[Row]) -> str:
    """What a gateway adds."""
    found = ", ".join(f"{name} {spread(added(lines, name))}" for name in (OURS, *BESIDE) if name != UPSTREAM)
    return f"Added to the median latency at c=1, ms: {found}."


def bigs(rows: Sequence[Row]) -> str:
    """Time and memory of the big answers."""
    lines: list[list[str]] = []
    for case in (RULES, LINES, SOME):
        direct = of(rows, UPSTREAM, case=case)
        held = max(row["added_mb"] for row in direct)
        for name in (OURS, HTTPX_TUNED, HTTPX, UPSTREAM):
            own = of(rows, name, case=case)
            most = max(row["added_mb"] for row in own)
            idle = "" if name == UPSTREAM else f"{middle(own, 'idle_mb'):.0f}"
            share = "" if case == RULES else f"{most / held:.2f}"
            times = [f"{middle(own, 'ms'):.0f}", spread(against(own, direct)), f"{middle(own, 'cpu_ms'):.0f}"]
            lines.append([case, name, *times, idle, f"{most:.0f}", share])
    return table(["answer", "asked", "ms", "x direct", "CPU ms", "idle MB", "added MB", "x direct"], lines)


def against(own: Sequence[Row], direct: Sequence[Row]) -> list[float]:
    """Time over that of asking directly, round by round."""
    return [a["ms"] / b["ms"] for a, b in zip(own, direct, strict=True)]


def aims(rows: Sequence[Row]) -> list[Aim]:
    """What was aimed at."""
    found: list[Aim] = []
    for rival in (HTTPX, HTTPX_TUNED):
        value = median(ratios(rows, rival, case=LINE, connections=64))
        found.append(Aim(f"get_subscriber against {rival}, c=64", ">= 8", f"{value:.2f}", value >= 8))
    times = median(against(of(rows, OURS, case=RULES), of(rows, UPSTREAM, case=RULES)))
    found.append(Aim("50 MB passed on against asking directly, time", f"<= {MOST_TIMES:g}", f"{times:.2f}", times <= MOST_TIMES))
    latencies = median(added([row for row in rows if row["case"] == LINE], OURS))
    found.append(Aim("get_subscriber, added median latency at c=1", "<= 0.3 ms", f"{latencies:.2f} ms", latencies <= 0.3))
    return found
