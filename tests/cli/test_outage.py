"""A server and its PostgreSQL that stands still, starts, or is not UTF-8; and a server that is told to end."""

import json
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import httpx
import psycopg
import pytest
from inline_snapshot import snapshot

from tests.cli.reseller import refused, run_reseller
from tests.databases import migrated_postgres, postgres_url, required_database
from tests.harness.postgres_processes import stoppable
from tests.harness.processes import Running, start, stop

KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SECONDS = 3.0
READY = {"ready": True, "reasons": []}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def database() -> Iterator[str]:
    with required_database(migrated_postgres()) as url:
        yield url


@contextmanager
def served(place: Path, **settings: str) -> Generator[Running]:
    server = start(place / "data", {"SERVICE_SECRET_KEYS": KEYS, "SERVICE_BURST_LIMIT": "false", **settings})
    try:
        yield server
    finally:
        if server.process.poll() is None:
            assert stop(server) == 0
        elif server.process.stdout is not None:
            server.process.stdout.close()


def timed(http: httpx.Client, method: str, path: str, **rest: object) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    answer = http.request(method, path, **rest)  # pyright: ignore[reportArgumentType]  # what httpx takes
    return answer, time.monotonic() - began


def until_ready(http: httpx.Client) -> None:
    ends = time.monotonic() + 30
    while http.get("/health/ready").status_code != 200:
        assert time.monotonic() < ends
        threading.Event().wait(0.05)


@pytest.mark.long
@pytest.mark.postgres
def test_while_postgresql_stands_still_a_server_answers_503_and_is_not_ready_and_goes_on_by_itself(database: str, tmp_path: Path) -> None:
    port = free_port()
    settings = {"SERVICE_DATABASE_URL": database, "SERVICE_METRICS_PORT": str(port)}
    with stoppable(database) as postgres, served(tmp_path, **settings) as server:
        bearer = {"Authorization": f"Bearer {server.api_key}"}
        with httpx.Client(base_url=server.base_url, headers=bearer) as http:
            assert http.get("/health/ready").json() == READY
            new = {"json": {"plan": "test_eu_1gb"}, "headers": {"Idempotency-Key": "one"}}
            postgres.stop()
            answer, seconds = timed(http, "POST", "/v1/connectivity/intents", **new)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert {**answer.json(), "request_id": ""} == snapshot(
                {"error": "the database does not answer", "code": "store_unavailable", "request_id": ""}
            )
            assert seconds < SECONDS
            answer, seconds = timed(http, "GET", "/v1/connectivity/intents/cni_none")
            assert answer.status_code == 503 and seconds < 0.5
            ends = time.monotonic() + SECONDS
            while (answer := http.get("/health/ready")).status_code != 503:
                assert time.monotonic() < ends
            assert answer.json() == snapshot({"ready": False, "reasons": ["database_unreachable"]})
            assert min(timed(http, "GET", "/health/ready")[1] for _ in range(5)) < 0.02
            assert http.get("/health").json()["ok"] is True
            scraped, seconds = timed(http, "GET", f"http://127.0.0.1:{port}/metrics")
            assert "reseller_store_up 0.0" in scraped.text and seconds < SECONDS
            assert http.get(f"http://127.0.0.1:{port}/health/ready").json() == answer.json()
            postgres.go_on()
            until_ready(http)
            made, _ = timed(http, "POST", "/v1/connectivity/intents", **new)
            assert made.status_code == 201
            again, _ = timed(http, "POST", "/v1/connectivity/intents", **new)
            assert (again.json(), again.headers["Idempotent-Replayed"]) == (made.json(), "true")
    log = (tmp_path / "data.log").read_text()
    notes = [line["text"] for line in map(json.loads, log.splitlines()) if line.get("kind") == "note"]
    assert [note for note in notes if note.startswith("the database")] == [
        "the database does not answer; calls are refused until it does",
        "the database answers again",
    ]
    assert "Traceback" not in log and '"kind":"fault"' not in log


@pytest.mark.long
def test_a_server_that_is_told_to_end_is_not_ready_first_and_answers_until_it_closes(tmp_path: Path) -> None:
    with served(tmp_path, SERVICE_DRAIN_SECONDS="1") as server, httpx.Client(base_url=server.base_url) as http:
        assert http.get("/health/ready").json() == READY
        server.process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + SECONDS
        while (answer := http.get("/health/ready")).status_code == 200:
            assert time.monotonic() < ends
        assert (answer.json(), answer.headers["Connection"]) == ({"ready": False, "reasons": ["draining"]}, "close")
        found = http.get("/v1/connectivity/intents/cni_none", headers={"Authorization": f"Bearer {server.api_key}"})
        assert (found.status_code, found.headers["Connection"]) == (404, "close")
        assert server.process.wait(60) == 0
        with pytest.raises(httpx.ConnectError):
            http.get("/health/ready")


@pytest.mark.long
def test_probes_take_get_and_head_alone_and_no_host(tmp_path: Path) -> None:
    with served(tmp_path) as server, httpx.Client(base_url=server.base_url) as http:
        head = http.head("/health/ready", headers={"Host": "10.0.0.7:8000"})
        assert (head.status_code, head.content, head.headers["Content-Length"]) == (200, b"", str(len(b'{"ready":true,"reasons":[]}')))
        refused = http.post("/health/ready")
        assert (refused.status_code, refused.headers["Allow"], refused.json()["code"]) == (405, "GET, HEAD", "method_not_allowed")


class Starting(threading.Thread):
    """A PostgreSQL server that starts: it refuses its first connections, as one that recovers does, and is the real one from then on."""

    ENCRYPTION = ((80877103).to_bytes(4), (80877104).to_bytes(4))
    """A client that asks for TLS, or for GSS; neither is offered."""
    REFUSAL = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"

    def __init__(self, refusals: int) -> None:
        super().__init__(daemon=True)
        self.refusals, self.asked = refusals, 0
        self.listening = socket.create_server(("127.0.0.1", 0))

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:  # closed by the test
                return
            with connection:
                self.asked += 1
                while connection.recv(1024)[4:8] in self.ENCRYPTION:
                    connection.sendall(b"N")
                connection.sendall(b"E" + (len(self.REFUSAL) + 4).to_bytes(4) + self.REFUSAL)
                if self.asked >= self.refusals:
                    self.listening.close()
                    return


@pytest.mark.long
@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("worker",)], ids=["serve", "worker"])
def test_a_postgresql_server_that_starts_is_waited_for(command: tuple[str, ...], tmp_path: Path) -> None:
    starting = Starting(3)
    starting.start()
    port = starting.listening.getsockname()[1]
    given = {"SERVICE_DATABASE_URL": f"postgresql://jo@127.0.0.1:{port}/shop", "SERVICE_SECRET_KEYS": KEYS}
    with patched_wait(1.2):
        code, message = refused(*command, cwd=tmp_path, **given)
    assert starting.asked == 3
    assert code == 3
    waits, end = message.splitlines()
    note = json.loads(waits)  # the log has begun: who reads it reads JSON
    assert (note["level"], note["text"]) == ("info", "PostgreSQL is starting or recovering (57P03); waiting for it, for a minute at most")
    assert end == "the database cannot be reached: the connection was refused; nothing listens at that host and port"


@contextmanager
def patched_wait(seconds: float) -> Generator[None]:
    with patch("storage.engine.postgres_server.START_WAIT_SECONDS", seconds):
        yield


@pytest.mark.long
@pytest.mark.postgres
def test_doctor_says_how_many_processes_have_room_and_what_to_do_when_not_even_one_has(database: str, tmp_path: Path) -> None:
    given = {"SERVICE_DATABASE_URL": database, "SERVICE_SECRET_KEYS": KEYS, "SERVICE_PORT": "0"}
    shown = run_reseller("doctor", cwd=tmp_path, **given).stdout
    [line] = [line for line in shown.splitlines() if " capacity " in line]
    assert line.startswith("ok   capacity   ") and "a worker takes up to 18, a server 17: room for " in line
    done = run_reseller("doctor", cwd=tmp_path, SERVICE_DATABASE_POOL="200", **given)
    assert done.returncode == 1
    assert "fix: raise max_connections, or the limit of the user or the database, or lower SERVICE_DATABASE_POOL" in done.stdout


@pytest.mark.postgres
def test_a_database_of_another_encoding_stops_every_command_with_the_fix(tmp_path: Path) -> None:
    with required_database(postgres_url()) as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("create database latin encoding 'LATIN1' locale 'C' template template0")
        try:
            given = {"SERVICE_DATABASE_URL": url.replace(admin.info.dbname, "latin"), "SERVICE_SECRET_KEYS": KEYS}
            told = snapshot(
                "the database has the encoding LATIN1, and the service needs UTF8: create database NAME encoding 'UTF8' locale 'C' "
                "template template0, name it in SERVICE_DATABASE_URL, then reseller db upgrade\n"
            )
            for command in (("serve", "--port", "0"), ("worker",), ("db", "upgrade")):
                assert refused(*command, cwd=tmp_path, **given) == (3, told)
            shown = run_reseller("doctor", cwd=tmp_path, SERVICE_PORT="0", **given).stdout
            assert "BAD  database   PostgreSQL: the database has the encoding LATIN1, and the service needs UTF8\n     fix: create" in shown
        finally:
            admin.execute("drop database latin with (force)")
