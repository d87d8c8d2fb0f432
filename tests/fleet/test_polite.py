"""Reading in the background takes at most half of the places, lets others go first, and is never done twice."""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from clients.ocs.places import Places, TokenPlaces, in_background
from simulators.network.simulated_network import SimulatedNetwork
from simulators.server import WireAnswer
from tests.fleet.stage import ReadModelStage
from transports.upstream import simulated_pool
from transports.worker.chores import fleet_chore


class CountedNetwork(SimulatedNetwork):
    """Counts the calls that are under way at once; each takes some turns of the loop. `order`: methods, as they begin."""

    under_way = 0
    most = 0
    order: list[str]
    turns = 20

    async def handle(self, method: str, path: str, *rest: Any, **named: Any) -> WireAnswer:
        if path.startswith("/control"):
            return await super().handle(method, path, *rest, **named)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        body: bytes = named.get("body") or rest[2]
        self.order.append(body[2 : body.index(b'"', 2)].decode())
        try:
            for _ in range(self.turns):
                await anyio.sleep(0)
            return await super().handle(method, path, *rest, **named)
        finally:
            self.under_way -= 1


def counted(stage: ReadModelStage, concurrency: int) -> CountedNetwork:
    """The stage's network, from now on counted, behind so many places."""
    network = CountedNetwork(stage.network, wall=stage.clock.now, following=True)
    network.order = []
    pool = simulated_pool(lambda: network, stage.clock, concurrency=concurrency)
    stage.world.pipeline.deps = replace(stage.world.pipeline.deps, ocs=pool)
    stage.world.sandbox = network
    return network


@pytest.mark.cases
@pytest.mark.parametrize(("concurrency", "half"), [(8, 4), (3, 1), (1, 1)])
async def test_the_background_has_half_of_the_places(stage: ReadModelStage, concurrency: int, half: int) -> None:
    network = counted(stage, concurrency)
    await stage.status()
    await stage.sync()
    assert (network.most, await stage.differences()) == (half, [])


async def test_a_person_who_comes_last_goes_before_what_waits_in_the_background(stage: ReadModelStage) -> None:
    """One place for every call; the background may have two, and somebody has it."""
    ordinary, background = Places(1), Places(2)
    places, order = TokenPlaces(ordinary, stage.clock, background=background), list[str]()

    async def call(name: str, *, behind: bool) -> None:
        if behind:
            with in_background():
                give_back = await places.take("somebody")
        else:
            give_back = await places.take("somebody")
        order.append(name)
        give_back()

    held = await places.take("somebody")
    async with anyio.create_task_group() as group:
        for name in ("first read", "second read", "third read"):
            group.start_soon(partial(call, name, behind=True))
            await anyio.sleep(0)
        group.start_soon(partial(call, "a person", behind=False))
        await anyio.sleep(0)
        held()
    assert order == ["a person", "first read", "second read", "third read"]


async def test_what_waits_in_the_background_keeps_no_person_from_waiting(stage: ReadModelStage) -> None:
    """A call that will be overtaken is not counted when it is asked how long the wait will be."""
    places = TokenPlaces(Places(1), stage.clock, background=Places(9))
    for _ in range(8):
        give_back = await places.take("somebody")
        stage.clock.advance(4)
        give_back()
    held = await places.take("somebody")
    async with anyio.create_task_group() as group:

        async def read() -> None:
            with in_background():
                await places.take("somebody")

        for _ in range(6):
            group.start_soon(read)
        await anyio.sleep(0)
        waiting = anyio.Event()

        async def person() -> None:
            (await places.take("somebody", 20.0))()
            waiting.set()

        group.start_soon(person)
        await anyio.sleep(0)
        held()
        with anyio.fail_after(5):
            await waiting.wait()
        group.cancel_scope.cancel()


@pytest.mark.long
async def test_two_workers_never_read_the_same_line(both: ReadModelStage) -> None:
    counted(both, 8)
    _, http = await both.beside(account=8102)
    await both.status()
    await both.status(http)
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(both.new_sync().step)
    await both.sync()
    read = Counter(repr(payload) for payload in both.calls("listSubscriberPrepaidPackages"))
    assert set(read.values()) == {1}
    assert len(read) == sum(line.sim.status != "FREE" for account in (8101, 8102) for line in both.network.lines_of(account))
    assert both.calls("listSubscriber") != [] and len(both.calls("listSubscriber")) == 2


async def test_a_worker_that_dies_leaves_the_fleet_to_the_next_when_its_lease_ends(stage: ReadModelStage) -> None:
    await stage.status()
    dead = stage.new_sync()
    async with anyio.create_task_group() as group:

        async def die() -> None:
            async def never() -> None:
                await anyio.sleep_forever()

            stage.sleep.act = never
            stage.trouble("listSubscriberPrepaidPackages", delay=1.0)
            await dead.step()

        group.start_soon(die)
        while stage.sleep.act is not None or not stage.calls("listSubscriberPrepaidPackages"):
            await anyio.sleep(0.001)
        await stage.sync()
        assert (await stage.status())["lines"] == 13
        stage.clock.advance(31)
        await stage.sync()
        assert (await stage.status())["waiting"]["never_read"] == 0
        group.cancel_scope.cancel()
    stage.clock.advance(301)
    await stage.sync()
    assert await stage.differences() == []


async def test_a_turn_that_is_cancelled_gives_its_lease_back(stage: ReadModelStage) -> None:
    await stage.status()
    with anyio.CancelScope() as scope:

        async def leave() -> None:
            scope.cancel()
            await anyio.sleep_forever()

        stage.sleep.act = leave
        stage.trouble("listSubscriberPrepaidPackages", delay=1.0)
        await stage.new_sync().step()
    assert scope.cancelled_caught
    await stage.sync()
    assert await stage.differences() == []


async def test_a_process_that_ends_stops_reading_and_the_next_one_goes_on_where_it_was(stage: ReadModelStage) -> None:
    chore = fleet_chore(stage.world.pipeline.deps, stage.reports.append, lambda: True)
    stage.trouble("listSubscriberPrepaidPackages", delay=1.0)

    async def end() -> None:
        chore.stop()

    stage.sleep.act = end
    await chore.run()
    assert stage.sleep.act is None
    read = len(stage.calls("listSubscriberPrepaidPackages"))
    assert read > 0
    await stage.sync()
    assert len(stage.calls("listSubscriberPrepaidPackages")) > read
    assert await stage.differences() == []
