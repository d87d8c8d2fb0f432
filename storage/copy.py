"""Copying an SQLite database while it is in use, through SQLite's backup API."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from storage.pragmas import open_file


def copy_database(source: Path, target: Path) -> None:
    """Write a whole, consistent copy: it appears under its name only when it is complete."""
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(open_file(source, busy_ms=5000)) as reader, closing(open_file(unfinished, busy_ms=5000)) as writer:
            reader.backup(writer)
            # A copy is one file: without a log beside it.
            writer.execute("pragma journal_mode=delete")
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def pour(source: Path, target: sqlite3.Connection) -> None:
    """Replace the content of an open database by a file's, in one transaction of the target."""
    with closing(open_file(source, busy_ms=5000)) as reader:
        reader.backup(target)
