"""Processes that share limits over one database, each with a lease of its own that reports by itself."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from clients.ocs.places import Places
from registry.clock import SystemClock
from registry.limit_lease import LimitLease
from registry.limits import Limits
from registry.ports import Site
from registry.rate_limits import RateLimiter
from registry.shared_limits import CountingMode, LimitAnswer, LimitReport, bucket_portion
from storage.engine.sql import Connection
from storage.engine.sqlite import SqliteStore
from storage.engine.store import Store
from storage.limit_ledger import LIST_PLACES, LIST_PROCESSES, StoreLimitLedger
from tests.databases import migrated_sqlite

SITE = Site("http://shop.example", "", "", "", "", "")
LIMIT = 4


class CountedLedger(StoreLimitLedger):
    """Counts what is reported."""

    reports = 0

    async def report(self, report: LimitReport) -> LimitAnswer:
        self.reports += 1
        return await super().report(report)


@asynccontextmanager
async def lease_on(store: Store, name: str) -> AsyncGenerator[tuple[LimitLease, CountedLedger]]:
    """A process's lease, given up at the end."""
    ledger = CountedLedger(store)
    lease = LimitLease(ledger, name, SystemClock())
    try:
        yield lease, ledger
    finally:
        await lease.aclose()


def rows(connection: Connection) -> tuple[int, int]:
    """Processes and places that the database knows."""
    return len(connection.all(LIST_PROCESSES)), len(connection.all(LIST_PLACES))


@pytest.mark.long
async def test_calls_of_three_processes_share_the_places_and_all_are_served(store: Store) -> None:
    under_way = most = served = 0

    async def call(places: Places) -> None:
        nonlocal under_way, most, served
        give_back = await places.take("one")
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        served += 1
        give_back()

    async with lease_on(store, "a") as (first, _), lease_on(store, "b") as (second, _), lease_on(store, "c") as (third, _):
        each = [Places(lease.places("network", LIMIT)) for lease in (first, second, third)]
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for number in range(60):
                tasks.create_task(call(each[number % 3]))
        assert (most, served) == (LIMIT, 60)
    assert await store.read(rows) == (0, 0)


@pytest.mark.long
async def test_two_processes_spend_no_more_of_a_bucket_than_it_has_and_a_portion_each(store: Store) -> None:
    size, clock = 30, SystemClock()
    limits = Limits(upstream_writes_per_second=size)
    async with lease_on(store, "a") as (first, _), lease_on(store, "b") as (second, _):
        paces = [RateLimiter(limits, SITE, clock, lease.buckets) for lease in (first, second)]
        spent, began = 0, time.monotonic()

        async def spend(rate_limiter: RateLimiter) -> None:
            nonlocal spent
            for _ in range(2 * size):
                if await rate_limiter.take_upstream("one") is None:
                    spent += 1

        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for pace in paces:
                tasks.create_task(spend(pace))
        seconds = time.monotonic() - began
        assert size <= spent <= size + size * seconds + 2 * bucket_portion(size)


async def test_a_process_that_is_alone_asks_nobody_for_a_call(store: Store) -> None:
    async with lease_on(store, "a") as (lease, ledger):
        clock = SystemClock()
        while lease.counting is not CountingMode.ALONE:
            lease.buckets.take("org:first", 1, 10, clock.monotonic())
            await asyncio.sleep(0.01)
        before, began = ledger.reports, clock.monotonic()
        for number in range(5000):
            lease.buckets.take(f"org:{number}", 1, 10, clock.monotonic())
        await asyncio.sleep(0)
        assert ledger.reports - before <= 1 + (clock.monotonic() - began)


async def test_a_process_that_does_nothing_has_no_lease_and_reports_nothing(store: Store) -> None:
    async with lease_on(store, "a") as (lease, ledger):
        assert (lease.counting, ledger.reports) == (CountingMode.NONE, 0)
    assert await store.read(rows) == (0, 0)


@pytest.mark.long
async def test_while_nothing_can_be_written_a_process_counts_for_itself_and_afterwards_with_the_others_again(tmp_path: Path) -> None:
    migrated_sqlite(tmp_path)
    store, clock = SqliteStore(tmp_path / "service.db", busy_wait=0.02), SystemClock()
    try:
        async with lease_on(store, "a") as (lease, _), lease_on(store, "b") as (other, _):
            await other.counted()
            await lease.counted()
            pace, places = RateLimiter(Limits(), SITE, clock, lease.buckets), lease.places("network", LIMIT)
            with closing(sqlite3.connect(tmp_path / "service.db", isolation_level=None)) as holder:
                holder.execute("begin immediate")
                taken = [await pace.take_upstream("one") is None for _ in range(14)]
                assert lease.is_cut_off
                assert 12 <= sum(taken) < 14  # a portion, then the ten of a process that counts for itself
                assert [places.take(), places.take()] == [True, False]
            places.give_back()
            await lease.counted()
            assert (lease.is_cut_off, lease.counting) == (False, CountingMode.SHARED)
    finally:
        await store.aclose()
