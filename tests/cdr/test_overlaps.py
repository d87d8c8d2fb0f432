"""Batches that overlap, in any order and at the same time, leave the same sums as the raw rows say."""

import asyncio
from collections.abc import Sequence
from random import Random

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.caller import Tier
from registry.ids import Ids
from storage.cdr_events import CdrEvent, ingest_cdr
from storage.engine.store import Store, open_store
from tests.cdr.records import assert_exact, everything, iccid, send
from tests.databases import migrated_postgres, migrated_sqlite, required_database
from tests.length import examples
from tests.world import CountingIds, SettableClock, World

NOW = 1_800_014_400.0
MONTHS = (1_796_000_000, 1_798_761_599, 1_798_761_600, 1_799_000_000)


def record(rng: Random, id: int) -> CdrEvent:
    network = rng.choice(("A", "B", None))
    return CdrEvent(f"cdr-{id}", iccid(id % 7), rng.choice(MONTHS), rng.randrange(10**6), rng.randrange(10**9), network, "NO")


def overlapping(rng: Random) -> list[list[CdrEvent]]:
    records = [record(rng, id) for id in range(120)]
    return [rng.choices(records, k=80) for _ in range(8)]


async def write(store: Store, organisation: str, batch: Sequence[CdrEvent], ids: Ids) -> int:
    return await store.write(ingest_cdr, organisation=organisation, events=batch, now=NOW, ids=ids)


async def twenty_runs(url: str) -> None:
    store, ids = open_store(url), CountingIds(SettableClock())
    try:
        for seed in range(20):
            batches = overlapping(Random(seed))
            stored = await asyncio.gather(*(write(store, f"org_{seed}", batch, ids) for batch in batches))
            kept = await store.read(everything, organisation=f"org_{seed}")
            sent = {event for batch in batches for event in batch}
            assert {tuple(row) for row in kept.raw} == {tuple(event) for event in sent}
            assert sum(stored) == len(kept.raw) == len(sent), "nothing lost, nothing doubled"
            assert_exact(kept)
    finally:
        await store.aclose()


async def test_parallel_writers_lose_and_double_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    await twenty_runs(migrated_sqlite(tmp_path_factory.mktemp("overlaps")))


@pytest.mark.long
@pytest.mark.postgres
async def test_parallel_writers_never_wait_for_each_other_in_a_circle() -> None:
    with required_database(migrated_postgres()) as url:  # of its own: nobody else's deadlocks are counted there
        await twenty_runs(url)
        with psycopg.connect(url) as connection:  # the writers' sessions have ended, so what they counted is there
            row = connection.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
    assert row == (0,)


BATCHES = st.lists(
    st.lists(
        st.builds(
            CdrEvent,
            st.sampled_from([f"cdr-{n}" for n in range(12)]),
            st.sampled_from([iccid(1), iccid(2)]),
            st.sampled_from(MONTHS),
            st.integers(0, 10**14),
            st.integers(0, 10**14),
            st.sampled_from(["A", "B", None]),
            st.sampled_from(["NO", None]),
        ),
        min_size=1,
        max_size=8,
    ),
    max_size=5,  # at most 40 records of 2 * 10^14 bytes: no month is ever full
)


@pytest.mark.long
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
async def test_any_sequence_of_batches_sums_as_a_dictionary_of_its_first_records_does(world: World, batches: list[list[CdrEvent]]) -> None:
    model: dict[str, CdrEvent] = {}
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        for batch in batches:
            new = 0
            for event in batch:
                new += event.event not in model
                model.setdefault(event.event, event)
            rows = [event._asdict() for event in batch]
            answer = await send(http, *({"id": row.pop("event"), **row} for row in rows))
            assert answer.json() == {"received": len(batch), "stored": new, "skipped": len(batch) - new}
    kept = await world.store.read(everything, organisation=caller.organisation)
    assert {tuple(row) for row in kept.raw} == {tuple(event) for event in model.values()}
    assert_exact(kept)
