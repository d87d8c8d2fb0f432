"""What endpoints receive, and when: the worker over loopback receivers and a clock that the test moves."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import anyio
import orjson
import pytest
import sqlalchemy as sa

from clients.webhooks.sender import RETRY_DELAYS
from storage.audit import AuditTable
from storage.claims import ClaimTable
from storage.deliveries import open_listener
from storage.engine.sql import Connection, Query
from storage.engine.store import Store, open_store
from storage.outbox import claim_deliveries, next_delivery_due
from storage.webhook_endpoints import rotate_endpoint_secret
from tests.clients.webhooks.receiver import HookAnswer, receiver, status_answer
from tests.databases import sqlite_url
from tests.deliveries.post_office import JitterIds, PostOffice, read

HOUR = 3600.0


def answers(lines: list[str]) -> HookAnswer:
    left = list(lines)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await status_answer(left.pop(0) if len(left) > 1 else left[0])(reader, writer)

    return answer


async def to_the_next(office: PostOffice) -> bool:
    """Move the clock to the next due time; False when nothing is pending."""
    due = await office.store.read(next_delivery_due)
    if due is None:
        return False
    office.clock.advance(max(0.0, due / 1000 - office.clock.now()))
    return True


async def loop_until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0.005)


async def all_ended(office: PostOffice) -> None:
    async with asyncio.timeout(60):
        while await office.store.read(next_delivery_due) is not None:
            await asyncio.sleep(0.005)


@pytest.mark.rule("5.5.1")
async def test_a_delivery_is_the_event_of_the_api_signed_in_both_ways(on_both: PostOffice) -> None:
    office = on_both
    async with receiver(status_answer("200 OK")) as there:
        _, secret = await office.endpoint(there.url())
        event = await office.emit()
        assert await office.worker().step() == 1
    post = read(there.requests[0])
    shown = (await office.http.get(f"/v1/connectivity/events/{event}")).json()
    assert orjson.loads(post.body) == shown
    assert post.body == orjson.dumps(shown)
    assert list(shown) == ["id", "object", "type", "livemode", "created", "data"]
    assert post.headers["webhook-id"] == event
    assert post.headers["content-type"] == "application/json"
    assert post.verified(secret, office.clock.now()) == shown
    stamp = post.headers["webhook-timestamp"]
    own = hmac.new(secret.encode(), f"{stamp}.".encode() + post.body, hashlib.sha256).hexdigest()
    assert post.headers["connectivity-signature"] == f"t={stamp},v1={own}"


async def test_each_attempt_has_the_same_id_and_body_and_a_timestamp_of_its_own(office: PostOffice) -> None:
    async with receiver(answers(["500 Oops", "200 OK"])) as there:
        _, secret = await office.endpoint(there.url())
        event = await office.emit()
        first = office.clock.now()
        await office.worker().step()
        await to_the_next(office)
        await office.worker().step()
    one, two = map(read, there.requests)
    assert (one.body, one.headers["webhook-id"]) == (two.body, two.headers["webhook-id"])
    assert int(two.headers["webhook-timestamp"]) - int(one.headers["webhook-timestamp"]) == 5
    assert one.verified(secret, first) == two.verified(secret, office.clock.now())
    assert await office.states(event) == [("delivered", ["status:500", "ok"])]


@pytest.mark.cases
@pytest.mark.parametrize("seed", range(3))
async def test_ten_attempts_in_75_hours_35_minutes_5_seconds_though_every_attempt_has_a_new_worker(office: PostOffice, seed: int) -> None:
    ids, times = JitterIds(office.clock, seed), list[float]()
    async with receiver(status_answer("500 Oops")) as there:
        endpoint, _ = await office.endpoint(there.url())
        event = await office.emit()
        while await to_the_next(office):
            times.append(office.clock.now())
            assert await office.worker(ids=ids).step() == 1
    assert len(times) == len(there.requests) == 10
    waits = [later - earlier for earlier, later in pairwise(times)]
    for wait, delay in zip(waits, RETRY_DELAYS[1:], strict=True):
        assert 0.8 * delay - 0.01 <= wait <= 1.2 * delay + 0.01
    assert 0.8 * 272_105 <= times[-1] - times[0] <= 1.2 * 272_105
    assert sum(RETRY_DELAYS) == 75 * HOUR + 35 * 60 + 5
    (delivery,) = await office.deliveries(event)
    assert (delivery["state"], delivery["endpoint"]) == ("failed", endpoint)
    attempts = delivery["attempts"]
    assert isinstance(attempts, list)
    assert [attempt["number"] for attempt in attempts] == list(range(1, 11))
    assert [attempt["next_attempt_at"] is None for attempt in attempts] == [False] * 9 + [True]
    assert [attempt["at"] for attempt in attempts[1:]] == [attempt["next_attempt_at"] for attempt in attempts[:-1]]
    assert await office.status(endpoint) == "enabled"  # 75 hours are not 120


async def test_nothing_is_sent_before_it_is_due(office: PostOffice) -> None:
    async with receiver(status_answer("500 Oops")) as there:
        await office.endpoint(there.url())
        await office.emit()
        worker = office.worker()
        assert await worker.step() == 1
        office.clock.advance(4.9)
        assert await worker.step() == 0
        office.clock.advance(0.2)
        assert await worker.step() == 1
    assert len(there.requests) == 2


async def test_retry_after_puts_the_next_attempt_off(office: PostOffice) -> None:
    async with receiver(status_answer("503 Busy", "Retry-After: 120")) as there:
        await office.endpoint(there.url())
        await office.emit()
        await office.worker().step()
    assert await office.store.read(next_delivery_due) == int((office.clock.now() + 120) * 1000)


@pytest.mark.parametrize("way", ["events/{event}/retry", "webhook_endpoints/{endpoint}/replay"])
async def test_a_retry_or_a_replay_starts_the_schedule_again_and_attempts_keep_their_numbers(office: PostOffice, way: str) -> None:
    async with receiver(status_answer("500 Oops")) as there:
        endpoint, _ = await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        while await to_the_next(office):
            await worker.step()
        answer = await office.http.post(f"/v1/connectivity/{way.format(event=event, endpoint=endpoint)}", json={})
        assert answer.status_code == 200, answer.text
        again = office.clock.now()
        await worker.step()
        await to_the_next(office)
        await worker.step()
    assert office.clock.now() - again == pytest.approx(RETRY_DELAYS[1], abs=0.01)
    (delivery,) = await office.deliveries(event)
    attempts = delivery["attempts"]
    assert isinstance(attempts, list)
    assert delivery["state"] == "pending"
    assert [attempt["number"] for attempt in attempts] == list(range(1, 13))
    assert {read(request).headers["webhook-id"] for request in there.requests} == {event}


async def test_a_410_disables_the_endpoint_at_once(on_both: PostOffice) -> None:
    office = on_both
    async with receiver(status_answer("410 Gone")) as there:
        endpoint, _ = await office.endpoint(there.url())
        events = [await office.emit(f"{number}") for number in range(5)]
        await office.worker().step()
    assert await office.status(endpoint) == "disabled"
    assert len(there.requests) == 2  # both were under way when the first 410 came
    assert [(await office.states(event))[0][0] for event in events] == ["failed"] * 5
    after = await office.emit("after")
    assert await office.states(after) == []


@pytest.mark.long
async def test_120_hours_of_failures_only_disable_and_what_waits_can_be_replayed(on_both: PostOffice) -> None:
    office = on_both
    async with receiver(status_answer("500 Oops")) as there:
        endpoint, _ = await office.endpoint(there.url())
        first = await office.emit("first")
        worker = office.worker()
        await worker.step()
        office.clock.advance(120 * HOUR - 1)
        second = await office.emit("second")
        await worker.step()
        assert await office.status(endpoint) == "enabled"
        office.clock.advance(10)
        await worker.step()
        assert await office.status(endpoint) == "disabled"
    assert [(await office.states(event))[0][0] for event in (first, second)] == ["failed", "failed"]
    assert (await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay", json={})).status_code == 409
    await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")
    since = {"since": int(office.clock.now()) - 60}
    answer = await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay", json=since)
    assert answer.json()["replayed"] == 1  # only the second was queued in the last minute
    await worker.step()
    assert await office.status(endpoint) == "enabled"  # its record is clean since it was enabled


async def test_one_success_resets_the_120_hours(office: PostOffice) -> None:
    async with receiver(answers(["500 Oops", "200 OK", "500 Oops"])) as there:
        endpoint, _ = await office.endpoint(there.url())
        worker = office.worker()
        await office.emit("first")
        assert await worker.step() == 1
        office.clock.advance(119 * HOUR)
        assert await worker.step() == 1  # the success
        await office.emit("second")
        assert await worker.step() == 1
        office.clock.advance(119 * HOUR)
        assert await worker.step() == 1
        assert await office.status(endpoint) == "enabled"  # 238 hours after the first failure, 119 after the success
        office.clock.advance(HOUR)
        assert await worker.step() == 1
        assert await office.status(endpoint) == "disabled"


@pytest.mark.long
async def test_both_secrets_sign_for_24_hours_after_a_rotation(on_both: PostOffice) -> None:
    office = on_both
    async with receiver(status_answer("200 OK")) as there:
        endpoint, old = await office.endpoint(there.url())
        answer = await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/rotate")
        new: str = answer.json()["secret"]
        worker = office.worker()
        for dedup, wait in (("at once", 0.0), ("a second before", 24 * HOUR - 1), ("then", 1.0)):
            office.clock.advance(wait)
            await office.emit(dedup)
            await worker.step()
            read(there.requests[-1]).verified(new, office.clock.now())
            if dedup == "then":
                with pytest.raises(Exception, match="No matching signature"):
                    read(there.requests[-1]).verified(old, office.clock.now())
            else:
                read(there.requests[-1]).verified(old, office.clock.now())
    assert [read(request).headers["connectivity-signature"].count("v1=") for request in there.requests] == [2, 2, 1]


async def test_outcomes_are_classes_and_never_the_receivers_words_or_address(office: PostOffice) -> None:
    async with receiver(status_answer("502 Bad", body=b"internal host db-7 refused")) as there:
        await office.endpoint(there.url())
        async with receiver(status_answer("200 OK")) as closed:
            await office.endpoint(closed.url())
        event = await office.emit()
        await office.worker().step()
    assert await office.states(event) == [("pending", ["status:502"]), ("pending", ["refused"])]
    text = (await office.http.get(f"/v1/connectivity/events/{event}/deliveries")).text
    assert "db-7" not in text
    assert "127.0.0.1" not in text


async def test_a_fault_of_ours_is_reported_counts_in_the_schedule_and_not_against_the_endpoint(office: PostOffice) -> None:
    async with receiver(status_answer("200 OK")) as there:
        endpoint, secret = await office.endpoint(there.url())
        event = await office.emit()
        lost = "dropped.bm9uY2U.Y2lwaGVy"  # sealed with a key that is not in the keyring
        await office.store.write(
            rotate_endpoint_secret, endpoint=endpoint, organisation=office.caller.organisation, sealed=lost, now=office.clock.now()
        )
        worker = office.worker()
        assert await worker.step() == 1
    assert await office.states(event) == [("pending", ["internal"])]
    assert len(office.reports) == 1
    assert "could not be sent: KeyUnknown" in office.reports[0]
    assert secret not in office.reports[0]
    assert there.requests == []


@pytest.mark.long
async def test_sixteen_slow_endpoints_of_one_organisation_delay_no_other_organisation(on_both: PostOffice) -> None:
    office, release = on_both, asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await status_answer("200 OK")(reader, writer)

    async with receiver(slow) as stuck, receiver(status_answer("200 OK")) as quick:
        for _ in range(16):
            await office.endpoint(stuck.url())
        await office.emit("first")
        await office.emit("second")
        workers = [office.worker(), office.worker()]  # the limit holds for all of them together
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await loop_until(lambda: len(stuck.requests) == 8)
        await office.stranger(quick.url())
        for worker in workers:
            worker.wake()
        await loop_until(lambda: len(quick.requests) == 1)
        assert len(stuck.requests) == 8
        release.set()
        await loop_until(lambda: len(stuck.requests) == 32)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
    assert await office.store.read(next_delivery_due) is None


async def test_a_call_that_makes_work_wakes_the_worker(office: PostOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.worker.worker.POLL_SECONDS", 3600.0)  # so that nothing but the call can wake it
    async with receiver(status_answer("200 OK")) as there:
        endpoint, _ = await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        running = asyncio.create_task(worker.run())
        await all_ended(office)
        assert len(there.requests) == 1
        assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 200
        await all_ended(office)
        assert len(there.requests) == 2
        there.answer = status_answer("410 Gone")
        assert (await office.http.post(f"/v1/connectivity/events/{event}/retry")).status_code == 200
        await all_ended(office)
        assert len(there.requests) == 3
        worker.stop()
        await running
        await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")
        there.answer = status_answer("200 OK")
        running = asyncio.create_task((again := office.worker()).run())
        assert (await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay")).json()["replayed"] == 1
        await all_ended(office)
        assert len(there.requests) == 4
        again.stop()
        await running
    assert await office.states(event) == [("delivered", ["ok", "ok", "status:410", "ok"])]


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_commit_of_another_process_wakes_the_worker(
    on_both: PostOffice, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = on_both
    monkeypatch.setattr("transports.worker.worker.POLL_SECONDS", 3600.0)
    async with receiver(status_answer("200 OK")) as there:
        endpoint, _ = await office.endpoint(there.url())
        worker = office.worker(listener=open_listener(database_url, office.reports.append))
        office.world.pipeline.deps = replace(office.world.pipeline.deps, wake_worker=lambda: None)  # as in another process
        running = asyncio.create_task(worker.run())
        for number in range(1, 4):
            await office.emit(f"{number}")
            await loop_until(lambda number=number: len(there.requests) == number)
            await all_ended(office)
        there.answer = status_answer("410 Gone")
        await office.emit("refused")
        await loop_until(lambda: len(there.requests) == 4)
        await all_ended(office)
        await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")
        assert (await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay")).json()["replayed"] == 1
        await loop_until(lambda: len(there.requests) == 5)
        worker.stop()
        await running
    assert office.reports == []


@pytest.mark.rule("6.1")
async def test_an_intent_of_a_test_plan_is_told_to_the_endpoint_at_once(office: PostOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transports.worker.worker.POLL_SECONDS", 3600.0)
    async with receiver(status_answer("200 OK")) as there:
        _, secret = await office.endpoint(there.url())
        worker = office.worker()
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        body, key = {"plan": "test_eu_1gb"}, {"Idempotency-Key": "order-1"}
        intent = (await office.http.post("/v1/connectivity/intents", json=body, headers=key)).json()
        await loop_until(lambda: there.requests)
        worker.stop()
        await running
    post = read(there.requests[0])
    event = post.verified(secret, office.clock.now())
    assert isinstance(event, dict)
    assert (event["type"], event["data"]) == (
        "esim.issued",
        {"intent": intent["id"], "iccid": intent["esim"]["iccid"], "plan": "test_eu_1gb"},
    )
    for name in ("activation_code", "matching_id", "qr_code"):
        assert intent["esim"][name].encode() not in post.body


async def test_a_stopping_worker_finishes_what_is_under_way(office: PostOffice) -> None:
    release = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await status_answer("200 OK")(reader, writer)

    async with receiver(slow) as there:
        await office.endpoint(there.url())
        event = await office.emit()
        worker = office.worker()
        running = asyncio.create_task(worker.run())
        await loop_until(lambda: there.requests)
        worker.stop()
        release.set()
        await running
    assert await office.states(event) == [("delivered", ["ok"])]


async def test_a_cancelled_worker_gives_its_leases_back(on_both: PostOffice) -> None:
    office = on_both

    async def never(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with receiver(never) as there:
        await office.endpoint(there.url())
        event = await office.emit()
        async with anyio.create_task_group() as group:
            group.start_soon(office.worker().run)
            await loop_until(lambda: there.requests)
            group.cancel_scope.cancel()
        there.answer = status_answer("200 OK")
        assert await office.worker().step() == 1  # without waiting for the lease to end
    assert await office.states(event) == [("delivered", ["ok"])]


class SlowClaims:
    """The store, whose claims after the first take a while: like any call, they go on when nobody waits for them any more."""

    def __init__(self, store: Store) -> None:
        self._store, self._claims = store, 0
        self.claiming, self.under_way = asyncio.Event(), set[asyncio.Task[object]]()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def write(self, fn: Callable[..., object], **arguments: object) -> object:
        call = asyncio.create_task(self._write(fn, arguments))
        self.under_way.add(call)
        return await asyncio.shield(call)

    async def _write(self, fn: Callable[..., object], arguments: dict[str, object]) -> object:
        self._claims += fn is claim_deliveries
        if fn is claim_deliveries and self._claims > 1:
            self.claiming.set()
            await asyncio.sleep(0.2)
        return await self._store.write(fn, **arguments)


@pytest.mark.long
async def test_a_worker_cancelled_while_it_claims_gives_back_what_that_claim_takes(on_both: PostOffice) -> None:
    office = on_both

    async def never(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with receiver(never) as there:
        await office.endpoint(there.url())
        slow = SlowClaims(office.store)
        events = [await office.emit("first")]
        async with anyio.create_task_group() as group:
            group.start_soon(office.worker(store=cast("Store", slow)).run)
            await loop_until(lambda: there.requests)
            events.append(await office.emit("second"))
            await slow.claiming.wait()
            group.cancel_scope.cancel()
        await asyncio.gather(*slow.under_way)
        there.answer = status_answer("200 OK")
        assert await office.worker().step() == 2
    assert [await office.states(event) for event in events] == [[("delivered", ["ok"])]] * 2


async def test_a_round_that_fails_is_reported_and_the_loop_goes_on(office: PostOffice, tmp_path: Path) -> None:
    closed = open_store(sqlite_url(tmp_path))
    await closed.aclose()
    worker = office.worker(store=closed)
    running = asyncio.create_task(worker.run())
    await loop_until(lambda: office.reports)
    assert not running.done()
    worker.stop()
    await running
    assert "worker: a round failed and is repeated" in {": ".join(line.split(": ")[:2]) for line in office.reports}


async def test_a_step_forgets_what_has_outlived_its_time(on_both: PostOffice) -> None:
    office = on_both
    url, key = "http://127.0.0.1:9/", {"Idempotency-Key": "k"}
    assert (await office.http.post("/v1/connectivity/webhook_endpoints", json={"url": url}, headers=key)).status_code == 201
    await office.worker().step()
    assert await office.store.read(kept) == (1, 1)
    office.clock.advance((90 + 31) * 24 * HOUR)  # a month of the log goes at once
    await office.worker().step()
    assert await office.store.read(kept) == (0, 0)


class Rows(NamedTuple):
    rows: int


ROWS = [Query(Rows, sa.select(sa.func.count().label("rows")).select_from(model.table)) for model in (ClaimTable, AuditTable)]


def kept(connection: Connection) -> tuple[int, ...]:
    return tuple(row.rows for query in ROWS for row in connection.all(query))
