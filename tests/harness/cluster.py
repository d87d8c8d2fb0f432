"""Servers and workers on one PostgreSQL database."""

import json
import re
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

from tests.databases import migrated_postgres
from tests.harness.fork_server import reseller
from tests.harness.processes import Running, environment, free_port, running

KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass(slots=True)
class Worker:
    process: subprocess.Popen[str]
    metrics_port: int

    def end(self, how: signal.Signals) -> tuple[int, list[str]]:
        """End it; its exit code, and of what kind each line is that it said."""
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line)["kind"] for line in said.splitlines()]


@dataclass(slots=True)
class Cluster:
    """Two servers and as many workers as a test starts."""

    place: Path
    url: str
    settings: dict[str, str]
    stack: ExitStack
    servers: list[Running] = field(default_factory=list[Running])
    clients: list[httpx.Client] = field(default_factory=list[httpx.Client])
    metrics_port: int = 0
    issued: int = 0

    def serve(self) -> None:
        self.metrics_port = free_port()
        given = {**self.settings, "SERVICE_METRICS_PORT": str(self.metrics_port)}
        server = self.stack.enter_context(running(self.place / f"server{len(self.servers)}", environment(given)))
        self.servers.append(server)
        key = {"Authorization": f"Bearer {self.servers[0].api_key}"}
        base = server.base_url + "/v1/connectivity"
        self.clients.append(self.stack.enter_context(httpx.Client(base_url=base, headers=key)))

    def work(self) -> Worker:
        port = free_port()
        given = environment({**self.settings, "SERVICE_METRICS_PORT": str(port)})
        process = subprocess.Popen([reseller(), "worker"], cwd=self.place, env=given, stderr=subprocess.PIPE, text=True)
        self.stack.callback(finish, process)
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["text"] == "worker runs"
        return Worker(process, port)

    def register(self, url: str) -> str:
        made = self.clients[0].post("/webhook_endpoints", json={"url": url})
        assert made.status_code == 201, made.text
        return made.json()["secret"]

    def issue(self, count: int) -> None:
        """So many intents of a test plan, by the servers in turn."""
        for _ in range(count):
            client = self.clients[self.issued % len(self.clients)]
            given = {"Idempotency-Key": f"n{self.issued}"}
            answer = client.post("/intents", json={"plan": "test_eu_1gb"}, headers=given)
            assert answer.status_code == 201, answer.text
            self.issued += 1

    def events(self) -> set[str]:
        """What was issued: no more than a page shows."""
        found = self.clients[-1].get("/events", params={"limit": 20}).json()
        assert len(found["data"]) == self.issued
        return {event["id"] for event in found["data"]}

    def rows(self, statement: str) -> Sequence[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as admin:
            return admin.execute(statement.encode()).fetchall()


def finish(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def shown_metrics(port: int) -> dict[str, float]:
    """The plain numbers that a process shows."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    return {name: float(value) for name, value in re.findall(r"^reseller_(\S+) (\S+)$", text, re.MULTILINE)}


@contextmanager
def cluster(place: Path, *, lease_seconds: int) -> Generator[Cluster | None]:
    """Two servers on a new database; nothing without PostgreSQL."""
    with migrated_postgres() as url:
        if url is None:
            yield None
            return
        settings = {
            "SERVICE_DATABASE_URL": url,
            "SERVICE_SECRET_KEYS": KEYS,
            "SERVICE_WEBHOOK_ALLOW_NETS": "127.0.0.0/8",
            "SERVICE_DELIVERY_LEASE_SECONDS": str(lease_seconds),
            "SERVICE_BURST_LIMIT": "false",
        }
        with ExitStack() as stack:
            made = Cluster(place, url, settings, stack)
            made.serve()
            made.serve()
            yield made
