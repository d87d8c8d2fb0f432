"""What a program looks at in a database: its schema version, and with which keys it is sealed.

Keys are asked at every start, so with two reads of one row for each column. `reseller doctor` counts all.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.engine.database_url import START_SECONDS, is_sqlite_url, load_psycopg, sqlite_path, unreachable
from storage.engine.revision import Schema, schema_in
from storage.engine.sql import Connection, Query, T, postgresql_dialect, sqlite_dialect, table_lookup, text_query
from storage.engine.sqlite_file import open_sqlite_file, outage_of
from storage.engine.store import Store
from storage.rekey import outermost_key_ids
from storage.replicas import SCHEMA_STEP

VERSION_TABLE = "alembic_version"


class DatabaseState(NamedTuple):
    """`sealed_by` names the keys of the newest and the oldest sealed rows, as far as they were asked for."""

    is_read_only: bool
    schema: Schema
    sealed_by: frozenset[str]


VERSION_TABLES = Query(str, table_lookup(VERSION_TABLE))

STEP_TABLES = Query(str, table_lookup(SCHEMA_STEP.name))

VERSION_SCHEMA = Query(str, lambda _: sa.select(sa.table(VERSION_TABLE, sa.column("version_num", sa.String)).c.version_num))

FIND_SCHEMA_STEP = Query(str, lambda _: sa.select(SCHEMA_STEP.c.works_from).where(SCHEMA_STEP.c.revision == sa.bindparam("revision")))

MODE_SCHEMA = text_query(int, "select pg_is_in_recovery()::int as is_read_only", "is_read_only")


def is_standby(connection: Connection) -> bool:
    """Whether the server is a standby; never on SQLite."""
    mode = connection.first(MODE_SCHEMA) if connection.dialect_name == "postgresql" else None
    return mode == 1


def database_state(connection: Connection, *, with_keys: bool) -> DatabaseState:
    """One snapshot. Keys are asked of a schema that this program knows."""
    row = connection.first(VERSION_SCHEMA) if connection.first(VERSION_TABLES) is not None else None
    schema = Schema(row)
    if schema.is_newer and connection.first(STEP_TABLES) is not None:
        step = connection.first(FIND_SCHEMA_STEP, revision=schema.revision)
        schema = Schema(schema.revision, step)
    return DatabaseState(is_standby(connection), schema, outermost_key_ids(connection) if with_keys and schema.is_spoken else frozenset())


async def look_at_database(store: Store, *, with_keys: bool) -> DatabaseState:
    """The state; StoreUnavailable when it cannot be read, for whatever reason."""
    driver_error = sqlite3.Error if store.dialect_name == "sqlite" else load_psycopg().Error
    try:
        return await store.read(database_state, with_keys=with_keys)
    except driver_error as error:
        raise StoreUnavailable("the database refused to be read") from error


READ_CLOSED_BUSY_MS = 5_000


def is_known_schema(schema: Schema) -> bool:
    """Whether this program knows its version, or works on it all the same."""
    return schema.is_spoken or (schema.revision is not None and not schema.is_newer)


def is_supported_schema(schema: Schema) -> bool:
    """Whether this program works on it."""
    return schema.is_spoken


def sealed_key_ids(url: str) -> frozenset[str]:
    """The same for a database at an address; none for one that is absent, has no tables, or is a newer program's."""
    return read_closed(url, outermost_key_ids) or frozenset()


def read_closed(url: str, read: Callable[[Connection], T], *, fits: Callable[[Schema], bool] = is_known_schema) -> T | None:
    """What `read` returns for the database at an address that no store has open; None for one that is absent or whose schema does
    not fit.
    """
    return read_sqlite(sqlite_path(url), read, fits) if is_sqlite_url(url) else read_postgres(url, read)


def read_sqlite(path: Path, read: Callable[[Connection], T], fits: Callable[[Schema], bool]) -> T | None:
    """Of a file, which is not made when it is absent."""
    if not path.exists():
        return None
    with closing(open_sqlite_file(path, busy_ms=READ_CLOSED_BUSY_MS)) as raw:
        try:
            return read(Connection(raw, sqlite_dialect())) if fits(schema_in(raw)) else None
        except sqlite3.Error as error:
            raise outage_of(error) or error from error


def read_postgres(url: str, read: Callable[[Connection], T]) -> T | None:
    """Of a PostgreSQL database, with one connection."""
    from storage.engine.session import Session  # brings psycopg

    psycopg = load_psycopg()
    session = Session(url, postgresql_dialect())
    timer = Timer(START_SECONDS, session.cut)
    timer.start()
    try:
        return session.run(read, read_only=True)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return None  # the check of the schema version, which comes next, says what is missing
    except psycopg.Error as error:  # an address that cannot be read
        raise unreachable(error) from error
    except StoreUnavailable as refusal:
        if isinstance(refusal.__cause__, psycopg.Error):
            raise unreachable(refusal.__cause__) from refusal.__cause__
        raise
    finally:
        timer.cancel()
        session.close()
