"""`reseller keys rekey`: a key is replaced under a running service, and the old one is dropped."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import httpx
import pytest

from storage.engine.session import Session
from storage.engine.sql import postgresql_dialect
from storage.sealing import OWN_TOKEN_FIELD, Keyring, claim_field
from storage.upstream_connections import find_upstream
from tests.cli.hook import listening
from tests.cli.reseller import printed, run_reseller
from tests.databases import migrated_postgres, migrated_sqlite, required_database
from tests.harness.processes import COMMAND, Child, environment, running

OLD = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "new:HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
BOTH = f"{NEW},{OLD}"
TOKEN = "own-token-8f2c"
COMMON = {"SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8", "SERVICE_WORKER": "true"}
INTENT = ("call", "create_connectivity_intent", "--plan", "test_eu_1gb", "--idempotency-key", "one")
DONE = """\
organisation.own_token            1 sealed again
former_token.sealed               0 sealed again
fleet_erasure_key.sealed          0 sealed again
webhook_endpoint.secret           1 sealed again
webhook_endpoint.previous_secret  1 sealed again
intent.esim                       1 sealed again
storefront_order.esim             0 sealed again
signing_key.private               0 sealed again
oauth_client.secret               0 sealed again
mail.sealed                       0 sealed again
schedule_mail.share               0 sealed again
approval.request                  0 sealed again
approval.outcome                  0 sealed again
claim.body                        1 sealed again
key old: no longer needed by this database
every sealed value is sealed with key new
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        (tmp_path / "data").mkdir()
        migrated_sqlite(tmp_path / "data")
        yield COMMON
        return
    with required_database(migrated_postgres()) as url:
        yield {**COMMON, "SERVICE_DATABASE_URL": url}


def sealed_token(place: Path, settings: dict[str, str], organisation: str) -> str:
    """As it lies in the database."""
    if "SERVICE_DATABASE_URL" in settings:
        session = Session(settings["SERVICE_DATABASE_URL"], postgresql_dialect())
        row = session.run(lambda connection: find_upstream(connection, organisation=organisation), read_only=True)
        session.close()
        assert row is not None and row.own_token is not None
        return row.own_token
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        [(token,)] = database.execute("select own_token from organisation").fetchall()
    return token


@pytest.mark.long
def test_after_rekey_everything_opens_without_the_old_key(settings: dict[str, str], tmp_path: Path) -> None:
    old = {**settings, "SERVICE_SECRET_KEYS": OLD}
    organisation = printed("org", "create", "Acme", "--tier", "pro", "--email", "a@acme.example", cwd=tmp_path, **old).strip()
    printed("org", "connect", organisation, "--own-token-stdin", cwd=tmp_path, stdin=TOKEN, **old)
    secret = printed("keys", "create", "laptop", cwd=tmp_path, **old).strip()
    with listening() as hook:
        first = json.loads(printed("call", "create_connectivity_webhook_endpoint", "--input-url", hook.url, cwd=tmp_path, **old))
        second = json.loads(printed("call", "rotate_webhook_secret", "--id", first["id"], cwd=tmp_path, **old))
        issued = json.loads(printed(*INTENT, cwd=tmp_path, **old))
        with running(tmp_path / "data", {**settings, "SERVICE_SECRET_KEYS": BOTH}):
            hook.take(second["secret"])
            done = run_reseller("keys", "rekey", cwd=tmp_path, **settings, SERVICE_SECRET_KEYS=BOTH)
        assert (done.returncode, done.stdout, done.stderr) == (0, DONE, "")
        new = {**settings, "SERVICE_SECRET_KEYS": NEW}
        assert json.loads(printed(*INTENT, cwd=tmp_path, **new)) == issued
        assert json.loads(printed("call", "get_connectivity_intent", "--id", issued["id"], cwd=tmp_path, **new)) == issued
        with running(tmp_path / "data", new) as server, httpx.Client(base_url=server.base_url, headers=bearer(secret)) as http:
            for number, signer in enumerate((first["secret"], second["secret"])):
                issue = http.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": f"k{number}"})
                assert issue.status_code == 201
                hook.take(signer)
    token = sealed_token(tmp_path, settings, organisation)
    assert Keyring(NEW, bytes).open(token, org_id=organisation, field=OWN_TOKEN_FIELD) == TOKEN
    again = run_reseller("keys", "rekey", cwd=tmp_path, **new)
    assert (again.returncode, re.findall(r" (\d+) sealed again", again.stdout)) == (0, ["0"] * 14)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def fill(place: Path, keys: int, setting: str) -> str:
    organisation = printed("org", "create", "Acme", cwd=place, SERVICE_SECRET_KEYS=setting).strip()
    numbers = count(1)
    ring = Keyring(setting, lambda length: next(numbers).to_bytes(length, "big"))
    rows = [
        (organisation, "op", f"k{n:05}", ring.seal(f"answer {n}", org_id=organisation, field=claim_field("op", f"k{n:05}")))
        for n in range(keys)
    ]
    with closing(sqlite3.connect(place / "data" / "service.db")) as database, database:
        database.executemany(
            "insert into claim (organisation, operation, key, fingerprint, state, owner, claimed, status, body)"
            " values (?, ?, ?, x'00', 'done', 'rpl', 0, 200, ?)",
            rows,
        )
    return organisation


def held(place: Path, key: str) -> int:
    with closing(sqlite3.connect(place / "data" / "service.db")) as database:
        return database.execute("select count(*) from claim where body like ? || '.%'", (key,)).fetchone()[0]


@pytest.mark.long
def test_a_run_that_was_killed_is_begun_again_where_it_ended(home: Path) -> None:
    organisation = fill(home, 3000, OLD)
    given = environment({"SERVICE_SECRET_KEYS": BOTH})
    with Child([*COMMAND, "keys", "rekey"], cwd=home, env=given, stdout=subprocess.DEVNULL) as process:
        while held(home, "new") == 0:
            with suppress(subprocess.TimeoutExpired):  # its imports need what looking takes
                assert process.wait(0.005) == 0
        process.kill()
    sealed = held(home, "new")
    assert 0 < sealed < 3000 and sealed % 200 == 0
    assert f"{3000 - sealed} sealed again\n" in printed("keys", "rekey", cwd=home, SERVICE_SECRET_KEYS=BOTH)
    ring = Keyring(NEW, bytes)
    with closing(sqlite3.connect(home / "data" / "service.db")) as database:
        opened = [
            ring.open(body, org_id=organisation, field=claim_field("op", key))
            for key, body in database.execute("select key, body from claim order by key")
        ]
    assert opened == [f"answer {number}" for number in range(3000)]


def test_what_cannot_be_opened_is_named_by_its_row_and_the_command_fails(home: Path) -> None:
    organisation = fill(home, 3, OLD)
    with closing(sqlite3.connect(home / "data" / "service.db")) as database, database:
        database.execute("update claim set body = 'lost.AAAA.secret-part' where key = 'k00001'")
        database.execute("update claim set body = replace(body, 'old.', 'old.AA') where key = 'k00002'")
    done = run_reseller("keys", "rekey", cwd=home, SERVICE_SECRET_KEYS=BOTH)
    assert done.returncode == 1
    assert done.stderr == (
        "a stored value was sealed with key lost, which is not in the keyring: calls that need it answer 503 until it is\n"
        "older keys are still needed, see above\n"
    )
    lines = done.stdout.splitlines()
    assert lines[13:] == [
        "claim.body                        1 sealed again, 2 cannot be opened:",
        f"  claim {organisation} op k00001: sealed with key lost, which is not in the keyring: put that key back behind the first"
        " and run this again",
        f"  claim {organisation} op k00002: changed, or moved here from another row; only a backup has what it was",
        "key old: still needed, 1 sealed with it",
    ]
    assert "secret-part" not in done.stdout


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = run_reseller("keys", "rekey", cwd=tmp_path)
    assert done.returncode == 2 and "there is no database at " in done.stderr
    assert list(tmp_path.iterdir()) == []
