"""`reseller doctor`: every problem with its fix."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clients.outside_system import OutsideSystem
from registry.clock import SystemClock
from storage.engine.revision import HEAD
from tests.cli.reseller import printed, refused, run_reseller
from tests.harness.processes import running
from tests.harness.thread_servers import serving_in_thread
from transports.metric_families import outside_system_metrics, prometheus_text
from transports.settings import SETTING_PREFIX, Settings

KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def findings(place: Path, **settings: str) -> dict[str, tuple[str, str | None]]:
    done = run_reseller("doctor", cwd=place, **{"SERVICE_PORT": "0", **settings})
    assert "Traceback" not in done.stderr
    found = dict[str, tuple[str, str | None]]()
    for state, subject, text, fix in re.findall(r"^(ok |BAD)  (\w+) +(.*)(?:\n     fix: (.*))?$", done.stdout, re.MULTILINE):
        assert bool(fix) == (state == "BAD")
        if fix:
            found[subject] = (text, fix)
    assert (done.returncode, done.stderr) == ((1, "something needs mending, see above\n") if found else (0, ""))
    return found


@pytest.mark.long
def test_all_is_well_before_the_first_start_and_after_it(tmp_path: Path) -> None:
    assert findings(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
    with running(tmp_path / "data") as server:
        port = server.base_url.rpartition(":")[2]
        shown = printed("doctor", cwd=tmp_path, SERVICE_PORT=port)
        assert f"port       127.0.0.1:{port} is held by a service like this one, which answers\n" in shown
    assert findings(tmp_path) == {}


def test_a_database_that_is_not_there_is_a_note_that_says_where_it_was_looked_for(tmp_path: Path) -> None:
    told = "made at the first start; where `serve` has another directory, name it with --data or SERVICE_DATA\n"
    assert f"\nnote database   none in {tmp_path / 'data'}, {told}" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0")


def test_an_unknown_setting_is_answered_with_the_one_that_was_meant_and_the_known_ones(tmp_path: Path) -> None:
    known = "known settings: " + ", ".join(SETTING_PREFIX + name.upper() for name in Settings.model_fields)
    said = "; `reseller doctor` lists the known ones"
    assert findings(tmp_path, SERVICE_OF_NOBODY="1") == {"settings": (f"unknown setting SERVICE_OF_NOBODY{said}", known)}
    [(text, fix)] = findings(tmp_path, SERVICE_OCS_ULR="http://127.0.0.1:1/v1").values()
    assert text == f"unknown setting SERVICE_OCS_ULR; did you mean SERVICE_OCS_URL?{said[1:]}"
    assert fix == f"rename it to SERVICE_OCS_URL; {known}"


def test_a_setting_that_is_known_and_wrong_is_not_answered_with_the_list(tmp_path: Path) -> None:
    [(text, fix)] = findings(tmp_path, SERVICE_PORT="none").values()
    assert text.startswith("SERVICE_PORT: ")
    assert fix == "change it in the environment, in .env or in the directory of SERVICE_SECRETS_DIR"


@pytest.mark.parametrize(
    ("settings", "subject", "state"),
    [
        ({"SERVICE_SECRET_KEYS": "k1:c2hvcnQ="}, "keyring", "SERVICE_SECRET_KEYS: key 'k1' of the keyring has 5 bytes; AES-256 takes 32"),
        (
            {"SERVICE_DATABASE_URL": "postgresql://127.0.0.1:1/none"},
            "database",
            "PostgreSQL: the database cannot be reached: the connection was refused; nothing listens at that host and port",
        ),
        ({"SERVICE_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, "keyring", "SERVICE_SECRET_KEYS: missing; "),
        ({"SERVICE_DATABASE_URL": "mysql://127.0.0.1/none"}, "settings", "SERVICE_DATABASE_URL must start with postgresql://"),
        ({"SERVICE_ENV": "production"}, "settings", "SERVICE_ENV=production needs SERVICE_DATABASE_URL, "),
        ({"SERVICE_HOST": "192.0.2.1"}, "port", "192.0.2.1:0 Cannot assign requested address"),
    ],
    ids=["short-key", "unreachable", "no-keyring", "scheme", "production", "host"],
)
def test_what_is_wrong_is_named_with_its_fix(settings: dict[str, str], subject: str, state: str, tmp_path: Path) -> None:
    assert findings(tmp_path, **settings)[subject][0].startswith(state)


def test_a_database_that_is_damaged_or_of_another_version_is_found(home: Path) -> None:
    file = home / "data" / "service.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("update alembic_version set version_num = '9999'")
        database.commit()
    state, fix = findings(home)["database"]
    assert f"this program knows up to {HEAD}" in state and fix is not None and fix.startswith("run the newer program")
    file.write_text("not a database " * 100)
    assert findings(home)["database"][0] == "data/service.db: the file is not a database"


@pytest.mark.long
def test_a_keyring_that_others_can_read_and_a_clock_that_went_back_are_found(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        pass
    (tmp_path / "data" / "keyring").chmod(0o644)
    tomorrow = time.time() + 86_400
    os.utime(tmp_path / "data" / "service.db", (tomorrow, tomorrow))
    found = findings(tmp_path)
    assert found["keyring"] == ("data/keyring can be read by others", "chmod 600 data/keyring")
    assert re.fullmatch(r"86[34]\d\d s behind the last write to data/service.db", found["clock"][0])
    assert found.keys() == {"keyring", "clock"}


class Answering(BaseHTTPRequestHandler):
    """A charging system that knows one token."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        known = self.path.endswith(f"token={TOKEN}")
        answer: dict[str, object] = {"status": {"code": 0 if known else 8, "msg": "No API account for hidden"}}
        body = json.dumps({**answer, "getResellerInfo": {"id": 7001}} if known else answer).encode()
        self.send_response_only(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


TOKEN = "s3cret-reseller-token"


@pytest.fixture
def charging() -> Iterator[str]:
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Answering)) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1"


class Metrics(BaseHTTPRequestHandler):
    """What a server tells of two outside systems: one that does not answer, and one that does not answer a single organisation."""

    def do_GET(self) -> None:
        system, other = OutsideSystem("charging_system", SystemClock()), OutsideSystem("payment_processor", SystemClock())
        for _ in range(3):
            system.ended("org_1", failed=True)
            other.ended("acct_1", failed=False)
            other.ended("acct_2", failed=True)
        self.send_response_only(200)
        self.end_headers()
        self.wfile.write(prometheus_text(outside_system_metrics([system, other])))


def test_an_outside_system_that_the_running_server_does_not_ask_is_named(tmp_path: Path) -> None:
    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Metrics)) as server:
        port = str(server.server_port)
        found = findings(tmp_path, SERVICE_METRICS_PORT=port)
        shown = run_reseller("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_METRICS_PORT=port).stdout
    assert found["outages"][0] == "the charging system does not answer: the running server refuses calls to it; 0 requests wait for it"
    assert "note outages    the payment processor does not answer the calls of 1 organisations, which are refused; others go on" in shown
    assert "note outages    nothing serves metrics at 127" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_METRICS_PORT=port)


def test_the_charging_system_is_asked_whose_token_it_is(charging: str, tmp_path: Path) -> None:
    assert "ok   upstream   simulated network in this process" in printed("doctor", cwd=tmp_path, SERVICE_PORT="0")
    shown = printed("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_OCS_URL=charging, SERVICE_OCS_TOKEN=TOKEN)
    assert f"ok   upstream   {charging} answers as reseller 7001\n" in shown and TOKEN not in shown
    assert f"ok   upstream   {charging}, not asked: " in printed("doctor", cwd=tmp_path, SERVICE_PORT="0", SERVICE_OCS_URL=charging)


def test_a_charging_system_that_does_not_answer_as_it_should_is_found_with_the_fix(charging: str, tmp_path: Path) -> None:
    state, fix = findings(tmp_path, SERVICE_OCS_URL=charging, SERVICE_OCS_TOKEN="another-token")["upstream"]
    assert state.startswith(f"{charging}: The charging system does not accept the token")
    assert fix is not None and fix.startswith("set SERVICE_OCS_TOKEN to the reseller token") and "another-token" not in state + fix
    state, fix = findings(tmp_path, SERVICE_OCS_URL="http://127.0.0.1:1/v1", SERVICE_OCS_TOKEN=TOKEN)["upstream"]
    assert "could not be reached (refused)" in state and TOKEN not in state
    assert fix == "check SERVICE_OCS_URL, SERVICE_OCS_AUTH, and that this machine may reach it"


def test_the_version_is_told_even_where_the_settings_are_wrong(tmp_path: Path) -> None:
    assert re.fullmatch(r"reseller \d+\.\d+\.\d+ \(build (unknown|[0-9a-f]{12})\)\n", printed("--version", cwd=tmp_path))
    assert printed("--version", cwd=tmp_path, SERVICE_BUILD_SHA="abc1234").endswith(" (build abc1234)\n")
    assert "(build unknown, since the settings are wrong: " in printed("--version", cwd=tmp_path, SERVICE_PROT="1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("db", "upgrade"), ("org", "list")], ids=["serve", "upgrade", "org"])
def test_every_command_says_why_postgresql_cannot_be_reached_without_naming_it(words: tuple[str, ...], tmp_path: Path) -> None:
    settings = {"SERVICE_DATABASE_URL": "postgresql://jo:hidden@127.0.0.1:1/shop", "SERVICE_SECRET_KEYS": KEYS}
    said = "the database cannot be reached: the connection was refused; nothing listens at that host and port\n"
    assert refused(*words, cwd=tmp_path, **settings) == (3, said)
