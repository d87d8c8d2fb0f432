"""Jobs that one replica at a time does, the same on both databases."""

import asyncio

from storage.engine.jobs import claim_job, finish_job, job_due_at
from storage.engine.store import Store

NOW = 1_800_000_000_000
LEASE, LATEST = 30_000, 120_000


async def take(store: Store, token: str, now_ms: int = NOW, name: str = "sweep") -> bool:
    return await store.write(claim_job, name=name, token=token, now_ms=now_ms, lease_ms=LEASE, latest_ms=now_ms + LATEST)


async def finish(store: Store, token: str, next_ms: int) -> bool:
    return await store.write(finish_job, name="sweep", token=token, next_ms=next_ms)


async def test_of_many_at_once_one_has_the_job(store: Store) -> None:
    for turn in range(3):
        at = NOW + turn * LEASE
        assert sum(await asyncio.gather(*(take(store, f"t{turn}-{number}", at) for number in range(16)))) == 1
        assert await store.read(job_due_at, name="sweep") == at + LEASE


async def test_a_job_is_due_at_once_and_again_when_its_holder_says(store: Store) -> None:
    assert await store.read(job_due_at, name="sweep") == 0
    assert await take(store, "one")
    assert await finish(store, "one", NOW + 5_000)
    assert await store.read(job_due_at, name="sweep") == NOW + 5_000
    assert not await take(store, "two", NOW + 4_999)
    assert await take(store, "two", NOW + 5_000)


async def test_a_job_that_a_clock_put_off_which_was_ahead_is_due(store: Store) -> None:
    assert await take(store, "one", NOW + 86_400_000)
    assert await finish(store, "one", NOW + 86_400_000 + 5_000)
    assert await take(store, "two", NOW)
    assert await finish(store, "two", NOW + LATEST)
    assert not await take(store, "three", NOW)


async def test_who_lost_the_lease_changes_nothing(store: Store) -> None:
    assert await take(store, "slow")
    assert not await take(store, "quick", NOW + LEASE - 1)
    assert await take(store, "quick", NOW + LEASE)
    assert not await finish(store, "slow", NOW)
    assert await store.read(job_due_at, name="sweep") == NOW + 2 * LEASE
    assert await finish(store, "quick", NOW + LEASE)
    assert not await finish(store, "quick", NOW)  # a lease is given back once


async def test_jobs_do_not_disturb_each_other(store: Store) -> None:
    assert await take(store, "a", name="sweep")
    assert await take(store, "b", name="reconciliation")
    assert await finish(store, "b", NOW) is False  # of another name
    assert await finish(store, "a", NOW)
