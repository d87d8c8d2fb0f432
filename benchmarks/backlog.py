"""`python -m benchmarks.backlog`: what a claim of webhook deliveries costs while many more wait; prints a table and the ratios.

Every cell is a database of its own with so many due deliveries of so many endpoints. In each round every cell gives one claim of at most
a hundred, committed, and takes it back; the order of the cells turns, so that nobody always follows the same neighbour. A ratio is a
cell's time over that of the smallest backlog of as many endpoints in the same round.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from benchmarks.tables import spread, table
from benchmarks.webhooks import DATA
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.engine.migrate import upgrade_database
from storage.engine.store import Store, open_store
from storage.outbox import claim_deliveries, return_deliveries

MOST = 100
PENDING, ENDPOINTS = (100, 10_000, 1_000_000), (1, 100)
OF_AN_ORGANISATION = 4
AIM = 1.5
CLOCK = SystemClock()
IDS = SystemIds(CLOCK)


class Cell(NamedTuple):
    """A database of one size."""

    engine: str
    endpoints: int
    pending: int
    store: Store


class Sample(NamedTuple):
    """One claim: how many deliveries it took, and its milliseconds until it was committed."""

    engine: str
    endpoints: int
    pending: int
    round: int
    taken: int
    milliseconds: float


def main() -> None:
    """Measure and print."""
    asked = parse()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="backlog-")))
        cells = [
            cell
            for endpoints in asked.endpoints
            for pending in asked.pending
            for cell in opened(stack, folder, endpoints, pending, say if not asked.quiet else silent)
        ]
        samples = asyncio.run(measured(cells, asked.rounds))
    print(page(samples))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backlog", description="Claims of webhook deliveries on this machine.")
    parser.add_argument("--pending", type=numbers, default=PENDING, help="sizes of the backlog, the smallest first (100,10000,1000000)")
    parser.add_argument("--endpoints", type=numbers, default=ENDPOINTS, help="how many endpoints it is for (1,100)")
    parser.add_argument("--rounds", type=int, default=41, help="claims of each cell (41)")
    parser.add_argument("--quiet", action="store_true", help="say nothing while it is filled")
    return parser.parse_args()


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with commas between."""
    return tuple(int(part) for part in text.split(","))


def say(text: str) -> None:
    """How far it is."""
    print(text, file=sys.stderr, flush=True)


def silent(text: str) -> None:
    """Nobody is told."""
    del text


def opened(
    stack: ExitStack, folder: Path, endpoints: int, pending: int, told: Callable[[str], None], *, postgres: bool = True
) -> list[Cell]:
    """A filled database of each kind; without PostgreSQL where there is no server, or none is wanted."""
    urls = {OURS_SQLITE: f"sqlite:///{folder / f'{endpoints}-{pending}.db'}"}
    if postgres and (url := stack.enter_context(database())) is not None:
        urls[OURS_POSTGRES] = url
    for engine, url in urls.items():
        told(f"{engine}: {pending} deliveries for {endpoints} endpoints")
        upgrade_database(url)
        fill(url, endpoints, pending)
    return [Cell(engine, endpoints, pending, open_store(url, pool=1)) for engine, url in urls.items()]


def fill(url: str, endpoints: int, pending: int) -> None:
    """Endpoints of organisations with a few each, and deliveries that are due, by turns to each."""
    due = int(CLOCK.now() * 1000) - 2 * pending
    own, owner = f"'we_' || (n % {endpoints})", f"'org_' || ((n % {endpoints}) / {OF_AN_ORGANISATION})"
    event = f"{owner}, 'cni_1', 'esim.issued', 0, '{DATA}', 'dedup_' || n, 1, 0, 0"
    inserts = (
        "insert into webhook_endpoint(id, organisation, url, status, secret, created, replay_minute, replay_count, proven)"
        f" select {own}, {owner}, 'http://127.0.0.1:9/hooks', 'enabled', 'sealed', 1, 0, 0, 1 from {series(url, endpoints)}",
        "insert into event(id, organisation, intent, type, livemode, data, dedup, created, retry_minute, retry_count)"
        f" select 'evt_' || n, {event} from {series(url, pending)}",
        "insert into delivery(id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms)"
        f" select 'dlv_' || n, 'evt_' || n, {own}, {owner}, 0, 0, 0, {due} + n, {due} + n from {series(url, pending)}",
    )
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
            for insert in inserts:
                raw.execute(insert)
            raw.commit()
        return
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as raw:
        for text in (*inserts, "vacuum analyze"):  # as autovacuum leaves them
            raw.execute(text.encode())


def series(url: str, count: int) -> str:
    """A table of one column n, from 0 on."""
    if url.startswith("postgresql"):
        return f"generate_series(0, {count - 1}) as s(n)"
    return f"(with recursive s(n) as (select 0 union all select n + 1 from s where n < {count - 1}) select n from s)"


async def measured(cells: Sequence[Cell], rounds: int) -> list[Sample]:
    """One claim of each cell in each round; the first round only warms."""
    found = [await a_claim(cell, number) for number in range(-1, rounds) for cell in turned(cells, number)]
    for cell in cells:
        await cell.store.aclose()
    return [sample for sample in found if sample.round >= 0]


def turned(cells: Sequence[Cell], number: int) -> list[Cell]:
    """The cells, beginning with another one in each round."""
    shift = number % len(cells)
    return [*cells[shift:], *cells[:shift]]


async def a_claim(cell: Cell, number: int) -> Sample:
    """Claim, and give back what was taken."""
    token, now_ms = IDS.new("lse_"), int(CLOCK.now() * 1000)
    began = time.perf_counter()
    batch = await cell.store.write(claim_deliveries, token=token, now_ms=now_ms, most=MOST)
    milliseconds = (time.perf_counter() - began) * 1000
    await cell.store.write(return_deliveries, leases=[(row.id, token) for row in batch.leased], now_ms=now_ms)
    return Sample(cell.engine, cell.endpoints, cell.pending, number, batch.taken, milliseconds)


def ratios(samples: Sequence[Sample], engine: str, endpoints: int, pending: int) -> list[float]:
    """A backlog's time over the smallest one's, round by round."""
    smallest = min(sample.pending for sample in samples)
    times = {(s.round, s.pending): s.milliseconds for s in samples if (s.engine, s.endpoints) == (engine, endpoints)}
    return [times[number, pending] / times[number, smallest] for number in sorted({sample.round for sample in samples})]


def page(samples: Sequence[Sample]) -> str:
    """The table."""
    lines: list[list[str]] = []
    for engine, endpoints, pending in dict.fromkeys((s.engine, s.endpoints, s.pending) for s in samples):
        own = [s for s in samples if (s.engine, s.endpoints, s.pending) == (engine, endpoints, pending)]
        found = ratios(samples, engine, endpoints, pending)
        lines.append(
            [
                engine,
                str(endpoints),
                str(pending),
                f"{median(s.taken for s in own):.0f}",
                f"{median(s.milliseconds for s in own):.2f}",
                spread(found),
                "yes" if median(found) <= AIM else "no",
            ]
        )
    head = ["", "endpoints", "pending", "taken", "ms, median", "of the smallest", f"within {AIM:g}"]
    return table(head, sorted(lines, key=lambda line: (line[0], int(line[1]), int(line[2]))))


if __name__ == "__main__":
    main()
