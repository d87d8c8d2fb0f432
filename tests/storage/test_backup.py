"""Backup and restore of the SQLite file."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.engine.backup import BackupRefused, backup, restore
from storage.engine.migrate import current_revision
from storage.engine.store import open_store
from tests.databases import migrated_sqlite, sqlite_url
from tests.storage.counters import insert, names


@pytest.fixture
def url(tmp_path: Path) -> str:
    return migrated_sqlite(tmp_path)


def write(url: str, *keys: str) -> None:
    async def all_of_them() -> None:
        store = open_store(url)
        for key in keys:
            await store.write(insert, key)
        await store.aclose()

    asyncio.run(all_of_them())


def read(url: str) -> list[str]:
    async def look() -> list[str]:
        store = open_store(url)
        found = await store.read(names)
        await store.aclose()
        return found

    return asyncio.run(look())


def test_a_backup_taken_while_the_service_runs_brings_back_what_was_committed(url: str, tmp_path: Path) -> None:
    async def running() -> None:
        store = open_store(url)
        await store.write(insert, "kept")
        backup(url, tmp_path / "copy")
        await store.write(insert, "later")
        await store.aclose()

    asyncio.run(running())
    assert read(url) == ["kept", "later"]
    kept = restore(tmp_path / "copy", url)
    assert read(url) == ["kept"]
    assert kept is not None
    assert read(f"sqlite:///{kept}") == ["kept", "later"]


def test_a_backup_is_one_file_for_its_owner_only(url: str, tmp_path: Path) -> None:
    write(url, "a")
    target = tmp_path / "backups" / "copy"
    target.parent.mkdir()
    backup(url, target)
    assert [file.name for file in target.parent.iterdir()] == ["copy"]
    assert (target.stat().st_mode & 0o077) == 0


def test_a_backup_restores_into_an_empty_folder(url: str, tmp_path: Path) -> None:
    write(url, "a")
    backup(url, tmp_path / "copy")
    (tmp_path / "new").mkdir()
    assert restore(tmp_path / "copy", sqlite_url(tmp_path / "new")) is None
    assert read(sqlite_url(tmp_path / "new")) == ["a"]
    assert current_revision(sqlite_url(tmp_path / "new")) == current_revision(url)


def test_a_backup_never_overwrites_a_file(url: str, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("precious")
    with pytest.raises(BackupRefused, match="exists"):
        backup(url, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "precious"


def test_what_a_restore_replaced_is_never_overwritten_by_the_next_one(url: str, tmp_path: Path) -> None:
    write(url, "a")
    backup(url, tmp_path / "copy")
    restore(tmp_path / "copy", url)
    with pytest.raises(BackupRefused, match="earlier restore"):
        restore(tmp_path / "copy", url)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table theirs (id)")


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table alembic_version (version_num)")
        other.execute("insert into alembic_version values ('9999')")
        other.commit()


def no_database(path: Path) -> None:
    path.write_text("notes " * 200)


@pytest.mark.parametrize(
    ("make", "reason"), [(foreign, "not a database of this service"), (newer, "newer program"), (no_database, "not an SQLite database")]
)
def test_a_file_that_is_not_ours_is_not_restored(url: str, tmp_path: Path, make: object, reason: str) -> None:
    write(url, "a")
    assert callable(make)
    make(tmp_path / "given")
    with pytest.raises(BackupRefused, match=reason):
        restore(tmp_path / "given", url)
    assert read(url) == ["a"]
    assert not (tmp_path / "service.db.before-restore").exists()


def test_a_missing_file_is_named(url: str, tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="no file at"):
        restore(tmp_path / "absent", url)
    with pytest.raises(BackupRefused, match="no database at"):
        backup(sqlite_url(tmp_path / "absent"), tmp_path / "copy")


def test_postgresql_is_sent_to_its_own_tools(tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="pg_dump"):
        backup("postgresql://host/name", tmp_path / "copy")
    with pytest.raises(BackupRefused, match="pg_restore"):
        restore(tmp_path / "copy", "postgresql://host/name")
