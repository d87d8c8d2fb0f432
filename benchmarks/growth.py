"""`python -m benchmarks.growth`: how many bytes calls leave behind, by table, on both databases.

Calls are made through the HTTP door of a whole service in this process: 97 % reads (an intent, a list of intents, the catalogue) and 3 %
test intents. The database is measured before and after, and the difference is told for a million calls.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import httpx

from benchmarks.names import OURS_POSTGRES, OURS_SQLITE
from benchmarks.postgres import database
from benchmarks.tables import table
from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.api_keys import insert_key
from storage.engine.migrate import upgrade_database
from storage.engine.sql import Connection
from storage.organisations import add_member, create_organisation
from storage.people import create_person
from transports.app import Application
from transports.logs import Logs
from transports.service import build_service
from transports.settings import Settings
from transports.settings_files import load_settings

INTENTS, PLANS, EVENTS = "/v1/connectivity/intents", "/v1/connectivity/plans", "/v1/connectivity/events"
EVERY = 100
WRITES = 3
MILLION, AIM_MB, AIM_READ = 1_000_000, 300, 150
CLOCK = SystemClock()
IDS = SystemIds(CLOCK)
KEYRING = "bench:" + b64encode(bytes(32)).decode()
BASE = "http://127.0.0.1:8000"
Sizes = Mapping[str, int]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="Bytes that calls leave behind.")
    parser.add_argument("--calls", type=int, default=20_000, help="calls on each database (20000); 1000000 is the whole measurement")
    parser.add_argument("--sqlite-only", action="store_true", help="without PostgreSQL")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="growth-")))
        urls = {OURS_SQLITE: f"sqlite:///{folder / 'service.db'}"}
        if not asked.sqlite_only and (url := stack.enter_context(database())) is not None:
            urls[OURS_POSTGRES] = url
        for engine, url in urls.items():
            upgrade_database(url)
            before, after = asyncio.run(measured(url, folder / engine, asked.calls))
            print(f"{engine}, {asked.calls} calls\n{page(before, after, asked.calls)}\n", flush=True)


async def measured(url: str, data: Path, calls: int) -> tuple[Sizes, Sizes]:
    """Sizes before and after the calls."""
    async with client(url, data) as http:
        await make_calls(http, EVERY, "warm")
    before = sizes(url)
    async with client(url, data) as http:
        await make_calls(http, calls, "call")
    return before, sizes(url)


@asynccontextmanager
async def client(url: str, data: Path, organisation: str | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    """An organisation's client of a service over the database; all is written when it is left."""
    service = build_service(settings_for(url, data), BASE, clock=CLOCK, ids=IDS, report=complain)
    await service.start(seed=False)
    secret = await service.store.write(new_caller, organisation=organisation or IDS.new("org_"))
    app = Application(service, Logs(lambda line: None, CLOCK))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url=BASE, headers={"Authorization": f"Bearer {secret}"}
    ) as http:
        yield http
    await service.stop()


def settings_for(url: str, data: Path) -> Settings:
    """Those of a service over the database; what else it keeps is in the folder `data`."""
    if url.startswith("sqlite"):
        return load_settings({}, data=Path(url.removeprefix("sqlite:///")).parent, burst_limit=False, demo=False)
    return load_settings({}, data=data, burst_limit=False, demo=False, database_url=url, secret_keys=KEYRING)


def complain(text: str) -> None:
    """What the service has to say."""
    print(text, file=sys.stderr)


def new_caller(connection: Connection, *, organisation: str) -> str:
    """An organisation of the largest tier, and its key."""
    now, person = CLOCK.now(), IDS.new("usr_")
    create_person(connection, id=person, now=now)
    create_organisation(connection, id=organisation, name="Growth", tier=Tier.ENTERPRISE, now=now)
    add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
    key = new_api_key(IDS)
    id, digest, prefix = IDS.new("key_"), key.digest, key.prefix
    insert_key(connection, id=id, digest=digest, prefix=prefix, organisation=organisation, person=person, name="growth", now=now)
    return key.secret


async def make_calls(http: httpx.AsyncClient, calls: int, name: str) -> None:
    """Of each hundred three make a test intent."""
    intent = ""
    for number in range(calls):
        place = number % EVERY
        if place < WRITES:
            given = {"plan": "test_eu_1gb", "metadata": {"order": f"{name}-{number}"}}
            answer = await http.post(INTENTS, json=given, headers={"Idempotency-Key": str(IDS.secret("k"))})
            intent = answer.json()["id"]
        else:
            answer = await http.get((f"{INTENTS}/{intent}", f"{INTENTS}?limit=20", PLANS, EVENTS)[place % 4])
        answer.raise_for_status()


def sizes(url: str) -> Sizes:
    """Bytes of each table with its indexes."""
    return sqlite_sizes(url) if url.startswith("sqlite") else postgres_sizes(url)


def sqlite_sizes(url: str) -> Sizes:
    """As the pages of the file say."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
        raw.execute("pragma wal_checkpoint(truncate)")
        rows = raw.execute("select m.tbl_name, sum(d.pgsize) from dbstat d join sqlite_master m on m.name = d.name group by m.tbl_name")
        return {str(name): int(size) for name, size in rows}


def postgres_sizes(url: str) -> Sizes:
    """As the server says, after a vacuum."""
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as raw:
        raw.execute("vacuum analyze")
        rows = raw.execute("select relname::text, pg_total_relation_size(oid)::bigint from pg_class where relkind in ('r', 'p')").fetchall()
        return {str(name): int(size) for name, size in rows}


def page(before: Sizes, after: Sizes, calls: int) -> str:
    """What grew, and what that is for a million calls."""
    grown = {name: size - before.get(name, 0) for name, size in after.items() if size > before.get(name, 0)}
    reads, total = calls * (EVERY - WRITES) // EVERY, sum(grown.values())
    lines = [
        [name, str(size), f"{size / calls:.1f}", f"{size / max(1, calls * WRITES // EVERY):.0f}"]
        for name, size in sorted(grown.items(), key=lambda pair: -pair[1])
        if size / calls >= 0.5
    ]
    read = grown.get("audit_read", 0) / reads
    return "\n".join(
        (
            table(["table", "bytes", "a call", "a write"], lines),
            f"a read of the audit log: {read:.0f} B (aim {AIM_READ})",
            f"a million calls: {total * MILLION / calls / 1e6:.0f} MB (aim {AIM_MB})",
        )
    )


if __name__ == "__main__":
    main()
