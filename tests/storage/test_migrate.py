"""Schema versions: up, down and up again, who migrates when several start, and who must not."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from registry.errors import StoreUnavailable
from storage.engine.migrate import (
    SCRIPTS,
    SchemaMismatch,
    current_revision,
    downgrade_database,
    ensure_current,
    needs_upgrade,
    upgrade_database,
)
from storage.engine.migration_lock import migration_lock
from storage.engine.revision import HEAD, REVISIONS
from storage.engine.store import open_store
from storage.metadata import SQLModel
from tests.databases import migrated_postgres, migrated_sqlite, postgres_url, required_database, sqlite_url
from tests.storage.counters import insert, value_of

RACE = """
import os, sys, traceback
import alembic.command, psycopg, sqlalchemy.dialects.postgresql, sqlalchemy.dialects.sqlite
import storage.engine.migration_lock
from storage.engine.migrate import upgrade_database
waiting, begun = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        try:
            os.close(begun)
            os.read(waiting, 1)  # ends for all of them when the parent closes the other end
            os.write(1, f"{upgrade_database(sys.argv[1])}\\n".encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
os.close(begun)
for _ in range(3):
    os.wait()
"""
"""Three processes that have done their imports, which take longer than the race."""

IMPORTED = """
import sys
from storage.engine.migrate import ensure_current
print(ensure_current(sys.argv[1]), "alembic" in sys.modules, "psycopg" in sys.modules)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def new_database(request: pytest.FixtureRequest, tmp_path: Path):
    """The address of a database without anything in it."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
        return
    with required_database(postgres_url()) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def current_database(request: pytest.FixtureRequest, tmp_path: Path):
    """The address of a database at HEAD: a copy, since the way there is what other tests are about."""
    if request.param == "sqlite":
        yield migrated_sqlite(tmp_path)
        return
    with required_database(migrated_postgres(divided=False)) as url:
        yield url


def drift(url: str) -> list[object]:
    """What differs between a database and the tables as they are described; an index may be of one kind of database `only`."""
    with migration_lock(url) as database:
        kind = database.connection.dialect.name

        def is_meant(described: sa.schema.SchemaItem, *_: object) -> bool:
            return described.info.get("only", kind) == kind

        context = MigrationContext.configure(database.connection, opts={"include_object": is_meant})
        return compare_metadata(context, SQLModel.metadata)


def test_the_known_revisions_are_the_files_oldest_first() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(reversed([script.revision for script in scripts])) == REVISIONS


@pytest.mark.long
def test_upgrading_an_empty_database_gives_exactly_the_tables_of_the_schema(new_database: str) -> None:
    assert current_revision(new_database) is None
    assert needs_upgrade(new_database)
    assert upgrade_database(new_database)
    assert current_revision(new_database) == HEAD
    assert not upgrade_database(new_database)
    assert not ensure_current(new_database)
    assert drift(new_database) == []


def go_before(url: str, revision: str) -> None:
    """The database is as it was before this revision."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    before = ScriptDirectory.from_config(config).get_revision(revision).down_revision
    assert isinstance(before, str) and downgrade_database(url, before)


@pytest.mark.long
def test_a_schedule_and_a_program_of_before_are_kept_and_nothing_is_said_of_where_they_came_from(current_database: str) -> None:
    go_before(current_database, "0011")
    columns = "id, organisation, composite, input, cron, timezone, created_by, next_ms, created"
    schedule = "'sch_1', 'org_1', 'fleet_health', '{}', '0 6 * * *', 'UTC', 'usr_1', 7, 8"
    with migration_lock(current_database) as database:
        run = database.connection.exec_driver_sql
        run(f"insert into intelligence_schedule ({columns}) values ({schedule})")
        run("insert into oauth_client (id, metadata_json, created) values ('cli_1', '{}', 9.0)")
        database.connection.commit()
    assert upgrade_database(current_database)
    with migration_lock(current_database) as database:
        run = database.connection.exec_driver_sql
        assert [tuple(row) for row in run("select id, created_by, made_with, next_ms from intelligence_schedule")] == [
            ("sch_1", "usr_1", None, 7)
        ]
        assert [tuple(row) for row in run("select id, network, address from oauth_client")] == [("cli_1", None, None)]


@pytest.mark.long
def test_a_payment_account_of_before_was_active_where_its_status_or_an_order_says_so(current_database: str) -> None:
    go_before(current_database, "0013")
    columns = "organisation, currency, billing_cycle_day, price_per_gb_cents, invoice_prefix, connect_as_of, updated"
    accounts = {"org_1": ("acct_1", "active"), "org_2": ("acct_2", "pending"), "org_3": ("acct_3", "pending"), "org_4": (None, "none")}
    order = "organisation, storefront, plan, bought, template_id, amount, currency, language, status, payee, tries, created, updated"
    with migration_lock(current_database) as database:
        run = database.connection.exec_driver_sql
        for organisation, (account, status) in accounts.items():
            given = f"'{organisation}', 'USD', 1, 0, 'INV', 1.0, 1, {'null' if account is None else repr(account)}, '{status}'"
            run(f"insert into billing_config ({columns}, connect_account, connect_status) values ({given})")
        told = "'org_2', 'sf_1', 'sfp_1', '{}', 1, 100, 'USD', 'en', 'ready', 'acct_2', 0, 1.0, 1.0"
        run(f"insert into storefront_order (id, {order}) values ('onr_1', {told})")
        database.connection.commit()
    assert upgrade_database(current_database)
    with migration_lock(current_database) as database:
        found = database.connection.exec_driver_sql("select organisation, connect_was_active from billing_config order by organisation")
        assert [tuple(row) for row in found] == [("org_1", 1), ("org_2", 1), ("org_3", 0), ("org_4", 0)]


@pytest.mark.long
def test_down_to_base_and_up_again(current_database: str) -> None:
    assert downgrade_database(current_database, "base")
    assert current_revision(current_database) is None
    assert not downgrade_database(current_database, "base")
    assert upgrade_database(current_database)
    assert drift(current_database) == []


def test_a_second_upgrade_keeps_the_data(current_database: str) -> None:
    store = open_store(current_database)
    asyncio.run(store.write(insert, "a", value=5))
    upgrade_database(current_database)
    assert asyncio.run(store.read(value_of, "a")) == 5
    asyncio.run(store.aclose())


@pytest.mark.long
def test_of_three_starters_one_migrates_and_the_others_find_it_done(new_database: str) -> None:
    done = subprocess.run([sys.executable, "-c", RACE, new_database], capture_output=True, text=True, check=True, env=environment())
    answers = done.stdout.split()
    assert sorted(answers) == ["False"] * 2 + ["True"], done.stderr
    assert drift(new_database) == []


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SCRIPTS.parent.parent)}


def test_a_database_of_a_newer_program_is_refused(current_database: str) -> None:
    with migration_lock(current_database) as database:
        database.connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    for refused in (needs_upgrade, ensure_current, upgrade_database):
        with pytest.raises(SchemaMismatch, match=r"'9999'.*newer program"):
            refused(current_database)


@pytest.mark.postgres
def test_a_server_on_postgresql_does_not_migrate_by_itself() -> None:
    with required_database(postgres_url()) as url:
        with pytest.raises(SchemaMismatch, match="reseller db upgrade"):
            ensure_current(url)
        assert current_revision(url) is None


@pytest.mark.long
def test_a_server_on_sqlite_migrates_and_keeps_a_copy_of_what_was_there(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    assert ensure_current(url)
    assert [file.name for file in tmp_path.iterdir()] == ["service.db"]
    assert ((tmp_path / "service.db").stat().st_mode & 0o077) == 0
    downgrade_database(url, "base")
    assert ensure_current(url)
    copies = [file for file in tmp_path.iterdir() if "before" in file.name]
    assert [file.name for file in copies] == [f"service.db.before-{HEAD}"]
    assert (copies[0].stat().st_mode & 0o077) == 0


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "service.db")) as other:
        other.execute("create table theirs (id)")
    with pytest.raises(StoreUnavailable, match="another program"):
        ensure_current(sqlite_url(tmp_path))
    with closing(sqlite3.connect(tmp_path / "service.db")) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "service.db").write_text("notes " * 200)
    with pytest.raises(StoreUnavailable, match="not a database"):
        ensure_current(sqlite_url(tmp_path))
    assert (tmp_path / "service.db").read_text() == "notes " * 200


def test_an_address_that_is_neither_is_refused_without_showing_its_password() -> None:
    with pytest.raises(ValueError, match="'mysql'") as caught:
        current_revision("mysql://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


@pytest.mark.long
def test_a_current_database_is_recognised_without_importing_alembic(tmp_path: Path) -> None:
    url = migrated_sqlite(tmp_path)
    done = subprocess.run([sys.executable, "-c", IMPORTED, url], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.split() == ["False", "False", "False"]


def test_the_tables_are_described_without_the_dialect_of_postgresql() -> None:
    """An index that says `postgresql_where` would import it at every start, on SQLite, too."""
    said = "import sys, storage.metadata; print([name for name in sys.modules if 'postgresql' in name])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "[]\n"


@pytest.mark.long
def test_a_schema_that_knows_removed_keys_is_not_taken_back_while_there_are_any(current_database: str) -> None:
    with migration_lock(current_database) as database:
        columns = "digest, organisation, operation, fingerprint, status, claimed"
        database.connection.exec_driver_sql(f"insert into expired_key ({columns}) values ('a', 'org_1', 'x', 'b', 201, 1)")
        database.connection.commit()
    with pytest.raises(RuntimeError, match="would be free"):
        downgrade_database(current_database, "0018")
    assert current_revision(current_database) == HEAD


@pytest.mark.long
def test_a_schema_that_knows_removed_call_records_is_not_taken_back_while_there_are_any(current_database: str) -> None:
    before = REVISIONS[REVISIONS.index("0023") - 1]
    downgrade_database(current_database, before)
    upgrade_database(current_database)
    with migration_lock(current_database) as database:
        database.connection.exec_driver_sql("insert into call_record_digest (digest) values ('a')")
        database.connection.commit()
    with pytest.raises(RuntimeError, match="would be counted again"):
        downgrade_database(current_database, before)
    assert current_revision(current_database) == HEAD
