"""The keyring is changed under two servers of one database: in two phases nobody notices, in one the start refuses."""

import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from storage.sealing import Keyring, claim_field, esim_field
from tests.cli.reseller import printed, refused, run_reseller
from tests.harness.processes import Running, running, start, stop

OLD = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "new:HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
APPENDED, IN_FRONT = f"{OLD},{NEW}", f"{NEW},{OLD}"
QUIET = {"SERVICE_WORKER": "false", "SERVICE_DEMO": "true"}
CREATE, INTENTS = "create_connectivity_intent", "/v1/connectivity/intents"


def in_file(place: Path, text: str) -> dict[str, str]:
    """The keyring as a file of a secrets directory, replaced in one step as container platforms do."""
    place.mkdir(mode=0o700, exist_ok=True)
    draft = place.with_suffix(".draft")
    draft.write_text(text)
    draft.chmod(0o600)
    draft.replace(place / "service_secret_keys")
    return {"SERVICE_SECRETS_DIR": str(place)}


def in_environment(place: Path, text: str) -> dict[str, str]:
    """The keyring as text that no running process can read again."""
    del place
    return {"SERVICE_SECRET_KEYS": text}


def issue(server: Running, key: str, secret: str) -> httpx.Response:
    """An eSIM for an idempotency key, or the stored answer of the key."""
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": key}
    return httpx.post(f"{server.base_url}{INTENTS}", json={"plan": "test_eu_1gb"}, headers=headers, timeout=60)


def seal_again(data: Path, text: str) -> None:
    """What is stored of all intents and answers, sealed with the first key of another keyring, as another process would have."""
    before, after = Keyring(f"{OLD},{NEW}", bytes), Keyring(text, lambda length: b"n" * length)
    with closing(sqlite3.connect(data / "service.db")) as database, database:
        for organisation, operation, key, body in database.execute("select organisation, operation, key, body from claim").fetchall():
            field = claim_field(operation, key)
            again = after.seal(before.open(body, org_id=organisation, field=field), org_id=organisation, field=field)
            database.execute("update claim set body = ? where organisation = ? and key = ?", (again, organisation, key))
        for organisation, id, esim in database.execute("select organisation, id, esim from intent").fetchall():
            again = after.seal(before.open(esim, org_id=organisation, field=esim_field(id)), org_id=organisation, field=esim_field(id))
            database.execute("update intent set esim = ? where id = ?", (again, id))


@pytest.mark.long
def test_a_stored_value_of_an_unknown_key_answers_503_until_the_file_has_the_key(tmp_path: Path) -> None:
    data, secrets = tmp_path / "data", tmp_path / "secrets"
    with running(data, {**QUIET, **in_file(secrets, OLD)}) as server:
        assert server.api_key is not None
        first = issue(server, "one", server.api_key)
        assert first.status_code == 201
        seal_again(data, NEW)
        for answer in (issue(server, "one", server.api_key), get(server, first.json()["id"])):
            assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "store_unavailable", "10")
            assert "encryption key" in answer.json()["error"] and "new" not in answer.json()["error"].split()
        in_file(secrets, APPENDED)
        again = issue(server, "one", server.api_key)
        assert (again.status_code, again.json()) == (201, first.json())
        assert get(server, first.json()["id"]).json() == first.json()
        assert issue(server, "two", server.api_key).status_code == 201
        with closing(sqlite3.connect(data / "service.db")) as database:
            assert database.execute("select body like 'old.%' from claim where key = 'two'").fetchone() == (1,)
    log = (tmp_path / "data.log").read_text()
    assert log.count("a stored value was sealed with key new, which is not in the keyring") == 1


def get(server: Running, intent: str) -> httpx.Response:
    return httpx.get(f"{server.base_url}{INTENTS}/{intent}", headers={"Authorization": f"Bearer {server.api_key}"}, timeout=60)


@pytest.mark.long
def test_a_key_is_replaced_under_two_servers_in_two_phases_and_in_no_other_way(tmp_path: Path) -> None:
    data, cwd = tmp_path / "data", tmp_path
    with ExitStack() as servers:

        def serve(text: str, former: Running | None = None) -> Running:
            if former is not None:
                assert stop(former) == 0
            server = start(data, {**QUIET, "SERVICE_SECRET_KEYS": text})
            servers.callback(lambda: server.process.poll() is None and stop(server))
            return server

        left = serve(OLD)
        secret = left.api_key
        assert secret is not None
        right = serve(OLD)
        answers = [issue(left, "k0", secret)]

        def refusal(text: str, *words: str) -> str:
            code, message = refused(*words, cwd=cwd, SERVICE_SECRET_KEYS=text)
            assert code == 2 and "HxwdHh" not in message and "AAECAw" not in message
            return message

        for words in (("serve", "--port", "0"), ("keys", "rekey"), ("worker",)):
            message = refusal(IN_FRONT, *words)
            assert message.startswith("key new stands first in the keyring, and process rpl_")
            assert "does not know it: put it behind the others" in message
        left = serve(APPENDED, left)
        assert "stands first in the keyring" in refusal(IN_FRONT, "serve", "--port", "0")  # right does not know it yet
        right = serve(APPENDED, right)
        answers.append(issue(left, "k1", secret))
        left = serve(IN_FRONT, left)
        answers.append(issue(left, "k2", secret))
        replayed = [issue(right, f"k{number}", secret) for number in range(3)]
        assert [(answer.status_code, answer.json()) for answer in replayed] == [(201, answer.json()) for answer in answers]
        early = run_reseller("keys", "rekey", cwd=cwd, SERVICE_SECRET_KEYS=IN_FRONT)
        assert early.returncode == 1
        assert "key old: still needed, a process that runs seals with it: restart every process with key new in front" in early.stdout
        assert "seals with key old, which is not in the keyring" in refusal(NEW, "serve", "--port", "0")
        right = serve(IN_FRONT, right)
        assert "key old: no longer needed by this database" in printed("keys", "rekey", cwd=cwd, SERVICE_SECRET_KEYS=IN_FRONT)
        left, right = serve(NEW, left), serve(NEW, right)
        for server in (left, right):
            replayed = [issue(server, f"k{number}", secret) for number in range(3)]
            assert [(answer.status_code, answer.json()) for answer in replayed] == [(201, answer.json()) for answer in answers]


@pytest.mark.long
@pytest.mark.parametrize(
    ("keyring", "said_of_it"),
    [
        (APPENDED, "process {} does not know key new; key old seals"),
        (NEW, "process {} seals with key old, which is not in the keyring"),
    ],
)
def test_doctor_reads_which_keys_the_running_processes_know(tmp_path: Path, keyring: str, said_of_it: str) -> None:
    with running(tmp_path / "data", {**QUIET, "SERVICE_SECRET_KEYS": OLD}):
        with closing(sqlite3.connect(tmp_path / "data" / "service.db")) as database:
            (replica,) = database.execute("select id from replica").fetchone()
        checked = run_reseller("doctor", cwd=tmp_path, SERVICE_SECRET_KEYS=keyring, SERVICE_PORT="0")
    assert said_of_it.format(replica) in checked.stdout


@pytest.mark.long
def test_doctor_counts_what_is_sealed_with_a_key_that_is_not_there(tmp_path: Path) -> None:
    given: Mapping[str, str] = {"SERVICE_SECRET_KEYS": OLD}
    printed("org", "create", "Acme", "--email", "a@acme.example", cwd=tmp_path, **given)
    for number in range(5):
        printed("call", CREATE, "--plan", "test_eu_1gb", "--idempotency-key", f"k{number}", cwd=tmp_path, **given)
    with closing(sqlite3.connect(tmp_path / "data" / "service.db")) as database, database:
        database.execute("update claim set body = 'lost' || substr(body, 4) where key = 'k2'")
    checked = run_reseller("doctor", cwd=tmp_path, **given, SERVICE_PORT="0")
    assert checked.returncode == 1
    assert "BAD  keyring    1 stored values are sealed with a key that is not in the keyring" in checked.stdout
