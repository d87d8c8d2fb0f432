"""The simulated loop: virtual time, one seed one interleaving, deadlocks told, crashes final."""

from asyncio import Future
from collections.abc import Awaitable, Callable
from random import Random

import anyio
import pytest

from tests.simulation.loop import Deadlock, SimLoop
from tests.simulation.process import Crashed, Gone, Process


def simulate(seed: int, main: Callable[[SimLoop], Awaitable[object]]) -> SimLoop:
    loop = SimLoop(Random(seed))

    async def run() -> None:
        await main(loop)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return loop


def order_of(seed: int) -> list[int]:
    seen: list[int] = []

    async def main(loop: SimLoop) -> None:
        async def one(number: int) -> None:
            for _ in range(3):
                await anyio.sleep(0)
                seen.append(number)

        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(one, number)

    simulate(seed, main)
    return seen


def test_one_seed_gives_one_interleaving_and_seeds_differ() -> None:
    assert all(order_of(seed) == order_of(seed) for seed in range(10))
    assert len({tuple(order_of(seed)) for seed in range(10)}) > 5


def test_days_of_sleep_pass_at_once() -> None:
    async def main(loop: SimLoop) -> None:
        await anyio.sleep(76 * 3600)

    assert simulate(1, main).time() == 76 * 3600


def test_time_outs_shields_and_events_work_in_virtual_time() -> None:
    async def main(loop: SimLoop) -> None:
        with anyio.move_on_after(5) as late:
            await anyio.sleep(6)
        assert late.cancelled_caught and loop.time() == 5
        with anyio.move_on_after(1), anyio.CancelScope(shield=True):
            await anyio.sleep(3)
        assert loop.time() == 8
        called = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(called.wait)
            called.set()

    simulate(1, main)


def test_waiting_for_nothing_is_a_deadlock() -> None:
    async def main(loop: SimLoop) -> None:
        waits: Future[None] = loop.create_future()
        await waits

    with pytest.raises(Deadlock):
        simulate(1, main)


def test_a_dead_process_reaches_nothing_and_its_client_is_left_without_an_answer() -> None:
    done: list[str] = []

    async def main(loop: SimLoop) -> None:
        process = Process(loop, "p")

        async def work() -> None:
            try:
                await anyio.sleep(10)
                done.append("worked")
            finally:
                with anyio.CancelScope(shield=True):
                    process.check()
                    done.append("cleaned up")

        async def killer() -> None:
            await anyio.sleep(5)
            process.crash()

        async with anyio.create_task_group() as group:
            group.start_soon(killer)
            with pytest.raises(Gone):
                await process.request(work())
        with pytest.raises(Crashed):
            process.check()

    loop = simulate(1, main)
    assert (done, loop.faults) == ([], [])
