"""The ring of countries: the order of time, whatever the order of arrival."""

import asyncio
import random
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.ids import Ids
from storage.country_entries import (
    COUNTRY_ENTRY,
    FORGOTTEN_AT_ONCE,
    MOST_ENTRIES,
    MOST_REPEATS,
    SIGHTING_KEPT_SECONDS,
    CountryEntry,
    NeighbourSighting,
    SightingNeighbours,
    country_history,
    enter_country,
    find_neighbours,
)
from storage.engine.sql import Command, Connection, Query
from storage.engine.store import Store
from tests.length import examples
from tests.world import CountingIds, SettableClock

ICCID = "8988303000000912345"
NOW = 1000.0
OURS, THEIRS = 8101, 8102
ALL = (OURS, THEIRS, None)
IDS = CountingIds(SettableClock())
MCC = {"FR": "208", "DE": "262", "CH": "228"}
EMPTY = Command(sa.delete(COUNTRY_ENTRY))


class Rows(NamedTuple):
    rows: int


COUNT = Query(Rows, sa.select(sa.func.count().label("rows")).select_from(COUNTRY_ENTRY))


def sighting(country: str, at: float, mnc: str | None = "01", whose: int | None = OURS) -> CountryEntry:
    return CountryEntry(country, MCC.get(country, "999"), mnc, at, whose)


def enter(connection: Connection, seen: CountryEntry, *, iccid: str = ICCID, ids: Ids = IDS, now: float = NOW) -> bool:
    return enter_country(connection, iccid=iccid, now=now, ids=ids, **seen._asdict())


def enter_all(connection: Connection, seen: Iterable[CountryEntry]) -> list[CountryEntry]:
    connection.run(EMPTY)
    for one in seen:
        enter(connection, one)
    return country_history(connection, iccid=ICCID, limit=MOST_ENTRIES, accounts=ALL)


def ring_of(seen: Iterable[CountryEntry]) -> list[CountryEntry]:
    """What the ring must hold, from all sightings at once; all of them are shown."""
    ordered = sorted(set(seen), key=lambda one: (one.occurred_at, one.country, one.mcc, one.mnc or ""))
    entries = ordered[:1] + [after for before, after in pairwise(ordered) if after.country != before.country]
    return entries[::-1][:MOST_ENTRIES]


async def shown(store: Store, limit: int = MOST_ENTRIES, *, accounts: Collection[int | None] = ALL) -> list[tuple[str, float]]:
    entries = await store.read(country_history, iccid=ICCID, limit=limit, accounts=accounts)
    return [(entry.country, entry.occurred_at) for entry in entries]


async def test_an_entry_is_a_change_of_country(store: Store) -> None:
    said = [await store.write(enter, sighting(country, at)) for at, country in enumerate(["FR", "FR", "DE", "FR", "FR"])]
    assert said == [True, False, True, True, False]
    assert await shown(store) == [("FR", 3), ("DE", 2), ("FR", 0)]
    assert await shown(store, 1) == [("FR", 3)]


async def test_a_late_sighting_is_put_in_its_place(store: Store) -> None:
    await store.write(enter, sighting("FR", 10))
    await store.write(enter, sighting("FR", 30))
    assert await shown(store) == [("FR", 10)]
    assert await store.write(enter, sighting("DE", 20)) is True
    assert await shown(store) == [("FR", 30), ("DE", 20), ("FR", 10)]
    assert await store.write(enter, sighting("FR", 5)) is True
    assert await shown(store) == [("FR", 30), ("DE", 20), ("FR", 5)]


async def test_the_same_sighting_twice_is_one_row(store: Store) -> None:
    for mnc in (None, None, "01", "01"):
        await store.write(enter, sighting("FR", 1, mnc))
    assert await store.read(lambda connection: connection.all(COUNT)) == [Rows(2)]
    assert await store.read(country_history, iccid=ICCID, limit=5, accounts=ALL) == [sighting("FR", 1, None)]


async def test_lines_have_rings_of_their_own(store: Store) -> None:
    await store.write(enter, sighting("FR", 1))
    assert await store.write(enter, sighting("FR", 2), iccid=ICCID + "1") is True
    assert await shown(store) == [("FR", 1)]


@pytest.mark.long
async def test_the_newest_fifty_stay_and_the_table_does_not_grow(store: Store) -> None:
    travels = [sighting("FR" if at % 2 else "DE", at) for at in range(130)]
    assert [entry.occurred_at for entry in await store.write(enter_all, travels)] == list(range(129, 79, -1))
    assert await store.read(lambda connection: connection.all(COUNT)) == [Rows(MOST_ENTRIES + 1)]
    assert await store.write(enter, sighting("CH", 3)) is False
    assert await store.write(enter, sighting("FR", 78.5)) is False
    assert [at for _, at in await shown(store)] == list(range(129, 79, -1))


async def test_a_line_that_stays_keeps_one_entry_and_few_rows(store: Store) -> None:
    stay = [sighting("FR", at) for at in range(150)]
    assert await store.write(enter_all, stay) == stay[:1]
    assert await store.read(lambda connection: connection.all(COUNT)) == [Rows(MOST_REPEATS + 1)]


async def test_concurrent_sightings_give_the_ring_of_all_of_them(store: Store) -> None:
    seen = [sighting("FR" if at // 2 % 2 else "DE", at) for at in range(48)]
    shuffled = random.Random(7).sample(seen, len(seen))
    await asyncio.gather(*(store.write(enter, one) for one in shuffled))
    assert await store.read(country_history, iccid=ICCID, limit=50, accounts=ALL) == ring_of(seen)


async def test_each_account_sees_its_own_time_of_a_line_as_if_there_were_no_other(store: Store) -> None:
    whose = [("FR", OURS), ("DE", OURS), ("DE", THEIRS), ("CH", THEIRS), ("DE", OURS), ("CH", None), ("DE", OURS)]
    for at, (country, account) in enumerate(whose):
        await store.write(enter, sighting(country, at, whose=account))
    assert await shown(store, accounts={OURS}) == [("DE", 1), ("FR", 0)]
    assert await shown(store, accounts={THEIRS}) == [("CH", 3), ("DE", 2)]
    assert await shown(store, accounts={OURS, None}) == [("DE", 6), ("CH", 5), ("DE", 1), ("FR", 0)]
    assert await shown(store, 1, accounts={THEIRS}) == [("CH", 3)]
    assert await shown(store, accounts={8103}) == []


async def test_the_neighbours_of_a_moment_are_told_with_their_accounts(store: Store) -> None:
    for seen in (sighting("FR", 10), sighting("DE", 20, whose=None), sighting("CH", 20, whose=THEIRS)):
        await store.write(enter, seen)
    fr, de, ch = NeighbourSighting("FR", OURS), NeighbourSighting("DE", None), NeighbourSighting("CH", THEIRS)
    asked = [("FR", 9.0), ("FR", 10.0), ("DE", 15.0), ("CH", 20.0), ("DE", 20.0), ("FR", 20.0), ("FR", 21.0)]
    told = [await store.read(find_neighbours, iccid=ICCID, country=country, occurred_at=at) for country, at in asked]
    assert told == [
        SightingNeighbours(None, fr),
        SightingNeighbours(fr, ch),
        SightingNeighbours(fr, ch),
        SightingNeighbours(ch, None),
        SightingNeighbours(de, None),
        SightingNeighbours(de, None),
        SightingNeighbours(de, None),
    ]


async def test_what_is_older_than_400_days_goes_with_the_next_sighting_of_any_line_and_in_bounds(store: Store) -> None:
    for number in range(FORGOTTEN_AT_ONCE + 1):
        await store.write(enter, sighting("FR", number), iccid=f"{ICCID}{number}")
    await store.write(enter, sighting("DE", 500))
    for at, left in [(300.0, FORGOTTEN_AT_ONCE + 3), (301.0, 4), (302.0, 4)]:
        await store.write(
            enter, sighting("CH", SIGHTING_KEPT_SECONDS + at), iccid="1", now=SIGHTING_KEPT_SECONDS + (0 if at == 300.0 else 500.0)
        )
        assert await store.read(lambda connection: connection.all(COUNT)) == [Rows(left)]
    assert await shown(store) == [("DE", 500)]


SIGHTINGS = st.lists(
    st.builds(sighting, st.sampled_from(["FR", "DE", "CH"]), st.integers(0, 40).map(float), st.sampled_from([None, "01", "02"])),
    max_size=MOST_REPEATS,
)
TRAVELS = st.lists(st.tuples(st.integers(0, 675), st.integers(0, 40)), min_size=60, max_size=90, unique_by=itemgetter(0))
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))


@given(seen=SIGHTINGS)
@SLOW
async def test_any_order_of_arrival_gives_the_same_ring(store: Store, seen: Sequence[CountryEntry]) -> None:
    assert await store.write(enter_all, seen) == ring_of(seen)


MIXED = st.lists(
    st.builds(
        lambda country, at, whose: sighting(country, at, whose=whose),
        st.sampled_from(["FR", "DE", "CH"]),
        st.integers(0, 90).map(float),
        st.sampled_from(ALL),
    ),
    max_size=MOST_REPEATS,
    unique_by=lambda seen: seen.occurred_at,
)


@given(seen=MIXED, accounts=st.sets(st.sampled_from(ALL)))
@SLOW
async def test_what_an_account_sees_is_the_ring_of_its_own_sightings(
    store: Store, seen: Sequence[CountryEntry], accounts: set[int | None]
) -> None:
    await store.write(enter_all, seen)
    told = await store.read(country_history, iccid=ICCID, limit=MOST_ENTRIES, accounts=accounts)
    assert told == ring_of(one for one in seen if one.account_id in accounts)


@pytest.mark.long
@given(travels=TRAVELS)
@settings(SLOW, max_examples=examples(12))
async def test_any_order_of_arrival_gives_the_same_ring_beyond_fifty_entries(store: Store, travels: list[tuple[int, int]]) -> None:
    """Every sighting in a country of its own: nothing is a repeat, so nothing but the cap leaves a row out."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    seen = [sighting(letters[number // 26] + letters[number % 26], at) for number, at in travels]
    assert await store.write(enter_all, seen) == ring_of(seen)
