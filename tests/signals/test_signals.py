"""What a process shows of its own calls: each label is of a closed set, and each number moves with what it counts."""

import asyncio
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.signals import main as measure_costs
from operations.catalogue import CATALOGUE
from registry.signals import Counts, Histograms
from storage.backlog import COUNT_DELIVERIES, MOST_COUNTED, Backlog, measure_backlog
from storage.deliveries import DeliveryTable
from storage.engine.database_signals import PoolLoad
from storage.engine.sql import Command, Connection, Query, postgresql_dialect
from storage.engine.store import Store, open_store
from tests.databases import migrated_postgres, migrated_sqlite, required_database
from tests.evidence.issuing import open_issuing
from tests.harness.cluster import free_port
from tests.harness.processes import Running, running
from tests.signals.test_alerts import series
from tests.world import SettableClock
from transports.metric_families import stock_metrics
from transports.signals import LoopDelay

HOSTILE = "x" * 40
DOORS = {"http", "mcp", "cli", "web", "assistant", "schedule"}
OUTCOMES = {"ok", "refused", "failed", "abandoned", "not_sent"}


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Running, str]]:
    port = free_port()
    with running(tmp_path_factory.mktemp("signals") / "data", {"SERVICE_METRICS_PORT": str(port)}) as server:
        yield server, f"http://127.0.0.1:{port}/metrics"


def shown(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def values(found: Mapping[tuple[str, frozenset[tuple[str, str]]], float], name: str, *labels: str) -> dict[str | tuple[str, ...], float]:
    """The samples of a name by the values of some labels."""
    told = {tuple(dict(each)[label] for label in labels): value for (of, each), value in found.items() if of == name}
    return {key[0] if len(key) == 1 else key: value for key, value in told.items()}


@pytest.mark.long
def test_calls_of_every_door_are_counted_by_operation_and_outcome(scraped: tuple[Running, str]) -> None:
    server, address = scraped
    with httpx.Client(base_url=server.base_url, headers={"Authorization": f"Bearer {server.api_key}"}) as client:
        assert client.get("/v1/connectivity/plans").status_code == 200
        assert client.get("/v1/connectivity/plans", params={HOSTILE: "1"}).status_code == 400
        assert client.get(f"/v1/connectivity/intents/{HOSTILE}").status_code == 404
        assert client.get("/v1/subscribers").status_code == 200
        assert client.get(f"/{HOSTILE}").status_code == 404
        assert client.get("/").status_code == 307
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_connectivity_plans", "arguments": {}}}
        told = {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}
        assert client.post("/mcp", json=call, headers=told).status_code == 200
        call["params"] = {"name": "get_connectivity_intent", "arguments": {"id": HOSTILE}}
        assert client.post("/mcp", json=call, headers=told).status_code == 200
    text = httpx.get(address).text
    found = shown(text)
    calls = values(found, "reseller_call_seconds_count", "operation", "door", "outcome")
    plans, intent = "list_connectivity_plans", "get_connectivity_intent"
    assert calls[plans, "http", "ok"] == calls[plans, "http", "refused"] == calls[plans, "mcp", "ok"] == 1
    assert calls[intent, "http", "refused"] == calls[intent, "mcp", "refused"] == 1
    errors = values(found, "reseller_call_errors_total", "door", "code")
    assert errors["http", "not_found"] == errors["mcp", "not_found"] == 1
    requests = values(found, "reseller_http_request_seconds_count", "path", "outcome")
    assert (requests["operations", "refused"], requests["none", "refused"]) == (2, 1)
    assert requests["operations", "ok"] >= 2  # the simulated network pushes what happens
    assert (requests["/mcp", "ok"], requests["/", "ok"]) == (2, 1)
    upstream = values(found, "reseller_upstream_call_seconds_count", "system", "method", "outcome")
    assert upstream and all(key[0] == "charging_system" and key[2] == "ok" for key in upstream)
    assert values(found, "reseller_upstream_queue_seconds_count", "system") == {"charging_system": sum(upstream.values())}
    assert HOSTILE not in text and server.organisation not in text and "127.0.0.1" not in text


def test_labels_are_of_closed_sets_and_all_that_is_shown_is_documented(scraped: tuple[Running, str]) -> None:
    _, address = scraped
    text = httpx.get(address).text
    known, found = series(), shown(text)
    for name, labels in found:
        assert name.removesuffix("_created") in known and {label for label, _ in labels} <= known[name] | {"le"}
    for operation, door, outcome in values(found, "reseller_call_seconds_count", "operation", "door", "outcome"):
        assert (operation in CATALOGUE.operations, door in DOORS, outcome in OUTCOMES) == (True, True, True)
    described = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert {name for name in known if name.startswith("reseller_") and not name.endswith(("_bucket", "_count", "_sum"))} <= described


def test_the_process_shows_its_build_its_loop_and_what_it_takes_of_the_machine(scraped: tuple[Running, str]) -> None:
    _, address = scraped
    found, ends = shown(httpx.get(address).text), time.monotonic() + 30
    while not values(found, "reseller_event_loop_delay_seconds_count")[()] and time.monotonic() < ends:
        time.sleep(0.1)  # so often the loop is looked at
        found = shown(httpx.get(address).text)
    assert list(values(found, "reseller_build_info", "version")) == ["1.1.0"]
    assert values(found, "reseller_event_loop_delay_seconds_count")[()] > 0
    assert values(found, "process_resident_memory_bytes")[()] > 1_000_000
    assert values(found, "reseller_database_call_seconds_count", "kind")["read"] > 0
    assert values(found, "reseller_database_pool_size")[()] == 0  # SQLite


def test_a_label_that_is_of_no_closed_set_after_all_adds_no_series_for_ever() -> None:
    times, counts = Histograms(("a", "b"), most=10), Counts(("a",), most=10)
    for number in range(1000):
        times.observe((str(number), "x"), 0.1)
        counts.add((str(number),))
    assert len(times.series) == len(counts.series) == 11
    assert times.series["other", "other"].count == counts.series["other",] == 990


ROW = {"event_id": "", "endpoint_id": "", "organisation": "", "state": 0, "attempt": 0, "attempts": 0, "due_ms": 0, "created_ms": 0}
FILL = Command(sa.insert(DeliveryTable.table).values({"id": sa.bindparam("id"), **{name: sa.bindparam(name) for name in ROW}}))


def fill(connection: Connection, *, state: int, due_ms: int, count: int) -> None:
    names = (f"{state}-{due_ms}-{number}" for number in range(count))
    connection.run_many(FILL, [{**ROW, "id": name, "event_id": name, "state": state, "due_ms": due_ms} for name in names])


DELIVERED = """insert into delivery (id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms)
select 'd' || n, 'd' || n, '', '', 1, 1, 1, n, n from generate_series(1, 40000) n"""


class Nothing(NamedTuple):
    nothing: str


LOCK = Query(Nothing, sa.select(sa.cast(sa.func.pg_advisory_xact_lock_shared(sa.literal_column("7")), sa.Text).label("nothing")))


async def deep(store: Store) -> Backlog:
    await store.write(fill, state=2, due_ms=5, count=MOST_COUNTED + 7)
    await store.write(fill, state=0, due_ms=900, count=MOST_COUNTED + 7)
    await store.write(fill, state=0, due_ms=70, count=3)
    found = await store.read(measure_backlog, now_ms=80)
    await store.aclose()
    return found


def check(found: Backlog) -> None:
    assert found.waiting == (MOST_COUNTED, 3, 0, MOST_COUNTED, 70)


@pytest.mark.long
def test_what_waits_and_what_has_failed_is_counted_up_to_a_limit(tmp_path: Path) -> None:
    check(asyncio.run(deep(open_store(migrated_sqlite(tmp_path)))))


@pytest.mark.long
@pytest.mark.postgres
def test_what_waits_and_what_has_failed_is_counted_up_to_a_limit_on_postgresql() -> None:
    with required_database(migrated_postgres()) as url:
        check(asyncio.run(deep(open_store(url))))
        with psycopg.connect(url, autocommit=True) as raw:
            raw.execute(DELIVERED)
            raw.execute("analyze delivery")
            text = COUNT_DELIVERIES.text(postgresql_dialect())
            given = {**text.literals, "now_ms": 80}
            plan = [str(row[0]) for row in raw.execute(f"explain {text.sql}".encode(), given)]
        scans = [line for line in plan if "Seq Scan" in line and "cost=0.00..0.00" not in line]  # months without a row cost nothing
        assert scans == [] and sum("Limit" in line for line in plan) == 5


async def seen_waiting(url: str) -> tuple[Backlog, PoolLoad, PoolLoad, int]:
    """What two transactions show that wait for a lock, of a store with two connections: then a third waits for one of these."""
    store, found = open_store(url, pool=2), list[Backlog]()

    def wait(connection: Connection) -> None:
        connection.first(LOCK)

    with psycopg.connect(url, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(7)")
        waiting = [asyncio.ensure_future(store.write(wait)) for _ in range(3)]
        other = open_store(url)
        while not found or found[-1].lock_waits is None or found[-1].lock_waits.transactions < 2:
            found.append(await other.read(measure_backlog, now_ms=0))
        load = store.pool_load
        holder.execute("select pg_advisory_unlock(7)")
        await asyncio.gather(*waiting)
    after, signals = store.pool_load, store.signals
    await other.aclose()
    await store.aclose()
    assert signals.calls.series["write",].count == signals.pool_wait.count == 3
    return found[-1], load, after, sum(signals.pool_wait.within[1:])


@pytest.mark.postgres
def test_who_waits_for_a_lock_or_a_connection_of_postgresql_is_seen() -> None:
    with required_database(migrated_postgres()) as url:
        found, load, after, delayed = asyncio.run(seen_waiting(url))
    assert found.lock_waits is not None and found.lock_waits.transactions == 2 and 0 <= found.lock_waits.seconds < 60
    assert (load, after) == (PoolLoad(2, 2, 1), PoolLoad(2, 0, 0))
    assert delayed >= 1


async def test_what_holds_the_loop_is_seen_as_its_delay() -> None:
    clock = SettableClock()
    delay = LoopDelay(clock)
    async with delay.watched():
        await asyncio.sleep(0)  # it looks for the first time
        clock.advance(3.1)  # and was to look again after 0.1 s
        while not delay.seconds.count:
            await asyncio.sleep(0.01)
    assert delay.seconds.seconds == pytest.approx(3.0)


async def test_accounts_are_counted_by_their_free_esims_and_never_named(tmp_path: Path) -> None:
    async with open_issuing(tmp_path) as issuing:
        stock = issuing.world.pipeline.deps.stock
        assert stock.free_counts() == []
        assert (await issuing.issue("a")).status_code == 201
        [free] = stock.free_counts()
        issuing.world.clock.advance(60)
        assert (await issuing.issue("b")).status_code == 201
        assert stock.free_counts() == [free - 1]
        issuing.world.clock.advance(86_401)
        assert stock.free_counts() == []
    samples = {str(each.labels): each.value for family in stock_metrics([0, 0, 9, 10, 99, 100]) for each in family.samples}
    assert samples == {"{'free': 'none'}": 2, "{'free': 'few'}": 1, "{'free': 'some'}": 2, "{'free': 'many'}": 1}


def test_what_counting_costs_can_be_measured_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    measure_costs(["--times", "50"])
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 7 and told[-1].endswith("a call with all of these; the budget is 3")
