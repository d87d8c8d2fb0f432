"""`python -m benchmarks.fill`: what lists, gets and claims cost in a full database, against one of 10,000 rows.

Each database is filled with so many rows in all that ledgers keep: half of each belong to the organisation that asks, the rest to a
hundred others. The rows of history are of the year that ends now, month by month, and in partitions on PostgreSQL. Every call goes through
the HTTP door of a whole service in this process. In each round every call is made once in every database, by turns; a ratio is of the
medians.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx

from benchmarks.backlog import series
from benchmarks.growth import CLOCK, EVENTS, IDS, INTENTS, client
from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from benchmarks.tables import table
from registry.ids import first_id
from storage.engine.migrate import upgrade_database
from storage.engine.store import open_store
from transports.worker.partitions import Partitions

SMALL, AIM, CHUNK = 10_000, 1.5, 250_000
OWNER = "org_growth"
MONTHS, MONTH_SECONDS = 12, 30 * 86_400
BEGIN = CLOCK.now() - MONTHS * MONTH_SECONDS
TIMES = "".join(first_id("", BEGIN + month * MONTH_SECONDS)[:10] for month in range(MONTHS))
"""What the ids of each month begin with, behind their prefixes."""
SOLD = '{"slug":"week","name":"Week","data_mb":1000,"validity_days":7,"countries":["NO"]}'
NAMES = 105  # ours and the others', then what reads repeat
# Of a hundred rows so many are of each table.
SHARES = {
    "audit_read": 34,
    "audit": 6,
    "intent": 6,
    "intent_label": 6,
    "event": 8,
    "delivery": 8,
    "delivery_attempt": 8,
    "claim": 8,
    "usage_record": 4,
    "issuance": 6,
    "storefront_order": 6,
}


class Cell(NamedTuple):
    """A database of one size, and who calls it."""

    engine: str
    rows: int
    http: httpx.AsyncClient


class Sample(NamedTuple):
    """One call."""

    engine: str
    rows: int
    call: str
    milliseconds: float


def main() -> None:
    """Fill, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fill", description="Lists, gets and claims in a full database.")
    parser.add_argument("--rows", type=int, default=100_000, help="rows in all (100000); 10000000 is the whole measurement")
    parser.add_argument("--rounds", type=int, default=41, help="calls of each kind in each database (41)")
    parser.add_argument("--sqlite-only", action="store_true", help="without PostgreSQL")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fill-")))
        urls = [opened(stack, folder, rows, postgres=not asked.sqlite_only) for rows in (SMALL, asked.rows)]
        print(page(asyncio.run(measured(urls, folder, (SMALL, asked.rows), asked.rounds))))


def opened(stack: ExitStack, folder: Path, rows: int, *, postgres: bool) -> dict[str, str]:
    """A filled database of each kind, by its name."""
    (folder / str(rows)).mkdir()
    urls = {OURS_SQLITE: f"sqlite:///{folder / str(rows) / 'service.db'}"}
    if postgres and (url := stack.enter_context(database())) is not None:
        urls[OURS_POSTGRES] = url
    for url in urls.values():
        upgrade_database(url)
        if url.startswith("postgresql"):
            asyncio.run(divide(url))
        fill(url, rows)
    return urls


class Moment:
    """A clock that stands still."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now


async def divide(url: str) -> None:
    """Give a new database the partitions that its worker would have made in a year."""
    store = open_store(url)
    for month in (0, *range(MONTHS + 1)):
        await Partitions(store, Moment(BEGIN + (month - 1) * MONTH_SECONDS), print).run()
    await store.aclose()


def fill(url: str, rows: int) -> None:
    """So many rows in all, in chunks."""
    texts = [text for share in SHARES for text in chunks(url, share, rows)]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as raw:
            for text in ("pragma synchronous=off", "pragma foreign_keys=off", *names(url), *texts, "pragma wal_checkpoint(truncate)"):
                raw.execute(text)
        return
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as raw:
        for text in ("set synchronous_commit=off", *names(url), *texts, "vacuum analyze"):
            raw.execute(text.encode())


def names(url: str) -> list[str]:
    """What reads repeat: organisations, then an operation, a person, a key, an outcome and a surface."""
    others = f"insert into audit_name(id, text) select n + 2, 'org_' || n from {series(url, 100)}"
    repeated = ("list_x", "usr_fill", "key_fill", "ok", "http")
    values = ", ".join(f"({NAMES + place}, '{text}')" for place, text in enumerate(repeated))
    texts = [f"insert into audit_name(id, text) values (1, '{OWNER}'), {values}", others]
    if url.startswith("postgresql"):
        texts.append(f"select setval(pg_get_serial_sequence('audit_name', 'id'), {NAMES + 99})")
    return texts


def chunks(url: str, name: str, rows: int) -> list[str]:
    """The inserts of one table."""
    count, found = rows * SHARES[name] // 100, list[str]()
    for start in range(0, count, CHUNK):
        given = f"(select n + {start} as n from {series(url, min(CHUNK, count - start))}) as numbers"
        found.append(insert(url, name, given, rows))
    return found


def insert(url: str, name: str, given: str, rows: int) -> str:
    """The rows of one table with the numbers that are given."""
    padded = "printf('%026d', {})" if url.startswith("sqlite") else "lpad(({})::text, 26, '0')"
    number, intents = padded.format("n"), max(1, rows * SHARES["intent"] // 100)
    whose = f"case when n % 2 = 0 then '{OWNER}' else 'org_' || (n % 100) end"
    count = max(1, rows * SHARES[name] // 100)
    seconds = MONTHS * MONTH_SECONDS / count
    moment = f"(cast({int(BEGIN * 1000)} as bigint) + cast(n * {seconds * 1000} as bigint)) * {1 << 19} + n % {1 << 19}"
    short = "printf('%016d', n)" if url.startswith("sqlite") else "lpad((n)::text, 16, '0')"
    dated = f"substr('{TIMES}', 1 + 10 * ((n - 1) * {MONTHS} / {count}), 10) || {short}"
    request = "x'00112233445566778899aabbccddeeff'" if url.startswith("sqlite") else "'\\x00112233445566778899aabbccddeeff'::bytea"
    columns: dict[str, dict[str, str]] = {
        "audit_read": {
            "id": moment,
            "organisation": "case when n % 2 = 0 then 1 else 2 + n % 100 end",
            "operation": f"{NAMES}",
            "principal": f"{NAMES + 1}",
            "key": f"{NAMES + 2}",
            "outcome": f"{NAMES + 3}",
            "surface": f"{NAMES + 4}",
            "microseconds": "1500",
            "status": "200",
            "request": request,
        },
        "audit": {
            "at": f"{BEGIN} + n * {seconds}",
            "organisation": whose,
            "surface": "'http'",
            "operation": "'create_connectivity_intent'",
            "principal": "'usr_fill'",
            "key_id": "'key_fill'",
            "outcome": "'ok'",
            "status": "201",
            "milliseconds": "1.5",
            "request_id": f"'req_' || {number}",
        },
        "intent": {
            "id": f"'cni_' || {number}",
            "organisation": whose,
            "status": "'requires_plan'",
            "livemode": "0",
            "details": """'{"order":"' || n || '"}'""",
            "used_bytes": "0",
            "notified_percent": "0",
            "created": "1700000000 + n",
        },
        "intent_label": {"organisation": whose, "value": "cast(n as text)", "intent": f"'cni_' || {number}", "key": "'order'"},
        "event": {
            "id": f"'evt_' || {dated}",
            "organisation": whose,
            "intent": f"'cni_' || {padded.format(f'n % {intents}')}",
            "type": "'esim.issued'",
            "livemode": "0",
            "data": """'{"iccid":"8999012345678901237"}'""",
            "dedup": "'dedup_' || n",
            "retry_minute": "0",
            "retry_count": "0",
            "created": "1700000000 + n",
        },
        "delivery": {
            "id": f"'dlv_' || {dated}",
            "event_id": f"'evt_' || {dated}",
            "endpoint_id": "'we_' || (n % 100)",
            "organisation": whose,
            "state": "1",
            "attempt": "1",
            "attempts": "1",
            "due_ms": "n",
            "created_ms": "n",
        },
        "delivery_attempt": {
            "delivery_id": f"'dlv_' || {dated}",
            "number": "1",
            "at_ms": "n",
            "outcome": "'ok'",
            "milliseconds": "3.5",
        },
        "claim": {
            "organisation": whose,
            "operation": "'create_connectivity_intent'",
            "key": "'key-' || n",
            "fingerprint": request,
            "state": "'done'",
            "owner": "'rpl_fill'",
            "lease": f"'req_' || {number}",
            "claimed": "1700000000 + n",
            "status": "201",
            "body": f"'{'x' * 1100}'",
        },
        "usage_record": {
            "id": f"'ur_' || {number}",
            "organisation": whose,
            "intent": f"'cni_' || {padded.format('n % 2')}",
            "quantity_mb": "1.0",
            "livemode": "0",
            "created": "1700000000 + n",
        },
        "issuance": {
            "organisation": whose,
            "key": "'issued-' || n",
            "operation": "'issue_esim_from_inventory'",
            "claim_key": "'issued-' || n",
            "principal": "'usr_fill'",
            "account_id": "n % 100",
            "template_id": "55010",
            "state": "'issued'",
            "owner": "'rpl_fill'",
            "stock": "'stk_fill'",
            "iccid": "'8999' || n",
            "held": "'8999' || n",
            "package_id": "n",
            "dispatched": "n",
            "updated": "n",
            "due_ms": "0",
        },
        "storefront_order": {
            "id": f"'onr_' || {number}",
            "organisation": whose,
            "storefront": "'sf_fill'",
            "plan": "'sfp_fill'",
            "bought": f"'{SOLD}'",
            "template_id": "55010",
            "amount": "1000",
            "currency": "'EUR'",
            "language": "'en'",
            "status": "'failed'",
            "payee": "'acct_fill'",
            "tries": "0",
            "created": "1700000000 + n",
            "updated": "1700000000 + n",
        },
    }
    chosen = columns[name]
    return f"insert into {name}({', '.join(chosen)}) select {', '.join(chosen.values())} from {given}"


def intent_of(number: int) -> str:
    """The id of a filled intent."""
    return f"cni_{number:026d}"


def event_of(number: int) -> str:
    """The id of a filled event of the first month."""
    return f"evt_{TIMES[:10]}{number:016d}"


async def make_intent(http: httpx.AsyncClient, key: str) -> httpx.Response:
    """A claim: of a new key, or the answer of one that has been used."""
    return await http.post(INTENTS, json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": key})


CALLS: dict[str, Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]] = {
    "list intents": lambda http: http.get(INTENTS),
    "list intents, far behind": lambda http: http.get(f"{INTENTS}?starting_after={intent_of(40)}"),
    "find intents by metadata": lambda http: http.get(f"{INTENTS}?metadata_value=20"),
    "get intent": lambda http: http.get(f"{INTENTS}/{intent_of(20)}"),
    "list events": lambda http: http.get(EVENTS),
    "list events of an intent": lambda http: http.get(f"{EVENTS}?intent={intent_of(20)}"),
    "get event": lambda http: http.get(f"{EVENTS}/{event_of(2)}"),
    "list deliveries": lambda http: http.get(f"{EVENTS}/{event_of(2)}/deliveries"),
    "list usage records": lambda http: http.get(f"/v1/connectivity/usage_records?intent={intent_of(0)}"),
    "list orders": lambda http: http.get("/v1/storefronts/orders"),
    "list audit log": lambda http: http.get("/v1/audit-log"),
    "list audit log of an operation": lambda http: http.get("/v1/audit-log?operation=create_connectivity_intent"),
    "list audit log of a person": lambda http: http.get("/v1/audit-log?principal=usr_fill"),
    "list audit log, no such outcome": lambda http: http.get("/v1/audit-log?outcome=quota_exceeded"),
    "claim a new key": lambda http: make_intent(http, IDS.secret("k")),
    "claim a used key": lambda http: make_intent(http, "used"),
}


async def measured(urls: Sequence[dict[str, str]], folder: Path, sizes: Sequence[int], rounds: int) -> list[Sample]:
    """Every call in every database, round by round; the first rounds only warm."""
    async with AsyncExitStack() as stack:
        cells = [
            Cell(engine, rows, await stack.enter_async_context(client(url, folder / f"{rows}-{engine}", OWNER)))
            for of_size, rows in zip(urls, sizes, strict=True)
            for engine, url in of_size.items()
        ]
        found = [
            (turn, await a_call(cell, name))
            for turn in range(-3, rounds)
            for name in CALLS
            for cell in (cells if turn % 2 else cells[::-1])
        ]
    return [sample for turn, sample in found if turn >= 0]


async def a_call(cell: Cell, name: str) -> Sample:
    """One call, which must succeed."""
    began = time.perf_counter()
    answer = await CALLS[name](cell.http)
    milliseconds = (time.perf_counter() - began) * 1000
    if answer.is_error:
        raise RuntimeError(f"{name} in {cell.rows} rows of {cell.engine}: {answer.status_code} {answer.text}")
    return Sample(cell.engine, cell.rows, name, milliseconds)


def page(samples: Sequence[Sample]) -> str:
    """The table."""
    smallest, largest = min(sample.rows for sample in samples), max(sample.rows for sample in samples)

    def middle(engine: str, call: str, rows: int) -> float:
        return median(s.milliseconds for s in samples if (s.engine, s.call, s.rows) == (engine, call, rows))

    lines = list[list[str]]()
    for engine, call in dict.fromkeys((s.engine, s.call) for s in samples):
        few, many = middle(engine, call, smallest), middle(engine, call, largest)
        lines.append([engine, call, f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}", "yes" if many <= AIM * few else "no"])
    return table(["", "call", f"ms, {smallest} rows", f"ms, {largest} rows", "ratio", f"within {AIM:g}"], sorted(lines))


if __name__ == "__main__":
    main()
