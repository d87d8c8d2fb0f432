"""What tests/http/test_server.py does not try: whoever hangs up, half closes, or sends a body that never ends (docs/security.md)."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.endurance.rude import crowd_of_dribblers, dribble, hang_up, visits
from tests.http.test_server import SHORT, RunningHere, serving, status_of
from tests.stage import opened
from tests.world import Credentials, World, open_world

world = opened(open_world, CATALOGUE, limits=Limits(burst_enabled=False))


@pytest.fixture
async def me(world: World) -> Credentials:
    return await world.caller(Tier.ENTERPRISE)


@pytest.fixture
async def server(world: World) -> AsyncGenerator[RunningHere]:
    async with serving(world.door, world) as running:
        yield running


async def alone(server: RunningHere) -> None:
    """Until nobody is connected any more; others are answered all the time."""
    async with asyncio.timeout(60):
        while server.server.server_state.connections:
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_heads_bodies_and_chunks_that_dribble_are_cut_off_in_time(server: RunningHere, me: Credentials) -> None:
    held = asyncio.ensure_future(crowd_of_dribblers(server.port, me.secret, 20, SHORT.headers, SHORT.body, every=0.1))
    answered = 0
    while not held.done():
        assert status_of(await server.get()) == 200
        answered += 1
    assert await held == []
    assert answered > 5


@pytest.mark.long
async def test_a_chunked_body_without_end_is_cut_off_at_its_size(server: RunningHere, me: Credentials) -> None:
    start = b"POST /v1/connectivity/intents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nIdempotency-Key: endless\r\n"
    start += f"Authorization: Bearer {me.secret}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    told = await dribble(server.port, start, lambda count: chunk, 0.001, 10)
    assert (status_of(told.heard), b"too_large" in told.heard) == (413, True)
    await alone(server)


async def test_whoever_hangs_up_half_closes_or_talks_nonsense_leaves_nothing_behind(
    world: World, server: RunningHere, me: Credentials
) -> None:
    heard: list[bytes] = []
    for _ in range(3):
        heard = await asyncio.gather(*(hang_up(server.port, sent, read=read, half=half) for sent, read, half in visits(me.secret)))
    assert [status_of(each) for each in heard[:7]] == [0, 200, 200, 0, 400, 200, 431]
    assert status_of(heard[7]) in (408, 414)  # an address without end: by its size, or by the time that it takes
    await alone(server)
    assert not server.server.server_state.tasks
    assert world.faults == []
    async with world.client(me.secret) as http:
        listed = (await http.get("/v1/connectivity/intents")).json()["data"]
    assert len(listed) <= 1  # whoever asked for it hung up at once, three times under one key
