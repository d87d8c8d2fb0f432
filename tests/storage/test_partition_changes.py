"""What others see and may do while, and after, a worker makes and drops partitions on PostgreSQL."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import cast

import anyio
import psycopg
import pytest

from storage.deliveries import enqueue_event_for
from storage.engine.drivers import DriverConnection
from storage.engine.partitions import MOST_MOVED, add_partition, rows_in_default
from storage.engine.sql import Connection
from storage.events import EVENT_HISTORY, count_event_retry, read_event
from storage.histories import HISTORIES
from storage.outbox import AttemptOutcome, acknowledge_attempts, claim_deliveries
from tests.cli.test_database_role import as_user
from tests.databases import migrated_postgres, required_database
from tests.storage.test_partitions import DIALECT, MONTH, PartitionedDatabase, house_over
from transports.settings import HistoryDays
from transports.worker.retention import retention_chore

pytestmark = pytest.mark.postgres
NAMES = sorted(history.name for history in HISTORIES)
WAITERS = """select count(distinct pid) from pg_locks join pg_database on pg_database.oid = database
where not granted and datname = current_database()"""
READ_COLUMNS = "id, organisation, operation, principal, key, outcome, surface, microseconds, status, request"


@pytest.fixture
async def divided() -> AsyncGenerator[PartitionedDatabase]:
    with required_database(migrated_postgres()) as url:
        house = house_over(url)
        yield house
        await house.store.aclose()


async def leased(house: PartitionedDatabase) -> tuple[str, AttemptOutcome]:
    """An event of this moment, and how its delivery went, which nobody has been told."""
    event = await house.emitted(f"{house.ids.count}")
    batch = await house.store.write(claim_deliveries, token="t", now_ms=int(house.clock.now() * 1000), most=9)
    return event, AttemptOutcome(batch.leased[0].id, "we_1", "t", 5, "ok", 1.0, "ok", None)


@pytest.mark.long
async def test_who_waits_for_a_month_finds_and_changes_what_had_none(divided: PartitionedDatabase) -> None:
    house = divided
    house.add_endpoint("we_1")
    house.clock.advance(5 * MONTH)
    event, outcome = await leased(house)
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "emit": lambda: house.emit("meanwhile"),
        "read": lambda: house.store.read(read_event, event=event, organisation="org_1"),
        "retry": lambda: house.store.write(count_event_retry, event=event, organisation="org_1", minute=1, most=1),
        "ack": lambda: house.store.write(acknowledge_attempts, outcomes=[outcome]),
        "audit": house.write_audit,
    }
    for _ in range(20):  # what was planned often is planned once for all
        assert await asked["read"]()
    answers = dict[str, object]()

    async def ask(name: str) -> None:
        answers[name] = await asked[name]()

    async with anyio.create_task_group() as group:
        with psycopg.connect(house.url) as worker:
            for history in HISTORIES:
                while add_partition(Connection(cast("DriverConnection", worker), DIALECT), history=history, now=house.clock.now()):
                    pass
            for name in asked:
                group.start_soon(ask, name)
            while house.ask(WAITERS) != [(len(asked),)]:
                await anyio.sleep(0)
    assert answers.pop("audit") is None and all(answers.values())
    assert [house.count(name) for name in ("event_2027_06", "delivery_2027_06", "delivery_attempt_2027_06", "audit")] == [2, 2, 1, 1]
    assert all([await house.store.read(rows_in_default, history=history, most=1) == 0 for history in HISTORIES])


async def test_a_claim_waits_for_the_whole_and_for_no_partition_of_it(divided: PartitionedDatabase) -> None:
    house = divided
    house.add_endpoint("we_1")
    assert await house.emit("one")
    taken = list[int]()

    async def take() -> None:
        taken.append((await house.store.write(claim_deliveries, token="t", now_ms=int(house.clock.now() * 1000), most=9)).taken)

    async with anyio.create_task_group() as group:
        with psycopg.connect(house.url) as worker:
            worker.execute("lock table only delivery in access exclusive mode")
            group.start_soon(take)
            while house.ask(WAITERS) != [(1,)]:
                await anyio.sleep(0)
            worker.execute("lock table delivery in access exclusive mode nowait")
    assert taken == [1]


@pytest.mark.long
async def test_very_many_rows_without_a_partition_get_one_for_all_their_months(divided: PartitionedDatabase) -> None:
    house = divided
    many = 12_000
    start = int(house.clock.now() + 3 * MONTH) * 1000 << 19
    house.ask(f"insert into audit_read ({READ_COLUMNS}) select {start} + n, 1, 1, 1, 1, 1, 1, 1, 1, 'x' from generate_series(1, {many}) n")
    house.clock.advance(4 * MONTH)
    await house.write_audit()
    far = int(house.clock.now() + 24 * MONTH) * 1000 << 19
    house.ask(f"insert into audit_read ({READ_COLUMNS}) values ({far}, 1, 1, 1, 1, 1, 1, 1, 1, 'x')")
    await house.partitions.run()
    assert house.names("audit_read") == ["first", "2027_01", "2027_02", "2027_03", "2027_04", "2027_06", "2027_07"]
    assert [house.count(f"audit_read{part}") for part in ("", "_2027_04", "_default")] == [many + 2, many + 1, 1]


@pytest.mark.long
async def test_very_many_rows_of_a_wrong_clock_are_told_and_leave_the_table_as_it_is(divided: PartitionedDatabase) -> None:
    house = divided
    house.clock.advance(5 * MONTH)
    await house.write_audit()
    far = int(house.clock.now() + 24 * MONTH) * 1000 << 19
    columns = (
        f"insert into audit_read ({READ_COLUMNS}) select {far} + n, 1, 1, 1, 1, 1, 1, 1, 1, 'x' from generate_series(0, {MOST_MOVED}) n"
    )
    house.ask(columns)
    await house.partitions.run()
    assert house.names("audit_read")[-1] == "2027_05" and house.names("audit")[-1] == "2027_08"
    told = "the partitions of audit_read could not be changed and are tried again in a minute: audit_read_default has more than 10000 rows"
    assert [report[: len(told)] for report in house.reports] == [told]


@pytest.mark.long
async def test_an_event_among_very_many_has_one_delivery_for_an_endpoint_after_its_month_was_made(divided: PartitionedDatabase) -> None:
    house = divided
    house.clock.advance(5 * MONTH)
    event, columns = await house.emitted("one"), "id, event_id, endpoint_id, organisation, due_ms, state, attempt, attempts, created_ms"
    begin, house.ids.count = "dlv_" + event[4:14], 1 << 40  # whose ids come after these
    house.ask(
        f"insert into delivery ({columns}) select '{begin}' || lpad(n::text, 16, '0'), 'evt_' || n, 'we', 'org_1', 1, 1, 0, 0, 1"
        " from generate_series(1, 12000) n"
    )
    for made in (False, True):
        for endpoint in ("we_1", "we_2", "we_3"):
            await house.store.write(
                enqueue_event_for, event=event, type="esim.issued", endpoint=endpoint, organisation="org_1", now_ms=1, ids=house.ids
            )
        if not made:
            await house.partitions.run()
    assert house.ask(f"select count(*) from delivery where event_id = '{event}'") == [(3,)]
    assert await house.store.read(rows_in_default, history=EVENT_HISTORY, most=1) == 0


OWNER, MEMBER, SERVER, REPORTING = "owner_of_history", "member_of_owner", "server_of_guide", "reporting"
RELATIONS = (
    f"select distinct relowner::regrole::text from pg_class where relkind in ('r', 'p', 'S') and relname ~ '^({'|'.join(NAMES)})(_|$)'"
)
RIGHTS = f"""select distinct 'whole', relname::text, grantee::regrole::text, privilege_type, is_grantable from pg_class, aclexplode(relacl)
where relname in ('{"', '".join(NAMES)}', 'audit_id_seq') union all
select 'column', attrelid::regclass::text || attname, grantee::regrole::text, privilege_type, is_grantable
from pg_attribute, aclexplode(attacl) where attrelid::regclass::text in ('{"', '".join(NAMES)}') order by 1, 2, 3, 4"""


@contextmanager
def owned() -> Generator[str]:
    """A database whose tables are whole and of an owner, with the rights that the guide gives a server, and some of a reporting tool."""
    with required_database(migrated_postgres(divided=False)) as url:
        roles = (MEMBER, SERVER, REPORTING, OWNER)
        with psycopg.connect(url, autocommit=True) as admin:

            def run(text: str) -> None:
                admin.execute(text.encode())

            for role in roles:
                run(f"create role {role} login password 'a long random text'")
            run(f"grant {OWNER} to {MEMBER}")
            run(f"grant create, usage on schema public to {OWNER}")
            run(f"grant usage on schema public to {SERVER}, {REPORTING}")
            run(f"alter default privileges for role {OWNER} in schema public grant select, insert, update, delete on tables to {SERVER}")
            for (name,) in admin.execute("select tablename from pg_tables where schemaname = 'public'").fetchall():
                run(f"alter table {name} owner to {OWNER}")
            run(f"grant select, insert, update, delete on all tables in schema public to {SERVER}")
            run(f"grant usage, select on all sequences in schema public to {SERVER}")
            run(f"revoke update on audit from {SERVER}")
            run(f"grant select on event, audit to {REPORTING} with grant option")
            run(f"grant select (id, state) on delivery to {REPORTING}")
            try:
                yield url
            finally:
                for role in roles:
                    run(f"drop owned by {role} cascade")
                    run(f"drop role {role}")


@pytest.mark.long
@pytest.mark.parametrize("worker", [MEMBER, "superuser"])
async def test_partitions_belong_to_the_owner_and_everybody_may_what_they_might(worker: str) -> None:
    with owned() as url:
        user = url if worker == "superuser" else as_user(url, worker)
        working, serving, days = house_over(user), house_over(as_user(url, SERVER)), HistoryDays(audit=30, events=30, deliveries=30)
        all_rights = working._replace(url=url).ask(RIGHTS)
        for _ in range(2):
            await working.partitions.run()
        for months in (0, 5, 2):  # months that were made, months that nobody made, and months that are dropped
            for house in (working, serving):
                house.clock.advance(months * MONTH)
            assert await serving.emit(f"of {months}")
            await serving.write_audit()
            assert (await serving.store.write(claim_deliveries, token="t", now_ms=1, most=1)).taken == 0
            await working.partitions.run()
            await retention_chore(working.store, working.clock, working.reports.append, days).run()
            assert working._replace(url=url).ask(RELATIONS) == [(OWNER,)]
            assert working._replace(url=url).ask(RIGHTS) == all_rights
        assert (working.reports, working._replace(url=url).names("event")[:2]) == ([], ["first", "2027_07"])
        reporting = as_user(url, REPORTING)
        with psycopg.connect(reporting, autocommit=True) as reader:
            reader.execute("select * from event, audit")
            reader.execute("select id, state from delivery")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("select * from delivery")
        await working.store.aclose()
        await serving.store.aclose()
