"""Whoever is slow, and however long their queue is, nobody else waits for it."""

import asyncio
from collections import Counter

import pytest

from clients.http import OutboundLimits
from clients.webhooks.sender import WebhookSender
from operations.ledger.webhooks import ClaimedDelivery
from registry.caller import Tier
from storage.engine.drivers import Value
from storage.engine.sql import Connection, Statement, pack_rows, postgresql_dialect, sqlite_dialect
from storage.events import NewEvent, emit_event
from storage.fair_share import DIVIDED_QUERIES, ENDPOINTS_AT_ONCE, LOOK_MS, WHOLE_QUERIES, choose_deliveries
from storage.outbox import ACKNOWLEDGE_ATTEMPTS, CLAIM_DELIVERIES, DELIVERY_LEASE_MS, claim_deliveries
from tests.clients.webhooks.receiver import HookReceiver, receiver, status_answer
from tests.deliveries.post_office import LOOPBACK, PostOffice, read
from tests.deliveries.transaction import Opened, committed_event, fetched

ENDPOINTS, EVENTS, OTHERS, EACH = 16, 40, 12, 3
PATIENT = OutboundLimits(connections=200, keepalive_seconds=None, connect_seconds=60.0, total_seconds=60.0)
NOW = 1_800_000_000_000
BACKLOG, BEHIND = 6_000, 1_600
"""Rows: a claim looks at 512 of the oldest at most."""


class Hanging:
    """Answers nobody, and counts who waits."""

    def __init__(self) -> None:
        self.now = self.most = self.begun = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.begun += 1
        self.most = max(self.most, self.now)
        try:
            await reader.read()  # until the sender gives up
        finally:
            self.now -= 1


async def flooded(office: PostOffice, stuck: HookReceiver) -> None:
    """An organisation with as many endpoints as it may have, none of which answers, and more due deliveries than a claim looks at."""

    def flood(connection: Connection) -> None:
        for number in range(EVENTS):
            event = NewEvent(f"evt_{number:03}", office.caller.organisation, "cni_1", "esim.issued", 0, "{}", f"flood:{number}", 1)
            emit_event(connection, event=event, ids=office.world.ids)

    for _ in range(ENDPOINTS):
        await office.endpoint(stuck.url())
    await office.store.write(flood)


async def others(office: PostOffice, quick: HookReceiver) -> set[str]:
    """Other organisations with a prompt receiver each, and their events."""
    events: set[str] = set()
    for number in range(OTHERS):
        caller = await office.world.caller(Tier.FREE)
        async with office.world.client(caller.secret) as http:
            assert (await http.post("/v1/connectivity/webhook_endpoints", json={"url": quick.url()})).status_code == 201
        for which in range(EACH):
            events.add(await office.emit(f"{number}/{which}", organisation=caller.organisation))
    return events


async def until_all(quick: HookReceiver, events: set[str]) -> None:
    async with asyncio.timeout(60):
        while {read(request).headers["webhook-id"] for request in quick.requests} != events:
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_a_long_backlog_for_receivers_that_hang_delays_no_other_organisation(on_both: PostOffice) -> None:
    office, hanging = on_both, Hanging()
    sender = WebhookSender(office.clock, exempt=LOOPBACK, limits=PATIENT)
    async with receiver(hanging) as stuck, receiver(status_answer("200 OK")) as quick:
        await flooded(office, stuck)
        events = await others(office, quick)  # all of them queued after the flood
        running = asyncio.create_task(office.worker(sender=sender).run())
        await until_all(quick, events)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (hanging.begun, hanging.most) == (8, 8)  # not one of them had ended, and not one more was begun
        assert len(quick.requests) == len(events) == OTHERS * EACH
    await sender.aclose()


@pytest.mark.long
async def test_receivers_that_time_out_take_turns_within_their_own_eight_places(on_both: PostOffice) -> None:
    office, hanging = on_both, Hanging()
    sender = WebhookSender(office.clock, exempt=LOOPBACK, limits=OutboundLimits(200, None, 5.0, 0.1))
    async with receiver(hanging) as stuck:
        await flooded(office, stuck)
        running = asyncio.create_task(office.worker(sender=sender).run())
        async with asyncio.timeout(60):
            while hanging.begun < 32:
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    # A receiver notices that a sender gave up a moment later than the sender does, who may begin the next meanwhile.
    assert hanging.most <= 16
    await sender.aclose()


@pytest.mark.long
async def test_a_process_keeps_to_the_places_it_has_room_for_and_takes_the_oldest_first(on_both: PostOffice) -> None:
    office = on_both
    async with receiver(status_answer("200 OK")) as quick:
        await others(office, quick)
        deliveries = office.worker()._deliveries
        first: list[ClaimedDelivery] = await deliveries.claim(7)
        second = await deliveries.claim(100)
    assert len(first) == 7
    assert len(second) == OTHERS * 2 - 7  # two of each endpoint are under way
    assert len({each.row.id for each in first + second}) == OTHERS * 2


def numbers(connection: Connection, count: int) -> str:
    if connection.dialect_name == "postgresql":
        return f"generate_series(1, {count}) as s(n)"
    return f"(with recursive s(n) as (select 1 union all select n + 1 from s where n < {count}) select n from s)"


def furnish(connection: Connection) -> None:
    """The event and the enabled endpoint of each delivery that is pending: without them a claim ends it."""
    event = f"event_id, organisation, 'esim.issued', 1, '{{}}', {NOW // 1000}, 1"
    columns = "id, organisation, type, livemode, data, created, position"
    committed_event(connection, f"insert into event_log({columns}) select distinct {event} from delivery where state = 0")
    columns = "id, organisation, url, status, secret, created, replay_minute, replay_count, proven"
    endpoint = "endpoint_id, organisation, 'https://hooks.example', 'enabled', 'x', 1, 0, 0, 1"
    committed_event(connection, f"insert into webhook_endpoint({columns}) select distinct {endpoint} from delivery where state = 0")


def backlog(connection: Connection) -> None:
    """Very many due rows of one organisation with 16 endpoints, then a few of 150 others; as many delivered ones besides."""
    rows = (
        (BACKLOG, f"'dlv_a' || n, 'evt_a' || n, 'we_a' || (n - n/16*16), 'org_a', 0, 0, 0, {NOW} - 90000 + n, 1"),
        (300, f"'dlv_b' || n, 'evt_b' || n, 'we_b' || (n - n/150*150), 'org_b' || (n - n/150*150), 0, 0, 0, {NOW} - 300 + n, 1"),
        (BACKLOG, f"'dlv_c' || n, 'evt_c' || n, 'we_b' || (n - n/150*150), 'org_b' || (n - n/150*150), 1, 1, 1, {NOW} - 99000, 1"),
    )
    columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms"
    for count, values in rows:
        committed_event(connection, f"insert into delivery({columns}) select {values} from {numbers(connection, count)}")
    furnish(connection)
    if connection.dialect_name == "postgresql":
        committed_event(connection, "analyze delivery")


BINDS: dict[str, Value] = {
    "now_ms": NOW,
    "horizon": NOW + DELIVERY_LEASE_MS,
    "view": 512,
    "after": "",
    "endpoints": 512,
    "token": "t",
    "lease_end": NOW + DELIVERY_LEASE_MS,
    "ids": '[["dlv_a1"]]',
    "lowest": "dlv_a1",
    "highest": "dlv_a1",
    "floor": "dlv_a",
    "ceiling": "dlv_d",
}
# Ids without a time are in the partition that takes what nobody made room for.
OF_DEFAULT = {
    "delivery_leased": "delivery_default_due_ms_endpoint_id_organisation_idx",
    "delivery_due": "delivery_default_state_due_ms_idx",
    "delivery_waiting": "delivery_default_endpoint_id_due_ms_idx",
    "delivery_": "delivery_default_pkey",
}


def plan(connection: Connection, statement: Statement, **bound: Value) -> str:
    """How the database would go about it; `bound`: other values than those of BINDS."""
    postgresql = connection.dialect_name == "postgresql"
    text = statement.text(postgresql_dialect() if postgresql else sqlite_dialect())
    word = "explain " if postgresql else "explain query plan "
    return "\n".join(str(row[-1]) for row in fetched(connection, word + text.sql, **{**BINDS, **bound}, **text.literals))


@pytest.mark.long
def test_a_claim_finds_everybody_behind_a_long_backlog_in_one_go_and_reads_no_table_from_end_to_end(opened: Opened) -> None:
    with opened() as connection:
        postgresql = connection.dialect_name == "postgresql"
        backlog(connection)
        scan = "Seq Scan on delivery_default" if postgresql else "SCAN delivery"
        queue = DIVIDED_QUERIES if postgresql else WHOLE_QUERIES
        for statement, index in (
            (queue.held, "delivery_leased"),
            (queue.lapsed, "delivery_leased"),
            (queue.oldest, "delivery_due"),
            (queue.heads, "delivery_waiting"),
            (CLAIM_DELIVERIES, "delivery_"),
        ):
            how = plan(connection, statement)
            assert scan not in how, how
            assert (OF_DEFAULT[index] if postgresql else index) in how, how
            # Of everybody's due rows PostgreSQL once read all, to find two of an endpoint that had none.
            assert statement is not queue.heads or "state_due_ms" not in how, how
            assert "delivery_first" not in how and "delivery_20" not in how, how
        chosen = choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=1000).ids
        assert [len([id for id in chosen if id.startswith(kind)]) for kind in ("dlv_a", "dlv_b")] == [8, 300]
        assert [id for id in chosen if id.startswith("dlv_a")] == [f"dlv_a{number}" for number in range(1, 9)]
        batch = claim_deliveries(connection, token="one", now_ms=NOW, most=1000)
        assert batch.taken == 308
        assert choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=1000).ids == []


@pytest.mark.long
def test_what_is_claimed_or_acknowledged_is_looked_up_by_its_id_also_in_a_table_without_statistics(opened: Opened) -> None:
    with opened() as connection:
        columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms, lease"
        values = f"'dlv_' || (100000 + n), 'evt_' || n, 'we_' || n, 'org', 0, 0, 0, {NOW} - n, 1, 't'"
        committed_event(connection, f"insert into delivery({columns}) select {values} from {numbers(connection, BACKLOG)}")
        ids = [f"dlv_{100000 + number}" for number in range(1, BACKLOG, BACKLOG // 20)]
        ends = {"lowest": ids[0], "highest": ids[-1]}
        outcomes = pack_rows([[id, "t", 1, NOW] for id in ids])
        for statement, bound in (
            (CLAIM_DELIVERIES, {"ids": pack_rows([[id] for id in ids])}),
            (ACKNOWLEDGE_ATTEMPTS, {"outcomes": outcomes}),
        ):
            how = plan(connection, statement, **bound, **ends)
            if connection.dialect_name == "postgresql":
                assert "delivery_default_pkey" in how and "Seq Scan on delivery" not in how, how
                assert "(id = ANY (" in how, how
            else:
                assert "SCAN delivery" not in how, how


def hanging(connection: Connection, rows: int, organisations: int = 25) -> None:
    """Due rows of organisations with 8 endpoints each; then one, younger, of another organisation."""
    endpoints = organisations * 8
    place, owner = f"(n - n/{endpoints}*{endpoints})", f"(n - n/{organisations}*{organisations})"
    columns = "id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms"
    values = f"'dlv_' || n, 'evt_' || n, 'we_' || {place}, 'org_' || {owner}, 0, 0, 0, {NOW} - 90000 + n, 1"
    committed_event(connection, f"insert into delivery({columns}) select {values} from {numbers(connection, rows)}")
    committed_event(connection, f"insert into delivery({columns}) values ('dlv_new', 'evt_new', 'we_new', 'org_new', 0, 0, 0, {NOW}, 1)")
    furnish(connection)


def owners(connection: Connection) -> Counter[str]:
    return Counter(organisation for (organisation,) in fetched(connection, "select organisation from delivery where lease is not null"))


@pytest.mark.cases
@pytest.mark.parametrize("rows", [60, 400, BEHIND])  # within the first view, within the second, behind both
def test_who_has_nothing_under_way_comes_before_those_who_have_however_old_their_backlogs(opened: Opened, rows: int) -> None:
    with opened() as connection:
        hanging(connection, rows)
        committed_event(connection, "update delivery set due_ms = due_ms + 90000000 where id = 'dlv_new'")
        assert claim_deliveries(connection, token="before", now_ms=NOW, most=50).taken == 50
        committed_event(connection, "update delivery set due_ms = due_ms - 90000000 where id = 'dlv_new'")
        assert set(owners(connection).values()) == {2}
        batch = claim_deliveries(connection, token="now", now_ms=NOW + LOOK_MS, most=1)
        assert [row for (row,) in fetched(connection, "select id from delivery where lease = 'now'")] == ["dlv_new"]
        assert batch.taken == 1


def test_organisations_take_turns_for_the_places_and_hold_no_more_than_their_own(opened: Opened) -> None:
    with opened() as connection:
        hanging(connection, BEHIND)
        claim_deliveries(connection, token="one", now_ms=NOW, most=100)
        held = owners(connection)
        assert (held.total(), held.pop("org_new"), sorted(held.values())) == (100, 1, [3] + [4] * 24)
        claim_deliveries(connection, token="two", now_ms=NOW, most=1000)
        held = owners(connection)
        assert (held.total(), held["org_new"], set(held.values())) == (201, 1, {1, 8})
        assert choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=1000).ids == []


def test_of_those_with_as_many_under_way_the_oldest_comes_first(opened: Opened) -> None:
    with opened() as connection:
        hanging(connection, BEHIND)
        assert choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=25).ids == [
            f"dlv_{number}" for number in range(1, 26)
        ]


@pytest.mark.long
def test_of_more_endpoints_than_a_claim_looks_at_the_next_one_goes_on_where_it_ended(opened: Opened) -> None:
    endpoints = 2 * ENDPOINTS_AT_ONCE + 100
    with opened() as connection:
        hanging(connection, 2 * endpoints, organisations=endpoints // 8)
        walked, places = "", list[str]()
        for _ in range(4):
            choice = choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=10_000, after=walked)
            walked = choice.walked
            places.append(walked)
        assert places[0] < places[1] and places[0] != "" and places[2] == ""
        assert places[3] == places[0]


def test_what_a_dead_worker_had_is_found_behind_its_endpoints_backlog(opened: Opened) -> None:
    with opened() as connection:
        hanging(connection, BEHIND)
        committed_event(connection, f"update delivery set lease = 'dead', due_ms = {NOW} - 1 where id = 'dlv_new'")
        assert "dlv_new" in choose_deliveries(connection, now_ms=NOW, horizon=NOW + DELIVERY_LEASE_MS, most=100).ids
