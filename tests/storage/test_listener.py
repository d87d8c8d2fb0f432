"""What a process hears of deliveries that others have queued in the same PostgreSQL database."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable

import psycopg
import pytest
import sqlalchemy as sa

from storage.deliveries import LISTENER_NAME, Listener, notify_deliveries, open_listener
from storage.engine.sql import Connection, Query
from storage.engine.store import Store, open_store

pytestmark = pytest.mark.postgres

WHO = Query(str, sa.select(sa.func.current_user(type_=sa.Text).label("role")))
SESSIONS = "select pid from pg_stat_activity where application_name = %s and datname = current_database()"


class Ear:
    def __init__(self, url: str) -> None:
        self.url, self.heard, self.reports = url, 0, list[str]()
        self.task = asyncio.ensure_future(Listener(url, self.reports.append)(self.hear))

    def hear(self) -> None:
        self.heard += 1

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.005)

    def sessions(self) -> list[int]:
        with psycopg.connect(self.url, autocommit=True) as admin:
            return [row[0] for row in admin.execute(SESSIONS, [LISTENER_NAME]).fetchall()]

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def ear(postgres: str) -> AsyncGenerator[Ear]:
    ear = Ear(postgres)
    await ear.until(lambda: ear.heard == 1)  # a new connection may have missed something
    yield ear
    await ear.close()


@pytest.fixture
async def other(postgres: str) -> AsyncGenerator[Store]:
    store = open_store(postgres, pool=2)
    yield store
    await store.aclose()


def queue(connection: Connection, *, times: int = 1, queued: int = 1, fail: bool = False) -> None:
    for _ in range(times):
        notify_deliveries(connection, queued=queued)
    if fail:
        raise ValueError("undone")


def queue_and_say(connection: Connection) -> str:
    notify_deliveries(connection, queued=1)
    return str(connection.first(WHO))


async def test_a_commit_is_heard_once_and_what_is_undone_or_queued_nothing_is_not(ear: Ear, other: Store) -> None:
    with pytest.raises(ValueError, match="undone"):
        await other.write(queue, fail=True)
    await other.write(queue, queued=0)
    await other.write(queue, times=5)
    await ear.until(lambda: ear.heard == 2)
    await other.write(queue)
    await ear.until(lambda: ear.heard == 3)
    assert ear.reports == []


async def test_what_nobody_can_be_told_of_is_committed_all_the_same(ear: Ear, postgres: str) -> None:
    role = f"mute_{secrets.token_hex(4)}"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"create role {role}".encode())
        try:
            admin.execute("revoke execute on function pg_notify(text, text) from public")
            store = open_store(f"{postgres}{'&' if '?' in postgres else '?'}options=-c%20role%3D{role}", pool=1)
            try:
                assert [await store.write(queue_and_say) for _ in range(2)] == [role, role]
            finally:
                await store.aclose()
        finally:
            admin.execute(f"drop role {role}".encode())
    assert ear.heard == 1


@pytest.mark.long
async def test_a_broken_connection_is_said_once_and_made_again(ear: Ear, other: Store) -> None:
    for _ in range(2):
        (session,) = ear.sessions()
        heard = ear.heard
        with psycopg.connect(ear.url, autocommit=True) as admin:
            admin.execute("select pg_terminate_backend(%s)", [session])
        await ear.until(lambda heard=heard: ear.heard == heard + 1)
        await other.write(queue)
        await ear.until(lambda heard=heard: ear.heard == heard + 2)
    broken = "worker: not listening to the database; new deliveries are found by polling meanwhile"
    assert ear.reports == [broken, "worker: listening to the database again"] * 2


async def test_a_listener_that_ends_leaves_no_connection(ear: Ear) -> None:
    assert len(ear.sessions()) == 1
    await ear.close()
    await ear.until(lambda: ear.sessions() == [])


async def test_sqlite_has_nothing_to_listen_to(tmp_path: object) -> None:
    assert open_listener(f"sqlite:///{tmp_path}/service.db", print) is None
