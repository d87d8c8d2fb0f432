"""The storage door, the same on both databases."""

import asyncio

import pytest

from registry.errors import StoreUnavailable
from storage.engine.sql import Connection
from storage.engine.store import Store, open_store
from tests.storage.counters import INSERT_IF_NEW, bump, insert, insert_many, insert_then_fail, names, total_count, value_of


async def test_what_was_written_is_read(store: Store) -> None:
    assert await store.write(insert, "a", value=7) == 1
    assert await store.read(value_of, "a") == 7
    assert await store.read(value_of, "b") is None


async def test_many_rows_are_written_by_one_command(store: Store) -> None:
    assert await store.write(insert_many, "a", "b", "c") == 3
    assert await store.write(insert_many) == 0
    assert await store.read(names) == ["a", "b", "c"]


async def test_a_sum_is_a_plain_integer(store: Store) -> None:
    await store.write(insert, "a", value=1 << 60)
    await store.write(insert, "b", value=1 << 60)
    answer = await store.read(total_count)
    assert answer == 1 << 61
    assert type(answer) is int


async def test_a_conflict_that_does_nothing_changes_no_row(store: Store) -> None:
    def claim(connection: Connection) -> int:
        return connection.run(INSERT_IF_NEW, name="key", value=0)

    assert [await store.write(claim), await store.write(claim)] == [1, 0]


async def test_a_failing_function_leaves_nothing_and_its_error_reaches_the_caller(store: Store) -> None:
    with pytest.raises(LookupError, match="a"):
        await store.write(insert_then_fail, "a")
    assert await store.read(names) == []


async def test_a_failing_function_fails_alone_among_concurrent_ones(store: Store) -> None:
    calls = [store.write(insert_then_fail if i % 3 == 0 else insert, f"{i:02}") for i in range(12)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(answer, LookupError) for answer in answers] == [i % 3 == 0 for i in range(12)]
    assert await store.read(names) == [f"{i:02}" for i in range(12) if i % 3]


async def test_a_broken_unique_key_is_the_drivers_error_and_the_store_goes_on(store: Store) -> None:
    await store.write(insert, "a")
    with pytest.raises(Exception, match=r"(?i)unique") as caught:
        await store.write(insert, "a")
    assert type(caught.value).__name__ in {"IntegrityError", "UniqueViolation"}
    await store.write(insert, "b")
    assert await store.read(names) == ["a", "b"]


async def test_64_concurrent_writers_each_get_their_own_answer(store: Store) -> None:
    await store.write(insert, "n")
    answers = await asyncio.gather(*(store.write(bump, "n") for _ in range(64)))
    assert sorted(answer or 0 for answer in answers) == list(range(1, 65))
    assert await store.read(value_of, "n") == 64


async def test_a_limit_in_the_statement_is_never_passed(store: Store) -> None:
    await store.write(insert, "n")
    answers = await asyncio.gather(*(store.write(bump, "n", limit=50, step=2) for _ in range(64)))
    assert sum(answer is not None for answer in answers) == 25
    assert await store.read(value_of, "n") == 50


async def test_a_cancelled_caller_disturbs_nobody(store: Store) -> None:
    tasks = [asyncio.ensure_future(store.write(insert, f"{i}")) for i in range(8)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[3], asyncio.CancelledError)
    assert [answer for i, answer in enumerate(answers) if i != 3] == [1] * 7
    assert {f"{i}" for i in range(8) if i != 3} <= set(await store.read(names))


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        await store.read(insert, "a")
    assert await store.read(names) == []


async def test_a_closed_store_takes_no_more_work(database_url: str) -> None:
    store = open_store(database_url)
    pending = [asyncio.ensure_future(store.write(insert, f"{i}")) for i in range(5)]
    await asyncio.sleep(0)
    await store.aclose()
    assert await asyncio.gather(*pending) == [1] * 5
    with pytest.raises(StoreUnavailable):
        await store.write(insert, "late")
    again = open_store(database_url)
    assert await again.read(names) == ["0", "1", "2", "3", "4"]
    await again.aclose()
