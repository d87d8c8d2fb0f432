"""What only the PostgreSQL store must do: survive deadlocks, broken connections and absent servers."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import psycopg
import pytest
import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.engine.sql import Connection, one_row
from storage.engine.store import Store, open_store
from storage.organisations import ChangeTable
from tests.storage.counters import bump, insert, insert_many, insert_then_fail, names, total_count, value_of

pytestmark = pytest.mark.postgres


@pytest.fixture
async def store(postgres: str) -> AsyncGenerator[Store]:
    store = open_store(postgres, pool=4)
    yield store
    await store.aclose()


def end_sessions(url: str) -> None:
    """What a restarted server does to us."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        )


@pytest.mark.long
async def test_a_deadlock_is_resolved_by_running_one_of_the_functions_again(store: Store) -> None:
    await store.write(insert_many, "a", "b")
    meeting = threading.Barrier(2)
    runs: list[str] = []

    def cross(connection: Connection, first: str, second: str) -> None:
        runs.append(first)
        bump(connection, first)
        if len(runs) <= 2:
            meeting.wait(60)
        bump(connection, second)

    await asyncio.gather(store.write(cross, "a", "b"), store.write(cross, "b", "a"))
    assert len(runs) > 2  # more than 3 where who runs again is faster than the other's wait, and they meet once more
    assert [await store.read(value_of, name) for name in "ab"] == [3, 3]


@pytest.mark.long
async def test_a_connection_that_broke_while_idle_is_replaced_unnoticed(store: Store, postgres: str) -> None:
    await asyncio.gather(*(store.write(insert, f"{i}") for i in range(8)))
    await asyncio.to_thread(end_sessions, postgres)
    assert await asyncio.gather(*(store.write(insert, f"after-{i}") for i in range(8))) == [1] * 8
    assert len(await store.read(names)) == 16


async def test_a_connection_that_breaks_during_the_commit_is_not_tried_again(store: Store, postgres: str) -> None:
    runs: list[str] = []

    def broken_before_commit(connection: Connection) -> None:
        runs.append("run")
        insert(connection, "a")
        end_sessions(postgres)

    with pytest.raises(StoreUnavailable, match="during the commit"):
        await store.write(broken_before_commit)
    assert runs == ["run"]
    assert await store.write(insert, "b") == 1


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    store = open_store("postgresql://nobody@127.0.0.1:1/nothing", pool=1)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.write(insert, "a")
    await store.aclose()


async def test_a_read_sees_one_snapshot(store: Store) -> None:
    await store.write(insert, "a", value=1)
    seen, written = threading.Event(), threading.Event()

    def read_twice(connection: Connection) -> tuple[int, int]:
        before = total_count(connection)
        seen.set()
        assert written.wait(60)
        return before, total_count(connection)

    reading = asyncio.ensure_future(store.read(read_twice))
    await asyncio.to_thread(seen.wait, 60)
    await store.write(insert, "b", value=1)
    written.set()
    assert await reading == (1, 1)


@one_row(str)
def isolation() -> sa.Executable:
    return sa.select(sa.func.current_setting("transaction_isolation").label("isolation"))


@one_row(int)
def bumped(*, name: str) -> sa.Executable:
    table = ChangeTable.table
    return sa.update(table).where(table.c.name == name).values(value=table.c.value + 1).returning(table.c.value)


async def test_a_read_of_one_select_needs_no_transaction_and_the_next_call_has_one_again(store: Store) -> None:
    assert await store.read(isolation) == "read committed"
    assert await store.read(lambda connection: isolation(connection)) == "repeatable read"
    assert await store.read(isolation) == "read committed"
    with pytest.raises(LookupError):
        await store.write(insert_then_fail, "a")
    assert await store.read(names) == []


async def test_a_statement_that_writes_is_refused_to_a_reader(store: Store) -> None:
    await store.write(insert, "a", value=1)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await store.read(bumped, name="a")
    assert await store.read(value_of, "a") == 1


async def test_a_select_whose_connection_broke_while_idle_has_another(store: Store, postgres: str) -> None:
    await asyncio.gather(*(store.read(isolation) for _ in range(8)))
    await asyncio.to_thread(end_sessions, postgres)
    assert await asyncio.gather(*(store.read(isolation) for _ in range(8))) == ["read committed"] * 8


async def test_a_function_that_goes_on_after_a_failed_statement_is_refused_instead_of_half_lost(store: Store) -> None:
    def go_on(connection: Connection) -> str:
        insert(connection, "a")
        with pytest.raises(psycopg.errors.UniqueViolation):
            insert(connection, "a")
        return "fine"

    with pytest.raises(RuntimeError, match="went on after a failed statement"):
        await store.write(go_on)
    assert await store.read(names) == []


async def test_more_callers_than_threads_all_get_their_turn(store: Store) -> None:
    await store.write(insert, "n")
    answers = await asyncio.gather(*(store.write(bump, "n") for _ in range(40)))
    assert sorted(answer or 0 for answer in answers) == list(range(1, 41))
