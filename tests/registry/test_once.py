"""Idempotency keys: one key, one effect, one answer."""

import pytest

from registry.caller import Tier
from registry.clock import DAY_SECONDS
from storage.claims import sweep_claims
from storage.engine.sweep import sweep_in_steps
from tests.registry import ledgers, things
from tests.registry.bench import Bench, statuses
from tests.world import Credentials

OPERATIONS = [things.make_thing, things.label_thing, things.keep_thing]


@pytest.mark.cases
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
async def test_a_second_call_with_the_same_key_returns_the_same_bytes(bench: Bench, pro: Credentials, operation: object) -> None:
    assert isinstance(operation, type(things.make_thing))
    first = await bench.ask(operation, pro, key="k", name="x", tags={"a": "ä"})
    again = await bench.ask(operation, pro, key="k", name="x", tags={"a": "ä"})
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await bench.counters() == {"x": 1}


async def test_a_refusal_before_execution_is_not_bound_to_the_key(bench: Bench, pro: Credentials) -> None:
    assert (await bench.ask(things.make_thing, pro, key="k", name="x", size=10)).status == 400
    assert (await bench.ask(things.refuse_in_write, pro, key="k", name="x")).status == 409
    assert (await bench.ask(things.refuse_in_write, pro, key="k", name="x")).headers.get("Idempotent-Replayed") is None
    assert (await bench.ask(things.make_thing, pro, key="k", name="x")).status == 201
    assert await bench.counters() == {"x": 1}


async def test_other_input_with_the_same_key_is_refused_and_shows_nothing(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.make_thing, pro, key="k", name="canary")
    said = await bench.ask(things.make_thing, pro, key="k", name="other")
    assert (said.status, said.code, said.json["param"]) == (409, "idempotency_key_reused", "idempotency_key")
    assert "Retry-After" not in said.headers and b"canary" not in said.body
    assert await bench.counters() == {"canary": 1}


async def test_key_order_and_defaults_make_no_other_input(bench: Bench, pro: Credentials) -> None:
    first = await bench.ask(things.make_thing, pro, key="k", name="x", tags={"a": "1", "b": "2"})
    same = [
        await bench.ask(things.make_thing, pro, key="k", tags={"b": "2", "a": "1"}, name="x"),
        await bench.ask(things.make_thing, pro, key="k", name="x", size=1, tags={"b": "2", "a": "1"}),
    ]
    assert [each.body for each in same] == [first.body, first.body]
    assert (await bench.ask(things.make_thing, pro, key="k", name="x", tags={"a": "2", "b": "1"})).status == 409


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
async def test_64_calls_with_one_key_have_one_effect(bench: Bench, pro: Credentials, operation: object) -> None:
    assert isinstance(operation, type(things.make_thing))
    answers = await bench.at_once(64, operation, pro, key="k", name="x")
    assert await bench.counters() == {"x": 1}
    done = [each for each in answers if each.status == 201]
    assert len({each.body for each in done}) == 1
    busy = [each for each in answers if each.status != 201]
    assert {(each.status, each.code, each.headers["Retry-After"]) for each in busy} <= {(409, "idempotency_in_progress", "1")}
    assert await bench.called(pro) == 1


@pytest.mark.long
async def test_64_calls_with_one_key_and_two_inputs_have_one_effect(bench: Bench, pro: Credentials) -> None:
    answers = await bench.at_once(32, things.make_thing, pro, key="k", name="x")
    answers += await bench.at_once(32, things.make_thing, pro, key="k", name="y")
    assert await bench.counters() == {"x": 1}
    assert statuses(answers)[409] >= 32


async def test_another_organisation_s_key_is_its_own(bench: Bench, pro: Credentials) -> None:
    other = await bench.world.caller(Tier.PRO)
    first = await bench.ask(things.make_thing, pro, key="k", name="x")
    theirs = await bench.ask(things.make_thing, other, key="k", name="x")
    assert (first.json["count"], theirs.json["count"]) == (1, 2)
    assert "Idempotent-Replayed" not in theirs.headers


async def test_the_same_key_at_another_operation_is_another_key(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.make_thing, pro, key="k", name="x")
    assert (await bench.ask(things.label_thing, pro, key="k", name="x")).headers.get("Idempotent-Replayed") is None


async def test_a_rotated_api_key_still_gets_the_replay(bench: Bench, pro: Credentials) -> None:
    first = await bench.ask(things.keep_thing, pro, key="k", name="x")
    key_id, secret = await bench.world.key(pro.person, pro.organisation)
    await bench.world.revoke(pro)
    rotated = Credentials(pro.organisation, pro.person, key_id, secret)
    assert (await bench.ask(things.keep_thing, rotated, key="k", name="x")).body == first.body
    assert (await bench.ask(things.keep_thing, pro, key="k", name="x")).status == 401


async def test_a_key_is_free_after_30_days_unless_it_is_kept_for_ever(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.make_thing, pro, key="k", name="x")
    kept = await bench.ask(things.keep_thing, pro, key="k", name="y")
    bench.clock.advance(30 * DAY_SECONDS - 1)
    assert (await bench.ask(things.make_thing, pro, key="k", name="x")).headers["Idempotent-Replayed"] == "true"
    bench.clock.advance(1)
    again = await bench.ask(things.make_thing, pro, key="k", name="x")
    assert again.json["count"] == 2 and "Idempotent-Replayed" not in again.headers
    bench.clock.advance(3650 * DAY_SECONDS)
    await sweep_in_steps(bench.store, sweep_claims, before=bench.clock.now())
    assert (await bench.ask(things.keep_thing, pro, key="k", name="y")).body == kept.body
    assert await bench.counters() == {"x": 2, "y": 1}


async def test_the_sweep_forgets_only_keys_whose_time_has_come(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.make_thing, pro, key="old", name="x")
    bench.clock.advance(10)
    await bench.ask(things.make_thing, pro, key="young", name="x")
    await bench.ask(things.keep_thing, pro, key="kept", name="x")
    bench.clock.advance(30 * DAY_SECONDS - 10)
    assert await sweep_in_steps(bench.store, sweep_claims, before=bench.clock.now()) == 1
    assert [row.key for row in await bench.claimed()] == ["kept", "young"]


async def test_a_stored_answer_is_not_readable_in_the_database(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.keep_thing, pro, key="k", name="canary")
    bodies = await bench.store.read(ledgers.sealed)
    assert len(bodies) == 1 and "canary" not in bodies[0].body
