"""The section of RESULTS.md on one server and two."""

from collections.abc import Sequence
from statistics import median

from benchmarks.names import ONE_SERVER, TWO_SERVERS
from benchmarks.reasons import reason
from benchmarks.tables import Aim, Row, middle, of, spread, table

MOST_DEARER, MOST_WAITING, MOST_SESSIONS = 1.1, 0.01, 52
"""CPU of a call at two servers against one; sessions that wait for a lock, on average; 2 x (16 + 1) of servers and 16 + 2 of a worker."""
NOTE = """The same number of connections at one server, or half of them at each of two, over one PostgreSQL with one worker beside
them. CPU is of the servers alone. Sessions are looked at every 10 ms: how many wait for a lock on average, and the most
there were; with the default pool of 16 there may be {most}. How many calls two servers answer is not measured: the load
generator, PostgreSQL and both share the processors of one machine, and for that it would need eight.
"""


def dearer(rows: Sequence[Row], case: str, connections: int) -> list[float]:
    """CPU of a call at two servers over that at one, round by round."""
    by = {"case": case, "connections": connections}
    return [two["cpu_us"] / one["cpu_us"] for one, two in zip(of(rows, ONE_SERVER, **by), of(rows, TWO_SERVERS, **by), strict=True)]


def cases(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((row["case"], row["connections"]) for row in rows))


def section(rows: Sequence[Row]) -> str:
    """All of it."""
    lines: list[list[str]] = []
    for case, connections in cases(rows):
        one, two = (of(rows, name, case=case, connections=connections) for name in (ONE_SERVER, TWO_SERVERS))
        lines.append(
            [
                f"{case} of an intent, c={connections}",
                f"{middle(one, 'cpu_us'):.0f} / {middle(two, 'cpu_us'):.0f}",
                spread(dearer(rows, case, connections)),
                f"{middle(one, 'p99_ms'):.1f} / {middle(two, 'p99_ms'):.1f}",
                f"{waiting(one):.3f} / {waiting(two):.3f}",
                f"{most(one)} / {most(two)}",
                str(sum(row["errors"] for row in [*one, *two])),
            ]
        )
    head = ["", "CPU us a call, one / two", "ratio", "p99 ms", "sessions waiting for locks", "most sessions", "errors"]
    why = "" if all(aim.met for aim in aims(rows)) else reason("scale")
    return f"## One server and two\n\n{NOTE.format(most=MOST_SESSIONS)}\n{table(head, lines)}{why}"


def waiting(rows: Sequence[Row]) -> float:
    return sum(row["waiting"] for row in rows) / len(rows)


def most(rows: Sequence[Row]) -> int:
    return max(row["sessions"] for row in rows)


def aims(rows: Sequence[Row]) -> list[Aim]:
    """What was aimed at."""
    found = list[Aim]()
    for case, connections in cases(rows):
        ratio = median(dearer(rows, case, connections))
        what = f"CPU of a {case} at two servers on PostgreSQL against one, c={connections}"
        found.append(Aim(what, f"<= {MOST_DEARER}", f"{ratio:.2f}", ratio <= MOST_DEARER))
    two = [row for row in rows if row["contestant"] == TWO_SERVERS]
    held, stood = waiting(two), most(two)
    found.append(
        Aim(
            "Sessions of PostgreSQL waiting for locks, two servers",
            f"<= {MOST_WAITING:.0%} of the time",
            f"{held:.1%}",
            held <= MOST_WAITING,
        )
    )
    found.append(Aim("Sessions of PostgreSQL, two servers and a worker", f"<= {MOST_SESSIONS}", str(stood), stood <= MOST_SESSIONS))
    return found
