"""What the worker sends without having been asked: one commit before, one after, and no outcome is lost with a store that is away."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from operations.catalogue import CATALOGUE
from operations.deps import Deps
from operations.ledger.send_once import BackgroundDispatch, DeferredWrites
from registry.errors import OcsError, StoreUnavailable
from registry.ports import Conclusion
from storage.engine.sql import Connection
from tests.fulfilment.mortal import Forgetful
from tests.registry.things import add, add_and_crash, counters
from tests.stage import opened
from tests.world import World, open_world

DONE = Conclusion(200, {}, unknown=False, outcome="ok")


world = opened(open_world, CATALOGUE)


def concluded(connection: Connection, *, name: str) -> Conclusion:
    add(connection, name=name)
    return DONE


def away(world: World, *commits: int) -> Deps:
    """The store does not take the commits with these numbers."""
    deps = world.pipeline.deps
    return replace(deps, store=Forgetful(world.store, set(commits)))


def errand_of(deps: Deps, debts: DeferredWrites) -> BackgroundDispatch:
    """One that says what would be written if nobody came back, and if it never left."""
    errand = BackgroundDispatch(deps, debts, organisation="org_1", operation_id="send_thing")
    errand.if_lost(add, name="lost")
    errand.if_unsent(add, name="unsent")
    return errand


async def sent(errand: BackgroundDispatch, *troubles: BaseException) -> Conclusion:
    await errand.dispatch((502, {}), add, name="dispatched")
    for trouble in troubles:
        raise trouble
    return await errand.conclude(concluded, name="concluded")


async def written(world: World) -> dict[str, int]:
    return await world.store.read(counters)


async def test_it_is_written_before_it_is_sent_and_once_more_with_what_came_of_it(world: World) -> None:
    errand = errand_of(world.pipeline.deps, DeferredWrites())
    assert await errand.run(lambda: sent(errand)) == DONE
    assert await written(world) == {"dispatched": 1, "concluded": 1}
    assert (errand.organisation, errand.operation_id, errand.principal, errand.claim_key) == ("org_1", "send_thing", "worker", None)
    assert errand.request_id.startswith("req_") and errand.now == world.clock.now()


@pytest.mark.parametrize(
    ("trouble", "then"),
    [
        pytest.param(OcsError("It was not reached", before_execution=True), "unsent", id="never left"),
        pytest.param(OcsError("It did not say", outcome_unknown=True), "lost", id="no answer"),
        pytest.param(RuntimeError("a fault of ours"), "lost", id="a fault of ours"),
    ],
)
async def test_what_was_not_concluded_is_undone_or_lost(world: World, trouble: Exception, then: str) -> None:
    errand = errand_of(world.pipeline.deps, DeferredWrites())
    with pytest.raises(type(trouble)):
        await errand.run(lambda: sent(errand, trouble))
    assert await written(world) == {"dispatched": 1, then: 1}


async def test_what_was_refused_before_it_was_written_leaves_nothing(world: World) -> None:
    errand = errand_of(world.pipeline.deps, DeferredWrites())

    async def refused() -> None:
        raise OcsError("It was not reached", before_execution=True)

    with pytest.raises(OcsError):
        await errand.run(refused)
    assert await written(world) == {}


async def test_a_commit_that_nobody_heard_of_is_taken_back_before_anything_is_sent(world: World) -> None:
    debts = DeferredWrites()
    errand = errand_of(away(world, 0), debts)
    with pytest.raises(StoreUnavailable):
        await errand.run(lambda: sent(errand))
    assert await written(world) == {"unsent": 1}
    silent = errand_of(away(world, 0, 1), debts)
    with pytest.raises(StoreUnavailable):
        await silent.run(lambda: sent(silent))
    assert await written(world) == {"unsent": 1}
    await debts.write_all(world.pipeline.deps)
    assert await written(world) == {"unsent": 2}


async def test_an_outcome_that_the_store_does_not_take_is_owed_and_paid_once(world: World) -> None:
    debts = DeferredWrites()
    errand = errand_of(away(world, 1), debts)
    with pytest.raises(StoreUnavailable):
        await errand.run(lambda: sent(errand))
    assert await written(world) == {"dispatched": 1}
    for _ in range(2):
        await debts.write_all(world.pipeline.deps)
        assert await written(world) == {"dispatched": 1, "concluded": 1}


async def test_what_is_owed_is_paid_in_its_order_and_stays_owed_while_the_store_is_away(world: World) -> None:
    debts, paid = DeferredWrites(), list[int]()

    def pay(connection: Connection, *, place: int) -> None:
        add(connection, name="debt")
        paid.append(place)

    for place in range(4):
        debts.defer(partial(pay, place=place))
    for commits in ((2,), (0,), (1,)):
        with pytest.raises(StoreUnavailable):
            await debts.write_all(away(world, *commits))
    await debts.write_all(away(world))
    assert (paid, await written(world)) == ([0, 1, 2, 3], {"debt": 4})


async def test_what_a_fault_of_ours_makes_impossible_does_not_stand_in_the_way_of_the_rest(world: World) -> None:
    debts = DeferredWrites()
    debts.defer(partial(add_and_crash, name="never"), instead=(partial(add, name="instead"),))
    debts.defer(partial(add, name="behind it"))
    with pytest.raises(RuntimeError):
        await debts.write_all(world.pipeline.deps)
    assert await written(world) == {}
    await debts.write_all(world.pipeline.deps)
    assert await written(world) == {"instead": 1, "behind it": 1}


async def test_a_fault_in_the_write_of_what_came_of_it_leaves_it_lost(world: World) -> None:
    errand = errand_of(world.pipeline.deps, DeferredWrites())

    async def spoilt() -> Conclusion:
        await errand.dispatch((502, {}), add, name="dispatched")
        return await errand.conclude(add_and_crash, name="never")

    with pytest.raises(RuntimeError):
        await errand.run(spoilt)
    assert await written(world) == {"dispatched": 1, "lost": 1}


async def test_of_several_who_pay_at_once_each_debt_is_paid_by_one(world: World) -> None:
    debts = DeferredWrites()
    for _ in range(8):
        debts.defer(partial(add, name="debt"))
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(debts.write_all, world.pipeline.deps)
    assert await written(world) == {"debt": 8}


async def test_who_stops_the_worker_waits_until_it_is_over(world: World) -> None:
    errand, entered, answered = errand_of(world.pipeline.deps, DeferredWrites()), anyio.Event(), anyio.Event()

    async def slow() -> Conclusion:
        await errand.dispatch((502, {}), add, name="dispatched")
        entered.set()
        await answered.wait()
        return await errand.conclude(concluded, name="concluded")

    async with anyio.create_task_group() as group:
        group.start_soon(errand.run, slow)
        await entered.wait()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
            assert await written(world) == {"dispatched": 1}
            answered.set()
    assert await written(world) == {"dispatched": 1, "concluded": 1}
