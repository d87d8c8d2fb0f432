"""What a program looks at in a database that it works on, again and again: its schema version, and with which keys it is sealed."""

import sqlite3
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.connection import Connection
from storage.revision import SPOKEN
from storage.secrets.sealed_rows import newest_key_ids
from storage.statement import Dialect, Query
from storage.store import Store

VERSION_TABLE = "alembic_version"


class DatabaseState(NamedTuple):
    """`revision` is None where there is no schema; `sealed_by` names the keys of the newest sealed rows, as far as they were asked for."""

    revision: str | None
    sealed_by: frozenset[str]


class TableName(NamedTuple):
    """A table that there is."""

    name: str


class Version(NamedTuple):
    """The schema version."""

    version_num: str


def version_table(dialect: Dialect) -> sa.Select[str]:
    """The version table, looked up: a query of one that is gone would fail."""
    if dialect.name == "sqlite":
        known = sa.table("sqlite_master", sa.column("name", sa.String))
        return sa.select(known.c.name).where(known.c.name == VERSION_TABLE)
    found = sa.cast(sa.func.to_regclass(VERSION_TABLE), sa.String).label("name")
    return sa.select(found).where(sa.func.to_regclass(VERSION_TABLE).is_not(None))


VERSION_TABLES = Query(TableName, version_table)
VERSION = Query(Version, sa.select(sa.table(VERSION_TABLE, sa.column("version_num", sa.String)).c.version_num))


def database_state(connection: Connection, *, with_keys: bool) -> DatabaseState:
    """One snapshot. Keys are asked of a schema that this program knows."""
    row = connection.first(VERSION) if connection.first(VERSION_TABLES) is not None else None
    revision = None if row is None else row.version_num
    return DatabaseState(revision, newest_key_ids(connection) if with_keys and revision in SPOKEN else frozenset())


async def look_at_database(store: Store, *, with_keys: bool) -> DatabaseState:
    """The state; StoreUnavailable when it cannot be read, for whatever reason."""
    try:
        return await store.read(database_state, with_keys=with_keys)
    except database_error(store) as error:
        raise StoreUnavailable("the database refused to be read") from error


def database_error(store: Store) -> type[Exception]:
    """What its driver raises."""
    if store.dialect_name == "sqlite":
        return sqlite3.Error
    from psycopg import Error  # only where PostgreSQL is used

    return Error
