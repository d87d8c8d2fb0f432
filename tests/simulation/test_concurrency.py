"""Many clients at once at the HTTP door, with the real operations."""

from collections import Counter

import anyio
import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.stage import opened
from tests.world import World, open_world

INTENTS = "/v1/connectivity/intents"


world = opened(open_world, CATALOGUE, faultless=True, limits=Limits(burst_enabled=False))


async def together(http: httpx.AsyncClient, keys: list[str], plan: str = "test_eu_1gb") -> list[httpx.Response]:
    """An intent for each key, all at once."""
    answers: list[httpx.Response] = []

    async def one(key: str) -> None:
        answers.append(await http.post(INTENTS, json={"plan": plan}, headers={"Idempotency-Key": key}))

    async with anyio.create_task_group() as group:
        for key in keys:
            group.start_soon(one, key)
    return answers


@pytest.mark.rule("3.1.5")
async def test_64_calls_with_one_key_draw_one_esim(world: World) -> None:
    caller = await world.caller(Tier.FREE)
    async with world.client(caller.secret) as http:
        answers = await together(http, ["k"] * 64)
        done = [answer for answer in answers if answer.status_code == 201]
        assert len({answer.content for answer in done}) == 1 and len(done) >= 1
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert sum("idempotent-replayed" not in answer.headers for answer in done) == 1
        assert len((await http.get(INTENTS)).json()["data"]) == 1
        assert len((await http.get("/v1/connectivity/events")).json()["data"]) == 1


async def test_64_calls_over_16_keys_of_two_organisations_draw_32_esims(world: World) -> None:
    iccids: Counter[str] = Counter()
    for _ in range(2):
        caller = await world.caller(Tier.FREE)
        async with world.client(caller.secret) as http:
            answers = await together(http, [f"k{number % 16}" for number in range(64)])
            bodies = {answer.content: answer.json() for answer in answers if answer.status_code == 201}
            assert len(bodies) == 16
            iccids.update(body["esim"]["iccid"] for body in bodies.values())
    assert len(iccids) == 32 and set(iccids.values()) == {1}


async def test_a_waiting_intent_confirmed_by_32_callers_draws_one_esim(world: World) -> None:
    caller = await world.caller(Tier.FREE)
    async with world.client(caller.secret) as http:
        waiting = (await http.post(INTENTS, json={}, headers={"Idempotency-Key": "k"})).json()
        answers: list[httpx.Response] = []

        async def one(plan: str) -> None:
            answers.append(await http.post(f"{INTENTS}/{waiting['id']}/confirm", json={"plan": plan}))

        async with anyio.create_task_group() as group:
            for number in range(32):
                group.start_soon(one, "test_eu_1gb" if number % 2 else "test_global_1gb")
        assert Counter(answer.status_code for answer in answers) == {200: 16, 409: 16}
        assert len({answer.json()["esim"]["iccid"] for answer in answers if answer.status_code == 200}) == 1
        assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"intent_not_confirmable"}
        assert len((await http.get("/v1/connectivity/events")).json()["data"]) == 1
