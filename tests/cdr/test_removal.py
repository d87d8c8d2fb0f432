"""Old call records are removed: no id is counted again, and nothing that is or can be billed changes, on both databases."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clients.payments.records import ProcessorInvoice
from operations.ledger.payment_intake import take_invoice_payment
from registry.caller import Tier
from storage.cdr_events import (
    CDR_DIGESTS_REVISION,
    FIND_CDR_DIGESTS,
    FIND_FOLLOWING_PLACE,
    OLD_CDRS,
    REMOVE_CDRS,
    CallRecordDigestTable,
    CdrEvent,
    CdrKey,
    begin_pass,
    ingest_cdr,
    remove_cdrs,
    sweep_call_records,
)
from storage.engine.migrate import current_schema
from storage.engine.sql import Command, Connection, Query, postgresql_dialect
from storage.engine.store import Store, open_store
from storage.replicas import ReplicaTable, end_replica
from tests.cdr.records import PERIODS, Json, event, everything, iccid, month, send
from tests.databases import migrated_postgres, required_database, sqlite_url
from tests.invoices.billing import GB, INVOICES, Billing, invoice_of, sim
from tests.invoices.test_sending import TO
from tests.length import examples
from tests.world import CountingIds, Credentials, SettableClock, World
from transports.settings import SHORTEST_HISTORY, HistoryDays
from transports.worker.retention import retention_chore

DAY = 86_400
KEPT = SHORTEST_HISTORY.call_records
DIGEST, REPLICA = CallRecordDigestTable.table, ReplicaTable.table


class Rows(NamedTuple):
    rows: int


DIGESTS = Query(Rows, sa.select(sa.func.count().label("rows")).select_from(DIGEST))
# As a process of the schema before writes it.
OLD_PROGRAM = Command(sa.insert(REPLICA).values(id="rpl_old", expires_at=sa.bindparam("until"), key_ids="", revision="0022"))


def count_digests(connection: Connection) -> int:
    found = connection.first(DIGESTS)
    assert found is not None
    return found.rows


def run_old_program(connection: Connection, *, until: float) -> None:
    connection.run(OLD_PROGRAM, until=until)


async def sweep(world: World, days: float = 0) -> None:
    """So many days later the retention runs; its first run only closes the database to older programs."""
    world.clock.advance(days * DAY)
    for _ in range(2):
        await retention_chore(world.store, world.clock, print, HistoryDays(call_records=KEPT)).run()


async def kept(world: World, who: Credentials) -> set[str]:
    return {row.event for row in (await world.store.read(everything, organisation=who.organisation)).raw}


@pytest.mark.long
async def test_a_removed_record_counts_as_a_repeat_for_ever_and_leaves_every_sum_as_it_was(
    world: World, caller: Credentials, http: httpx.AsyncClient, other: httpx.AsyncClient
) -> None:
    records = [event("a", 1, network="Telenor", country="NO"), event("b", 2), event("c", 1, bytes_down=7)]
    assert (await send(http, *records)).json() == {"received": 3, "stored": 3, "skipped": 0}
    before = await world.store.read(everything, organisation=caller.organisation)
    said = await month(http)
    await sweep(world, KEPT - 6)
    assert await kept(world, caller) == {"a", "b", "c"}, "they are five days and four hours older than the test"
    await send(http, event("new", 1, occurred_at=int(world.clock.now())))
    for _ in range(3):
        await sweep(world, 3)
        assert await kept(world, caller) == {"new"}
        assert await world.store.read(count_digests) == 3
        for batch in (records, [event("a", 5, occurred_at=int(world.clock.now()), bytes_up=10**12)], [event("b"), event("b", 9)]):
            assert (await send(http, *batch)).json() == {"received": len(batch), "stored": 0, "skipped": len(batch)}
        after = await world.store.read(everything, organisation=caller.organisation)
        assert (after.sums[:2], after.months[:1], after.periods[:1]) == (before.sums, before.months, before.periods)
        assert await month(http) == said
    assert (await send(http, event("a"), event("d"), event("c"))).json() == {"received": 3, "stored": 1, "skipped": 2}
    assert (await send(other, event("a"))).json() == {"received": 1, "stored": 1, "skipped": 0}, "another organisation's id is another id"
    await sweep(world, 3)
    assert await world.store.read(count_digests) == 5
    assert (await send(other, event("a"), event("b"))).json() == {"received": 2, "stored": 1, "skipped": 1}
    assert (await send(http, event("d"), event("a"))).json() == {"received": 2, "stored": 0, "skipped": 2}


async def test_a_record_that_comes_when_it_is_old_is_counted_once_and_goes_with_the_next_pass(
    world: World, caller: Credentials, http: httpx.AsyncClient
) -> None:
    await sweep(world)
    late = event("late", occurred_at="2026-01-10T08:00:00Z")
    assert (await send(http, late)).json()["stored"] == 1
    assert await kept(world, caller) == {"late"}
    await sweep(world, 3)
    assert await kept(world, caller) == set()
    assert (await send(http, late)).json()["skipped"] == 1
    assert (await month(http, 2026))["total_bytes"] == 100


async def test_nothing_is_removed_unless_it_is_asked_for(world: World, caller: Credentials, http: httpx.AsyncClient) -> None:
    await send(http, event("a", occurred_at="2011-01-10T08:00:00Z"))
    for _ in range(3):
        world.clock.advance(100 * DAY)
        await retention_chore(world.store, world.clock, print).run()
    assert await kept(world, caller) == {"a"}


@pytest.fixture
async def bill(world: World, caller: Credentials, http: httpx.AsyncClient) -> Billing:
    return Billing(world, caller, http)


async def pages(bill: Billing, ids: Sequence[str]) -> dict[str, tuple[bytes, str, bytes]]:
    """All that can be read of invoices, to the byte."""
    found: dict[str, tuple[bytes, str, bytes]] = {}
    for id in ids:
        document = await bill.http.get(f"{INVOICES}/{id}/pdf")
        assert document.status_code == 200
        found[id] = (await bill.http.get(f"{INVOICES}/{id}")).content, document.headers["content-type"], document.content
    return found


@pytest.mark.long
async def test_invoices_of_every_status_and_their_documents_are_the_same_to_the_byte_after_a_sweep(bill: Billing) -> None:
    account = await bill.world.connect_payments(bill.who)
    await bill.config(price_per_gb_cents=250)
    await bill.use((sim(1), 5, 4 * GB), (sim(2), GB, 2 * GB))
    some = (await bill.create(iccids=[sim(1)])).json()
    draft, voided, sent, paid = [(await bill.create()).json() for _ in range(4)]
    assert (await bill.void(voided["id"])).status_code == 200
    assert (await bill.send(sent["id"], **TO)).status_code == 200
    there = (await bill.send(paid["id"], **TO)).json()
    total, now = there["total_cents"], int(bill.world.clock.now())
    payment = ProcessorInvoice(
        there["payments_invoice_id"], "paid", total, total, "USD", there["payment_url"], now, {"invoice": there["id"]}
    )
    assert await bill.world.store.write(take_invoice_payment, deps=bill.world.pipeline.deps, account=account, invoice=payment, now=now)
    ids = [each["id"] for each in (draft, some, voided, sent, paid)]
    assert [(await bill.read(id))["status"] for id in ids] == ["draft", "draft", "void", "sent", "paid"]
    bill.world.clock.advance(200 * DAY)  # the month closes meanwhile, which its invoices say
    before = await pages(bill, ids)
    await sweep(bill.world)
    assert await kept(bill.world, bill.who) == set()
    assert await pages(bill, ids) == before


@pytest.mark.long
async def test_a_month_is_invoiced_after_its_records_were_removed_as_it_would_have_been_before(bill: Billing) -> None:
    await bill.config(price_per_gb_cents=250)
    await bill.use((sim(1), 5, 4 * GB), (sim(2), GB, 2 * GB), network="Telenor", country="NO")
    made = invoice_of((await bill.create()).json())
    assert (await bill.void(made["id"])).status_code == 200
    lines = [{**line, "id": "", "invoice_id": "", "created_at": 0} for line in (await bill.read(made["id"]))["line_items"]]
    await sweep(bill.world, 200)
    assert await kept(bill.world, bill.who) == set()
    again = invoice_of((await bill.create()).json())
    assert [{**line, "id": "", "invoice_id": "", "created_at": 0} for line in (await bill.read(again["id"]))["line_items"]] == lines
    assert [again[name] for name in ("subtotal_cents", "platform_fee_cents", "total_cents")] == [
        made[name] for name in ("subtotal_cents", "platform_fee_cents", "total_cents")
    ]
    assert (await bill.void(again["id"])).status_code == 200
    assert (await bill.create(iccids=[sim(2)])).status_code == 201
    twice = await bill.create(iccids=[sim(2)])
    assert (twice.status_code, twice.json()["code"]) == (409, "nothing_to_bill")


async def test_nothing_is_removed_while_a_program_runs_that_would_not_find_the_id(
    world: World, caller: Credentials, http: httpx.AsyncClient
) -> None:
    await send(http, event("a"))
    await world.store.write(run_old_program, until=world.clock.now() + 100 * DAY)
    await sweep(world, KEPT + 1)
    assert await kept(world, caller) == {"a"}
    await world.store.write(end_replica, replica="rpl_old", now=world.clock.now())
    await sweep(world)
    assert await kept(world, caller) == set()


async def test_no_older_program_starts_where_records_may_have_been_removed(world: World, database_url: str | None, tmp_path: Path) -> None:
    url = database_url or sqlite_url(tmp_path)
    assert current_schema(url).works_from == "0015"
    await sweep(world)
    assert current_schema(url).works_from == CDR_DIGESTS_REVISION


@pytest.mark.long
async def test_a_pass_goes_on_where_the_run_before_ended_and_each_run_does_so_many_steps(world: World, caller: Credentials) -> None:
    many, old = 2400, int(world.clock.now()) - 100 * DAY
    batch = [CdrEvent(f"cdr-{n:05}", iccid(), old if n % 3 else old + 99 * DAY, 1, 1, None, None) for n in range(many)]
    await world.store.write(ingest_cdr, organisation=caller.organisation, events=batch, now=world.clock.now(), ids=world.ids)
    await sweep(world)  # a pass of its own begins in three days; what it removed is in these
    assert len(await kept(world, caller)) == many // 3
    batch = [each._replace(event=f"{each.event}-more") for each in batch]
    await world.store.write(ingest_cdr, organisation=caller.organisation, events=batch, now=world.clock.now(), ids=world.ids)
    world.clock.advance(3 * DAY)
    removed: list[int] = []
    while len(removed) < 60 and sum(removed) < many * 2 // 3:
        removed.append(await sweep_call_records(world.store, days=KEPT, now=world.clock.now(), steps=6, rows=100, blocks=2))
    assert len(removed) > 3 and max(removed) <= 3 * 200
    assert len(await kept(world, caller)) == many * 2 // 3


@pytest.fixture
async def postgres_store() -> AsyncGenerator[tuple[str, Store]]:
    with required_database(migrated_postgres()) as url:
        store = open_store(url)
        yield url, store
        await store.aclose()


@pytest.mark.postgres
async def test_a_record_that_comes_again_while_it_is_being_removed_counts_as_a_repeat(postgres_store: tuple[str, Store]) -> None:
    url, store = postgres_store
    ids, now = CountingIds(SettableClock()), 1_800_014_400.0
    record = CdrEvent("cdr-1", iccid(), int(now) - 100 * DAY, 1, 2, None, None)

    async def store_it() -> int:
        return await store.write(ingest_cdr, organisation="org_1", events=[record], now=now, ids=ids)

    assert await store_it() == 1
    for _ in range(2):
        await store.write(begin_pass, now=now, every=DAY)
    with psycopg.connect(url) as removing, psycopg.connect(url, autocommit=True) as looking:
        transaction = Connection(removing, postgresql_dialect())  # pyright: ignore[reportArgumentType]  # as the store's own session
        assert remove_cdrs(transaction, records=[CdrKey("org_1", "cdr-1")], now=now) == 1
        again = asyncio.create_task(store_it())
        waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        while looking.execute(waits).fetchone() == (0,):
            assert not again.done()
            await asyncio.sleep(0)
        removing.commit()
        assert await again == 0
    left = await store.read(everything, organisation="org_1")
    assert (left.raw, [(row.bytes_total, row.events) for row in left.sums]) == ([], [(3, 1)])


@pytest.mark.postgres
def test_postgresql_reads_the_blocks_of_a_step_and_finds_ids_and_records_by_their_keys() -> None:
    with required_database(migrated_postgres()) as url, closing(psycopg.connect(url)) as raw:
        raw.execute("set enable_seqscan = off")  # the tables are empty
        texts = {query: query.text(postgresql_dialect()) for query in (OLD_CDRS, FIND_FOLLOWING_PLACE, REMOVE_CDRS, FIND_CDR_DIGESTS)}
        given = {"block": 3, "blocks": 128, "before": 1, "records": "[]", "digests": b"", "offsets": "[]"}
        plans = [str(raw.execute(f"explain {text.sql}".encode(), {**text.literals, **given}).fetchall()) for text in texts.values()]
    assert "Tid Range Scan on cdr_event" in plans[0] and "TID Cond" in plans[0]
    assert "cdr_event" not in plans[1].replace("'cdr_event'", "")
    assert "using cdr_event_pkey" in plans[2]
    assert "using call_record_digest_pkey" in plans[3]


@dataclass
class Month:
    """What a model says of a month: bytes by SIM, and what each invoice bills; `selected` and `stands` as they are."""

    used: dict[str, int] = field(default_factory=dict[str, int])
    invoices: dict[str, "Bill"] = field(default_factory=dict[str, "Bill"])

    def left(self, sims: list[str] | None) -> dict[str, int]:
        """What a new invoice of these SIMs, or of all, has to bill."""
        standing = [each for each in self.invoices.values() if each.stands and (sims is not None or each.selected)]
        rest = {sim: many - sum(each.lines.get(sim, 0) for each in standing) for sim, many in self.used.items()}
        return {sim: many for sim, many in rest.items() if many > 0 and (sims is None or sim in sims)}


@dataclass
class Bill:
    selected: bool
    lines: dict[str, int]
    stands: bool = True


RECORDS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(1, 2), st.sampled_from([3, 40, 70, 400]), st.integers(1, 10**9)), min_size=1, max_size=5
)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("import"), RECORDS),
        st.tuples(st.just("again"), st.just([])),
        st.tuples(st.just("invoice"), st.booleans()),
        st.tuples(st.just("void"), st.booleans()),
        st.tuples(st.just("sweep"), st.sampled_from([0, 3, 63])),
    ),
    min_size=2,
    max_size=10,
)


@pytest.mark.long
@settings(max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
async def test_in_any_order_of_imports_invoices_voids_and_sweeps_each_record_is_billed_once_and_no_invoice_changes(
    world: World, actions: list[tuple[str, object]]
) -> None:
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        history = History(Billing(world, caller, http))
        for name, value in actions:
            await history.do(name, value)
        await history.sweep(63)
        await history.sweep(63)
        assert await kept(world, caller) == set()
        await history.again()
        await history.check_months()


class History:
    def __init__(self, bill: Billing) -> None:
        self.bill = bill
        self.first: dict[str, Json] = {}
        self.months: dict[int, Month] = {}
        self.invoices: list[str] = []

    async def do(self, name: str, value: object) -> None:
        match name, value:
            case "import", list():
                now = int(self.bill.world.clock.now())
                rows = [(f"cdr-{id}", sim(number), now - age * DAY, many) for id, number, age, many in value]
                await self.send([event(id, iccid=who, occurred_at=at, bytes_up=0, bytes_down=many) for id, who, at, many in rows])
            case "invoice", bool():
                await self.invoice(some=value)
            case "void", bool():
                await self.void(newest=value)
            case "sweep", int():
                await self.sweep(value)
            case _:
                await self.again()

    async def send(self, events: list[Json]) -> None:
        new = 0
        for each in events:
            if each["id"] not in self.first:
                new += 1
                self.first[each["id"]] = each
                moment = datetime.fromtimestamp(each["occurred_at"], UTC)
                used = self.months.setdefault(moment.year * 100 + moment.month, Month()).used
                used[each["iccid"]] = used.get(each["iccid"], 0) + each["bytes_down"]
        answer = (await send(self.bill.http, *events)).json()
        assert answer == {"received": len(events), "stored": new, "skipped": len(events) - new}

    async def again(self) -> None:
        if self.first:
            await self.send([{**each, "bytes_down": 10**12} for each in self.first.values()])

    def newest(self) -> Iterator[tuple[int, Month]]:
        return iter(sorted(self.months.items(), reverse=True))

    async def invoice(self, *, some: bool) -> None:
        periods = (await self.bill.http.get(PERIODS)).json()["data"]
        assert [row["year"] * 100 + row["month"] for row in periods] == [number for number, _ in self.newest()]
        for period, (_, model) in zip(periods, self.newest(), strict=True):
            sims = [sim(1)] if some else None
            left = model.left(sims)
            given: Json = {"price_per_gb_cents": 100} | ({"iccids": sims} if sims else {})
            answer = await self.bill.create(period["id"], **given)
            assert answer.status_code == (201 if left else 409), answer.text
            if left:
                id = answer.json()["id"]
                lines = (await self.bill.read(id))["line_items"]
                assert {line["iccid"]: line["bytes_total"] for line in lines} == left
                model.invoices[id] = Bill(some, left)
                self.invoices.append(id)

    async def void(self, *, newest: bool) -> None:
        standing = [(id, model) for model in self.months.values() for id, each in model.invoices.items() if each.stands]
        if standing:
            id, model = standing[-1 if newest else 0]
            assert (await self.bill.void(id)).status_code == 200
            model.invoices[id].stands = False

    async def sweep(self, days: int) -> None:
        self.bill.world.clock.advance(days * DAY)  # a month closes meanwhile, which its invoices say
        before = await pages(self.bill, self.invoices)
        await sweep(self.bill.world)
        assert await pages(self.bill, self.invoices) == before

    async def check_months(self) -> None:
        for number, each in self.months.items():
            said = await month(self.bill.http, number // 100, number % 100)
            assert {line["iccid"]: line["bytes_total"] for line in said["data"]} == each.used
            for place in (sim(1), sim(2)):
                alone = [one.lines.get(place, 0) for one in each.invoices.values() if one.stands and one.selected]
                assert sum(alone) <= each.used.get(place, 0)
