"""`reseller db`: upgraded, backed up beside a running server, restored."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from storage.engine.revision import HEAD
from tests.cli.reseller import printed, refused
from tests.harness.processes import Running, running

INTENT = ("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--idempotency-key")


def ids(place: Path) -> list[str]:
    return [row["id"] for row in json.loads(printed("call", "list_connectivity_intents", cwd=place))["data"]]


@pytest.mark.long
def test_upgrade_makes_the_database_once(tmp_path: Path) -> None:
    assert printed("db", "upgrade", cwd=tmp_path) == f"upgraded to {HEAD}\n"
    assert printed("db", "upgrade", cwd=tmp_path) == f"already at {HEAD}\n"


@pytest.mark.long
def test_a_backup_taken_while_the_service_runs_brings_back_what_there_was(tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    with running(tmp_path / "data"):
        kept = json.loads(printed(*INTENT, "kept", cwd=tmp_path))["id"]
        assert printed("db", "backup", file, cwd=tmp_path).startswith(f"backed up to {file}; keep the keyring with it")
        printed(*INTENT, "later", cwd=tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    assert len(ids(tmp_path)) == 2
    before = tmp_path / "data" / "service.db.before-restore"
    assert printed("db", "restore", file, cwd=tmp_path).startswith(f"restored from {file}; what was there before is in ")
    assert before.is_file()
    assert ids(tmp_path) == [kept]
    assert refused("db", "backup", file, cwd=tmp_path) == (2, f"{file} exists; name a new file\n")


def test_what_is_no_backup_is_refused_and_changes_nothing(home: Path) -> None:
    before = (home / "data" / "service.db").read_bytes()
    (home / "text").write_text("no database " * 100)
    assert refused("db", "restore", "text", cwd=home) == (2, "text is not an SQLite database, or is damaged\n")
    assert refused("db", "restore", "nothing", cwd=home) == (2, "there is no file at nothing\n")
    assert (home / "data" / "service.db").read_bytes() == before


def test_a_database_of_a_newer_program_is_refused_by_every_command_that_opens_it(home: Path) -> None:
    with closing(sqlite3.connect(home / "data" / "service.db")) as database:
        database.execute("update alembic_version set version_num = '9999'")
        database.commit()
    for words in (("db", "upgrade"), ("serve", "--port", "0"), ("worker",), ("keys", "list"), ("call", "health_check"), ("mcp", "stdio")):
        code, message = refused(*words, cwd=home)
        assert (words, code) == (words, 3)
        assert message == f"the database is at schema version '9999', this program knows up to {HEAD}: run the newer program\n"


def test_a_postgresql_database_is_sent_to_its_own_tools(tmp_path: Path) -> None:
    code, message = refused("db", "backup", "file", cwd=tmp_path, SERVICE_DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert code == 2
    assert "pg_dump" in message


@pytest.mark.long
def test_a_restore_under_a_running_server_is_refused_and_changes_nothing(place: Path, server: Running) -> None:
    printed("db", "backup", "before.db", cwd=place)
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}) as http:
        made = http.post("/v1/connectivity/intents", json={}, headers={"Idempotency-Key": "after-the-backup"}).json()
        code, message = refused("db", "restore", "before.db", cwd=place)
        assert code == 1 and message.startswith("the service runs on this database: stop it first")
        assert http.get(f"/v1/connectivity/intents/{made['id']}").json() == made
