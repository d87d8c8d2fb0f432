"""Operations that call a provider: the call stands between two commits, and what is not known stays unknown."""

import anyio
import pytest

from registry.clock import DAY_SECONDS
from storage.claims import release_orphaned_claims
from storage.directory import StoreDirectory
from storage.replicas import REPLICA_LEASE_SECONDS, end_replica, renew_replica
from storage.upstream_connections import set_connection
from tests.registry import things
from tests.registry.bench import Bench, BenchAnswer, statuses
from tests.registry.things import GATES, Gate
from tests.world import Credentials


@pytest.fixture
async def caller(bench: Bench) -> Credentials:
    return await bench.connected()


async def order(bench: Bench, caller: Credentials, how: str = "ok", key: str = "k") -> BenchAnswer:
    return await bench.ask(things.order_thing, caller, key=key, name="x", how=how)


async def sent(bench: Bench) -> int:
    return (await bench.counters()).get("sent x", 0)


async def test_the_answer_and_its_writes_are_kept_together(bench: Bench, caller: Credentials) -> None:
    first = await order(bench, caller)
    again = await order(bench, caller)
    assert (first.status, first.json) == (201, {"name": "x", "count": 1})
    assert again.body == first.body and again.headers["Idempotent-Replayed"] == "true"
    assert await bench.counters() == {"sent x": 1, "kept x": 1}
    assert [(row.state, row.status) for row in await bench.claimed()] == [("done", 201)]


@pytest.mark.parametrize(("how", "status", "code"), [("late", 404, "not_found"), ("sure", 502, "ocs_timeout")])
async def test_a_refusal_after_the_provider_was_called_is_the_key_s_answer(
    bench: Bench, caller: Credentials, how: str, status: int, code: str
) -> None:
    first = await order(bench, caller, how)
    again = await order(bench, caller, how)
    assert (first.status, first.code) == (status, code)
    assert (again.status, again.body) == (first.status, first.body)
    assert await sent(bench) == 1
    assert [(row.state, row.status) for row in await bench.claimed()] == [("done", status)]


@pytest.mark.parametrize("how", ["early", "down"])
async def test_a_refusal_before_the_provider_was_called_frees_the_key(bench: Bench, caller: Credentials, how: str) -> None:
    assert (await order(bench, caller, how)).status in (409, 503)
    assert await bench.claimed() == []
    assert (await order(bench, caller)).status == 201
    assert await sent(bench) == 1 and await bench.called(caller) == 1


async def test_an_unknown_outcome_is_never_executed_again(bench: Bench, caller: Credentials) -> None:
    first = await order(bench, caller, "unknown")
    for _ in range(31):
        again = await order(bench, caller, "unknown")
        assert (again.status, again.body) == (502, first.body)
        bench.clock.advance(DAY_SECONDS)
        await bench.store.write(release_orphaned_claims, now=bench.clock.now())
    assert await sent(bench) == 1
    assert [row.state for row in await bench.claimed()] == ["unknown"]


async def test_a_fault_after_the_provider_was_called_leaves_an_unknown_outcome(bench: Bench, caller: Credentials) -> None:
    first = await order(bench, caller, "crash")
    assert (first.status, first.code) == (500, "internal")
    assert [row.state for row in await bench.claimed()] == ["unknown"]
    assert (await order(bench, caller, "crash")).status == 500
    assert await sent(bench) == 1 and len(bench.world.faults) == 1


async def test_the_replay_of_a_fault_is_byte_equal(bench: Bench, caller: Credentials) -> None:
    first = await order(bench, caller, "crash")
    assert (await order(bench, caller, "crash")).body == first.body


async def test_an_answer_that_could_not_be_kept_leaves_an_unknown_outcome(bench: Bench, caller: Credentials) -> None:
    first = await order(bench, caller, "busy_close")
    assert first.status in (500, 502, 503)
    assert [row.state for row in await bench.claimed()] == ["unknown"]
    assert (await order(bench, caller, "busy_close")).status in (500, 502, 503)
    assert await sent(bench) == 1


async def test_a_caller_who_hangs_up_stops_neither_the_call_nor_its_answer(bench: Bench, caller: Credentials) -> None:
    gate = Gate()
    GATES.append(gate)
    async with anyio.create_task_group() as group:
        group.start_soon(order, bench, caller, "hang")
        await gate.entered.wait()
        group.cancel_scope.cancel()
        gate.open.set()
    assert await bench.counters() == {"sent x": 1, "kept x": 1}
    again = await order(bench, caller, "hang")
    assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")


async def test_a_key_of_a_call_under_way_is_409_with_retry_after(bench: Bench, caller: Credentials) -> None:
    gate = Gate()
    GATES.append(gate)
    other = await bench.replica()
    async with anyio.create_task_group() as group:
        group.start_soon(order, bench, caller, "hang")
        await gate.entered.wait()
        for at in (None, other):
            said = await bench.ask(things.order_thing, caller, key="k", at=at, name="x", how="hang")
            assert (said.status, said.code, said.headers["Retry-After"]) == (409, "idempotency_in_progress", "1")
        reused = await bench.ask(things.order_thing, caller, key="k", name="y", how="hang")
        assert reused.code == "idempotency_key_reused"
        gate.open.set()
    assert await sent(bench) == 1


@pytest.mark.long
async def test_a_provider_may_take_600_seconds_while_its_replica_lives(bench: Bench, caller: Credentials) -> None:
    gate = Gate()
    GATES.append(gate)
    async with anyio.create_task_group() as group:
        group.start_soon(order, bench, caller, "hang")
        await gate.entered.wait()
        for _ in range(60):
            bench.clock.advance(10)
            await bench.store.write(renew_replica, replica=bench.world.journal.replica, now=bench.clock.now())
            await bench.store.write(release_orphaned_claims, now=bench.clock.now())
            assert (await order(bench, caller, "hang")).code == "idempotency_in_progress"
        gate.open.set()
    assert (await order(bench, caller, "hang")).status == 201
    assert await sent(bench) == 1


@pytest.mark.cases
@pytest.mark.parametrize("end", ["lease", "left", "swept"])
async def test_a_call_of_a_dead_replica_has_an_unknown_outcome_and_keeps_it(bench: Bench, caller: Credentials, end: str) -> None:
    gate = Gate()
    GATES.append(gate)
    dead = await bench.replica()

    async def abandoned() -> None:
        await bench.ask(things.order_thing, caller, key="k", at=dead, name="x", how="hang")

    async with anyio.create_task_group() as group:
        group.start_soon(abandoned)
        await gate.entered.wait()
        if end == "left":
            await bench.store.write(end_replica, replica=dead.journal.replica, now=bench.clock.now())
            bench.clock.advance(0.1)
        else:
            bench.clock.advance(REPLICA_LEASE_SECONDS + 0.1)
        if end == "swept":
            assert await bench.store.write(release_orphaned_claims, now=bench.clock.now()) == 1
        for _ in range(3):
            said = await order(bench, caller, "hang")
            assert (said.status, said.code) == (502, "OUTCOME_UNKNOWN")
            bench.clock.advance(DAY_SECONDS)
        assert [row.state for row in await bench.claimed()] == ["unknown"]
        assert await sent(bench) == 1
        gate.open.set()  # it was only slow: the outcome becomes known after all
    assert (await order(bench, caller, "hang")).status == 201
    assert await bench.counters() == {"sent x": 1, "kept x": 1}


async def test_an_unknown_outcome_is_shown_only_to_its_own_input_and_organisation(bench: Bench, caller: Credentials) -> None:
    await order(bench, caller, "unknown")
    other = await bench.connected()
    assert (await bench.ask(things.order_thing, caller, key="k", name="y")).code == "idempotency_key_reused"
    assert (await order(bench, other)).status == 201


async def test_64_orders_with_one_key_are_one_dispatch(bench: Bench, caller: Credentials) -> None:
    answers = await bench.at_once(64, things.order_thing, caller, key="k", name="x")
    assert await bench.counters() == {"sent x": 1, "kept x": 1}
    assert set(statuses(answers)) <= {201, 409}
    assert {each.code for each in answers if each.status == 409} <= {"idempotency_in_progress"}
    assert await bench.called(caller) == 1


async def test_nothing_is_dispatched_for_an_organisation_that_lost_its_connection(bench: Bench, caller: Credentials) -> None:
    assert (await StoreDirectory(bench.store).connected(caller.person))[0]["id"] == caller.organisation
    first = await order(bench, caller)
    await bench.store.write(set_connection, organisation=caller.organisation, mode=None, account_id=None, own_token=None)
    assert (await order(bench, caller)).code == "org_not_connected"
    assert first.status == 201 and await sent(bench) == 1
