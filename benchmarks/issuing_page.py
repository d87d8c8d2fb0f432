"""The section of RESULTS.md on issuing."""

from collections.abc import Sequence
from statistics import median

from benchmarks.names import CLIENT, KEYLESS, OURS_POSTGRES, OURS_SQLITE, SQLALCHEMY, SQLITE_TUNED
from benchmarks.reasons import reason
from benchmarks.tables import Aim, Row, middle, of, speed, spread, table

OURS = (OURS_SQLITE, OURS_POSTGRES)
BESIDE = (SQLALCHEMY, SQLITE_TUNED, KEYLESS, CLIENT)
DRAW, FEW_PLACES, LOOK, SIZED = "an eSIM from stock", "8 calls at once", "a look at the stock", "16 connections by stock"
AIMS = ((1, 0.6), (16, 1.5), (64, 2.0))

NOTE = """POST /v1/subscribers/issue-from-inventory with a key of its own each time, at the simulated network in a process of its
own on the same two cores: its wire, its draw, an account of 1,000 free eSIMs for everybody, where what is drawn leaves
and a new one comes in. Before anything is timed the answers, replays and refusals are compared; at the end the network
has given as many eSIMs as were answered with, and the ledger has as many rows.

This service makes three durable commits per eSIM: key and membership rechecked, the key claimed and the quota charged;
then, right before it is sent, access rechecked again, the claim and the ledger's row marked as dispatching with the
sealed answer for the case that nobody comes back, other unknown keys looked up; then the row issued unless the ICCID is
somebody else's, the event with its deliveries, the sealed answer and the audit row. It looks at the account's stock once
in five seconds (a turn of it holds a look), which is what an unknown outcome is settled from. The rivals do less, on
SQLite at the same durability:

- **FastAPI + httpx + SQLAlchemy**: sessions in the thread pool, a claim row committed before the call and the answer
  after it: two commits. No charge, recheck, audit row, event, sealing, look, ledger or reconciliation; a claim whose
  process died is stuck for ever.
- **FastAPI + httpx + sqlite3 tuned**: the same by raw sqlite3 on the event loop, a key cache, a checkpointer thread,
  orjson, a frozen collector.
- **FastAPI + httpx without idempotency**: the first without its commits. A retry draws a second eSIM.
- **bare client**: an upper bound, `clients/ocs` alone, as many tasks as connections: no server, no key, no ledger.

CPU is of the answering process; that of PostgreSQL comes on top and is not counted.
"""
LOOK_NOTE = """What the first call after five quiet seconds takes longer than the next ones (c=1, SQLite): it reads the list of all
lines of the account and keeps the free ones. Whoever asks meanwhile waits for the same look. Throughput and latencies at
16 connections include one look in five seconds.
"""


def section(rows: Sequence[Row]) -> str:
    """All of it."""
    parts = [
        "## Issuing from stock\n",
        NOTE,
        versus(rows),
        reason("issuing_postgres") if of(rows, OURS_POSTGRES) else "",
        places(rows),
        "### The look at the stock\n",
        LOOK_NOTE,
        looks(rows),
    ]
    return "\n".join(parts)


def present(rows: Sequence[Row]) -> list[str]:
    """The databases that were measured."""
    return [name for name in OURS if of(rows, name, case=DRAW)]


def against(rows: Sequence[Row], ours: str, rival: str, connections: int) -> list[float]:
    """Ours over the rival's, round by round."""
    by = {"case": DRAW, "connections": connections}
    return [speed(a) / max(speed(b), 1e-9) for a, b in zip(of(rows, ours, **by), of(rows, rival, **by), strict=True)]


def versus(rows: Sequence[Row]) -> str:
    """Every database against every rival."""
    lines: list[list[str]] = []
    for connections in dict.fromkeys(row["connections"] for row in rows if row["case"] == DRAW):
        for ours in present(rows):
            own = of(rows, ours, case=DRAW, connections=connections)
            for rival in BESIDE:
                theirs = of(rows, rival, case=DRAW, connections=connections)
                rates = f"{median(map(speed, own)):.0f} / {median(map(speed, theirs)):.0f}"
                pairs = [
                    f"{middle(own, name):.{digits}f} / {middle(theirs, name):.{digits}f}"
                    for name, digits in (("cpu_us", 0), ("p50_ms", 1), ("p99_ms", 1))
                ]
                errors = f"{sum(row['errors'] for row in own)} / {sum(row['errors'] for row in theirs)}"
                ratio = spread(against(rows, ours, rival, connections))
                lines.append([f"c={connections}", ours.removeprefix("this service "), rival, ratio, rates, *pairs, errors])
    head = ["", "", "against", "eSIMs, ratio", "per second here, ours / theirs", "CPU us", "p50 ms", "p99 ms", "errors"]
    return table(head, lines)


def places(rows: Sequence[Row]) -> str:
    """The default number of calls at once."""
    eight, all_ = (of(rows, OURS_SQLITE, case=FEW_PLACES, places=count) for count in (8, 64))
    ratio = spread([speed(a) / speed(b) for a, b in zip(eight, all_, strict=True)])
    latencies = f"p50 {middle(eight, 'p50_ms'):.1f} / {middle(all_, 'p50_ms'):.1f} ms"
    return (
        "Above, 64 calls per token may be under way (SERVICE_OCS_CONCURRENCY); with the default of 8, at 64 connections on SQLite:"
        f" {ratio} of that, {latencies}.\n"
    )


def looks(rows: Sequence[Row]) -> str:
    """What a look costs, and what is left of it under load."""
    lines: list[list[str]] = []
    for free in dict.fromkeys(row["free"] for row in rows if row["case"] == LOOK):
        one, load = of(rows, OURS_SQLITE, case=LOOK, free=free), of(rows, OURS_SQLITE, case=SIZED, free=free)
        least = of(rows, OURS_SQLITE, case=SIZED, free=min(row["free"] for row in rows if row["case"] == SIZED))
        ratio = spread([speed(a) / speed(b) for a, b in zip(load, least, strict=True)])
        costs = [f"{middle(one, 'ms'):.0f}", f"{middle(one, 'cpu_ms'):.0f}"]
        lines.append([f"{free:,}", *costs, ratio, f"{middle(load, 'p50_ms'):.1f}", f"{middle(load, 'p99_ms'):.1f}"])
    return table(["free eSIMs", "a look, ms", "CPU ms", "c=16, eSIMs against the smallest", "p50 ms", "p99 ms"], lines)


def aims(rows: Sequence[Row]) -> list[Aim]:
    """What was aimed at: to be durable and complete, and ahead of what is written by hand with less."""
    found: list[Aim] = []
    for connections, aim in AIMS:
        for ours in present(rows):
            value = median(against(rows, ours, SQLALCHEMY, connections))
            text = f"Issuing, {ours.removeprefix('this service ')}, against {SQLALCHEMY}, c={connections}"
            found.append(Aim(text, f">= {aim:g}", f"{value:.2f}", value >= aim))
    return found
