"""A charging system that does not answer: what is refused before it is sent frees its key, what was sent never is, and others go on."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from clients.ocs.client import OcsPool
from registry.caller import Tier
from registry.clock import REQUEST_SECONDS
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import IssuanceStage, at_once, replay_of
from tests.network_facts import ACCOUNT, DRAW
from tests.registry import ledgers
from tests.stage import without_request_id
from tests.world import SettableClock

RESELLER = "/v1/reseller"
PROBE = "getResellerInfo"
Ask = Callable[[IssuanceStage], Awaitable[httpx.Response]]
ASKS = pytest.mark.parametrize("ask", [IssuanceStage.issue, IssuanceStage.intend])


def send_by(stage: IssuanceStage, pool: OcsPool) -> OcsPool:
    """From now on the service's calls go through this pool."""
    stage.world.pipeline.deps = replace(stage.world.pipeline.deps, ocs=pool)
    return pool


async def reads(stage: IssuanceStage, http: httpx.AsyncClient, count: int) -> list[int]:
    """The statuses of so many reads, one after another."""
    found: list[int] = []
    for _ in range(count):
        stage.world.pipeline.deps.reads.forget()
        found.append((await http.get(RESELLER)).status_code)
    return found


async def nothing_is_kept(stage: IssuanceStage) -> bool:
    """No row, no claim, no call of the quota."""
    return (await stage.ledger(), await stage.world.store.read(ledgers.claimed), stage.dispatches()) == ([], [], 0)


@ASKS
async def test_an_open_breaker_refuses_before_anything_is_sent_and_leaves_key_and_quota_as_they_were(
    stage: IssuanceStage, ask: Ask
) -> None:
    stage.road.refused.add("*")
    assert await reads(stage, stage.http, 3) == [502] * 3
    charged, calls = await stage.charged(), len(stage.world.sandbox.calls)
    said = await ask(stage)
    assert said.status_code == 503
    assert without_request_id(said) == snapshot(
        {
            "error": "The charging system does not answer at present, so the call was not sent; nothing was done.",
            "code": "upstream_unavailable",
            "hint": "Call again after Retry-After seconds",
        }
    )
    assert said.headers["Retry-After"] == "1"
    assert await nothing_is_kept(stage)
    assert (await stage.charged(), len(stage.world.sandbox.calls)) == (charged, calls)
    assert await reads(stage, stage.http, 1) == [503]
    assert (await stage.http.get("/v1/connectivity/products")).status_code == 200, "what does not need it goes on"
    assert await stage.charged() == charged + 1
    stage.road.refused.clear()
    stage.world.clock.advance(1.5)
    assert (await ask(stage)).status_code == 201, "the same key"
    assert stage.dispatches() == 1 and PROBE in stage.methods(calls)


async def test_failures_of_the_only_one_who_calls_open_it_for_all(stage: IssuanceStage) -> None:
    stage.road.refused.add("*")
    assert await reads(stage, stage.http, 4) == [502, 502, 502, 503]
    system = stage.world.pipeline.deps.ocs.system
    assert (system.breaker.open_for_all, system.breaker.opened, system.refused["open"]) == (True, {"all": 1, "organisation": 1}, 1)


@ASKS
async def test_a_draw_before_which_nothing_could_be_read_says_that_none_was_made_and_when_to_repeat_it(
    stage: IssuanceStage, ask: Ask
) -> None:
    stage.road.refused.add("*")
    said = await ask(stage)
    assert said.status_code == 502
    assert without_request_id(said) == snapshot(
        {
            "error": "The charging system could not be reached (refused), so the call was not sent. Check its address; try again later."
            " No eSIM was drawn",
            "code": "ocs_error",
            "hint": "Repeat the call with the same key",
        }
    )
    assert said.headers["Retry-After"] == "10"
    assert await nothing_is_kept(stage)
    stage.road.refused.clear()
    assert (await ask(stage)).status_code == 201, "the same key"
    assert stage.dispatches() == 1


async def test_the_log_tells_when_it_stops_answering_and_when_it_answers_again(stage: IssuanceStage) -> None:
    told = list[str]()
    stage.world.pipeline.deps.ocs.system.report = told.append
    stage.road.refused.add("*")
    await reads(stage, stage.http, 5)
    stage.road.refused.clear()
    stage.world.clock.advance(12)
    assert await reads(stage, stage.http, 3) == [200] * 3
    whose = f"organisation {stage.me.organisation}"
    assert told == [
        f"the charging system does not answer the calls of {whose}: they are refused until it does",
        "the charging system does not answer: calls to it are refused until it does",
        "the charging system answers again, after 12 s in which calls were refused",
        f"the charging system answers the calls of {whose} again",
    ]


async def test_two_organisations_whose_calls_fail_close_nothing_for_a_third(stage: IssuanceStage) -> None:
    world = stage.world
    callers = [await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT) for _ in range(3)]
    async with world.client(callers[0].secret) as one, world.client(callers[1].secret) as two, world.client(callers[2].secret) as third:
        for _ in range(4):
            stage.road.refused.add("*")
            assert set(await reads(stage, one, 3) + await reads(stage, two, 3)) <= {502, 503}
            stage.road.refused.clear()
            assert await reads(stage, third, 2) == [200, 200]
            stage.road.refused.add("*")
            world.clock.advance(0.3)
        assert await reads(stage, one, 1) == [503]
        assert world.pipeline.deps.ocs.system.breaker.open_owners == 2


async def test_half_of_the_connections_may_wait_for_it_and_of_one_organisation_half_of_those(stage: IssuanceStage) -> None:
    world = stage.world
    system = send_by(stage, stage.road.pool(world.clock, most_waiting=4)).system
    gate = stage.road.gates[PROBE] = RoadGate()
    other = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
    async with world.client(other.secret) as second, anyio.create_task_group() as group:
        answers: list[int] = []

        async def call(http: httpx.AsyncClient) -> None:
            answers.append((await http.get(RESELLER)).status_code)

        async def waits(http: httpx.AsyncClient, count: int) -> None:
            for _ in range(2):
                group.start_soon(call, http)
            while system.waiting < count:
                await anyio.sleep(0)

        await waits(stage.http, 2)
        refused = await stage.http.get(RESELLER)
        assert refused.status_code == 503
        assert without_request_id(refused) == snapshot(
            {
                "error": "Too many calls wait for the charging system, so this one was not sent; nothing was done.",
                "code": "upstream_unavailable",
                "hint": "Call again, with fewer calls at once",
            }
        )
        await waits(second, 4)
        assert [(await http.get(RESELLER)).status_code for http in (stage.http, second)] == [503, 503]
        assert (await stage.http.get("/v1/connectivity/products")).status_code == 200
        gate.open.set()
        while len(answers) < 4:
            await anyio.sleep(0)
        assert (answers, system.waiting, system.refused) == ([200] * 4, 0, {"crowded": 3, "open": 0})


class Striking:
    """A clock by which the time of a request is over from its nth look on."""

    def __init__(self, clock: SettableClock, looks: int) -> None:
        self._clock, self.left = clock, looks

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        self.left -= 1
        return self._clock.monotonic() + (2 * REQUEST_SECONDS if self.left < 0 else 0.0)


@ASKS
async def test_whenever_the_time_of_a_request_is_over_its_key_draws_one_esim_and_no_more(stage: IssuanceStage, ask: Any) -> None:
    world = stage.world
    clock, unsent, sent = world.clock, 0, 0
    for looks in range(1, 14):
        key, before = f"key-{looks}", stage.dispatches()
        world.pipeline.deps.reads.forget()
        world.pipeline.clock = Striking(clock, looks)
        said = await ask(stage, key)
        world.pipeline.clock = clock
        drawn = stage.dispatches() - before
        assert drawn in (0, 1)
        again = await ask(stage, key)
        if "OUTCOME_UNKNOWN" in said.text:  # between two looks that follow each other at once
            assert (again.status_code, again.content, stage.dispatches()) == (said.status_code, said.content, before + drawn)
        elif drawn:  # it was sent in time, and settled whatever the time was then
            assert (said.status_code, again.content) == (201, said.content)
            sent += 1
        else:  # it was refused before anything was sent: nothing was left of it
            assert (said.status_code, said.json()["code"]) == (502, "ocs_timeout") and "outcome_unknown" not in said.json()
            assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (201, None)
            unsent += 1
        assert stage.dispatches() - before <= 1
    assert unsent >= 2 and sent >= 2


@pytest.mark.cases
@ASKS
@pytest.mark.parametrize("back", [False, True], ids=["on its way there", "on its way back"])
async def test_a_deadline_while_the_draw_is_under_way_leaves_its_outcome_unknown(stage: IssuanceStage, ask: Any, back: bool) -> None:
    send_by(stage, stage.road.pool(stage.world.clock, seconds=1.5))  # what goes before the draw has to be done in it, on a busy machine too
    gate = stage.road.gates[DRAW] = RoadGate(back=back)
    said = await ask(stage)
    del stage.road.gates[DRAW]
    assert "OUTCOME_UNKNOWN" in said.text and list((await stage.states()).values()) == ["outcome_unknown"]
    assert gate.entered.is_set()
    again = await ask(stage)
    assert (again.status_code, again.content) == (said.status_code, said.content)
    assert stage.dispatches() == (1 if back else 0), "never sent again"


@pytest.mark.long
@ASKS
async def test_an_answer_that_comes_after_the_deadline_is_settled(stage: IssuanceStage, ask: Any) -> None:
    gate = stage.road.gates[DRAW] = RoadGate(back=True)
    async with held(gate, lambda: ask(stage)) as answers:
        await stage.live_on(REQUEST_SECONDS + 1)
    assert answers[0].status_code == 201 and list((await stage.states()).values()) == ["issued"]
    assert replay_of(await ask(stage)) == (201, answers[0].content, "true") and stage.dispatches() == 1


async def test_many_keys_in_an_outage_and_after_it_draw_one_esim_each(stage: IssuanceStage) -> None:
    stage.road.refused.add("*")
    first = await at_once([lambda key=f"k{n}": stage.issue(key) for n in range(10)])
    assert {answer.status_code for answer in first} <= {502, 503} and await nothing_is_kept(stage)
    stage.road.refused.clear()
    stage.world.clock.advance(2)
    assert (await stage.issue("k0")).status_code == 201
    rest = await at_once([lambda key=f"k{n}": stage.issue(key) for n in range(10)])
    assert [answer.status_code for answer in rest] == [201] * 10 and stage.dispatches() == 10


COMPOSITES = {
    "fleet-health": "subscriberUsageOverPeriod",
    "high-cost-subscribers": "subscriberUsageOverPeriod",
    "churn-risk": "subscriberUsageOverPeriod",
    "optimize-package": "subscriberUsageOverPeriod",
    "detect-usage-anomalies": "subscriberUsageOverPeriod",
    "marketing-intelligence": "subscriberUsageOverPeriod",
}


async def late(stage: IssuanceStage, name: str, method: str, times: int, status: int = 200) -> tuple[Any, int]:
    """A composite's answer whose time is over when this method was called so often, and how often it was called in all."""
    reached: list[str] = []

    def seen(called: str) -> None:
        if called == method:
            reached.append(called)
            if len(reached) == times:
                stage.world.clock.advance(41)

    stage.road.seen = seen
    body = {"start": "2027-01-01", "end": "2027-01-14"} if name == "high-cost-subscribers" else {}
    said = await stage.http.post(f"/v1/intelligence/{name}", json=body)
    assert said.status_code == status, said.text
    return said.json(), len(reached)


@pytest.mark.long
@pytest.mark.parametrize("name", COMPOSITES)
async def test_a_composite_whose_time_is_over_answers_with_what_it_has_and_says_what_is_missing(stage: IssuanceStage, name: str) -> None:
    said, reached = await late(stage, name, COMPOSITES[name], 9)
    assert said["incomplete"]["lines"] > 0 and 9 <= reached <= 16


@pytest.mark.cases
@pytest.mark.parametrize("name", COMPOSITES)
async def test_a_composite_that_had_time_for_the_list_alone_answers_with_that(stage: IssuanceStage, name: str) -> None:
    said, listed = await late(stage, name, "listSubscriber", 1)
    assert said["incomplete"] is not None and listed == 1


@pytest.mark.long
async def test_an_audit_that_had_no_time_to_read_zones_is_refused_and_says_so(stage: IssuanceStage) -> None:
    said, _ = await late(stage, "audit-network-coverage", "listSubscriber", 1, 502)
    assert said["code"] == "ocs_timeout" and said["error"].endswith("so the call was not sent. Call again.")
    stage.road.seen = lambda called: None
    assert (await stage.http.post("/v1/intelligence/audit-network-coverage", json={})).status_code == 200
