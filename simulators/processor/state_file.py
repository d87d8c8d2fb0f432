"""The state file of a simulated processor: a service started again still knows its accounts and invoices.

Several processes of one service may share the file: each changes it under a lock, and reads what another one wrote.
"""

import fcntl
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Generic, TextIO, TypeVar

import anyio
import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from registry.ids import without_order_tokens

StoredStateT = TypeVar("StoredStateT")
LOCK_RETRY_SECONDS = 0.01


class StateFile(Generic[StoredStateT]):
    """One state, a plain dataclass, which is read and changed in turns."""

    def __init__(
        self,
        begin: Callable[[], StoredStateT],
        path: Path | None,
        report: Callable[[str], None],
        shape: Callable[[], TypeAdapter[StoredStateT]],
    ) -> None:
        """`begin` makes the first state; `shape` says how it is written, and is asked when it is first read or written."""
        self._begin, self._path, self._report, self._shape = begin, path, report, shape
        self._turn = anyio.Lock()
        self._state: StoredStateT | None = None
        self._seen: tuple[int, int] | None = None
        self._holds_tokens = False

    @property
    def state(self) -> StoredStateT:
        if self._state is None:
            self._state = self._begin()
        return self._state

    @property
    def begun(self) -> bool:
        """Somebody has asked for it, or an earlier process left a file."""
        return self._state is not None or (self._path is not None and self._path.exists())

    @asynccontextmanager
    async def turn(self, *, writes: bool) -> AsyncGenerator[StoredStateT]:
        """The state, for nobody else at the same time. What is changed inside is in the file before the block is left."""
        async with self._turn:
            if self._path is None:
                yield self.state
            elif not writes:
                state = await anyio.to_thread.run_sync(self._fresh, self._path)
                if self._holds_tokens:
                    async with self._changing(self._path) as state:
                        pass
                yield state
            else:
                async with self._changing(self._path) as state:
                    yield state

    @asynccontextmanager
    async def _changing(self, path: Path) -> AsyncGenerator[StoredStateT]:
        """The state while no other process has it; it is in the file afterwards."""
        async with file_lock(path.with_suffix(".lock")):
            state = await anyio.to_thread.run_sync(self._fresh, path)
            try:
                yield state
                await anyio.to_thread.run_sync(self._write, path, state)
            except BaseException:
                self._state = self._seen = None  # half a change is none: the file is read again
                raise

    def _fresh(self, path: Path) -> StoredStateT:
        """The file's state where another process wrote it since, else ours."""
        seen = file_version(path)
        if seen is not None and seen != self._seen:
            self._state, self._seen = self._read(path), seen
        return self.state

    def _read(self, path: Path) -> StoredStateT:
        """The file's state. A file of release 1.0 names orders by what opens them: their numbers stand there from now on."""
        try:
            text = path.read_bytes().decode(errors="surrogateescape")
            numbered = without_order_tokens(text)
            self._holds_tokens = numbered != text
            return self._shape().validate_json(numbered.encode(errors="surrogateescape"))
        except OSError:
            return self._set_aside(path, "it cannot be read")
        except ValidationError:
            return self._set_aside(path, "it holds something else, or another version of the service wrote it")

    def _set_aside(self, path: Path, why: str) -> StoredStateT:
        aside = path.with_suffix(".unreadable.json")
        path.replace(aside)
        self._report(f"{path}: {why}, so the simulated payment processor begins anew; what it held is in {aside}")
        return self._begin()

    def _write(self, path: Path, state: StoredStateT) -> None:
        """Replace the file whole; it is never readable by others, not even for a moment."""
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(self._shape().dump_json(state))
        fresh.replace(path)
        self._seen = file_version(path)
        self._holds_tokens = False


def file_version(path: Path) -> tuple[int, int] | None:
    """The inode and the time of a file, which change whenever the file is replaced; None where there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


@asynccontextmanager
async def file_lock(path: Path) -> AsyncGenerator[None]:
    """No other process is here at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        await _acquire_lock(lock)
        yield


async def _acquire_lock(lock: TextIO) -> None:
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await anyio.sleep(LOCK_RETRY_SECONDS)
