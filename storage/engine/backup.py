"""Backup and restore of the SQLite database, also while the service runs. PostgreSQL has its own tools."""

import sqlite3
from contextlib import closing
from pathlib import Path

from storage.engine.database_url import is_sqlite_url, sqlite_path
from storage.engine.revision import HEAD, REVISIONS, revision_in
from storage.engine.sqlite_file import copy_database, enable_wal, open_sqlite_file, outage_of

PG_DUMP = (
    "this is a PostgreSQL database: back it up with `pg_dump --format=custom` and restore it with `pg_restore`, "
    "or use your host's snapshots"
)


class BackupRefused(Exception):
    """The backup or restore was not begun; nothing was changed."""


def backup(url: str, target: Path) -> None:
    """Copy the database to a new file. It holds personal data and sealed secrets: it is readable by its owner only."""
    source = database_file(url)
    if not source.exists():
        raise BackupRefused(f"there is no database at {source}")
    if target.exists():
        raise BackupRefused(f"{target} exists; name a new file")
    copy_database(source, target)


def restore(source: Path, url: str) -> Path | None:
    """Replace the database by a backup. What it held before is kept in the returned file. Stop the service before."""
    path = database_file(url)
    check_backup(source)
    kept: Path | None = None
    if path.exists() and path.stat().st_size:
        kept = path.with_name(f"{path.name}.before-restore")
        if kept.exists():
            raise BackupRefused(f"{kept} exists from an earlier restore; move it away first")
        copy_database(path, kept)
    with closing(open_sqlite_file(path, busy_ms=5000)) as target:
        try:
            replace_content(source, target)
            enable_wal(target)
        except sqlite3.Error as error:
            raise outage_of(error) or error from error
    return kept


def database_file(url: str) -> Path:
    """The file of an SQLite address; PostgreSQL is told where to go."""
    if not is_sqlite_url(url):
        raise BackupRefused(PG_DUMP)
    return sqlite_path(url)


def check_backup(source: Path) -> None:
    """Refuse what is not a sound database of ours, or newer than this program."""
    if not source.is_file():
        raise BackupRefused(f"there is no file at {source}")
    try:
        with closing(sqlite3.connect(source, isolation_level=None)) as raw:
            revision = revision_in(raw)
            verdict = raw.execute("pragma integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        raise BackupRefused(f"{source} is not an SQLite database, or is damaged") from error
    if revision is None:
        raise BackupRefused(f"{source} is not a database of this service: it has no schema version")
    if revision not in REVISIONS:
        raise BackupRefused(f"{source} is at schema version {revision!r}, this program knows up to {HEAD}: use the newer program")
    if verdict != ("ok",):
        raise BackupRefused(f"{source} is damaged: {verdict[0]}")


def replace_content(source: Path, target: sqlite3.Connection) -> None:
    """Replace the content of an open database by a file's, in one transaction of the target."""
    with closing(open_sqlite_file(source, busy_ms=5000)) as reader:
        reader.backup(target)
