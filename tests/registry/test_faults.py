"""Faults of ours and of the database: a body that says nothing, and nothing done."""

import pytest
from inline_snapshot import snapshot

from tests.registry import things
from tests.registry.bench import Bench
from tests.world import Credentials


async def test_a_write_that_does_not_settle_is_a_500_and_changes_nothing(bench: Bench, pro: Credentials) -> None:
    said = await bench.ask(things.forget_to_settle, pro, key="k", name="x")
    assert (said.status, said.code) == (500, "internal")
    assert "forget_to_settle finished without settling" in str(bench.world.faults[0][2])
    assert await bench.counters() == {} and await bench.claimed() == [] and await bench.called(pro) == 0


@pytest.mark.parametrize("operation", [things.read_thing, things.fail_before_write], ids=lambda each: each.id)
async def test_a_fault_is_a_500_with_a_request_id_and_no_detail(bench: Bench, pro: Credentials, operation: object) -> None:
    assert isinstance(operation, type(things.read_thing))
    said = await bench.ask(operation, pro, name="x", how="crash")
    request_id = bench.world.faults[0][0]
    assert (said.status, said.json["request_id"]) == (500, request_id)
    assert {**said.json, "request_id": ""} == snapshot(
        {"error": "Internal error; quote the request id when you report it", "code": "internal", "request_id": ""}
    )


async def test_a_read_that_met_a_fault_is_charged_and_a_write_is_not(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.fail_before_write, pro, name="x", how="crash")
    assert await bench.called(pro) == 0


@pytest.mark.parametrize("operation", [things.read_thing, things.fail_before_write], ids=lambda each: each.id)
async def test_a_database_in_trouble_is_503_with_retry_after_and_costs_nothing(bench: Bench, pro: Credentials, operation: object) -> None:
    assert isinstance(operation, type(things.read_thing))
    said = await bench.ask(operation, pro, name="x", how="down")
    assert (said.status, said.code, said.headers["Retry-After"]) == (503, "store_unavailable", "1")
    assert await bench.counters() == {} and await bench.called(pro) == 0
    assert bench.world.faults == []


async def test_a_refusal_inside_the_transaction_undoes_it(bench: Bench, pro: Credentials) -> None:
    said = await bench.ask(things.refuse_in_write, pro, key="k", name="x")
    assert (said.status, said.json["error"]) == (409, "x is taken")
    assert await bench.counters() == {} and await bench.claimed() == []


async def test_a_fault_after_something_was_sent_leaves_its_key_an_answer_and_is_never_sent_again(bench: Bench, pro: Credentials) -> None:
    first = await bench.ask(things.crash_at_conclude, pro, key="k", name="x")
    assert (first.status, first.code) == (500, "internal")
    again = await bench.ask(things.crash_at_conclude, pro, key="k", name="x")
    assert (again.status, again.code) != (409, "idempotency_in_progress")
    assert await bench.counters() == {"sent x": 1}
    assert [row.state for row in await bench.claimed()] == ["unknown"]
