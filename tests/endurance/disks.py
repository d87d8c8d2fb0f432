"""Disks that are full: SQLite's own limit of pages, and where it can be mounted a file system of some megabytes."""

import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from storage.engine.sql import Command, Connection
from storage.engine.store import Store
from tests.databases import migrated_file

ROOM = 12 << 20
PIECE = b"\0" * 65_536


class Disk(Protocol):
    folder: Path

    async def fill(self, store: Store) -> None: ...

    async def free(self, store: Store) -> None: ...


class Pages:
    """The database may not have more pages than it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def fill(self, store: Store) -> None:
        await store.write(limit_pages, count=1)  # SQLite never goes below the present size

    async def free(self, store: Store) -> None:
        await store.write(limit_pages, count=1_000_000_000)


def limit_pages(connection: Connection, *, count: int) -> None:
    """Of the writing connection, for as long as it lasts."""
    connection.run(Command(sa.text(f"pragma max_page_count={count}")))


class SmallDisk:
    """A file system of its own: somebody else's file takes all that is left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    async def fill(self, store: Store) -> None:
        self.fill_up()

    def fill_up(self) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            for piece in (PIECE, PIECE[:4096]):
                while True:
                    try:
                        if file.write(piece) < len(piece):
                            break
                    except OSError:
                        break

    async def free(self, store: Store) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk() -> Generator[SmallDisk]:
    """Mounted for the length of a block."""
    folder = Path(tempfile.mkdtemp(prefix="small-disk-"))
    subprocess.run(mounting(folder), check=True, capture_output=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def mounting(folder: Path) -> list[str]:
    size = ROOM + migrated_file().stat().st_size
    return ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]


@cache
def can_mount() -> bool:
    if shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="mount-") as folder:
        tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=65536", "tmpfs", folder], capture_output=True, check=False)
        if tried.returncode == 0:
            subprocess.run(["umount", folder], check=True)
    return tried.returncode == 0
