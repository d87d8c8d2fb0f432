"""What moves a SIM or money is checked again in its own transaction (abuse case 45)."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from registry.caller import Tier
from registry.catalogue import AnyOperation
from tests.registry import things
from tests.registry.bench import Bench, BenchAnswer
from tests.registry.things import GATES, Gate
from tests.world import Credentials, World

Change = Callable[[World, Credentials], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "downgraded": lambda world, caller: world.move_to(Tier.FREE, caller.organisation),
    "revoked": lambda world, caller: world.revoke(caller),
    "removed": lambda world, caller: world.leave(caller.person, caller.organisation),
}


async def during(
    bench: Bench, caller: Credentials | str, change: Callable[[], Awaitable[object]], operation: AnyOperation = things.move_thing
) -> BenchAnswer:
    """A call that has been authorized, and is committed after the change."""
    gate = Gate()
    GATES.append(gate)
    answers: list[BenchAnswer] = []

    async def move() -> None:
        answers.append(await bench.ask(operation, caller, key="k", name="x", how="hang"))

    async with anyio.create_task_group() as group:
        group.start_soon(move)
        await gate.entered.wait()
        await change()
        gate.open.set()
    return answers[0]


@pytest.mark.cases
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_between_check_and_commit_undoes_the_call(bench: Bench, pro: Credentials, change: str) -> None:
    said = await during(bench, pro, lambda: CHANGES[change](bench.world, pro))
    assert (said.status, said.code) == (401, "unauthorized")
    assert await bench.counters() == {} and await bench.claimed() == []
    assert await bench.called(pro) == 0


async def test_a_session_is_checked_again_as_well(bench: Bench) -> None:
    world = bench.world
    organisation, person = await world.organisation(Tier.PRO), await world.person(subject="ada")
    await world.join(person, organisation)
    said = await during(bench, f"session.ada.{organisation}", lambda: world.leave(person, organisation))
    assert said.status == 401 and await bench.counters() == {}


async def test_a_key_that_ends_meanwhile_ends_the_call(bench: Bench, pro: Credentials) -> None:
    key_id, secret = await bench.world.key(pro.person, pro.organisation)
    caller = Credentials(pro.organisation, pro.person, key_id, secret)
    said = await during(bench, caller, lambda: bench.world.revoke(caller))
    assert said.status == 401
    assert (await bench.ask(things.move_thing, pro, key="k", name="x", how="ok")).status == 200


async def test_without_a_change_the_call_is_committed(bench: Bench, pro: Credentials) -> None:
    said = await during(bench, pro, lambda: bench.world.move_to(Tier.ENTERPRISE, pro.organisation))
    assert said.status == 200 and await bench.counters() == {"x": 1}


async def test_what_the_input_asked_for_is_checked_again_as_well(bench: Bench, pro: Credentials) -> None:
    said = await during(bench, pro, lambda: bench.world.move_to(Tier.FREE, pro.organisation), things.sell_thing)
    assert said.status == 401 and await bench.counters() == {}
    assert (await bench.ask(things.sell_thing, pro, key="k", name="x", how="ok")).status == 402
