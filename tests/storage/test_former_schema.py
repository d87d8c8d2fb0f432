"""Upgrades side by side: this program works on the schema before its own, and on the next one where that only adds something."""

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from anyio.lowlevel import checkpoint

from storage.engine.database_url import is_sqlite_url, sqlite_path
from storage.engine.migrate import SchemaMismatch, current_schema, downgrade_database, ensure_current, needs_upgrade, upgrade_database
from storage.engine.migration_lock import migration_lock
from storage.engine.revision import HEAD, REVISIONS, Schema
from storage.metadata import SQLModel
from tests.cli.reseller import run_reseller
from tests.databases import migrated_postgres, migrated_sqlite, required_database
from tests.issuance.stage import open_issuance_stage
from transports.readiness import Readiness

RELEASES = Path(__file__).parent.parent.parent / "docs" / "releases.md"
FORMER, INTENTS = REVISIONS[-2], "/v1/connectivity/intents"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database of the schema before."""
    if request.param == "sqlite":
        url = migrated_sqlite(tmp_path)
        downgrade_database(url, FORMER)
        yield url
        return
    with required_database(migrated_postgres(divided=False)) as url:
        downgrade_database(url, FORMER)
        yield url


@pytest.mark.long
def test_all_that_statements_name_is_in_the_schema_before(former: str) -> None:
    with migration_lock(former) as database:
        found = compare_metadata(MigrationContext.configure(database.connection), SQLModel.metadata)
    differences = [each[0] if isinstance(each, list) else each for each in found]
    # What it has and no statement names is left by the release before; an index is only faster.
    assert [each for each in differences if each[0] not in ("remove_table", "remove_column", "add_index", "remove_index")] == []


@pytest.mark.long
async def test_esims_are_issued_on_the_schema_before_and_on_while_it_is_upgraded(former: str, tmp_path: Path) -> None:
    async with open_issuance_stage(tmp_path, former) as stage:
        deps = stage.world.pipeline.deps
        readiness = Readiness(deps, print)
        for schema in (FORMER, HEAD):
            assert current_schema(former).revision == schema
            await readiness.look()
            assert readiness.reasons == ()
            first, again = await stage.issue(key=f"on-{schema}"), await stage.issue(key=f"on-{schema}")
            assert first.status_code == 201 and again.content == first.content
            upgrade_database(former)
            listed = await stage.http.get("/v1/issuances", params={"iccid": first.json()["data"]["iccid"], "state": "issued"})
            assert [row["idempotency_key"] for row in listed.json()["data"]] == [f"on-{schema}"]
        assert [row.state for row in await stage.ledger()] == ["issued", "issued"]


def test_a_server_starts_on_the_schema_before_and_upgrades_a_file_alone(former: str) -> None:
    assert needs_upgrade(former)
    assert ensure_current(former) is is_sqlite_url(former)
    assert current_schema(former).revision == (HEAD if is_sqlite_url(former) else FORMER)


async def test_intents_from_before_are_found_by_their_labels_after_the_upgrade(former: str, tmp_path: Path) -> None:
    async with open_issuance_stage(tmp_path, former) as stage:
        body = {"metadata": {"order": "Nº 7", "shop": 'a"b'}}
        made = (await stage.http.post(INTENTS, json=body, headers={"Idempotency-Key": "one"})).json()["id"]
        with migration_lock(former) as database:
            database.connection.exec_driver_sql("delete from intent_label")
        assert (await stage.http.get(INTENTS, params={"metadata_value": 'a"b'})).json()["data"] == []
        downgrade_database(former, "0029")
        upgrade_database(former)
        await checkpoint()  # reads of one tick share a snapshot
        for value in body["metadata"].values():
            found = (await stage.http.get(INTENTS, params={"metadata_value": value})).json()["data"]
            assert [intent["id"] for intent in found] == [made]


def test_a_release_that_writes_no_labels_is_stopped_before_the_next_one_upgrades() -> None:
    """Its intents would be found by no label, since the labels of former ones are written once."""
    rows = [[cell.strip() for cell in line.split("|")] for line in RELEASES.read_text().splitlines() if line.count("|") == 5]
    releases = [(row[3], row[4]) for row in rows if row[3].isdigit()]
    assert releases[0] == ("0008", "") and releases[-1][0] >= "0029"
    for (schema, _), (_, upgrade) in pairwise(releases):
        assert schema >= "0029" or upgrade.startswith("stop first")


def become(url: str, revision: str, works_from: str) -> None:
    """The database as a newer program's migration leaves it."""
    upgrade_database(url)
    with migration_lock(url) as database:
        run = database.connection.exec_driver_sql
        run(f"update alembic_version set version_num = '{revision}'")
        run(f"insert into schema_step (revision, works_from) values ('{revision}', '{works_from}')")


@pytest.mark.long
def test_what_a_newer_program_has_added_is_left_and_worked_on(former: str) -> None:
    become(former, "9999", HEAD)
    assert current_schema(former) == Schema("9999", HEAD)
    assert (needs_upgrade(former), ensure_current(former), upgrade_database(former)) == (False, False, False)
    assert current_schema(former).revision == "9999"


def test_what_a_newer_program_has_taken_away_is_refused(former: str) -> None:
    become(former, "9999", "9999")
    for refused in (needs_upgrade, ensure_current, upgrade_database):
        with pytest.raises(SchemaMismatch, match=r"'9999'.*newer program"):
            refused(former)


def test_commands_and_doctor_work_beside_a_newer_program(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    url = migrated_sqlite(tmp_path / "data")
    become(url, "9999", HEAD)
    assert run_reseller("db", "upgrade", cwd=tmp_path).stdout == "already at 9999\n"
    assert run_reseller("call", "health_check", cwd=tmp_path).returncode == 0
    said = run_reseller("doctor", cwd=tmp_path).stdout
    assert "schema 9999 of a newer program, which this one works on: finish the upgrade" in " ".join(said.split())
    with closing(sqlite3.connect(sqlite_path(url))) as database:
        assert database.execute("select version_num from alembic_version").fetchone() == ("9999",)


@pytest.mark.long
@pytest.mark.postgres
def test_a_migration_waits_for_a_transaction_that_reads_without_keeping_the_others_waiting() -> None:
    with required_database(migrated_postgres(divided=False)) as url:
        with psycopg.connect(url) as reader, psycopg.connect(url, autocommit=True) as other, ThreadPoolExecutor() as threads:
            reader.execute("select count(*) from intent")
            moving = threads.submit(downgrade_database, url, "0001")
            while (waited := seconds_of(other)) < 0.5:
                assert not moving.done()
            assert waited < 4.5  # a server waits five seconds for a lock
            assert seconds_of(other) < 0.5
            reader.rollback()
            assert moving.result(60)
        assert current_schema(url).revision == "0001"


def seconds_of(connection: psycopg.Connection) -> float:
    """How long a look at the table takes, which comes after the migration in the queue."""
    began = time.monotonic()
    connection.execute("select count(*) from intent")
    return time.monotonic() - began
