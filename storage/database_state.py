"""What a program looks at in a database that it works on, again and again: its schema version, and with which keys it is sealed."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.connection import Connection
from storage.revision import Schema
from storage.schema_steps import SchemaStepTable
from storage.secrets.sealed_rows import outermost_key_ids
from storage.statement import Dialect, Query, table
from storage.store import Store

VERSION_TABLE = "alembic_version"


class DatabaseState(NamedTuple):
    """`sealed_by` names the keys of the newest and the oldest sealed rows, as far as they were asked for."""

    is_read_only: bool
    schema: Schema
    sealed_by: frozenset[str]


class TableName(NamedTuple):
    """A table that there is."""

    name: str


class Mode(NamedTuple):
    """Whether writes are refused."""

    is_read_only: int


class Version(NamedTuple):
    """The schema version."""

    version_num: str


class Step(NamedTuple):
    """Beside which programs a version may be in use."""

    works_from: str


def named(name: str) -> Callable[[Dialect], sa.Select[str]]:
    """A table, looked up: a query of one that is not there would fail."""

    def look_up(dialect: Dialect) -> sa.Select[str]:
        if dialect.name == "sqlite":
            known = sa.table("sqlite_master", sa.column("name", sa.String))
            return sa.select(known.c.name).where(known.c.name == name)
        found = sa.cast(sa.func.to_regclass(name), sa.String).label("name")
        return sa.select(found).where(sa.func.to_regclass(name).is_not(None))

    return look_up


STEP = table(SchemaStepTable)
VERSION_TABLES, STEP_TABLES = Query(TableName, named(VERSION_TABLE)), Query(TableName, named(STEP.name))
VERSION = Query(Version, sa.select(sa.table(VERSION_TABLE, sa.column("version_num", sa.String)).c.version_num))
STEPS = Query(Step, sa.select(STEP.c.works_from).where(STEP.c.revision == sa.bindparam("revision")))


MODE = Query(
    Mode,
    sa.text("select pg_is_in_recovery()::int as is_read_only").columns(sa.column("is_read_only", sa.Integer)),
)


def is_read_only(connection: Connection) -> bool:
    """Whether the server is a standby; never on SQLite."""
    mode = connection.first(MODE) if connection.dialect_name == "postgresql" else None
    return mode is not None and mode.is_read_only == 1


def database_state(connection: Connection, *, with_keys: bool) -> DatabaseState:
    """One snapshot. Keys are asked of a schema that this program knows."""
    row = connection.first(VERSION) if connection.first(VERSION_TABLES) is not None else None
    schema = Schema(None if row is None else row.version_num)
    if schema.is_newer and connection.first(STEP_TABLES) is not None:
        step = connection.first(STEPS, revision=schema.revision)
        schema = Schema(schema.revision, None if step is None else step.works_from)
    return DatabaseState(is_read_only(connection), schema, outermost_key_ids(connection) if with_keys and schema.is_spoken else frozenset())


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
