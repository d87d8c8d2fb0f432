"""The outbox on both databases: claim, lease, fenced ack."""

import asyncio

import pytest

from storage.events import NewEvent, emit_event
from storage.outbox import (
    DELIVERY_LEASE_MS,
    AttemptOutcome,
    AttemptVerdict,
    ClaimedBatch,
    LeasedDelivery,
    acknowledge_attempts,
    claim_deliveries,
    next_delivery_due,
    return_deliveries,
)
from tests.deliveries.post_office import PostOffice

URL = "http://127.0.0.1:9/"


async def take(office: PostOffice, token: str, most: int = 100) -> ClaimedBatch:
    return await office.store.write(claim_deliveries, token=token, now_ms=int(office.clock.now() * 1000), most=most)


def outcome(
    office: PostOffice, row: LeasedDelivery, lease: str, verdict: AttemptVerdict = "ok", wait: float | None = None
) -> AttemptOutcome:
    now = office.clock.now()
    next_ms = None if wait is None else int((now + wait) * 1000)
    return AttemptOutcome(row.id, row.endpoint_id, lease, int(now * 1000), "ok" if verdict == "ok" else "status:500", 5, verdict, next_ms)


def ids(batch: ClaimedBatch) -> list[str]:
    return [row.id for row in batch.leased]


async def test_an_event_is_queued_once_for_each_enabled_endpoint(on_both: PostOffice) -> None:
    office = on_both
    endpoints = {(await office.endpoint(URL))[0] for _ in range(3)}
    event = await office.emit("issued:cni_1")
    again = NewEvent(office.world.ids.new("evt_"), office.caller.organisation, "cni_1", "esim.issued", 0, "{}", "issued:cni_1", 1)
    assert await office.store.write(emit_event, event=again, ids=office.world.ids) is False
    batch = await take(office, "one")
    assert {(row.event_id, row.endpoint_id) for row in batch.leased} == {(event, endpoint) for endpoint in endpoints}
    assert (await take(office, "two")).taken == 0


async def test_an_event_too_large_to_deliver_is_a_fault_of_ours(on_both: PostOffice) -> None:
    office = on_both
    large = NewEvent("evt_1", office.caller.organisation, "cni_1", "esim.issued", 0, f'{{"a":"{"x" * 19_000}"}}', "large", 1)
    with pytest.raises(ValueError, match="19000 bytes"):
        await office.store.write(emit_event, event=large, ids=office.world.ids)


async def test_no_more_than_two_are_under_way_for_one_endpoint_whoever_claims(on_both: PostOffice) -> None:
    office = on_both
    await office.endpoint(URL)
    for number in range(5):
        await office.emit(f"{number}")
    first = await take(office, "one", most=1)
    second = await take(office, "two")
    assert (first.taken, second.taken, (await take(office, "three")).taken) == (1, 1, 0)
    assert await office.store.write(acknowledge_attempts, outcomes=[outcome(office, first.leased[0], "one")]) == 1
    assert (await take(office, "four")).taken == 1


async def test_no_more_than_eight_are_under_way_for_one_organisation_whoever_claims(on_both: PostOffice) -> None:
    office = on_both
    for _ in range(16):
        await office.endpoint(URL)
    await office.emit("first")
    await office.emit("second")
    first = await take(office, "one", most=5)
    second = await take(office, "two")
    assert (first.taken, second.taken, (await take(office, "three")).taken) == (5, 3, 0)
    stranger = await office.stranger(URL)
    assert [row.organisation for row in (await take(office, "four")).leased] == [stranger]
    assert await office.store.write(acknowledge_attempts, outcomes=[outcome(office, row, "one") for row in first.leased[:3]]) == 3
    assert (await take(office, "five")).taken == 3


@pytest.mark.long
async def test_concurrent_claims_never_give_one_delivery_twice(on_both: PostOffice) -> None:
    office = on_both
    for _ in range(16):
        await office.endpoint(URL)
    for number in range(4):
        await office.emit(f"{number}")
    taken, rounds = list[str](), 0
    while len(taken) < 64:
        rounds += 1
        batches = await asyncio.gather(*(take(office, f"{rounds}/{number}", most=3) for number in range(8)))
        rows = [(f"{rounds}/{number}", row) for number, batch in enumerate(batches) for row in batch.leased]
        per_endpoint = [sum(row.endpoint_id == other.endpoint_id for _, row in rows) for _, other in rows]
        assert 0 < len(rows) <= 8
        assert max(per_endpoint) <= 2
        await office.store.write(acknowledge_attempts, outcomes=[outcome(office, row, lease) for lease, row in rows])
        taken += [row.id for _, row in rows]
    assert len(taken) == len(set(taken)) == 64


async def test_an_expired_lease_is_retaken_and_the_stale_ack_changes_nothing(on_both: PostOffice) -> None:
    office = on_both
    endpoint, _ = await office.endpoint(URL)
    event = await office.emit()
    (row,) = (await take(office, "dead")).leased
    office.clock.advance(DELIVERY_LEASE_MS / 1000 - 0.001)
    assert (await take(office, "early")).taken == 0
    office.clock.advance(0.001)
    assert ids(await take(office, "second")) == [row.id]
    assert await office.store.write(acknowledge_attempts, outcomes=[outcome(office, row, "dead", "gone")]) == 0
    assert (await office.states(event), await office.status(endpoint)) == ([("pending", [])], "enabled")
    assert await office.store.write(acknowledge_attempts, outcomes=[outcome(office, row, "second")]) == 1
    assert await office.states(event) == [("delivered", ["ok"])]


async def test_an_ack_counts_once(on_both: PostOffice) -> None:
    office = on_both
    await office.endpoint(URL)
    event = await office.emit()
    (row,) = (await take(office, "one")).leased
    done = outcome(office, row, "one", "failed", wait=5)
    assert await office.store.write(acknowledge_attempts, outcomes=[done, done]) == 1
    assert await office.states(event) == [("pending", ["status:500"])]
    assert await office.store.read(next_delivery_due) == done.next_ms


async def test_a_lease_given_back_is_due_at_once(on_both: PostOffice) -> None:
    office = on_both
    await office.endpoint(URL)
    await office.emit()
    (row,) = (await take(office, "one")).leased
    now_ms = int(office.clock.now() * 1000)
    assert await office.store.write(return_deliveries, leases=[(row.id, "another")], now_ms=now_ms) == 0
    assert await office.store.write(return_deliveries, leases=[(row.id, "one")], now_ms=now_ms) == 1
    assert ids(await take(office, "two")) == [row.id]


async def test_what_waits_for_an_endpoint_that_is_disabled_has_failed_and_can_be_replayed(on_both: PostOffice) -> None:
    office = on_both
    endpoint, _ = await office.endpoint(URL)
    events = [await office.emit(f"{number}") for number in range(4)]
    gone, flying = (await take(office, "one")).leased
    await office.store.write(acknowledge_attempts, outcomes=[outcome(office, gone, "one", "gone")])
    assert await office.status(endpoint) == "disabled"
    assert [(await office.states(event))[0][0] for event in events] == ["failed", "pending", "failed", "failed"]
    await office.store.write(acknowledge_attempts, outcomes=[outcome(office, flying, "one", "failed", wait=5)])  # it was under way
    assert [(await office.states(event))[0][0] for event in events] == ["failed"] * 4
    assert (await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/enable")).status_code == 200
    answer = await office.http.post(f"/v1/connectivity/webhook_endpoints/{endpoint}/replay", json={})
    assert answer.json() == {"object": "connectivity.replay", "replayed": 4, "brought_forward": 0}
    assert (await take(office, "two")).taken == 2


async def test_deleting_an_endpoint_drops_what_is_pending_even_under_way_and_keeps_what_ended(on_both: PostOffice) -> None:
    office = on_both
    endpoint, _ = await office.endpoint(URL)
    ended, flying, waiting = [await office.emit(f"{number}") for number in range(3)]
    first, second = (await take(office, "one")).leased
    await office.store.write(acknowledge_attempts, outcomes=[outcome(office, first, "one")])
    assert (await office.http.delete(f"/v1/connectivity/webhook_endpoints/{endpoint}")).status_code == 200
    assert await office.store.write(acknowledge_attempts, outcomes=[outcome(office, second, "one")]) == 0
    assert [await office.states(event) for event in (ended, flying, waiting)] == [[("delivered", ["ok"])], [], []]
    assert await office.store.read(next_delivery_due) is None
