"""One database for a state machine: its own loop, its own file, its own clock."""

import asyncio
import atexit
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from storage.engine.store import Store, open_store
from storage.sealing import Keyring, new_key_setting
from tests.databases import empty, migrated_postgres, migrated_sqlite
from tests.world import CountingIds, SettableClock

T = TypeVar("T")
MEMORY = "/dev/shm"  # thousands of durable commits: a disk would only add waiting


class MachineStore:
    """Hypothesis runs machines synchronously; each of them has a runner of its own."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="seat-", dir=MEMORY if Path(MEMORY).is_dir() else None)
        self.runner = asyncio.Runner()
        self.clock = SettableClock()
        self.ids = CountingIds(self.clock)
        self.keyring = Keyring(new_key_setting(self.ids.bytes), self.ids.bytes)
        self.store: Store = open_store(migrated_sqlite(Path(self.folder.name)))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.get_loop().run_until_complete(work)

    def close(self) -> None:
        self.run(self.store.aclose())
        self.runner.close()
        self.folder.cleanup()


Engine = Literal["sqlite", "postgresql"]


class ServiceMachine(RuleBasedStateMachine):
    """Hypothesis plays machines synchronously: each has a runner of its own."""

    engine: ClassVar[Engine] = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="machine-", dir=MEMORY if Path(MEMORY).is_dir() else None)
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.run(self.open(Path(self.folder.name), clean_postgres() if self.engine == "postgresql" else None))

    async def open(self, folder: Path, url: str | None) -> None:
        """What the machine plays with; without an address it has a new file."""
        raise AssertionError("each machine opens its own")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.get_loop().run_until_complete(work)

    def together(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        async def gathered() -> list[T]:
            return await asyncio.gather(*work)

        return self.run(gathered())

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()


@cache
def postgres() -> str | None:
    """One database for all machines of this process."""
    made = ExitStack()
    url = made.enter_context(migrated_postgres())
    atexit.register(made.close)  # before the server's own clean-up: the last registered goes first
    return url


def clean_postgres() -> str:
    url = postgres()
    assert url is not None, "no PostgreSQL"
    empty(url)
    return url
