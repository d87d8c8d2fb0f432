"""One database for a state machine: its own loop, its own file, its own clock."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from storage.engine.store import Store, open_store
from storage.sealing import Keyring, new_key_setting
from tests.databases import migrated_sqlite
from tests.world import CountingIds, SettableClock

T = TypeVar("T")
MEMORY = "/dev/shm"  # thousands of durable commits: a disk would only add waiting


class Seat:
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
