"""What is removed of old events and deliveries, and what a long queue's end costs."""

from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from storage.deliveries import ENDED_AT_ONCE, FAILED_STATE, PENDING_STATE, DeliveryAttemptTable, DeliveryTable
from storage.engine.sql import Command, Connection, Query
from storage.events import EventTable
from storage.webhook_endpoints import delete_endpoint, note_endpoint_failure
from tests.clients.webhooks.receiver import receiver
from tests.databases import NO_POSTGRES, migrated_postgres
from tests.deliveries.post_office import PostOffice, open_post_office
from tests.deliveries.test_worker import answers
from transports.settings import HistoryDays
from transports.worker.retention import retention_chore

DAY = 86_400.0
DELIVERY, ATTEMPT, EVENT = DeliveryTable.table, DeliveryAttemptTable.table, EventTable.table


class Rows(NamedTuple):
    rows: int


COUNTS = {each.name: Query(Rows, sa.select(sa.func.count().label("rows")).select_from(each)) for each in (DELIVERY, ATTEMPT, EVENT)}
IN_STATE = Query(Rows, sa.select(sa.func.count().label("rows")).where(DELIVERY.c.state == sa.bindparam("state")))
QUEUE = Command(
    sa.insert(DELIVERY)
    .values({name: sa.bindparam(name) for name in ("id", "event_id", "endpoint_id", "organisation")})
    .values(state=PENDING_STATE, attempt=0, attempts=0, due_ms=2**50, created_ms=1)
)


def count(connection: Connection) -> tuple[int, ...]:
    return tuple(row.rows for query in COUNTS.values() if (row := connection.first(query)))


def in_state(connection: Connection, *, state: int) -> int:
    found = connection.first(IN_STATE, state=state)
    assert found is not None
    return found.rows


def queue(connection: Connection, *, endpoint: str, organisation: str, many: int) -> None:
    rows = [
        {"id": f"dlv_{place}", "event_id": f"evt_{place}", "endpoint_id": endpoint, "organisation": organisation} for place in range(many)
    ]
    connection.run_many(QUEUE, rows)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def whole(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[PostOffice]:
    """A service whose history has no partitions."""
    with nullcontext() if request.param == "sqlite" else migrated_postgres(divided=False) as url:
        if request.param == "postgresql" and url is None:
            pytest.skip(NO_POSTGRES)
        async with open_post_office(tmp_path, url) as office:
            yield office


@pytest.mark.long
async def test_old_events_go_with_what_was_delivered_and_never_happen_again(whole: PostOffice) -> None:
    office = whole
    async with receiver(answers(["200 OK", "500 Oops"])) as listening:
        await office.endpoint(listening.url())
        await office.emit("first")
        await office.worker(chores=()).step()
        assert await office.store.read(count) == (1, 1, 1)
        later = await office.emit("second")
        await office.worker(chores=()).step()

        await retention_chore(office.store, office.clock, print, HistoryDays(events=30)).run()  # closes the database to older programs
        office.clock.advance(29 * DAY)
        await retention_chore(office.store, office.clock, print, HistoryDays(events=30, deliveries=7)).run()
        assert await office.store.read(count) == (1, 1, 2)  # what is still to be sent stays
        office.clock.advance(2 * DAY)
        await retention_chore(office.store, office.clock, print, HistoryDays(events=30, deliveries=7)).run()
        assert await office.store.read(count) == (1, 1, 1)
        assert [event["id"] for event in (await office.http.get("/v1/connectivity/events")).json()["data"]] == [later]
        await office.emit("first")
        assert await office.store.read(count) == (1, 1, 1)


@pytest.mark.long
async def test_nothing_goes_that_is_kept_for_as_long_as_a_setting_allows(whole: PostOffice) -> None:
    office, longest = whole, 36_500  # that settings take
    async with receiver(answers(["200 OK"])) as listening:
        await office.endpoint(listening.url())
        await office.emit("first")
        await office.worker(chores=()).step()
    days = HistoryDays(longest, longest, longest, longest, longest, longest, longest)
    for _ in range(2):
        await retention_chore(office.store, office.clock, print, days).run()
    assert await office.store.read(count) == (1, 1, 1)


@pytest.mark.long
async def test_a_delivery_of_an_old_event_that_was_sent_again_stays_from_then_on(whole: PostOffice) -> None:
    office = whole
    async with receiver(answers(["200 OK", "410 Gone"])) as listening:
        await office.endpoint(listening.url())
        event = await office.emit("first")
        await office.worker(chores=()).step()
        office.clock.advance(10 * DAY)
        assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 200
        await office.worker(chores=()).step()
        assert await office.store.read(in_state, state=FAILED_STATE) == 1
        for days, left in ((6, (1, 2, 1)), (2, (0, 0, 1))):
            office.clock.advance(days * DAY)
            await retention_chore(office.store, office.clock, print, HistoryDays(deliveries=7)).run()
            assert await office.store.read(count) == left


@pytest.mark.long
async def test_the_end_of_a_long_queue_changes_so_many_at_once_and_the_rest_in_steps(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint("http://127.0.0.1:9/")
    many = ENDED_AT_ONCE + 600
    await office.store.write(queue, endpoint=endpoint, organisation=office.caller.organisation, many=many)
    await office.store.write(note_endpoint_failure, endpoint=endpoint, first=0, last=0, gone=True)
    assert await office.store.read(in_state, state=FAILED_STATE) == ENDED_AT_ONCE
    await retention_chore(office.store, office.clock, print).run()
    assert await office.store.read(in_state, state=FAILED_STATE) == many


@pytest.mark.long
async def test_the_rest_of_a_deleted_endpoint_s_long_queue_goes_when_its_time_comes(office: PostOffice) -> None:
    endpoint, _ = await office.endpoint("http://127.0.0.1:9/")
    await office.store.write(queue, endpoint=endpoint, organisation=office.caller.organisation, many=ENDED_AT_ONCE + 1)
    assert await office.store.write(delete_endpoint, endpoint=endpoint, organisation=office.caller.organisation)
    assert await office.store.read(in_state, state=PENDING_STATE) == 1
