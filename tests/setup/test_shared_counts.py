"""Keys that share a count: what one of them leased is neither all the other's, nor lost to it; on both databases."""

import anyio
import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Restrictions, Tier
from registry.limits import Limits
from tests.stage import opened_on_both
from tests.world import World, open_world

PLANS, KEYS, INTENTS = "/v1/connectivity/plans", "/v1/api-keys", "/v1/connectivity/intents"


world = opened_on_both(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


async def limited(world: World, calls: int) -> str:
    who = await world.caller(Tier.ENTERPRISE)
    return (await world.key(who.person, who.organisation, restrictions=Restrictions(calls_per_day=calls)))[1]


async def read(http: httpx.AsyncClient) -> int:
    return (await http.get(PLANS)).status_code


async def write(http: httpx.AsyncClient, key: str) -> int:
    return (await http.post(INTENTS, json={}, headers={"Idempotency-Key": key})).status_code


async def child_of(http: httpx.AsyncClient, calls: int) -> str:
    made = await http.post(KEYS, json={"name": "child", "restrictions": {"calls_per_day": calls}})
    assert made.status_code == 201
    return made.json()["secret"]


async def test_a_small_limit_holds_beside_a_large_one_that_is_leased_in_blocks(world: World) -> None:
    async with world.client(await limited(world, 10_000)) as large:
        assert await read(large) == 200
        async with world.client(await child_of(large, 5)) as small:
            assert [await read(small) for _ in range(5)] == [200] * 3 + [429] * 2
            assert await write(small, "a") == 429
            assert await read(large) == 200
            assert [await read(small), await write(small, "b")] == [429] * 2


async def test_what_is_leased_and_not_used_is_not_used_up(world: World) -> None:
    async with world.client(await limited(world, 10_000)) as large:
        assert await read(large) == 200
        async with world.client(await child_of(large, 5)) as small:
            assert [await write(small, str(number)) for number in range(5)] == [201] * 3 + [429] * 2
            assert [await read(small), await read(large)] == [429, 200]


@pytest.mark.long
async def test_a_limit_is_met_exactly_by_reads_and_writes_at_once(world: World) -> None:
    said: list[int] = []
    async with world.client(await limited(world, 250)) as http:

        async def one(number: int) -> None:
            said.append(await (read(http) if number % 2 else write(http, str(number))))

        for first in range(0, 320, 64):
            async with anyio.create_task_group() as tasks:
                for number in range(first, first + 64):
                    tasks.start_soon(one, number)
    assert (said.count(200) + said.count(201), said.count(429)) == (250, 70)


@pytest.mark.long
async def test_what_was_refused_before_it_was_done_is_given_back_once(world: World) -> None:
    async with world.client(await limited(world, 300)) as http:
        assert await read(http) == 200
        for number in range(30):  # its write refuses, so its claim and its charges are undone
            missing = await http.delete("/v1/connectivity/webhook_endpoints/we_none", headers={"Idempotency-Key": str(number)})
            assert missing.status_code == 404
        said = [await read(http) for _ in range(310)]
    assert (said.count(200), said.count(429)) == (299, 11)
