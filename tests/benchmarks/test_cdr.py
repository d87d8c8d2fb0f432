"""The measurements of call records compare like with like, and run."""

import asyncio
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.cdr import measured, turn
from benchmarks.cdr_batches import IN_ORDER, SCATTERED, Batches
from benchmarks.cdr_cast import SQLITE, entrants
from benchmarks.cdr_fill import EXACT, TABLES, empty, fill, run
from benchmarks.cdr_page import AGGREGATE, INGEST, aims, section
from benchmarks.measure import Plan
from benchmarks.names import CDR_TUNED, CDR_TUTORIAL, DUCKDB, OURS
from benchmarks.tables import Row
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.cdr_events import CdrEvent, ingest_cdr
from storage.engine.store import open_store
from tests.databases import migrated_postgres, migrated_sqlite, required_database

ORGANISATION = "org_01k0a8w7zv6q4k3m2n1p0r9s8t"
SUMS = "select * from cdr_sum order by iccid"


class Kept(NamedTuple):
    events: list[tuple[object, ...]]
    sums: list[tuple[object, ...]]
    months: list[tuple[object, ...]]
    periods: list[tuple[object, ...]]


def kept(url: str) -> Kept:
    months = run(url, ["select * from cdr_month"])
    periods = run(url, ["select organisation, month, invoiced from invoice_period"])
    return Kept(sorted(run(url, ["select * from cdr_event"])), run(url, [SUMS]), months, periods)


async def stored_anew(url: str, events: list[CdrEvent]) -> None:
    store, clock = open_store(url, pool=1), SystemClock()
    try:
        for first in range(0, len(events), 700):
            batch = events[first : first + 700]
            await store.write(ingest_cdr, organisation=ORGANISATION, events=batch, now=clock.now(), ids=SystemIds(clock))
    finally:
        await store.aclose()


@pytest.mark.long
def test_a_filled_table_is_what_the_service_would_have_stored(tmp_path: Path) -> None:
    url = migrated_sqlite(tmp_path)
    fill(url, ORGANISATION, 3000)
    filled = kept(url)
    assert len(filled.events) == 3000
    empty(url)
    assert kept(url) == ([], [], [], [])
    asyncio.run(stored_anew(url, [CdrEvent(*row[1:]) for row in filled.events]))  # pyright: ignore[reportArgumentType]
    assert kept(url) == filled
    assert run(url, [EXACT]) == [(0, 0, 0)]


@pytest.mark.long
@pytest.mark.postgres
def test_both_databases_fill_the_same_rows(tmp_path: Path) -> None:
    with required_database(migrated_postgres()) as url:
        lite = migrated_sqlite(tmp_path)
        for one in (lite, url):
            fill(one, ORGANISATION, 500)
        assert sorted(kept(url).sums) == sorted(kept(lite).sums)
        assert kept(url).events == kept(lite).events
        empty(url)
        assert [run(url, [f"select count(*) from {table}"]) for table in TABLES] == [[(0,)]] * len(TABLES)


def test_batches_hold_records_that_were_not_sent_before() -> None:
    batches = Batches(50, 2)
    sent = {kind: [bodies(batches, kind) for _ in range(3)] for kind in (IN_ORDER, SCATTERED)}
    for kind, found in sent.items():
        ids = [str(event["id"]) for events in found for event in events]
        assert len(set(ids)) == 150
        assert (ids == sorted(ids)) is (kind == IN_ORDER)
    assert len({event["iccid"] for event in sent[IN_ORDER][0]}) > 40


def bodies(batches: Batches, kind: str) -> list[dict[str, object]]:
    head, _, body = batches.requests("ak_secret", kind)().decode().partition("\r\n\r\n")
    assert f"Content-Length: {len(body)}" in head
    return json.loads(body)["events"]


@pytest.mark.long
def test_the_rig_runs_on_this_service(tmp_path: Path) -> None:
    batches, said = Batches(20, 2), list[str]()
    with entrants(SQLITE, (0, 2000), tmp_path / "cdr", [OURS]) as cast:
        rows = measured(cast, [], batches, Plan(1, 0.02, said.append), tmp_path)
        seen = turn(cast[0], batches.requests(cast[0].key, IN_ORDER), 2, 0.02)
    assert seen["errors"] == 0
    assert [(row["case"], row["table"]) for row in rows].count((INGEST, 2000)) == 4
    assert all(isinstance(row["requests"], int) and row["requests"] > 0 for row in rows)
    assert said == [f"{AGGREGATE} round 1/1", f"{INGEST} round 1/1"]


def made_up() -> list[Row]:
    """Two rounds in which this service takes twice as many records as the tuned rival, and sums in a tenth of DuckDB's time."""
    found: list[Row] = []
    shared = {
        "kind": "SQLite",
        "seconds": 1.0,
        "errors": 0,
        "database_us": 0.0,
        "cpu_us": 40_000.0,
        "fsync_ms": 1.0,
        "batch": 1000,
        "load": 1.2,
    }
    for number in range(2):
        for name, rate, time in ((OURS, 20, 2.0), (CDR_TUNED, 10, 2.0), (CDR_TUTORIAL, 2, 900.0), (DUCKDB, 0, 20.0)):
            one = shared | {"contestant": name, "round": number, "p50_ms": time, "p99_ms": time}
            for size in (0, 5000):
                for ids in (IN_ORDER, SCATTERED) if size and name in (OURS, CDR_TUNED) else (IN_ORDER,):
                    row = one | {"case": INGEST, "table": size, "ids": ids, "requests": rate // (2 if size else 1)}
                    found += [row | {"connections": senders} for senders in (1, 4) if rate]
            found.append(one | {"case": AGGREGATE, "connections": 1, "table": 5000, "requests": 5})
    return found


def test_the_aims_are_a_rate_into_an_empty_file_and_a_time_at_the_largest_table() -> None:
    assert [(aim.text, aim.reached, aim.met) for aim in aims(made_up())] == [
        ("Call records taken on this machine, SQLite, empty table, senders: 1", "20,000/s", True),
        ("Call records taken on this machine, SQLite, empty table, senders: 4", "20,000/s", True),
        ("A month of call records summed, SQLite, 5,000 records", "2.0 ms", True),
    ]


def test_the_section_shows_rivals_growth_and_months() -> None:
    page = section(made_up())
    assert (
        "| SQLite | none | in order | 1 | FastAPI + Core tuned | **2.00** (2.00 - 2.00) | 20,000 / 10,000 | 40.0 / 40.0 | 2 / 2 |" in page
    )
    assert "| SQLite | 4 | scattered | 5,000 | **0.50** (0.50 - 0.50) | 10,000 of 20,000 | 40.0, empty 40.0 |" in page
    assert "| SQLite | 5,000 | DuckDB, in process | **10.00** (10.00 - 10.00) | 2.0 / 20.0 | 2.0 / 20.0 | 40.0 / 40.0 |" in page
    assert "Load of the machine: 1.2 - 1.2 on two cores" in page
    assert page.endswith("PostgreSQL was not measured in this run.\n")
