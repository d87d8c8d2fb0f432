"""What the sections of RESULTS.md are made with."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.names import OURS

Row = Mapping[str, Any]


class Aim(NamedTuple):
    """What issue and table are to show."""

    text: str
    aim: str
    reached: str
    met: bool


def of(rows: Iterable[Row], contestant: str, **by: Any) -> list[Row]:
    """A contestant's rows, by round."""
    found = [row for row in rows if row["contestant"] == contestant and all(row[name] == value for name, value in by.items())]
    return sorted(found, key=lambda row: row["round"])


def speed(row: Row) -> float:
    """Answered requests per second; only ever divided by another of the same round."""
    return row["requests"] / row["seconds"]


def ratios(rows: Sequence[Row], rival: str, **by: Any) -> list[float]:
    """Ours over the rival's, round by round."""
    return [speed(a) / max(speed(b), 1e-9) for a, b in zip(of(rows, OURS, **by), of(rows, rival, **by), strict=True)]


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest."""
    return f"**{median(values):.2f}** ({min(values):.2f} - {max(values):.2f})"


def middle(rows: Sequence[Row], name: str) -> float:
    return median([row[name] for row in rows])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def versus(rows: Sequence[Row], rivals: Sequence[str], *, by_connections: bool = True) -> str:
    """Ours against each rival, for every case and number of connections."""
    lines: list[list[str]] = []
    for case, connections in dict.fromkeys((row["case"], row["connections"]) for row in rows):
        by = {"case": case, "connections": connections}
        ours = of(rows, OURS, **by)
        for rival in rivals:
            theirs = of(rows, rival, **by)
            pairs = [
                f"{middle(ours, name):.{digits}f} / {middle(theirs, name):.{digits}f}"
                for name, digits in (("cpu_us", 0), ("p50_ms", 2), ("p99_ms", 2))
            ]
            errors = f"{sum(row['errors'] for row in ours)} / {sum(row['errors'] for row in theirs)}"
            where = f"c={connections}" if by_connections else case
            lines.append([where, rival, spread(ratios(rows, rival, **by)), *pairs, errors])
    return table(["", "against", "throughput ratio", "CPU us, ours / theirs", "p50 ms", "p99 ms", "errors"], lines)
