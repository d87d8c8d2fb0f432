"""Who issues: this service on its two databases and the rivals, each a process over an account and an organisation of its own."""

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestant import OCS_TOKEN, ROOT, Contestant, await_health, environment, free_port, wired
from benchmarks.load import run_ask
from benchmarks.requests import head
from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.api_keys import insert_key
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.organisations import add_member, create_organisation
from storage.people import create_person

TEMPLATE = 55010
KEYRING = "bench:" + b64encode(bytes(32)).decode()


@dataclass(frozen=True)
class Tenant:
    """An organisation's API key and its account."""

    key: str
    account: int

    @property
    def body(self) -> bytes:
        """What it asks for."""
        return json.dumps({"accountId": self.account, "packageTemplateId": TEMPLATE, "validityPeriod": 30}).encode()


def issue(tenant: Tenant, key: str) -> bytes:
    """POST issue-from-inventory."""
    plain = {"Authorization": f"Bearer {tenant.key}", "Content_Type": "application/json", "Content_Length": str(len(tenant.body))}
    return head("POST", "/v1/subscribers/issue-from-inventory", **plain, X_Idempotency_Key=key) + b"\r\n" + tenant.body


def move_in(connection: Connection, *, accounts: Sequence[int]) -> list[Tenant]:
    """An organisation for each account."""
    clock = SystemClock()
    ids, now = SystemIds(clock), clock.now()
    made: list[Tenant] = []
    for account in accounts:
        organisation, person, key = ids.new("org_"), ids.new("usr_"), new_api_key(ids)
        create_organisation(connection, id=organisation, name="Issuing", tier=Tier.ENTERPRISE, now=now, mode="managed", account_id=account)
        create_person(connection, id=person, now=now)
        add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
        insert_key(
            connection,
            id=ids.new("key_"),
            digest=key.digest,
            prefix=key.prefix,
            organisation=organisation,
            person=person,
            name="issuing",
            now=now,
        )
        made.append(Tenant(key.secret, account))
    return made


def settled(url: str, accounts: Sequence[int]) -> list[Tenant]:
    """A new database with an organisation for each account."""
    upgrade_database(url)

    async def run() -> list[Tenant]:
        store = open_store(url, pool=1)
        try:
            return await store.write(move_in, accounts=accounts)
        finally:
            await store.aclose()

    return asyncio.run(run())


@contextmanager
def process(name: str, words: Sequence[str], data: Path, settings: Mapping[str, str]) -> Generator[Contestant]:
    """A server that answers."""
    port = free_port()
    command = [sys.executable, "-m", *words, "--port", str(port), "--data", str(data)]
    with (data / "log").open("ab") as log:
        running = subprocess.Popen(command, cwd=data, env={**environment(), **settings}, stdout=subprocess.DEVNULL, stderr=log)
        try:
            await_health(port, running, data)
            yield Contestant(name, port, running.pid, data)
        finally:
            running.terminate()
            try:
                running.wait(15)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


@contextmanager
def network(folder: Path, stock: Mapping[int, int]) -> Generator[Contestant]:
    """The simulated network with that many free eSIMs in each account."""
    folder.mkdir()
    (folder / "network.json").write_text(json.dumps(stock))
    with process("network", ("benchmarks.rivals", "issuing_network"), folder, {}) as running:
        yield running


@contextmanager
def service(name: str, folder: Path, net: Contestant, *, url: str = "", places: int = 64) -> Generator[Contestant]:
    """This service on a database that was settled; without an address, on the SQLite file in the folder."""
    (folder / "keyring").write_text(KEYRING)
    settings = {"SERVICE_DEMO": "false", "SERVICE_SECRET_KEYS": KEYRING, "SERVICE_DATABASE_URL": url}
    settings |= wired(net.port) | {"SERVICE_OCS_CONCURRENCY": str(places)}
    with process(name, ("transports.cli", "serve"), folder, settings) as running:
        yield running


@contextmanager
def rival(name: str, module: str, folder: Path, net: Contestant) -> Generator[Contestant]:
    """One of the others, over a copy of the same database."""
    with process(name, ("benchmarks.rivals", module), folder, wired(net.port)) as running:
        yield running


def drawn(net: Contestant) -> dict[int, int]:
    """How many eSIMs each account has given, as the network itself has it."""
    answer = run_ask(net.port, head("GET", "/drawn", Host="network") + b"\r\n")
    return {int(account): count for account, count in json.loads(answer.body).items()}


def bare_client(net: Contestant, account: int, connections: int, seconds: float) -> dict[str, float]:
    """This service's client of the charging system alone, in a process of its own."""
    asked = {"url": f"http://127.0.0.1:{net.port}/v1", "token": OCS_TOKEN, "account": account, "template": TEMPLATE}
    words = [sys.executable, "-m", "benchmarks.issuing_caller", json.dumps({**asked, "connections": connections, "seconds": seconds})]
    done = subprocess.run(words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, timeout=300)
    return json.loads(done.stdout)


def unique() -> str:
    """The beginning of keys that nobody used before."""
    return os.urandom(6).hex()
