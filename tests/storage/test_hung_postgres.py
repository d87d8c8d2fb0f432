"""A PostgreSQL server that stands still, or is full: nobody waits for ever, and what was being committed is not taken for undone."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from registry.errors import CommitUnknown, StoreUnavailable
from storage.engine.database_url import APPLICATION_NAME, NotUtf8
from storage.engine.migrate import current_revision, upgrade_database
from storage.engine.sql import Connection
from storage.engine.store import Store, open_store
from tests.databases import postgres_url, required_database
from tests.harness.postgres_processes import PostgresProcesses, stoppable
from tests.storage.counters import insert, names, value_of

pytestmark = pytest.mark.postgres

SECONDS = 3.0


@pytest.fixture
def processes(postgres: str) -> Iterator[PostgresProcesses]:
    with stoppable(postgres) as processes:
        yield processes


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
async def store(postgres: str, processes: PostgresProcesses, reports: list[str]) -> AsyncGenerator[Store]:
    store = open_store(postgres, pool=4, report=reports.append)
    yield store
    processes.go_on()
    await store.aclose()


async def until_back(store: Store) -> list[str]:
    """The names in the database, as soon as it answers."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await store.read(names)
            except StoreUnavailable:
                await asyncio.sleep(0.02)


@pytest.mark.long
async def test_every_call_to_a_server_that_stands_still_ends_within_three_seconds_and_it_is_used_again_by_itself(
    store: Store, processes: PostgresProcesses, reports: list[str]
) -> None:
    await asyncio.gather(*(store.write(insert, f"before-{i}") for i in range(8)))
    processes.stop()
    began = time.monotonic()
    calls = [*(store.write(insert, f"during-{i}") for i in range(30)), *(store.read(names) for _ in range(10))]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert time.monotonic() - began < SECONDS
    # Whose thread had no connection yet may have given up connecting before.
    assert {str(each) for each in ended} <= {"the database does not answer", "the database cannot be reached"}
    assert all(type(each) is StoreUnavailable for each in ended)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.read(names)
    assert time.monotonic() - began < 0.1
    processes.go_on()
    assert sorted(await until_back(store)) == [f"before-{i}" for i in range(8)]
    assert await asyncio.gather(*(store.write(insert, f"after-{i}") for i in range(8))) == [1] * 8
    assert reports == ["the database does not answer; calls are refused until it does", "the database answers again"]


@pytest.mark.long
async def test_a_commit_that_nobody_heard_of_is_told_as_unknown_and_has_ended_before_anybody_reads_again(
    store: Store, postgres: str, processes: PostgresProcesses
) -> None:
    def stopped_before_commit(connection: Connection) -> int:
        count = insert(connection, "a")
        processes.stop()
        return count

    began = time.monotonic()
    with pytest.raises(CommitUnknown) as told:
        await store.write(stopped_before_commit)
    assert time.monotonic() - began < SECONDS
    assert told.value.body("req_1") == {
        "error": "The connection to the database broke during the commit; whether the call was done is not known",
        "code": "store_unavailable",
        "request_id": "req_1",
        "hint": "Repeat it with the same Idempotency-Key, which is done at most once; without a key, look first whether it was done",
    }
    processes.go_on()
    first = await until_back(store)
    with psycopg.connect(postgres) as admin:
        query = "select count(*) from pg_stat_activity where application_name = %s and xact_start is not null"
        assert admin.execute(query + " and datname = current_database()", [APPLICATION_NAME]).fetchone() == (0,)
    assert await store.read(names) == first
    assert first in ([], ["a"])


@pytest.mark.long
async def test_a_server_that_comes_back_before_anybody_was_told_is_not_noticed(store: Store, processes: PostgresProcesses) -> None:
    await store.write(insert, "a")
    processes.stop()
    asyncio.get_running_loop().call_later(0.5, processes.go_on)
    assert await store.write(insert, "b") == 1


@pytest.mark.long
async def test_a_slow_statement_is_no_outage(store: Store, reports: list[str]) -> None:
    def slow(connection: Connection) -> int:
        connection.driver.execute("select pg_sleep(1.6)", {}).close()
        return insert(connection, "slow")

    assert await store.write(slow) == 1
    assert reports == []


@pytest.fixture
def few(postgres: str) -> Iterator[str]:
    """The address for a user who may have two connections."""
    with psycopg.connect(postgres, autocommit=True) as admin, ExitStack() as after:
        admin.execute("create role few login connection limit 2")
        after.callback(admin.execute, "drop owned by few; drop role few")
        admin.execute("grant all on all tables in schema public to few")
        yield few_address(postgres)


def few_address(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}user=few"


async def test_a_server_that_is_full_serves_all_calls_on_the_connections_that_there_are(few: str, reports: list[str]) -> None:
    store = open_store(few, pool=8, report=reports.append)
    assert await asyncio.gather(*(store.write(insert, f"{i}") for i in range(40))) == [1] * 40
    await store.aclose()
    assert reports == []


@pytest.mark.long
async def test_a_server_without_any_connection_left_is_named(few: str) -> None:
    store = open_store(few, pool=4)
    with psycopg.connect(few), psycopg.connect(few):
        began = time.monotonic()
        ended = await asyncio.gather(*(store.write(insert, f"{i}") for i in range(8)), return_exceptions=True)
        assert {str(each) for each in ended} == {"the database has no connection left (53300)"}
        assert time.monotonic() - began < SECONDS
        with pytest.raises(StoreUnavailable, match=r"\(53300\): raise its max_connections"):
            current_revision(few)
    assert await store.write(insert, "a") == 1
    assert await store.read(value_of, "a") is not None
    await store.aclose()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_is_not_utf8_is_refused_with_the_way_to_make_one_that_is(encoding: str) -> None:
    with required_database(postgres_url()) as url:
        name = f"latin_{encoding.lower()}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"create database {name} encoding '{encoding}' locale 'C' template template0".encode())
            try:
                other = url.replace(admin.info.dbname, name)
                for way in (current_revision, upgrade_database):
                    with pytest.raises(NotUtf8, match=f"has the encoding {encoding}, and the service needs UTF8: create database NAME"):
                        way(other)
            finally:
                admin.execute(f"drop database {name} with (force)".encode())
