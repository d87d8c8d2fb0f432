"""A database under the migration lock, inside the one transaction that migrates it."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.pool import NullPool

from registry.errors import StoreUnavailable
from storage.engine.database_url import TablesInUse, connect_at_start, is_sqlite_url, sqlite_path
from storage.engine.revision import HEAD, NO_SCHEMA, Schema, schema_in
from storage.engine.sqlite_file import copy_database, enable_wal, open_sqlite_file, transaction_refusal

ADVISORY_LOCK = 0x5253_4C52  # "RSLR", among the other users of a shared server
APPLICATION_ID = 0x5253_4C52  # in the header of our SQLite files
MIGRATION_LOCK_MS = 60_000  # another starter may be migrating
LOCK_NOT_AVAILABLE = "55P03"
TABLE_LOCK = "2s"
"""How long a migration waits for a table that is in use: whoever comes after it waits as long."""


class LockedSqlite:
    """An SQLite file inside BEGIN IMMEDIATE."""

    def __init__(self, path: Path, raw: sqlite3.Connection, connection: sa.Connection) -> None:
        self._path = path
        self._raw = raw
        self.connection = connection

    def schema(self) -> Schema:
        """Its schema, read under the lock."""
        return schema_in(self._raw)

    def prepare(self, revision: str | None) -> None:
        """Refuse a foreign file; keep a copy of one that holds data."""
        tables = self._raw.execute("select count(*) from sqlite_master where type='table'").fetchone()
        if tables != (0,):
            if revision is None and self._raw.execute("pragma application_id").fetchone() != (APPLICATION_ID,):
                raise StoreUnavailable(f"{self._path} holds tables of another program; name another file")
            copy_database(self._path, self._path.with_name(f"{self._path.name}.before-{HEAD}"))
        self._raw.execute(f"pragma application_id={APPLICATION_ID}")

    def check(self) -> None:
        """Foreign keys were off while tables were copied; nothing may dangle now."""
        dangling = self._raw.execute("pragma foreign_key_check").fetchall()
        if dangling:
            raise RuntimeError(
                f"the migration leaves {len(dangling)} rows that refer to missing rows, the first in {dangling[0][0]}; it was undone"
            )


class LockedPostgres:
    """A PostgreSQL database under an advisory lock that ends with the transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        connection.execute(sa.select(sa.func.set_config("lock_timeout", TABLE_LOCK, True)))

    def schema(self) -> Schema:
        """Its schema, read under the lock."""
        if not self._has("alembic_version"):
            return NO_SCHEMA
        revision = self.connection.scalar(sa.text("select version_num from alembic_version"))
        if revision is None or not self._has("schema_step"):
            return Schema(revision)
        step = sa.text("select works_from from schema_step where revision = :revision")
        return Schema(revision, self.connection.scalar(step, {"revision": revision}))

    def _has(self, name: str) -> bool:
        return self.connection.scalar(sa.text("select to_regclass(:name)::text"), {"name": name}) is not None

    def prepare(self, revision: str | None) -> None:
        """Nothing: copies of a server are the business of pg_dump."""

    def check(self) -> None:
        """Nothing: PostgreSQL keeps its foreign keys while it migrates."""


@contextmanager
def migration_lock(url: str) -> Generator[LockedSqlite | LockedPostgres]:
    """Lock, yield, commit; an error undoes everything."""
    if is_sqlite_url(url):
        with lock_sqlite(sqlite_path(url)) as database:
            yield database
        return
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: connect_at_start(url), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            yield LockedPostgres(connection)
    except exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            raise TablesInUse("a long transaction uses the tables that the migration changes: end it, or run it again later") from error
        raise StoreUnavailable("the database cannot be reached or refused the migration") from error


@contextmanager
def lock_sqlite(path: Path) -> Generator[LockedSqlite]:
    """BEGIN IMMEDIATE, foreign keys off (that must be said before BEGIN)."""
    raw = open_sqlite_file(path, busy_ms=MIGRATION_LOCK_MS)
    try:
        enable_wal(raw)
        raw.execute("pragma foreign_keys=off")
        engine = sa.create_engine("sqlite://", creator=lambda: raw, poolclass=sa.StaticPool)
        event.listen(engine, "begin", begin_immediate)
        with engine.begin() as connection:
            yield LockedSqlite(path, raw, connection)
    except exc.OperationalError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise transaction_refusal(error.orig) from error
        raise
    finally:
        raw.close()


def begin_immediate(connection: sa.Connection) -> None:
    """SQLAlchemy's BEGIN hook: take the write lock, not only a snapshot."""
    connection.exec_driver_sql("begin immediate")
