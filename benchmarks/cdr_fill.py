"""Call records by the million, made by the databases themselves: the same rows in SQLite, PostgreSQL and DuckDB, and the sums of them.

All of them lie in one month and have ids that are spread over the keys, in the order in which a table of many such records has them.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from storage.engine.database_url import is_sqlite_url, sqlite_path

YEAR, MONTH = 2025, 10
BEGINS, SECONDS = 1_759_276_800, 31 * 86_400
SIMS = 100_000
FIRST_SIM = 8_988_303_000_000_000_000
FIRST_ID, IDS = 100_000_000_000_000, 800_000_000_000_000
NETWORKS = (("Telenor", "NO"), ("Telia", "SE"), ("Vodafone", "DE"), ("Orange", "FR"))
TABLES = ("cdr_event", "cdr_sum", "cdr_month", "invoice_period")

COUNTED = {
    "sqlite": "(with recursive counted(n) as (select 0 union all select n + 1 from counted where n + 1 < {rows}) select n from counted)",
    "postgresql": "(select n from generate_series(0::bigint, {rows} - 1) as counted(n))",
    "duckdb": "(select range as n from range({rows}))",
}
# No division and no bit: the three databases agree on nothing else.
RAW = """select '{organisation}' as organisation, 'r' || cast({first_id} + n * {step} as text) as event,
 cast({first_sim} + (n * 2654435761) % 4294967291 % {sims} as text) as iccid,
 {begins} + (n * 3266489917) % 4294967291 % {seconds} as occurred_at,
 (n * 2246822519) % 1000003 as bytes_up, (n * 668265263) % 50000017 as bytes_down,
 {network} as network, {country} as country from {counted} as numbers"""
SUMS = """insert into cdr_sum (organisation, month, iccid, bytes_up, bytes_down, bytes_total, events, network, country)
 select organisation, {month}, iccid, sum(bytes_up), sum(bytes_down), sum(bytes_up + bytes_down), count(*),
 case when count(network) = count(*) and min(network) = max(network) then min(network) end,
 case when count(country) = count(*) and min(country) = max(country) then min(country) end
 from cdr_event group by organisation, iccid order by organisation, iccid"""
MONTHS = "insert into cdr_month (organisation, month, bytes_total) select organisation, month, sum(bytes_total) from cdr_sum group by 1, 2"
PERIODS = (
    "insert into invoice_period (id, organisation, month, invoiced, created) select 'per_filled', organisation, month, 0, 0 from cdr_month"
)
EXACT = """select (select count(*) from cdr_event) - (select coalesce(sum(events), 0) from cdr_sum),
 (select coalesce(sum(bytes_up + bytes_down), 0) from cdr_event) - (select coalesce(sum(bytes_total), 0) from cdr_sum),
 (select coalesce(sum(bytes_total), 0) from cdr_sum) - (select coalesce(sum(bytes_total), 0) from cdr_month)"""
COVERING = "create index cdr_event_covering on cdr_event (organisation, iccid, occurred_at, bytes_up, bytes_down)"
UNCOVERED = "drop index cdr_event_covering"


def raw_rows(database: str, organisation: str, rows: int) -> str:
    """The select that makes them. The network is the SIM's own; a fifth of the SIMs roams and has none."""
    sim = f"(n * 2654435761) % 4294967291 % {SIMS} % {len(NETWORKS) + 1}"
    cases = [" ".join(f"when {place} then '{pair[part]}'" for place, pair in enumerate(NETWORKS)) for part in (0, 1)]
    return RAW.format(
        organisation=organisation,
        first_id=FIRST_ID,
        step=IDS // rows,
        first_sim=FIRST_SIM,
        sims=SIMS,
        begins=BEGINS,
        seconds=SECONDS,
        network=f"case {sim} {cases[0]} end",
        country=f"case {sim} {cases[1]} end",
        counted=COUNTED[database].format(rows=rows),
    )


def fill(url: str, organisation: str, rows: int) -> None:
    """The raw rows and what follows from them, as the service would have stored them."""
    insert = "insert into cdr_event (organisation, event, iccid, occurred_at, bytes_up, bytes_down, network, country) "
    kind = "sqlite" if is_sqlite_url(url) else "postgresql"
    run(url, [insert + raw_rows(kind, organisation, rows), SUMS.format(month=YEAR * 100 + MONTH), MONTHS, PERIODS])
    settle(url)


def settle(url: str) -> None:
    """What a server does with time: the log moved into the file, or what an index-only scan needs."""
    run(
        url,
        ["pragma wal_checkpoint(truncate)"]
        if is_sqlite_url(url)
        else ["vacuum (analyze) cdr_event", "vacuum (analyze) cdr_sum", "checkpoint"],
    )


def empty(url: str) -> None:
    """No record, as if there never had been one."""
    if is_sqlite_url(url):
        run(url, [*(f"delete from {table}" for table in TABLES), "vacuum", "pragma wal_checkpoint(truncate)"])
    else:
        run(url, [f"truncate {', '.join(TABLES)}"])


def run(url: str, statements: Sequence[str]) -> list[tuple[Any, ...]]:
    """Statements on a connection beside the servers', each committed by itself; the rows of the last one."""
    if is_sqlite_url(url):
        with closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=120)) as raw:
            for pragma in ("temp_store=memory", "cache_size=-262144"):
                raw.execute(f"pragma {pragma}")
            found: list[tuple[Any, ...]] = []
            for statement in statements:
                found = raw.execute(statement).fetchall()
            return found
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        cursor = server.cursor()
        for statement in statements:
            cursor.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
