"""Who finds the leased block empty while a lease ends: they lease anew, and nobody waits for what is over."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import anyio.lowlevel
import pytest

from registry.ports import QuotaPeriod
from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.sql import Connection, sqlite_dialect
from storage.engine.sqlite_file import open_sqlite_file
from storage.quota import QuotaBlocks
from tests.databases import migrated_sqlite
from tests.world import NOON

P = ParamSpec("P")
T = TypeVar("T")
DAY = QuotaPeriod("2027-01-15", int(NOON))


class PromptStore:
    """A database that answers in the tick in which it is asked, as fast as one can."""

    dialect_name = "sqlite"
    pool_load = PoolLoad()
    snapshot = None

    def __init__(self, folder: Path) -> None:
        migrated_sqlite(folder)
        self.signals = DatabaseSignals()
        self._file = open_sqlite_file(folder / "service.db", busy_ms=1000)
        self._connection = Connection(self._file, sqlite_dialect())

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(self._connection, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(self._connection, *args, **kwargs)

    async def aclose(self) -> None:
        self._file.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[PromptStore]:
    store = PromptStore(tmp_path)
    yield store
    await store.aclose()


async def test_a_lease_that_has_just_ended_is_not_waited_for(store: PromptStore) -> None:
    blocks = QuotaBlocks(store, 1)
    first = asyncio.create_task(blocks.take("org_1", 3, DAY, NOON))
    await anyio.lowlevel.checkpoint()  # its lease is about to run, and the others come right behind it
    others = [asyncio.create_task(blocks.take("org_1", 3, DAY, NOON)) for _ in range(4)]
    taken = await asyncio.gather(first, *others)
    assert sorted(usage.used for usage in taken if usage is not None) == [1, 2, 3]
