"""The keyring belongs to the database: a start with another one stops before it writes anything."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.database_state import sealed_key_ids
from tests.cli.reseller import printed, refused, run_reseller
from tests.databases import postgres_url, required_database
from tests.harness.processes import running

pytestmark = pytest.mark.long

OLD = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "new:HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
ENDPOINT = ("call", "create_connectivity_webhook_endpoint", "--input-url", "https://hooks.example/")
INTENT = ("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--idempotency-key", "one")
HOOKS = {"SERVICE_WEBHOOK_ALLOW_NETS": "0.0.0.0/0"}


def open_shop(place: Path, **settings: str) -> None:
    printed("org", "create", "Acme", "--email", "admin@acme.example", cwd=place, **settings)


def written(place: Path) -> list[str]:
    """Everything in the database, as text."""
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        return list(database.iterdump())


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[Path, str]:
    open_shop(tmp_path)
    printed(*INTENT, cwd=tmp_path)
    return tmp_path, (tmp_path / "data" / "keyring").read_text().partition(":")[0]


def test_a_lost_keyring_stops_every_start_and_none_is_made_in_its_place(sealed: tuple[Path, str]) -> None:
    place, key_id = sealed
    keyring = place / "data" / "keyring"
    text = keyring.read_text()
    keyring.unlink()
    before = written(place)
    message = (
        f"the database was sealed with key {key_id}, which is not in the keyring: "
        "put back data/keyring (or the key in SERVICE_SECRET_KEYS)\n"
    )
    for words in (("serve", "--port", "0"), ("worker",), INTENT):
        assert refused(*words, cwd=place) == (2, message)
    checked = run_reseller("doctor", cwd=place, SERVICE_PORT="0")
    assert checked.returncode == 1 and f"BAD  keyring    {message}     fix: put back the keyring" in checked.stdout
    assert not keyring.exists()
    assert written(place) == before
    keyring.write_text(text)
    keyring.chmod(0o600)
    assert json.loads(printed(*INTENT, cwd=place))["esim"]["qr_code"].startswith("LPA:")
    assert printed("doctor", cwd=place, SERVICE_PORT="0")


def test_another_keyring_is_refused_until_it_holds_the_old_key_too(sealed: tuple[Path, str]) -> None:
    place, key_id = sealed
    code, message = refused("serve", "--port", "0", cwd=place, SERVICE_SECRET_KEYS=NEW)
    assert code == 2 and message.startswith(f"the database was sealed with key {key_id}, which is not in the keyring: ")
    assert "HxwdHh" not in message
    assert f"BAD  keyring    the database was sealed with key {key_id}" in run_reseller("doctor", cwd=place, SERVICE_SECRET_KEYS=NEW).stdout
    both = f"{NEW},{(place / 'data' / 'keyring').read_text().strip()}"
    assert json.loads(printed(*INTENT, cwd=place, SERVICE_SECRET_KEYS=both))["esim"]


def test_a_database_in_which_nothing_is_sealed_gets_a_keyring(tmp_path: Path) -> None:
    open_shop(tmp_path)
    keyring = tmp_path / "data" / "keyring"
    first = keyring.read_text()
    keyring.unlink()
    printed("call", "list_connectivity_intents", cwd=tmp_path)
    assert keyring.read_text() != first


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], str]]:
    """The settings of replicas but for their keyring, and the database's address."""
    if request.param == "sqlite":
        yield {}, f"sqlite:///{tmp_path / 'data' / 'service.db'}"
        return
    with required_database(postgres_url()) as url:
        yield {"SERVICE_DATABASE_URL": url}, url


def test_a_replica_with_another_keyring_does_not_start(shared: tuple[dict[str, str], str], tmp_path: Path) -> None:
    settings, url = shared
    assert sealed_key_ids(url) == frozenset()  # no tables yet
    printed("db", "upgrade", cwd=tmp_path, **settings)
    open_shop(tmp_path, **settings, SERVICE_SECRET_KEYS=OLD)
    assert sealed_key_ids(url) == frozenset()
    printed(*ENDPOINT, cwd=tmp_path, **settings, **HOOKS, SERVICE_SECRET_KEYS=OLD)
    assert sealed_key_ids(url) == {"old"}
    assert refused(*INTENT, cwd=tmp_path, **settings, SERVICE_SECRET_KEYS=NEW)[0] == 2
    printed(*INTENT, cwd=tmp_path, **settings, SERVICE_SECRET_KEYS=f"{NEW},{OLD}")
    assert sealed_key_ids(url) == {"old", "new"}
    code, message = refused("serve", "--port", "0", cwd=tmp_path, **settings, SERVICE_SECRET_KEYS=OLD)
    assert code == 2 and message.startswith("the database was sealed with key new, ")


def test_intents_that_wait_for_a_plan_do_not_hide_the_sealed_one(sealed: tuple[Path, str]) -> None:
    place, key_id = sealed
    for number in range(3):
        printed("call", "create_connectivity_intent", "--idempotency-key", f"w{number}", cwd=place)
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        database.execute("delete from claim")
        database.commit()
    assert sealed_key_ids(f"sqlite:///{place / 'data' / 'service.db'}") == {key_id}


def test_a_keyring_that_others_can_read_is_closed_to_them_and_the_log_says_so(tmp_path: Path) -> None:
    open_shop(tmp_path)
    keyring = tmp_path / "data" / "keyring"
    keyring.chmod(0o644)
    with running(tmp_path / "data"):
        pass
    assert keyring.stat().st_mode & 0o777 == 0o600
    note, stopped = [json.loads(line) for line in (tmp_path / "data.log").read_text().splitlines()]
    assert (note["kind"], note["text"]) == ("note", f"{keyring} could be read by others and is closed to them now (mode 600)")
    assert stopped["kind"] == "stopped"
