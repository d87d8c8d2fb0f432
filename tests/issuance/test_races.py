"""Many at once, on either database: one key is one dispatch, one roll-back is one release."""

from collections import Counter

import orjson
import pytest

from registry.caller import Tier
from registry.policy import quota_period
from tests.connectivity.requests import INTENTS
from tests.issuance.stage import FREE_ESIMS, PLAN_SLUG, IssuanceStage, another_process, at_once, open_issuance_stage, replay_of
from tests.network_facts import DELETE, DRAW
from tests.registry import ledgers
from tests.stage import opened_on_both

stage = opened_on_both(open_issuance_stage, concurrency=64)


@pytest.mark.long
@pytest.mark.rule("4.2.49")
@pytest.mark.parametrize("kind", ["inventory", "intent"])
async def test_64_calls_with_one_key_at_two_servers_are_one_dispatch(stage: IssuanceStage, kind: str) -> None:
    other = await another_process(stage)
    async with other.client(stage.me.secret) as http:
        doors = [stage.http, http]
        draw = stage.issue if kind == "inventory" else stage.intend
        answers = await at_once([lambda door=door: draw(http=door) for door in doors * 32])
    made = [answer for answer in answers if answer.status_code == 201]
    busy = [answer for answer in answers if answer.status_code != 201]
    assert len({answer.content for answer in made}) == 1
    assert {(each.status_code, each.json()["code"], each.headers["Retry-After"]) for each in busy} <= {
        (409, "idempotency_in_progress", "1")
    }
    assert [answer.headers.get("Idempotent-Replayed") for answer in made].count(None) == 1
    assert replay_of(await draw()) == (201, made[0].content, "true")
    assert stage.dispatches() == 1 and await stage.free() == FREE_ESIMS - 1
    assert len((await stage.http.get("/v1/connectivity/events")).json()["data"]) == 1


@pytest.mark.long
@pytest.mark.rule("3.6.1")
async def test_32_roll_backs_of_one_key_at_two_servers_are_one_release(stage: IssuanceStage) -> None:
    other = await another_process(stage)
    await stage.issue()
    tokens = [await stage.token() for _ in range(32)]
    async with other.client(stage.me.secret) as http:
        doors = [stage.http, http] * 16
        answers = await at_once(
            [lambda token=token, door=door: stage.ask_to_return(token=token, http=door) for token, door in zip(tokens, doors, strict=True)]
        )
        final = [await stage.give_back(http=door) for door in (stage.http, http)]
    assert {answer.status_code for answer in answers} <= {200, 409}
    done = {answer.content for answer in answers if answer.status_code == 200}
    assert len(done) == 1 and {answer.content for answer in final} == done
    assert {answer.headers["Retry-After"] for answer in answers if answer.status_code == 409} <= {"1"}
    assert len(stage.sent(DELETE)) == 1 and len(stage.sent("changeSimStatus")) == 1
    assert await stage.free() == FREE_ESIMS and await stage.states() == {"k": "rolled_back"}


@pytest.mark.long
async def test_64_keys_share_14_free_esims_and_none_is_given_twice(stage: IssuanceStage) -> None:
    other = await another_process(stage)
    async with other.client(stage.me.secret) as http:
        doors = [stage.http, http] * 32
        answers = await at_once(
            [lambda number=number, door=door: stage.issue(f"k{number}", http=door) for number, door in enumerate(doors)]
        )
    assert Counter(answer.status_code for answer in answers) == {201: FREE_ESIMS, 409: 64 - FREE_ESIMS}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"no_inventory"}
    assert len({answer.json()["data"]["iccid"] for answer in answers if answer.status_code == 201}) == FREE_ESIMS
    assert Counter((await stage.states()).values()) == {"issued": FREE_ESIMS, "failed": 64 - FREE_ESIMS}
    again = await at_once([lambda number=number: stage.issue(f"k{number}") for number in range(64)])
    assert [replay_of(answer) for answer in again] == [(answer.status_code, answer.content, "true") for answer in answers]
    assert stage.dispatches() == 64


@pytest.mark.long
@pytest.mark.rule("3.1.4")
async def test_of_32_confirmations_with_a_live_plan_one_draws_the_esim(stage: IssuanceStage) -> None:
    other = await another_process(stage)
    waiting = (await stage.http.post(INTENTS, json={}, headers={"Idempotency-Key": "w"})).json()["id"]
    path, plans = f"{INTENTS}/{waiting}/confirm", [PLAN_SLUG, "nordic-5gb-30d"] * 16
    async with other.client(stage.me.secret) as http:
        doors = [stage.http, http]
        answers = await at_once(
            [lambda plan=plan, place=place: doors[place // 2 % 2].post(path, json={"plan": plan}) for place, plan in enumerate(plans)]
        )
    assert {answer.status_code for answer in answers} <= {200, 409}
    final = (await stage.http.get(f"{INTENTS}/{waiting}")).json()
    assert final["status"] == "succeeded" and stage.dispatches() == 1
    for plan, answer in zip(plans, answers, strict=True):
        if answer.status_code == 200:
            assert plan == final["plan"]["id"] and answer.json()["status"] in ("processing", "succeeded")
            assert answer.json()["esim"] in (None, final["esim"])
    assert list((await stage.states()).values()) == ["issued"]


@pytest.mark.long
async def test_of_64_calls_with_ten_left_ten_draw(stage: IssuanceStage) -> None:
    world = stage.world
    who = await world.caller(Tier.PRO, mode="managed", account=8101)
    limit = world.pipeline.rate_limiter.limits.tiers[Tier.PRO].calls_per_day
    period = quota_period(world.clock.now()).name
    await world.store.write(ledgers.set_used, organisation=who.organisation, period=period, used=limit - 10)
    async with world.client(who.secret) as http:
        answers = await at_once([lambda number=number: stage.issue(f"k{number}", http=http) for number in range(64)])
    assert Counter(answer.status_code for answer in answers) == {201: 10, 429: 54}
    assert stage.dispatches() == 10 and len(await stage.ledger()) == 10


@pytest.mark.long
async def test_of_16_answers_at_once_that_name_one_esim_one_is_believed(stage: IssuanceStage) -> None:
    first = (await stage.issue("first")).json()["data"]
    await stage.give_back("first")
    await stage.live_on(10)
    told = {"iccid": first["iccid"], "subsPackageId": 1, "subscriberId": 2, "esimId": 3}
    stage.road.answers[DRAW] = orjson.dumps({"status": {"code": 0, "msg": "OK"}, DRAW: told})
    answers = await at_once([lambda number=number: stage.issue(f"k{number}") for number in range(16)])
    assert Counter((answer.status_code, answer.json().get("code")) for answer in answers) == {(201, None): 1, (502, "OUTCOME_UNKNOWN"): 15}
    assert Counter(row.held for row in await stage.ledger()) == {None: 16, first["iccid"]: 1}
    again = await at_once([lambda number=number: stage.issue(f"k{number}") for number in range(16)])
    assert [replay_of(answer) for answer in again] == [(answer.status_code, answer.content, "true") for answer in answers]
