"""Who asks while others read shares the next reading, and nobody waits longer than their request lasts."""

import anyio
import pytest

from operations.upstream.account_parts import SharedRead, account_turn
from registry.clock import ACTIVE_REQUEST, ActiveRequest
from registry.errors import OcsUnavailable
from tests.world import SettableClock


async def test_all_who_ask_while_a_read_is_under_way_share_the_next_one() -> None:
    shared, gates, told = SharedRead[int](), [anyio.Event() for _ in range(3)], list[int]()
    begun = 0

    async def load() -> int:
        nonlocal begun
        begun += 1
        number = begun
        await gates[number - 1].wait()
        return number

    async def ask() -> None:
        told.append(await shared.get(load))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        for _ in range(10):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert begun == 1
        gates[0].set()
        await anyio.wait_all_tasks_blocked()
        assert (told, begun) == ([1], 2), "what was read before they asked is not shown to them"
        gates[1].set()
    assert sorted(told) == [1] + 10 * [2]
    gates[2].set()
    assert await shared.get(load) == 3


async def test_a_failure_is_for_whose_turn_it_was_and_the_next_one_reads() -> None:
    shared, told = SharedRead[int](), list[str]()
    gate = anyio.Event()

    async def load() -> int:
        await gate.wait()
        if not told:
            told.append("failed")
            raise LookupError
        return 7

    async def ask() -> None:
        try:
            told.append(str(await shared.get(load)))
        except LookupError:
            told.append("refused")

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert sorted(told) == ["7", "7", "failed", "refused"]


async def test_whose_request_is_over_before_their_turn_comes_is_refused() -> None:
    lock, clock, done, told = anyio.Lock(), SettableClock(), anyio.Event(), list[str]()

    async def read_long() -> None:
        async with account_turn(lock):
            await done.wait()

    async def ask_late() -> None:
        ACTIVE_REQUEST.set(ActiveRequest(clock))
        clock.advance(60)
        with pytest.raises(OcsUnavailable, match="wait for the lines of this account"):
            async with account_turn(lock):
                told.append("it was not free")
        done.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read_long)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(ask_late)
    assert told == []
