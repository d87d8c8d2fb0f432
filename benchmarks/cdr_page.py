"""The section of RESULTS.md on call records."""

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.cdr_batches import IN_ORDER
from benchmarks.names import CDR_TUNED, CDR_TUTORIAL, DUCKDB, OURS
from benchmarks.tables import Aim, Row, middle, of, speed, spread, table

INGEST, AGGREGATE = "a batch of records", "a month summed"
RIVALS = (CDR_TUNED, CDR_TUTORIAL)
EVENTS_PER_SECOND, MILLISECONDS = 15_000, 30

NOTE = """POST /v1/cdr/ingest in batches of 1,000 new records (140 KB of JSON, times as RFC 3339), and GET /v1/cdr/aggregate of one month
and one organisation, the 1,000 largest of its 100,000 SIMs. Everybody has a server and a database of their own of every
size; all records lie in that one month, which is the most there can be to sum. The databases fill their own tables by
one formula, so that all hold the same rows and sums. Before anything is timed everybody's answers, refusals and rows of
the same batches are compared (a repeated batch, an id twice in one, other months), and the months of the big tables;
afterwards the sums in every database are those of its records, to the byte.

Everybody looks up the API key, validates every field by the same rules, keeps what is new (insert or ignore), adds it to
the sums of its SIMs and of its month, and opens the month's period, in one transaction that is on the disk when it is
answered: SQLite with synchronous=FULL, PostgreSQL with fsync and synchronous_commit on (its other settings are the
package's own: 128 MB of shared buffers). This service rechecks key and membership, charges the quota, refuses sums that no
reader of JSON can hold, writes an audit row and a log line on top; the rivals do not.

- **FastAPI + Core tuned**: the bytes parsed once by pydantic in a thread, SQLAlchemy Core with the whole batch in one
  INSERT .. ON CONFLICT .. RETURNING, executemany upserts, orjson, a lock before SQLite's one writer, a checkpointer thread
  and the pragmas of the service, a frozen collector. Its months are read from the same sums by key.
- **FastAPI + SQLModel**: a def endpoint, a session per request and an upsert per row, as the tutorials have it: the same
  transaction, but a statement of the ORM for every record and every SIM. Its months are SUM .. GROUP BY over the records,
  by a covering index (organisation, iccid, occurred_at, bytes_up, bytes_down), which it has only while months are summed.
- **DuckDB**: in a process of its own, both cores, a native table of the same rows, no key, no HTTP and no JSON.

CPU is of the answering process; what PostgreSQL itself uses stands behind the +.
"""
GROWTH = """What grows is the number of pages that a batch touches, in two steps. A batch of 1,000 records changes a row of sums for
nearly as many SIMs and moves it in the index of the largest: while the month has few SIMs these are few pages, with
100,000 SIMs some 2,000 of 4 KB, written to the log and then to the file. That is the fall from the empty table, it comes
with the SIMs and not with the records, and more records do not add to it as long as their ids come in order: they are
appended. Records with scattered (drawn) ids each change a page of the table of records, too, once it is larger than a few
thousand pages, and read it first when it is in no cache. The rivals write the same tables and fall the same way.
"""
MONTHS_NOTE = """A month is read from its sums, so the time depends on the SIMs shown and not on the records: who reads sums has the
same time at every size, and who scans has ten times as much for ten times the records.
"""


def section(rows: Sequence[Row]) -> str:
    """All of it."""
    parts = ["## Call records\n", NOTE, "### Taking records\n", versus(rows), "### How it grows\n", GROWTH, growth(rows)]
    return "\n".join([*parts, "### A month summed\n", MONTHS_NOTE, months(rows), disk(rows)])


def each(rows: Iterable[Row], case: str, *names: str) -> list[dict[str, object]]:
    """Every combination there is of these columns."""
    return [
        dict(zip(names, found, strict=True))
        for found in dict.fromkeys(tuple(row[name] for name in names) for row in rows if row["case"] == case)
    ]


def against(ours: Sequence[Row], theirs: Sequence[Row]) -> list[float]:
    """Ours over theirs, round by round."""
    return [speed(a) / max(speed(b), 1e-9) for a, b in zip(ours, theirs, strict=True)]


def per_second(rows: Sequence[Row]) -> float:
    """Records per second, the median of the rounds."""
    return median([speed(row) * row["batch"] for row in rows])


def cpu(rows: Sequence[Row], unit: float) -> str:
    """What one of them costs: the server and, where it is counted, its PostgreSQL."""
    database = middle(rows, "database_us") / unit
    return f"{middle(rows, 'cpu_us') / unit:.1f}" + (f" + {database:.1f}" if database else "")


def sized(size: object) -> str:
    """How many records there were before."""
    return f"{size:,}" if size else "none"


def versus(rows: Sequence[Row]) -> str:
    """Ours against each rival."""
    lines: list[list[str]] = []
    for by in each(rows, INGEST, "kind", "table", "ids", "connections"):
        ours = of(rows, OURS, case=INGEST, **by)
        for rival in RIVALS:
            if theirs := of(rows, rival, case=INGEST, **by):
                where = [str(by["kind"]), sized(by["table"]), str(by["ids"]), str(by["connections"]), rival, spread(against(ours, theirs))]
                rates = f"{per_second(ours):,.0f} / {per_second(theirs):,.0f}"
                times = f"{middle(ours, 'p50_ms'):.0f} / {middle(theirs, 'p50_ms'):.0f}"
                lines.append([*where, rates, f"{cpu(ours, 1000)} / {cpu(theirs, 1000)}", times])
    head = ["", "records before", "ids", "senders", "against", "records, ratio", "per second here, ours / theirs"]
    return table([*head, "CPU us per record, ours / theirs", "p50 ms of a batch"], lines)


def growth(rows: Sequence[Row]) -> str:
    """Ours at every size against the empty table, in which ids come in order."""
    lines: list[list[str]] = []
    for by in each([row for row in rows if row.get("table")], INGEST, "kind", "connections", "ids", "table"):
        own = of(rows, OURS, case=INGEST, **by)
        least = of(rows, OURS, case=INGEST, kind=by["kind"], connections=by["connections"], ids=IN_ORDER, table=0)
        where = [str(by["kind"]), str(by["connections"]), str(by["ids"]), sized(by["table"])]
        rates = [f"{per_second(own):,.0f} of {per_second(least):,.0f}", f"{cpu(own, 1000)}, empty {cpu(least, 1000)}"]
        lines.append([*where, spread(against(own, least)), *rates])
    head = ["", "senders", "ids", "records before", "of the rate into an empty table", "per second here", "CPU us per record"]
    return table(head, sorted(lines, key=lambda line: (line[0] != "SQLite", line[1], line[2])))


def months(rows: Sequence[Row]) -> str:
    """Ours against each rival."""
    lines: list[list[str]] = []
    for by in each(rows, AGGREGATE, "kind", "table"):
        ours = of(rows, OURS, case=AGGREGATE, **by)
        for rival in (*RIVALS, DUCKDB):
            theirs = of(rows, rival, case=AGGREGATE, **by)
            ratio = spread([b["p50_ms"] / a["p50_ms"] for a, b in zip(ours, theirs, strict=True)])
            times = [f"{middle(ours, name):.1f} / {middle(theirs, name):.1f}" for name in ("p50_ms", "p99_ms")]
            lines.append([str(by["kind"]), sized(by["table"]), rival, ratio, *times, f"{cpu(ours, 1000)} / {cpu(theirs, 1000)}"])
    return table(["", "records", "against", "how many times as fast", "p50 ms, ours / theirs", "p99 ms", "CPU ms"], lines)


def disk(rows: Sequence[Row]) -> str:
    """What an fsync cost meanwhile, who else was there, and what was left out."""
    taken = [row for row in rows if row["case"] == INGEST]
    times, loads = [row["fsync_ms"] for row in taken], [row["load"] for row in taken]
    found = f"{min(times):.2f} - {max(times):.2f} ms, median {median(times):.2f}"
    load = f"{min(loads):.1f} - {max(loads):.1f} on two cores, this measurement included"
    absent = "" if any(row["kind"] == "PostgreSQL" for row in rows) else "\nPostgreSQL was not measured in this run.\n"
    return f"Append of 4 KiB and fsync on this disk before these rounds: {found}. Load of the machine: {load}.\n{absent}"


def aims(rows: Sequence[Row]) -> list[Aim]:
    """What was aimed at: a rate into an empty SQLite file, and a time that millions of records do not change."""
    found: list[Aim] = []
    for by in each([row for row in rows if row["kind"] == "SQLite" and row["table"] == 0], INGEST, "kind", "connections", "table"):
        rate = per_second(of(rows, OURS, case=INGEST, **by))
        text = f"Call records taken on this machine, SQLite, empty table, senders: {by['connections']}"
        found.append(Aim(text, f">= {EVENTS_PER_SECOND:,}/s", f"{rate:,.0f}/s", rate >= EVENTS_PER_SECOND))
    for by in each(rows, AGGREGATE, "kind"):
        most = max(row["table"] for row in rows)
        time = middle(of(rows, OURS, case=AGGREGATE, table=most, **by), "p50_ms")
        text = f"A month of call records summed, {by['kind']}, {most:,} records"
        found.append(Aim(text, f"< {MILLISECONDS} ms", f"{time:.1f} ms", time < MILLISECONDS))
    return found
