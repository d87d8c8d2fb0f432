"""A store in the hands of a command: event loops come and go."""

import asyncio

from storage.engine.store import open_store
from tests.storage.counters import bump, insert, names, value_of


def test_one_store_serves_loops_one_after_the_other(database_url: str) -> None:
    store = open_store(database_url)

    async def several() -> list[int | None]:
        return await asyncio.gather(*(store.write(bump, "n") for _ in range(5)))

    asyncio.run(store.write(insert, "n"))
    asyncio.run(several())
    assert asyncio.run(store.read(value_of, "n")) == 5
    asyncio.run(store.aclose())


def test_a_loop_that_ends_in_the_middle_leaves_the_store_working(database_url: str) -> None:
    store = open_store(database_url)

    async def leave_writes_behind() -> None:
        tasks = [asyncio.ensure_future(store.write(insert, f"left-{i}")) for i in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()

    asyncio.run(leave_writes_behind())
    asyncio.run(store.write(insert, "after"))
    assert "after" in asyncio.run(store.read(names))
    asyncio.run(store.aclose())
