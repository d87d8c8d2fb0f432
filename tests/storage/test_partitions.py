"""History in partitions on PostgreSQL: how a whole table becomes divided while others write, what stays refused, and what goes."""

import re
import time
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, cast

import anyio
import psycopg
import pytest

from registry.ids import first_id
from registry.ports import AuditRecord
from storage.audit import (
    AUDIT_AHEAD_SECONDS,
    AUDIT_HISTORY,
    AUDIT_PAGES,
    AUDIT_READ_HISTORY,
    AUDIT_READ_PAGES,
    LATEST_AUDIT_MOMENT,
    AuditPageKind,
    NumberedAuditRecord,
    append_audit_reads,
    append_audit_record,
    first_read_id,
)
from storage.deliveries import NEWEST_ATTEMPTS, QUEUE_DELIVERY, list_deliveries
from storage.engine.drivers import DriverConnection
from storage.engine.migrate import downgrade_database, upgrade_database
from storage.engine.partitions import Partition, is_partitioned, partitions_of, rows_in_default
from storage.engine.revision import HEAD
from storage.engine.sql import Connection, Statement, postgresql_dialect
from storage.engine.store import Store, open_store
from storage.events import EVENT_HISTORY, LIST_EVENTS, LIST_EVENTS_OF_INTENT, NewEvent, emit_event, read_event
from storage.histories import HISTORIES
from storage.outbox import AttemptOutcome, acknowledge_attempts, claim_deliveries
from storage.webhook_endpoints import enqueue_event
from tests.databases import migrated_postgres, migrated_sqlite, required_database
from tests.storage.test_all_statements import statement_of
from tests.world import NOON, CountingIds, SettableClock
from transports.cli import doctor
from transports.cli.outside_checks import Finding
from transports.settings import HistoryDays
from transports.settings_files import load_settings
from transports.worker.partitions import Partitions
from transports.worker.retention import retention_chore

pytestmark = [pytest.mark.postgres, pytest.mark.long]
DAY, MONTH = 86_400, 31 * 86_400
DIALECT = postgresql_dialect()


class PartitionedDatabase(NamedTuple):
    """A database with what works on it."""

    url: str
    store: Store
    clock: SettableClock
    ids: CountingIds
    partitions: Partitions
    reports: list[str]

    async def emit(self, dedup: str) -> bool:
        """An event of this moment; whether it had not happened before."""
        return bool(await self.emitted(dedup))

    async def emitted(self, dedup: str) -> str:
        """The id of an event of this moment; nothing if it had happened before."""
        event = NewEvent(self.ids.new("evt_"), "org_1", "cni_1", "esim.issued", 0, "{}", dedup, int(self.clock.now()))
        return event.id if await self.store.write(emit_event, event=event, ids=self.ids) else ""

    def add_endpoint(self, id: str) -> None:
        columns = "id, organisation, url, status, secret, replay_minute, replay_count, created, proven"
        self.ask(f"insert into webhook_endpoint ({columns}) values ('{id}', 'org_1', 'https://example.com', 'enabled', '', 0, 0, 1, 1)")

    async def write_audit(self) -> None:
        """A row of a write and one of a read."""
        self.ids.count += 1
        line = AuditRecord(self.clock.now(), "org_1", "http", "an_operation", "usr_1", "key_1", "ok", 200, 1.5, "req_1", None)
        read = NumberedAuditRecord(self.ids.count, line)
        await self.store.write(append_audit_record, line)
        await self.store.write(append_audit_reads, lines=[read])

    def ask(self, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(text.encode())
            return found.fetchall() if found.description else []

    def count(self, table: str) -> int:
        return cast(int, self.ask(f"select count(*) from {table}")[0][0])

    def names(self, table: str) -> list[str]:
        """Its partitions without the default one."""
        return [each.name.removeprefix(table + "_") for each in self.all_of(table)]

    def all_of(self, table: str) -> list[Partition]:
        history = next(each for each in HISTORIES if each.name == table)
        with psycopg.connect(self.url) as raw:
            return partitions_of(Connection(cast("DriverConnection", raw), DIALECT), history=history)


def house_over(url: str) -> PartitionedDatabase:
    clock = SettableClock()
    store, reports = open_store(url), list[str]()
    return PartitionedDatabase(url, store, clock, CountingIds(clock), Partitions(store, clock, reports.append), reports)


@pytest.fixture
async def whole() -> AsyncGenerator[PartitionedDatabase]:
    """A database at HEAD whose history has no partitions."""
    with required_database(migrated_postgres(divided=False)) as url:
        house = house_over(url)
        yield house
        await house.store.aclose()


@pytest.fixture
async def divided() -> AsyncGenerator[PartitionedDatabase]:
    with required_database(migrated_postgres()) as url:
        house = house_over(url)
        yield house
        await house.store.aclose()


async def test_tables_become_partitioned_under_writes_and_no_row_and_no_call_is_lost(whole: PartitionedDatabase) -> None:
    house = whole
    written, longest, done = 0, 0.0, anyio.Event()

    async def write() -> None:
        nonlocal written, longest
        while not done.is_set():
            began = time.monotonic()
            assert await house.emit(f"{written}-{house.ids.count}")
            await house.write_audit()
            longest, written = max(longest, time.monotonic() - began), written + 1

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(write)
        await house.partitions.run()
        assert house.names("event") == []
        await house.partitions.run()
        before = written
        while written < before + 20:
            await anyio.sleep(0)
        done.set()
    assert house.reports == []
    assert all(house.names(each.name) == ["first", "2027_02", "2027_03"] for each in HISTORIES)
    assert [house.count(name) for name in ("event", "event_digest", "audit", "audit_read")] == [written] * 4
    assert longest < 5  # of three calls, each of which waits for a table no longer than that


async def test_a_table_in_use_is_left_and_keeps_the_others_waiting_only_briefly(whole: PartitionedDatabase) -> None:
    house = whole
    await house.partitions.run()
    with psycopg.connect(house.url) as reader:
        reader.execute("select count(*) from event")
        began = time.monotonic()
        async with anyio.create_task_group() as group:
            group.start_soon(house.partitions.run)
            assert await house.emit("meanwhile")
        assert time.monotonic() - began < 10
    assert house.names("event") == [] and house.names("delivery_attempt") == ["first", "2027_02", "2027_03"]
    assert [report.split(":")[0] for report in house.reports] == [
        "the partitions of event could not be changed and are tried again in a minute"
    ]
    await house.partitions.run()
    assert house.names("event") == ["first", "2027_02", "2027_03"]
    assert not await house.emit("meanwhile")


async def test_nothing_is_partitioned_beside_a_program_of_the_schema_before(whole: PartitionedDatabase) -> None:
    house = whole
    house.ask(f"insert into replica (id, expires_at, revision) values ('rpl_1', {NOON + 10}, '0021')")
    for _ in range(3):
        await house.partitions.run()
        assert house.ask("select works_from from schema_step where revision = '0022'") != [("0022",)]
    house.clock.advance(120)
    await house.partitions.run()
    assert house.names("event") == []  # closed to older programs, one of which may just be starting
    assert house.ask("select works_from from schema_step where revision = '0022'") == [("0022",)]
    await house.partitions.run()
    assert house.names("event") == ["first", "2027_02", "2027_03"]


async def test_what_happens_once_is_refused_in_every_month(whole: PartitionedDatabase) -> None:
    house = whole
    house.ask(
        "insert into event (id, organisation, intent, type, livemode, data, dedup, retry_minute, retry_count, created)"
        f" values ('{first_id('evt_', NOON - DAY)}', 'org_1', 'cni_1', 'esim.issued', 0, '{{}}', 'of 0021', 0, 0, 1)"
    )
    assert await house.emit("now")
    for _ in range(2):
        await house.partitions.run()
    for _ in range(3):
        assert not await house.emit("of 0021")
        assert not await house.emit("now")
        house.clock.advance(MONTH)
    assert house.count("event") == 2


async def test_an_event_has_one_delivery_for_an_endpoint_whenever_it_is_asked_for(whole: PartitionedDatabase) -> None:
    house = whole
    house.add_endpoint("we_1")
    event = first_id("evt_", NOON - DAY)
    former = {"id": house.ids.new("dlv_"), "event_id": event, "endpoint_id": "we_1", "organisation": "org_1", "due_ms": 1, "type": None}
    await house.store.write(Connection.run, QUEUE_DELIVERY, **former)  # as programs of 0021 did, with the time of the moment
    for _ in range(2):
        await house.partitions.run()
    new = await house.emitted("of now")
    for _ in range(2):
        house.clock.advance(MONTH)
        await house.partitions.run()
        house.ask("update delivery set state = 1, due_ms = 5")
        house.add_endpoint(f"we_{house.ids.count}")
        for each in (event, new):
            now_ms = int(house.clock.now() * 1000)
            await house.store.write(enqueue_event, event=each, type="esim.issued", organisation="org_1", now_ms=now_ms, ids=house.ids)
        assert house.ask("select count(*) from delivery where state = 1 or due_ms = 5") == [(0,)]
    found = house.ask("select event_id, endpoint_id, count(*) from delivery group by 1, 2")
    assert len(found) == 6 and {row[2] for row in found} == {1}
    assert house.count("delivery_first") == 6  # all of January, as the events
    shown = await house.store.read(list_deliveries, event=event, after=None, most=9)
    assert [row.created_ms for row, _ in shown] == sorted((row.created_ms for row, _ in shown), reverse=True)
    pages = [await house.store.read(list_deliveries, event=event, after=row.id, most=9) for row, _ in shown]
    assert [len(page) for page in pages] == [2, 1, 0]


async def test_a_claim_finds_what_waits_in_an_old_month_and_in_none(divided: PartitionedDatabase) -> None:
    house = divided
    house.add_endpoint("we_1")
    old = await house.emitted("old")
    house.ask("update delivery set state = 1")
    house.clock.advance(9 * MONTH)
    await house.emit("without a partition")
    found = list[str]()
    for turn in range(3):
        now_ms = int(house.clock.now() * 1000)
        batch = await house.store.write(claim_deliveries, token=f"t{turn}", now_ms=now_ms, most=9)
        found += [row.event_id for row in batch.leased]
        if turn == 0:
            await house.partitions.run()
            await house.store.write(enqueue_event, event=old, type="esim.issued", organisation="org_1", now_ms=now_ms, ids=house.ids)
        house.clock.advance(1)
    assert len(found) == 2 and found[1] == old
    (held,) = house.ask(f"select id, lease from delivery where event_id = '{old}'")
    outcome = AttemptOutcome(str(held[0]), "we_1", str(held[1]), 1, "ok", 1.0, "ok", None)
    assert await house.store.write(acknowledge_attempts, outcomes=[outcome]) == 1
    assert house.count("delivery_attempt_2027_01") == 1


async def test_rows_without_a_partition_are_kept_and_found_and_get_one(divided: PartitionedDatabase) -> None:
    house = divided
    house.clock.advance(5 * MONTH)
    assert await house.emit("late")
    await house.write_audit()
    for history in (EVENT_HISTORY, AUDIT_HISTORY, AUDIT_READ_HISTORY):
        assert await house.store.read(rows_in_default, history=history, most=9) == 1
    await house.partitions.run()
    for history in HISTORIES:
        assert await house.store.read(rows_in_default, history=history, most=9) == 0
        assert house.names(history.name)[-1] == "2027_08"
    assert [house.count(name) for name in ("event", "audit", "audit_read")] == [1, 1, 1]
    assert house.count("event_2027_06") == 1
    assert not await house.emit("late")


async def test_a_month_goes_as_a_whole_when_all_of_it_is_old_and_its_guards_stay(divided: PartitionedDatabase) -> None:
    house = divided
    days = HistoryDays(audit=30, events=30, deliveries=30)
    house.add_endpoint("we_1")
    assert await house.emit("once")
    await house.write_audit()
    house.ask("insert into delivery_attempt select id, 1, 1, 'ok', 1.0, null from delivery")
    house.clock.advance(40 * DAY)  # old, but the month is not
    await retention_chore(house.store, house.clock, house.reports.append, days).run()
    names = ("event", "audit", "audit_read", "delivery", "delivery_attempt")
    assert [house.count(name) for name in names] == [1, 1, 1, 1, 1]
    house.clock.advance(MONTH)
    await house.partitions.run()
    await retention_chore(house.store, house.clock, house.reports.append, days).run()
    assert [house.count(name) for name in names] == [1, 0, 0, 1, 1]  # it is still to be delivered
    assert house.names("audit") == ["first", "2027_02", "2027_03", "2027_04", "2027_05"]
    house.ask("update delivery set state = 1")
    with psycopg.connect(house.url) as dump:
        dump.execute("select count(*) from delivery_attempt")
        await retention_chore(house.store, house.clock, house.reports.append, days).run()
    told = "old partitions of delivery_attempt could not be dropped and are tried again in a minute"
    assert {report.split(":")[0] for report in house.reports} == {told}
    assert [house.count(name) for name in names] == [0, 0, 0, 0, 1]
    await retention_chore(house.store, house.clock, house.reports.append, days).run()
    assert [house.count(name) for name in names] == [0, 0, 0, 0, 0]
    assert all(house.names(each.name)[:2] == ["first", "2027_02"] for each in HISTORIES)
    assert not await house.emit("once")
    assert await house.emit("another") and house.count("event") == 1
    await retention_chore(house.store, house.clock, house.reports.append, days).run()  # nothing more is old
    assert house.count("event") == 1


async def test_the_first_partition_loses_old_rows_in_steps(whole: PartitionedDatabase) -> None:
    house = whole
    assert await house.emit("once")
    await house.write_audit()
    for _ in range(2):
        await house.partitions.run()
    house.clock.advance(31 * DAY)
    for _ in range(2):
        await retention_chore(house.store, house.clock, house.reports.append, HistoryDays(audit=30, events=30)).run()
    assert [house.count(name) for name in ("event", "audit", "audit_read")] == [0, 0, 0]
    assert house.names("event") == ["first", "2027_02", "2027_03"]
    assert not await house.emit("once")


async def test_a_table_with_rows_of_a_time_to_come_stays_whole_and_takes_more_of_them(whole: PartitionedDatabase) -> None:
    house = whole
    house.clock.advance(12 * MONTH)
    assert await house.emit("of a wrong clock")
    house.clock.advance(-12 * MONTH)
    for _ in range(3):
        await house.partitions.run()
    assert house.names("event") == [] and house.names("audit") == ["first", "2027_02", "2027_03"]
    assert len(house.reports) == 1 and house.reports[0].startswith("event is not partitioned: it has rows from after evt_")
    house.clock.advance(13 * MONTH)
    assert await house.emit("now")
    await house.partitions.run()
    assert house.names("event")[0] == "first"


async def test_tables_of_another_user_stay_whole_and_the_worker_says_so(whole: PartitionedDatabase) -> None:
    whole.ask("create role guest")
    whole.ask("grant all on all tables in schema public to guest")
    guest = house_over(whole.url + ("&" if "?" in whole.url else "?") + "options=-c%20role%3Dguest")
    for _ in range(3):
        await guest.partitions.run()
    await guest.store.aclose()
    whole.ask("drop owned by guest")
    whole.ask("drop role guest")
    assert guest.reports == [f"{each.name} is not partitioned: the worker's user of the database is not its owner" for each in HISTORIES]


async def test_a_database_of_the_first_release_is_upgraded_and_partitioned(whole: PartitionedDatabase) -> None:
    house, url = whole, whole.url
    downgrade_database(url, "0008")
    house.ask(
        "insert into event (id, organisation, intent, type, livemode, data, dedup, retry_minute, retry_count, created)"
        " select 'evt_' || lpad(n::text, 26, '0'), 'org_1', 'cni_1', 'esim.issued', 0, '{}', 'of 1.0 ' || n, 0, 0, 1"
        " from generate_series(1, 12000) n"
    )
    upgrade_database(url)
    for _ in range(2):
        await house.partitions.run()
    assert (house.count("event_first"), house.count("event_digest")) == (12_000, 12_000)
    assert not await house.emit("of 1.0 1") and not await house.emit("of 1.0 12000")
    assert await house.emit("of now")
    with pytest.raises(RuntimeError, match="partitioned"):
        downgrade_database(url, "0021")


async def test_doctor_says_what_is_divided_and_what_has_no_partition(whole: PartitionedDatabase) -> None:
    house = whole
    settings = load_settings({"SERVICE_DATABASE_URL": house.url})
    found = doctor.examine_partitions(settings)
    assert (found.mark, found.state.split(":")[0]) == ("note", "no partitions yet")
    for _ in range(2):
        await house.partitions.run()
    assert (doctor.examine_partitions(settings).state, doctor.examine_partitions(settings).fix) == ("partitions up to 2027-04-01", None)
    house.clock.advance(4 * MONTH)
    await house.emit("late")
    found = doctor.examine_partitions(settings)
    assert found.state == "rows without a partition: 1 of event" and found.fix and found.fix.startswith("run a worker")


async def test_doctor_says_what_is_late_and_how_many_processes_run(whole: PartitionedDatabase) -> None:
    house, now = whole, time.time()
    settings = load_settings({"SERVICE_DATABASE_URL": house.url})
    assert doctor.examine_late_work(settings) == Finding("work", "nothing is late; servers and workers that run: 0")
    house.ask(f"insert into replica (id, expires_at, revision) values ('rpl_1', {now + 600}, '{HEAD}')")
    house.add_endpoint("we_1")
    assert await house.emit("once")
    house.ask(f"update delivery set due_ms = {int((now - 60) * 1000)}")
    assert doctor.examine_late_work(settings) == Finding("work", "nothing is late; servers and workers that run: 1")
    house.ask(f"update delivery set due_ms = {int((now - 3600) * 1000)}")
    found = doctor.examine_late_work(settings)
    assert re.fullmatch(r"late: deliveries for 36\d\d s; servers and workers that run: 1", found.state)
    assert found.fix is not None and found.fix.startswith("run a worker")


def test_doctor_says_which_history_is_removed() -> None:
    kept = doctor.examine_retention(load_settings({"SERVICE_KEEP_EVENTS_DAYS": "30"}))
    assert kept == Finding("retention", "audit 90 days, events 30 days, event log 90 days; the rest for ever")
    assert (
        doctor.examine_retention(load_settings({"SERVICE_KEEP_AUDIT_DAYS": "0", "SERVICE_KEEP_EVENT_LOG_DAYS": "0"})).state
        == "all for ever"
    )


async def test_a_file_has_no_partitions(tmp_path: Path) -> None:
    house = house_over(migrated_sqlite(tmp_path))
    for _ in range(2):
        await house.partitions.run()
    assert not await house.store.read(is_partitioned, history=EVENT_HISTORY)
    assert await house.emit("once") and not await house.emit("once")
    await house.store.aclose()


def touched(connection: psycopg.Connection, statement: Statement, **given: object) -> set[str]:
    """The partitions that a statement looked into when it was carried out."""
    text = statement.text(DIALECT)
    names = dict.fromkeys(re.findall(r"%\((\w+)\)s", text.sql)) | dict(text.literals) | given
    found = connection.execute(b"explain (analyze, costs off) " + text.sql.encode(), names).fetchall()
    lines = [cast(str, row[0]) for row in found if "never executed" not in cast(str, row[0])]
    return {name for line in lines for name in re.findall(r" on (\w+_(?:first|default|20\d\d_\d\d))", line)}


PLANS: dict[str, tuple[Statement, dict[str, object], set[str]]] = {
    "the newest events": (
        LIST_EVENTS,
        {"organisation": "org_1", "after": first_id("evt_", NOON + 70 * DAY + AUDIT_AHEAD_SECONDS), "most": 20},
        {"event_2027_03"},
    ),
    "the newest events of an intent": (
        LIST_EVENTS_OF_INTENT,
        {"organisation": "org_1", "intent": "cni_1", "after": first_id("evt_", NOON + 70 * DAY + AUDIT_AHEAD_SECONDS), "most": 20},
        {"event_2027_03"},
    ),
    "an event": (statement_of(read_event), {"organisation": "org_1", "event": first_id("evt_", NOON)}, {"event_2027_01"}),
    "the newest writes": (
        AUDIT_PAGES[AuditPageKind(frozenset())],
        {"organisation": "org_1", "since": 0.0, "until": NOON + 71 * DAY, "last_at": LATEST_AUDIT_MOMENT, "last_id": 2**62, "most": 20},
        {"audit_2027_03"},
    ),
    "the newest reads": (
        AUDIT_READ_PAGES[AuditPageKind(frozenset())],
        {"organisation": 5, "first": 0, "last": first_read_id(NOON + 71 * DAY), "most": 20},
        {"audit_read_2027_03"},
    ),
    "the attempts of a delivery": (NEWEST_ATTEMPTS, {"delivery": first_id("dlv_", NOON)}, {"delivery_attempt_2027_01"}),
}


@pytest.fixture(scope="module")
def filled() -> Iterator[psycopg.Connection]:
    """A database with rows of four months."""
    with required_database(migrated_postgres()) as url:
        house = house_over(url)

        async def fill() -> None:
            await house.partitions.run()
            for day in range(-30, 71, 5):
                house.clock.wall = NOON + day * DAY
                await house.partitions.run()
                for _ in range(30):
                    await house.emit(f"{house.ids.count}")
                    await house.write_audit()
            await house.store.aclose()

        with ThreadPoolExecutor(1) as thread:  # in this one a loop of other tests may run
            thread.submit(anyio.run, fill).result()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
            yield connection


@pytest.mark.parametrize("name", PLANS)
def test_a_statement_looks_only_into_the_partitions_that_it_needs(filled: psycopg.Connection, name: str) -> None:
    statement, given, partitions = PLANS[name]
    assert touched(filled, statement, **given) == partitions
