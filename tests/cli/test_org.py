"""`reseller org`: how a deployment without demo data gets its first organisation, and what a tier changes."""

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import httpx
import pytest

from storage.sealing import OWN_TOKEN_FIELD, Keyring
from tests.cli.reseller import printed, refused
from tests.harness.processes import Running

TOKEN = "own-token-8f2c"
LIVE = {"plan": "europe-1gb"}
KEYS = (f"live-{number}" for number in count())
PRODUCT = {
    "name": "Nordic 1 GB",
    "data_mb": 1000,
    "validity_days": 30,
    "countries": ["SE"],
    "price_cents": 500,
    "currency": "EUR",
    "package_template_id": 7,
}


@pytest.mark.long
def test_an_empty_database_gets_its_first_organisation_admin_and_key(tmp_path: Path) -> None:
    organisation = printed("org", "create", "Acme Mobile", "--tier", "pro", "--email", "admin@acme.test", cwd=tmp_path).strip()
    assert printed("org", "list", cwd=tmp_path) == f"{organisation}\tpro\tAcme Mobile\tnot connected\n"
    assert printed("keys", "create", "first", cwd=tmp_path).startswith("ak_")


def test_an_admin_of_two_organisations_is_one_person_who_signs_in_with_the_address(home: Path) -> None:
    for name, email in (("First", "Admin@acme.test"), ("Second", "admin@ACME.test")):
        printed("org", "create", name, "--email", email, cwd=home)
    with closing(sqlite3.connect(home / "data" / "service.db")) as database:
        people = database.execute("SELECT address FROM person").fetchall()
        [(memberships,)] = database.execute("SELECT count(*) FROM membership").fetchall()
    assert (people, memberships) == ([("admin@acme.test",)], 2)


def test_an_address_that_nobody_can_sign_in_with_is_refused(tmp_path: Path) -> None:
    code, said_so = refused("org", "create", "Acme", "--email", "Ada <ada@acme.test>", cwd=tmp_path)
    assert code == 2 and "--email: not an address" in said_so


@pytest.mark.long
def test_a_new_tier_counts_with_the_next_call_of_a_running_server(place: Path, server: Running) -> None:
    organisation = printed("org", "create", "Small Reseller", cwd=place).strip()
    secret = printed("keys", "create", "first", "--org", organisation, cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "p1"}) as http:
        assert http.post("/v1/connectivity/products", json=PRODUCT).status_code == 402
        assert printed("org", "set-tier", organisation, "pro", cwd=place) == f"{organisation} is pro\n"
        assert http.post("/v1/connectivity/products", json=PRODUCT).status_code == 201


def test_one_person_of_an_identity_provider_may_found_two_organisations(home: Path) -> None:
    first, second = (printed("org", "create", name, "--subject", "user_1", cwd=home).strip() for name in ("First", "Second"))
    assert first != second


def test_a_name_or_an_organisation_that_cannot_be_is_refused(home: Path) -> None:
    assert refused("org", "create", "  ", cwd=home) == (2, "NAME: 1-200 characters\n")
    assert refused("org", "set-tier", "org_none", "pro", cwd=home) == (
        1,
        "org_none: no such organisation; `reseller org list` names them\n",
    )


@pytest.mark.long
def test_an_organisation_is_connected_and_disconnected(home: Path) -> None:
    organisation = printed("org", "create", "Acme", cwd=home).strip()

    def listed() -> str:
        return printed("org", "list", cwd=home).rstrip("\n").rpartition("\t")[2]

    assert printed("org", "connect", organisation, "--account", "42", cwd=home) == f"{organisation} is connected to account 42\n"
    assert listed() == "managed, account 42"
    words = ("org", "connect", organisation, "--own-token-stdin")
    assert printed(*words, cwd=home, stdin=TOKEN + "\n") == f"{organisation} is connected with its own token\n"
    assert listed() == "own token, assigned account 42"
    assert printed(*words, cwd=home, stdin=TOKEN + "2\n") == f"{organisation} is connected with its own token\n"
    database = home / "data" / "service.db"
    assert TOKEN.encode() not in b"".join(path.read_bytes() for path in database.parent.iterdir())
    with closing(sqlite3.connect(database)) as connection:
        row = connection.execute("select mode, account_id, own_token from organisation").fetchone()
        [(former,)] = connection.execute("select sealed from former_token").fetchall()
    keyring = Keyring((home / "data" / "keyring").read_text().strip(), bytes)
    assert row[:2] == ("own", None) and keyring.open(row[2], org_id=organisation, field=OWN_TOKEN_FIELD) == TOKEN + "2"
    assert keyring.open(former, org_id=organisation, field=OWN_TOKEN_FIELD) == TOKEN
    assert printed("org", "disconnect", organisation, cwd=home) == f"{organisation} is not connected\n"
    assert listed() == "not connected"
    with closing(sqlite3.connect(database)) as connection:
        left = "select mode, account_id, own_token, assigned_account_id from organisation"
        assert connection.execute(left).fetchone() == (None, None, None, None)
        assert connection.execute("select count(*) from former_token").fetchone() == (0,)
        told = connection.execute("select operation, change from audit where organisation = ? order by id", (organisation,)).fetchall()
    assert told == [
        ("org_connect", "none -> managed account 42"),
        ("org_connect", "managed account 42 -> own token"),
        ("org_connect", "own token -> own token"),
        ("org_disconnect", "own token -> none"),
    ]


@pytest.mark.long
def test_an_account_is_assigned_to_one_organisation_and_taken_back(home: Path) -> None:
    first, second = (printed("org", "create", name, cwd=home).strip() for name in ("First", "Second"))

    def listed() -> list[str]:
        return [line.rpartition("\t")[2] for line in printed("org", "list", cwd=home).splitlines()]

    connects = "POST /v1/onboarding/managed-account connects it"
    assert printed("org", "assign", first, "--account", "42", cwd=home) == f"{first} is assigned account 42; {connects}\n"
    assert listed() == ["not connected, assigned account 42", "not connected"]
    fix = f"`reseller org disconnect {first}` frees it, or `unassign` where that one is connected in another way"
    for _ in range(2):
        code, message = refused("org", "assign", second, "--account", "42", cwd=home)
        assert code == 1 and message.endswith(f"--account 42: {first} has it; {fix}\n")
        printed("org", "connect", first, "--account", "42", cwd=home)
        assert printed("org", "unassign", first, cwd=home) == f"{first} is assigned no account\n"  # it is connected all the same
    assert listed() == ["managed, account 42", "not connected"]
    printed("org", "disconnect", first, cwd=home)
    printed("org", "assign", second, "--account", "42", cwd=home)
    assert listed() == ["not connected", "not connected, assigned account 42"]
    unknown = (1, "org_none: no such organisation; `reseller org list` names them\n")
    assert refused("org", "assign", "org_none", "--account", "42", "--unchecked", cwd=home) == unknown
    assert refused("org", "unassign", "org_none", cwd=home) == unknown
    assert refused("org", "assign", first, "--account", "0", cwd=home)[0] == 2


@pytest.mark.long
def test_an_organisation_finds_the_account_it_was_assigned_on_a_running_server(place: Path, server: Running) -> None:
    organisation = printed("org", "create", "Finder", cwd=place).strip()
    secret = printed("keys", "create", "first", "--org", organisation, cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:
        printed("org", "assign", organisation, "--account", "8104", cwd=place)
        state = http.post("/v1/onboarding/managed-account", json={}).json()
        assert state["connection"] == {"connected": True, "mode": "managed", "account_id": 8104, "former_token_until": None}
        token = {"token": "sandbox-7002-token"}
        asked = http.post("/v1/onboarding/ocs-connect", json=token).json()
        own = http.post("/v1/onboarding/ocs-connect", json=token, headers={"X-Confirm-Token": asked["confirm_token"]}).json()
        assert own["connection"]["mode"] == "own"
        printed("org", "connect", organisation, "--own-token-stdin", cwd=place, stdin=TOKEN)
        # Simulated until then: no account of a simulated network stays assigned where somebody set up a real connection.
        assert printed("org", "list", cwd=place).rstrip("\n").rpartition("\t")[2] == "own token"
        printed("org", "disconnect", organisation, cwd=place)


@pytest.mark.long
def test_a_running_server_follows_a_connection_with_the_next_call(place: Path, server: Running) -> None:
    organisation = printed("org", "create", "Follower", "--tier", "pro", cwd=place).strip()
    secret = printed("keys", "create", "first", "--org", organisation, cwd=place).strip()
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {secret}"}) as http:

        def connected() -> bool:
            answer = http.post("/v1/connectivity/intents", json=LIVE, headers={"Idempotency-Key": next(KEYS)})
            return "org_not_connected" not in answer.text

        assert not connected()
        printed("org", "connect", organisation, "--account", "8101", cwd=place)
        assert connected()
        printed("org", "disconnect", organisation, cwd=place)
        assert not connected()


@pytest.mark.cases
@pytest.mark.parametrize("given", ["", "\n", "two words", "two\nlines", "tab\there", "caf\u00e9", "x" * 1025, "bell\x07"])
def test_what_is_no_token_is_refused_unrepeated_and_changes_nothing(given: str, home: Path) -> None:
    organisation = printed("org", "create", "Acme", cwd=home).strip()
    printed("org", "connect", organisation, "--account", "42", cwd=home)
    code, message = refused("org", "connect", organisation, "--own-token-stdin", cwd=home, stdin=given)
    assert code == 2 and message.startswith("standard input: ")
    assert not given.strip() or given not in message
    assert printed("org", "list", cwd=home).endswith("\tmanaged, account 42\n")


@pytest.mark.long
def test_a_connection_takes_one_way_of_a_known_organisation(home: Path) -> None:
    organisation = printed("org", "create", "Acme", cwd=home).strip()
    either = (2, "give either --account ID or --own-token-stdin, and not both\n")
    assert refused("org", "connect", organisation, cwd=home) == either
    assert refused("org", "connect", organisation, "--account", "1", "--own-token-stdin", cwd=home, stdin=TOKEN) == either
    unknown = (1, "org_none: no such organisation; `reseller org list` names them\n")
    assert refused("org", "connect", "org_none", "--account", "1", cwd=home) == unknown
    assert refused("org", "connect", "org_none", "--own-token-stdin", cwd=home, stdin=TOKEN) == unknown
    assert refused("org", "disconnect", "org_none", cwd=home) == unknown
    assert refused("org", "connect", organisation, "--account", "0", cwd=home)[0] == 2
