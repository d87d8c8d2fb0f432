"""Long functions: SQLite runs them beside the loop, each in a transaction of its own, in turn with the short ones."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from registry.errors import StoreUnavailable
from storage.engine.database_url import sqlite_path
from storage.engine.sql import Connection, runs_in_thread
from storage.engine.sqlite import SqliteStore
from storage.engine.store import Store
from tests.databases import migrated_sqlite
from tests.storage.counters import bump, insert, insert_then_fail, names, value_of
from tests.storage.test_group_commit import fail_at_commit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sqlite_path(migrated_sqlite(tmp_path))


@pytest.fixture
async def sqlite(path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, busy_wait=0.3)
    yield store
    await store.aclose()


async def test_a_long_function_writes_and_answers_like_any_other(store: Store) -> None:
    assert await store.write(runs_in_thread(insert), "a", value=5) == 1
    assert await store.read(value_of, "a") == 5
    with pytest.raises(LookupError, match="b"):
        await store.write(runs_in_thread(insert_then_fail), "b")
    assert await store.read(names) == ["a"]


async def test_the_loop_goes_on_while_a_long_function_runs(sqlite: SqliteStore) -> None:
    release, where = threading.Event(), list[str]()

    def wait_for_the_loop(connection: Connection) -> int:
        where.append(threading.current_thread().name)
        assert release.wait(10), "the loop was held up"
        return insert(connection, "long")

    long = asyncio.ensure_future(sqlite.write(runs_in_thread(wait_for_the_loop)))
    short = asyncio.ensure_future(sqlite.write(insert, "short"))
    while not where:
        await asyncio.sleep(0)
    assert await sqlite.read(names) == [], "reads go on, and see nothing of it"
    assert not short.done(), "there is one writer"
    release.set()
    assert await asyncio.gather(long, short) == [1, 1]
    assert where == ["group-commit"]
    assert await sqlite.read(names) == ["long", "short"]


async def test_a_long_read_runs_beside_the_loop_and_sees_what_was_committed(sqlite: SqliteStore) -> None:
    release, where = threading.Event(), list[str]()

    def wait_for_the_loop(connection: Connection) -> list[str]:
        where.append(threading.current_thread().name)
        assert release.wait(10), "the loop was held up"
        return names(connection)

    await sqlite.write(insert, "before")
    long = asyncio.ensure_future(sqlite.read(runs_in_thread(wait_for_the_loop)))
    while not where:
        await asyncio.sleep(0)
    assert await sqlite.read(names) == ["before"]
    release.set()
    assert await long == ["before"]
    assert where[0] != threading.main_thread().name
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await sqlite.read(runs_in_thread(insert), "by a read")


async def test_long_and_short_functions_run_in_the_order_in_which_they_came(sqlite: SqliteStore) -> None:
    await sqlite.write(insert, "n")
    functions = [runs_in_thread(bump), bump, bump, runs_in_thread(bump), runs_in_thread(bump), bump]
    assert await asyncio.gather(*(sqlite.write(function, "n") for function in functions)) == [1, 2, 3, 4, 5, 6]


async def test_a_long_function_that_fails_takes_nobody_with_it(sqlite: SqliteStore) -> None:
    calls = [
        sqlite.write(insert, "a"),
        sqlite.write(runs_in_thread(insert_then_fail), "b"),
        sqlite.write(runs_in_thread(fail_at_commit)),
        sqlite.write(runs_in_thread(insert), "c"),
        sqlite.write(insert, "d"),
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [int, LookupError, StoreUnavailable, int, int]
    assert await sqlite.read(names) == ["a", "c", "d"]


async def test_a_caller_who_has_gone_before_it_began_leaves_no_trace(sqlite: SqliteStore) -> None:
    first = asyncio.ensure_future(sqlite.write(runs_in_thread(insert), "a"))
    gone = asyncio.ensure_future(sqlite.write(runs_in_thread(insert), "gone"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await first == 1
    assert await sqlite.write(insert, "b") == 1
    assert await sqlite.read(names) == ["a", "b"]


async def test_while_another_process_writes_long_functions_are_refused_with_all_who_wait(sqlite: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        calls = [sqlite.write(runs_in_thread(insert), "a"), sqlite.write(insert, "b"), sqlite.write(runs_in_thread(insert), "c")]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        other.execute("rollback")
    assert {str(answer) for answer in answers} == {"another process is writing to the database"}
    assert await asyncio.gather(sqlite.write(runs_in_thread(insert), "d"), sqlite.write(insert, "e")) == [1, 1]
    assert await sqlite.read(names) == ["d", "e"]


async def test_closing_waits_for_a_long_function(path: Path) -> None:
    store = SqliteStore(path)
    calls = [asyncio.ensure_future(store.write(runs_in_thread(insert), f"{number}")) for number in range(3)]
    await asyncio.sleep(0)
    await store.aclose()
    assert await asyncio.gather(*calls) == [1, 1, 1]
