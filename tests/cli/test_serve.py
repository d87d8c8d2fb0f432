"""`reseller serve`: what it prints, what it keeps, how it ends."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.reseller import refused
from tests.harness.fork_server import reseller
from tests.harness.processes import COMMAND, Child, environment, free_port, start, stop

INTENTS = "/v1/connectivity/intents"


@contextmanager
def process(folder: Path, *words: str, program: Sequence[str] = (), **settings: str) -> Generator[subprocess.Popen[str]]:
    """`program`: another way to start it than a fork."""
    given = [*(program or [str(reseller())]), "serve", "--port", "0", "--data", str(folder / "data"), *words]
    with Child(given, cwd=folder, env=environment(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as made:
        try:
            yield made
        finally:
            if made.poll() is None:
                made.kill()


@pytest.mark.long
def test_json_is_one_line_with_nine_keys_and_then_it_serves_until_sigterm(tmp_path: Path) -> None:
    with process(tmp_path, "--json", program=COMMAND) as server:
        assert server.stdout is not None
        printed = json.loads(server.stdout.readline())
        assert list(printed) == ["base_url", "mcp_url", "api_key", "org_id", "database", "upstream", "shop_url", "mode", "pid"]
        assert printed["pid"] == server.pid
        assert printed["mode"] == "demo"
        assert printed["shop_url"] == printed["base_url"] + "/shop/demo"
        assert printed["database"] == str(tmp_path / "data" / "service.db")
        assert printed["mcp_url"] == printed["base_url"] + "/mcp"
        assert httpx.get(printed["base_url"] + "/health").json()["ok"] is True
        server.send_signal(signal.SIGTERM)
        rest, log = server.communicate(timeout=60)
    assert (server.returncode, rest) == (0, "")
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line.get("path", line.get("kind")) for line in lines] == ["/health", "stopped"]
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_the_tree_says_where_everything_is(tmp_path: Path) -> None:
    with process(tmp_path, SERVICE_LOG="off") as server:
        assert server.stdout is not None
        lines = [server.stdout.readline()]
        while lines[-1] != "}\n":
            lines.append(server.stdout.readline())
        server.send_signal(signal.SIGINT)
        rest, log = server.communicate(timeout=60)
    tree = "".join(lines)
    assert [name for name in ("API", "MCP", "Shop", "Docs", "OpenAPI", "Database", "Mode", "Key") if f"─ {name}" not in tree] == []
    key = re.search(r"ak_\w{46}", tree)
    assert key is not None and tree.count(key.group()) == 3
    assert "curl -s http://127.0.0.1:" in tree
    assert json.loads(tree[tree.index("{\n") :])["mcpServers"]["connectivity"]["headers"] == {"Authorization": f"Bearer {key.group()}"}
    assert (server.returncode, rest, log) == (0, "", "")


AUDITED = """select surface, operation, outcome, at * 1000 as began from audit union all
  select door.text, what.text, how.text, r.id / 524288 from audit_read r join audit_name door on door.id = r.surface
  join audit_name what on what.id = r.operation join audit_name how on how.id = r.outcome order by began"""


def audited(data: Path) -> list[tuple[str, str, str, float]]:
    with closing(sqlite3.connect(data / "service.db")) as database:
        return database.execute(AUDITED).fetchall()


@pytest.mark.long
def test_a_second_start_keeps_the_organisation_and_the_first_key_works_and_nothing_buffered_is_lost(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = start(data, bare=True)
    bearer = {"Authorization": f"Bearer {first.api_key}"}
    with httpx.Client(base_url=first.base_url, headers=bearer) as http:
        issued = http.post(INTENTS, json={"plan": "test_global_1gb"}, headers={"Idempotency-Key": "one"}).json()
        for _ in range(3):
            assert http.get(f"{INTENTS}/{issued['id']}").status_code == 200
        assert http.get(f"{INTENTS}/cni_none").status_code == 404
    assert stop(first) == 0  # at once: the last calls are still in the buffer
    assert [row[1:3] for row in audited(data)] == [
        ("create_connectivity_intent", "ok"),
        *[("get_connectivity_intent", "ok")] * 3,
        ("get_connectivity_intent", "not_found"),
    ]
    second = start(data)
    try:
        assert (second.organisation, second.api_key) == (first.organisation, None)
        with httpx.Client(base_url=second.base_url, headers=bearer) as http:
            assert http.get(f"{INTENTS}/{issued['id']}").json() == issued
            repeated = http.post(INTENTS, json={"plan": "test_global_1gb"}, headers={"Idempotency-Key": "one"})
            assert (repeated.json(), repeated.headers["Idempotent-Replayed"]) == (issued, "true")
    finally:
        assert stop(second) == 0


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, message = refused("serve", "--port", str(port), cwd=tmp_path)
    assert code == 2
    assert message == f"port {port} on 127.0.0.1: Address already in use; stop what holds it, or use --port 0\n"
    assert not (tmp_path / "data").exists()


def test_a_directory_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, message = refused("serve", "--port", "0", "--data", tmp_path / "file" / "data", cwd=tmp_path)
    assert code == 2
    assert message.startswith(f"SERVICE_DATA: {tmp_path / 'file' / 'data'} cannot be made (") and message.count("\n") == 1


def test_a_file_that_is_no_database_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "service.db").write_text("not a database " * 100)
    assert refused("serve", "--port", "0", cwd=tmp_path) == (3, "the file is not a database\n")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"SERVICE_PROT": "1"}, "unknown setting SERVICE_PROT; did you mean SERVICE_PORT? `reseller doctor` lists the known ones\n"),
        (
            {"SERVICE_ENV": "production"},
            "SERVICE_ENV=production needs SERVICE_DATABASE_URL, SERVICE_SECRET_KEYS, SERVICE_PAYMENTS_KEY, "
            "SERVICE_PAYMENTS_WEBHOOK_SECRET, SERVICE_SMTP_URL, SERVICE_BASE_URL, "
            "SERVICE_OCS_URL, SERVICE_MAIL_FROM; "
            "nothing falls back to a simulation there\n",
        ),
        ({"SERVICE_SECRET_KEYS": "k1:c2hvcnQ="}, "SERVICE_SECRET_KEYS: key 'k1' of the keyring has 5 bytes; AES-256 takes 32\n"),
    ],
    ids=["unknown", "production", "keyring"],
)
def test_a_setting_that_is_wrong_stops_the_start_and_is_named(settings: dict[str, str], message: str, tmp_path: Path) -> None:
    assert refused("serve", "--port", "0", cwd=tmp_path, **settings) == (2, message)


PROBE = """
import sys
import sqlmodel  # declares the tables, and brings its part of the ORM
orm = {name for name in sys.modules if name.startswith("sqlalchemy.orm")}
from transports.http import server
original = server.make_http_server
def make_server(app, *, ready, **rest):
    def told():
        print(*sorted(set(sys.modules) - orm), file=sys.stderr, flush=True)
        ready()
    return original(app, ready=told, **rest)
server.make_http_server = make_server
from transports.cli.main import main
main()
"""
LATE = {
    *("mcp", "mcp_types", "httpx", "httpx2", "aiohttp", "jwt", "cryptography", "stripe", "openai"),
    *("alembic", "psycopg", "rich", "typer.rich_utils", "jinja2", "segno", "prometheus_client"),
}


@pytest.mark.long
def test_what_serves_nothing_yet_is_not_imported_when_it_listens(tmp_path: Path) -> None:
    """On an up-to-date database; the time to the first answer hangs on it."""
    stop(start(tmp_path / "data"))
    words = [COMMAND[0], "-P", "-c", PROBE, "serve", "--port", "0", "--json"]
    with Child(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        assert json.loads(server.stdout.readline())["pid"] == server.pid
        os.kill(server.pid, signal.SIGTERM)
        loaded = set(server.stderr.readline().split())
        server.communicate(timeout=60)
    assert "uvicorn" in loaded
    assert sorted(name for name in loaded if name in LATE or name.startswith("sqlalchemy.orm")) == []


WATCH = """
import sys, threading
from transports.http import server
original = server.make_http_server
def make_server(app, *, ready, **rest):
    def watched():
        loop = threading.get_ident()
        def note(event, details):
            if event == "import" and threading.get_ident() == loop:
                print("held up by", details[0], file=sys.stderr, flush=True)
        sys.addaudithook(note)
        ready()
    return original(app, ready=watched, **rest)
server.make_http_server = make_server
from transports.cli.main import main
main()
"""
SLOW = {"httpx", "mcp", "jinja2", "babel", "segno", "prometheus_client", "starlette.routing", "transports.web.console.app"}


@pytest.mark.long
def test_no_slow_package_is_imported_in_the_loop(tmp_path: Path) -> None:
    """Whoever comes first to a part of the service keeps nobody else waiting."""
    metrics = str(free_port())
    program = [COMMAND[0], "-P", "-c", WATCH]
    with process(tmp_path, "--json", program=program, SERVICE_METRICS_PORT=metrics, SERVICE_LOG="off") as server:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        with httpx.Client(base_url=told["base_url"], headers={"Authorization": f"Bearer {told['api_key']}"}, timeout=60) as client:
            statuses = list[int]()
            while not statuses or (statuses[-1] == 502 and len(statuses) < 10):  # the simulated network is being made
                statuses.append(client.get("/v1/connectivity/plans").status_code)
            intent = client.post(INTENTS, json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "first"}).json()["id"]
            assert client.get(f"{INTENTS}/{intent}/qr.png").status_code == 200
            assert client.post("/mcp", json={}).status_code == 400
            for page in (told["shop_url"], "/console", "/auth/sign-in", f"http://127.0.0.1:{metrics}/metrics"):
                assert client.get(page, follow_redirects=True).status_code == 200
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=60)
    held = {line.removeprefix("held up by ") for line in log.splitlines()}
    assert sorted(held & SLOW) == []


@pytest.mark.long
def test_two_first_starts_at_once_make_one_organisation_and_show_one_key(tmp_path: Path) -> None:
    with process(tmp_path, "--json") as one, process(tmp_path, "--json") as other:
        assert one.stdout is not None and other.stdout is not None
        printed = [json.loads(server.stdout.readline()) for server in (one, other) if server.stdout]
        [key] = [said["api_key"] for said in printed if said["api_key"]]
        assert printed[0]["org_id"] == printed[1]["org_id"]
        for said in printed:
            statuses = list[int]()
            while not statuses or (statuses[-1] == 502 and len(statuses) < 10):  # two simulated networks are being made at once
                plans = httpx.get(said["base_url"] + "/v1/connectivity/plans", headers={"Authorization": f"Bearer {key}"})
                statuses.append(plans.status_code)
            assert statuses[-1] == 200
        for server in (one, other):
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
        assert [one.returncode, other.returncode] == [0, 0]
