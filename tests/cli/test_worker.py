"""Deliveries by a process of their own, and across a death in the middle of the schedule."""

import json
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.hook import listening
from tests.cli.reseller import printed, refused
from tests.databases import postgres_url, required_database
from tests.harness.fork_server import reseller
from tests.harness.processes import COMMAND, Child, Running, environment, running, start, stop

pytestmark = pytest.mark.long

LOOPBACK = {"SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8"}
KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def client(server: Running) -> httpx.Client:
    return httpx.Client(base_url=server.base_url + "/v1/connectivity", headers={"Authorization": f"Bearer {server.api_key}"})


def register(http: httpx.Client, url: str) -> str:
    made = http.post("/webhook_endpoints", json={"url": url})
    assert made.status_code == 201, made.text
    return made.json()["secret"]


def issue(http: httpx.Client, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        assert http.post("/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": f"n{number}"}).status_code == 201


def event_ids(http: httpx.Client) -> set[str]:
    return {event["id"] for event in http.get("/events").json()["data"]}


@contextmanager
def worker(place: Path, program: Sequence[str | Path], **settings: str) -> Generator[subprocess.Popen[str]]:
    given = [*program, "worker", "--data", str(place / "data")]
    with Child(given, cwd=place, env=environment(settings), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert json.loads(process.stderr.readline())["text"] == "worker runs"
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a server whose deliveries are left to others, and of the worker beside it."""
    common = {**LOOPBACK, "SERVICE_WORKER": "false"}
    if request.param == "sqlite":
        yield common
        return
    with required_database(postgres_url()) as url:
        given = {**common, "SERVICE_DATABASE_URL": url, "SERVICE_SECRET_KEYS": KEYS}
        code, message = refused("serve", "--port", "0", cwd=tmp_path, **given)
        assert code == 3 and message.endswith("run `reseller db upgrade`\n")
        printed("db", "upgrade", cwd=tmp_path, **given)
        yield given


def test_a_worker_process_delivers_what_a_server_process_wrote(settings: dict[str, str], tmp_path: Path) -> None:
    with listening() as hook, running(tmp_path / "data", settings) as server, client(server) as http:
        secret = register(http, hook.url)
        issue(http, 2)
        assert hook.seen.empty()
        with worker(tmp_path, [reseller()], **settings) as process:
            got = {hook.take(secret)[1] for _ in range(2)}
            issue(http, 1, start=2)
            got.add(hook.take(secret)[1])
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=60)
        assert (process.returncode, [json.loads(line)["kind"] for line in rest.splitlines()]) == (0, ["stopped"])
        assert got == event_ids(http)
        assert hook.seen.empty()


def test_metrics_are_shown_by_servers_and_workers_at_an_address_of_their_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        given = {"SERVICE_METRICS_PORT": str(port), "SERVICE_WORKER": "false", "SERVICE_SECRET_KEYS": KEYS}
        message = f"SERVICE_METRICS_PORT: port {port} on 127.0.0.1: Address already in use; give each process of a machine its own port"
        for command in (["worker"], ["serve", "--port", "0"]):
            assert message in refused(*command, cwd=tmp_path, **given)[1]
    url = f"http://127.0.0.1:{port}/metrics"
    with running(tmp_path / "data", given) as server:
        assert "reseller_deliveries_pending 0.0" in httpx.get(url).text
        assert httpx.get(f"{server.base_url}/metrics").status_code == 404
    with worker(tmp_path, COMMAND, **given) as process:
        assert 'reseller_chore_last_success_timestamp_seconds{chore="retention"}' in httpx.get(url).text
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
        assert (process.returncode, json.loads(rest)["kind"]) == (0, "stopped")


def hasten(data: Path) -> int:
    with closing(sqlite3.connect(data / "service.db")) as database:
        changed = database.execute("update delivery set due_ms = 0 where state = 0").rowcount
        database.commit()
        return changed


def test_kill_9_in_the_middle_of_the_schedule_loses_no_event(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with listening() as hook:
        hook.status = 503
        first = start(data, LOOPBACK)
        with client(first) as http:
            secret = register(http, hook.url)
            issue(http, 3)
            refused_ones = {hook.take(secret) for _ in range(3)}  # these wait for their second attempt
            hook.status = 0
            issue(http, 3, start=3)
            hook.take(secret)  # this one is under way, and others wait behind it
            written = event_ids(http)
        assert stop(first, signal.SIGKILL) == -signal.SIGKILL
        assert refused_ones <= {(503, event) for event in written} and len(refused_ones) == 3
        hook.ended.set()
        hook.status = 204
        assert hasten(data) == 6
        second = start(data, LOOPBACK)
        try:
            arrived = set[str]()
            while arrived != written:  # `take` waits, and fails when nothing more comes
                status, event = hook.take(secret)
                arrived |= {event} if status == 204 else set()
            with client(Running(second.process, second.base_url, second.mcp_url, first.api_key, second.organisation, second.log)) as http:
                assert event_ids(http) == written
        finally:
            assert stop(second) == 0
    assert hasten(data) == 0
