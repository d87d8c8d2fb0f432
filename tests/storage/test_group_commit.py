"""SQLite's group commit: who shares whose fate."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.engine.database_url import sqlite_path
from storage.engine.group_commit import MOST_IN_BATCH
from storage.engine.sql import Command, Connection
from storage.engine.sqlite import SqliteStore
from storage.organisations import MembershipTable
from tests.databases import migrated_sqlite
from tests.harness.processes import Child
from tests.storage.counters import bump, insert, insert_then_fail, names, value_of

LATER = Command(sa.text("pragma defer_foreign_keys=on"))
ORPHAN = Command(sa.insert(MembershipTable.table))

HOLD = """
import sqlite3, sys
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("begin exclusive")
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sqlite_path(migrated_sqlite(tmp_path))


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, busy_wait=0.3)
    yield store
    await store.aclose()


def fail_at_commit(connection: Connection) -> None:
    """SQLite checks a deferred foreign key at COMMIT, so this function succeeds and its batch does not."""
    connection.run(LATER)
    connection.run(ORPHAN, person_id="nobody", organisation_id="nothing", role="admin", created=0)


def verdict(path: Path) -> str:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("pragma integrity_check").fetchone()[0]


async def test_a_failing_commit_of_one_reaches_its_caller_and_the_next_write_works(store: SqliteStore) -> None:
    with pytest.raises(StoreUnavailable):
        await store.write(fail_at_commit)
    assert await store.write(insert, "a") == 1
    assert await store.read(names) == ["a"]


async def test_a_failing_commit_fails_the_whole_batch_and_the_next_one_works(store: SqliteStore) -> None:
    calls = [store.write(insert, "a"), store.write(fail_at_commit), store.write(insert_then_fail, "b"), store.write(insert, "c")]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 4
    assert await store.read(names) == []
    assert await asyncio.gather(store.write(insert, "a"), store.write(insert, "c")) == [1, 1]
    assert await store.read(names) == ["a", "c"]


async def test_a_commit_of_one_is_made_beside_the_loop(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed_by: list[str] = []

    class WatchedConnection(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "commit":
                committed_by.append(threading.current_thread().name)
            return super().execute(sql, parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=WatchedConnection))
    store = SqliteStore(path)
    assert await store.write(insert, "a") == 1
    assert await asyncio.gather(store.write(insert, "b"), store.write(insert, "c")) == [1, 1]
    await store.aclose()
    assert set(committed_by) == {"group-commit"}, "an fsync in the loop keeps all reads waiting"


async def test_nobody_is_answered_before_the_batch_is_committed(store: SqliteStore, path: Path) -> None:
    async def write_and_look(name: str) -> bool:
        await store.write(insert, name)
        with closing(sqlite3.connect(path)) as other:
            return other.execute("select 1 from change where name=?", [name]).fetchone() is not None

    assert all(await asyncio.gather(*(write_and_look(f"{i}") for i in range(20))))


async def test_a_later_member_sees_what_an_earlier_one_wrote(store: SqliteStore) -> None:
    answers = await asyncio.gather(store.write(insert, "n"), *(store.write(bump, "n") for _ in range(9)))
    assert answers == [1, *range(1, 10)]


async def test_more_jobs_than_a_batch_holds_are_all_done(store: SqliteStore) -> None:
    await store.write(insert, "n")
    await asyncio.gather(*(store.write(bump, "n") for _ in range(MOST_IN_BATCH * 2 + 10)))
    assert await store.read(value_of, "n") == MOST_IN_BATCH * 2 + 10


async def test_a_caller_cancelled_in_the_queue_leaves_no_trace(store: SqliteStore) -> None:
    first = [asyncio.ensure_future(store.write(insert, f"a{i}")) for i in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the batch of two is with the thread now
    queued = asyncio.ensure_future(store.write(insert, "queued"))
    await asyncio.sleep(0)
    queued.cancel()
    assert await asyncio.gather(*first) == [1, 1]
    await store.write(insert, "last")
    assert set(await store.read(names)) in ({"a0", "a1", "last"}, {"a0", "a1", "queued", "last"})


async def test_an_interrupt_inside_a_function_undoes_it_and_keeps_the_rest(store: SqliteStore) -> None:
    def interrupted(connection: Connection) -> None:
        insert(connection, "half")
        raise SystemExit

    before = asyncio.ensure_future(store.write(insert, "before"))
    coroutine = store.write(interrupted)
    await asyncio.sleep(0)
    with pytest.raises(SystemExit):
        coroutine.send(None)
    assert await before == 1
    assert await store.read(names) == ["before"]


async def test_while_another_process_writes_reads_go_on_and_writes_are_refused_after_the_wait(store: SqliteStore, path: Path) -> None:
    await store.write(insert, "a")
    with Child([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        refused = [asyncio.ensure_future(store.write(insert, f"refused-{i}")) for i in range(10)]
        reads = 0
        while not all(task.done() for task in refused):
            assert await store.read(names) == ["a"]
            reads += 1
            await asyncio.sleep(0.005)
        assert reads > 10
        answers = await asyncio.gather(*refused, return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        assert {str(answer) for answer in answers} == {"another process is writing to the database"}
        assert store.signals.lock_wait.count == 1 and store.signals.lock_wait.seconds >= 0.25  # all of them waited for the same
        holder.stdin.write(b"\n")
    assert await store.write(insert, "b") == 1
    assert await store.read(names) == ["a", "b"]
    assert verdict(path) == "ok"


async def test_a_lock_that_is_released_in_time_delays_writes_and_loses_none(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("begin immediate")
        asyncio.get_running_loop().call_later(0.05, other.execute, "commit")
        assert await asyncio.gather(*(store.write(insert, f"{i}") for i in range(5))) == [1] * 5
    assert await store.read(names) == ["0", "1", "2", "3", "4"]


async def test_a_full_disk_refuses_writes_keeps_what_was_committed_and_heals(store: SqliteStore, path: Path) -> None:
    await store.write(insert, "a")
    await store.write(limit_pages, 1)  # SQLite never goes below the present size
    calls = [store.write(insert, f"{i}".rjust(900_000, "x")) for i in range(3)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert any(str(answer) == "the database's disk is full" for answer in answers)
    assert await store.read(names) == ["a"]
    await store.write(limit_pages, 1_000_000)
    assert await store.write(insert, "b") == 1
    await store.aclose()
    assert verdict(path) == "ok"


def limit_pages(connection: Connection, count: int) -> None:
    connection.run(Command(sa.text(f"pragma max_page_count={count}")))


def test_a_batch_left_open_by_a_dead_loop_is_undone(path: Path) -> None:
    store = SqliteStore(path)
    loop = asyncio.new_event_loop()
    task = loop.create_task(store.write(insert, "left"))
    loop.call_soon(loop.stop)
    loop.run_forever()
    task.cancel()
    # Closed in the middle of a tick: the batch was opened and never closed.
    loop.close()
    asyncio.run(store.write(insert, "after"))
    assert asyncio.run(store.read(names)) == ["after"]
    asyncio.run(store.aclose())


async def test_closing_moves_the_log_into_the_file(path: Path) -> None:
    store = SqliteStore(path)
    await asyncio.gather(*(store.write(insert, f"{i}") for i in range(10)))
    await store.aclose()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.long
async def test_the_log_is_moved_into_the_file_in_the_background(path: Path, store: SqliteStore) -> None:
    await store.write(insert, "a")
    before = path.stat().st_mtime_ns
    with anyio.fail_after(60):
        while path.stat().st_mtime_ns == before:  # the checkpointer comes by every half second
            await asyncio.sleep(0.02)
