"""A call to the network whose outcome nobody knows: it is told, kept, and never tried again."""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest
from inline_snapshot import snapshot

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from registry.caller import Role
from registry.clock import DAY_SECONDS
from simulators.network.faults import NetworkFault
from storage.orphans import recover_orphans
from storage.replicas import REPLICA_LEASE_SECONDS, end_replica
from tests.issuance.road import RoadGate, held
from tests.issuance.stage import IssuanceStage, another_process, replay_of
from tests.network_facts import DRAW
from tests.registry import ledgers
from tests.stage import without_request_id

TEMPLATES = "listPrepaidPackageTemplate"
UNKNOWN = {
    "dropped before": NetworkFault(DRAW, drop_before=True),
    "dropped after": NetworkFault(DRAW, drop_after=True),
    "malformed": NetworkFault(DRAW, malformed=True),
    "empty": NetworkFault(DRAW, empty=True),
    "status 500": NetworkFault(DRAW, status=500),
    "status 500 after": NetworkFault(DRAW, status=500, commit=True),
    "status 404": NetworkFault(DRAW, status=404),
    "code 18": NetworkFault(DRAW, code=18),
    "code 18 after": NetworkFault(DRAW, code=18, commit=True),
    "code 3": NetworkFault(DRAW, code=3),
    "code 5": NetworkFault(DRAW, code=5),
    "code 7 after": NetworkFault(DRAW, code=7, commit=True),
}
SURE = {
    "code 100": (NetworkFault(DRAW, code=100), 502, 100),
    "code 14": (NetworkFault(DRAW, code=14), 409, 14),
    "code 8": (NetworkFault(DRAW, code=8), 502, 8),
    "code 17": (NetworkFault(DRAW, code=17), 409, 17),
    "code 6": (NetworkFault(DRAW, code=6), 409, None),
}
Ask = Callable[[IssuanceStage], Awaitable[httpx.Response]]


@pytest.mark.cases
@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.rule("3.6.5")
async def test_an_ambiguous_answer_is_502_for_ever_and_is_never_tried_again(stage: IssuanceStage, fault: str) -> None:
    stage.trouble(UNKNOWN[fault])
    first = await stage.issue()
    assert first.status_code == 502
    assert without_request_id(first) == snapshot(
        {
            "error": "The charging system did not say whether an eSIM was drawn. Keep the key: "
            "it is found out by itself, and never drawn twice",
            "code": "OUTCOME_UNKNOWN",
            "hint": "Repeat the call with the same key later to learn what came of it",
            "outcome_unknown": True,
        }
    )
    assert await stage.states() == {"k": "outcome_unknown"}
    for days in (0, 1, 9, 20):
        assert replay_of(await stage.issue()) == (502, first.content, "true")
        stage.world.clock.advance(days * DAY_SECONDS)
        await stage.world.store.write(recover_orphans, now=stage.world.clock.now())
    assert await stage.states() == {"k": "outcome_unknown"}
    assert stage.dispatches() == 1


@pytest.mark.cases
@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.rule("3.6.5")
async def test_an_intent_of_unknown_outcome_stays_processing_and_says_so(stage: IssuanceStage, fault: str) -> None:
    stage.trouble(UNKNOWN[fault])
    first = await stage.intend()
    assert (first.status_code, first.json()["status"], first.json()["esim"]) == (201, "processing", None)
    assert first.json()["error"] == snapshot(
        {
            "code": "OUTCOME_UNKNOWN",
            "message": "Whether an eSIM was drawn is not known yet; it is found out by itself, and never drawn a second time",
        }
    )
    assert (await stage.http.get(f"/v1/connectivity/intents/{first.json()['id']}")).json() == first.json()
    for days in (0, 1, 9, 20):
        assert replay_of(await stage.intend()) == (201, first.content, "true")
        stage.world.clock.advance(days * DAY_SECONDS)
        await stage.world.store.write(recover_orphans, now=stage.world.clock.now())
    confirmed = await stage.http.post(f"/v1/connectivity/intents/{first.json()['id']}/confirm", json={"plan": "nordic-1gb-30d"})
    assert (confirmed.status_code, confirmed.json()) == (200, first.json())
    assert stage.dispatches() == 1
    assert (await stage.http.get("/v1/connectivity/events")).json()["data"] == []


@pytest.mark.cases
@pytest.mark.parametrize("fault", SURE)
async def test_a_definite_refusal_is_the_key_s_answer_and_drew_nothing(stage: IssuanceStage, fault: str) -> None:
    trouble, status, code = SURE[fault]
    free = await stage.free()
    stage.trouble(trouble)
    first = await stage.issue()
    assert (first.status_code, first.json().get("ocs_code")) == (status, code)
    stage.world.clock.advance(DAY_SECONDS)
    assert replay_of(await stage.issue()) == (status, first.content, "true")
    assert await stage.states() == {"k": "failed"}
    assert stage.dispatches() == 1 and await stage.free() == free
    assert (await stage.issue("another")).status_code == 201


@pytest.mark.cases
@pytest.mark.parametrize("fault", SURE)
async def test_an_intent_that_was_refused_has_failed(stage: IssuanceStage, fault: str) -> None:
    trouble, _, _ = SURE[fault]
    stage.trouble(trouble)
    first = await stage.intend()
    assert (first.status_code, first.json()["status"], first.json()["esim"]) == (201, "failed", None)
    assert first.json()["error"]["code"] == {"code 6": "no_inventory", "code 17": "subscriber_end_of_life"}.get(fault, "issuance_failed")
    assert replay_of(await stage.intend()) == (201, first.content, "true")
    assert stage.dispatches() == 1


@pytest.mark.cases
@pytest.mark.parametrize("method", ["listPrepaidPackageTemplate", "getResellerInfo", "listSubscriber"])
@pytest.mark.parametrize("fault", [{"drop_after": True}, {"code": 14}, {"code": 18}, {"status": 500}, {"malformed": True}])
async def test_trouble_before_the_dispatch_frees_the_key(stage: IssuanceStage, method: str, fault: dict[str, Any]) -> None:
    stage.trouble(NetworkFault(method, **fault, times=None))
    assert (await stage.issue()).status_code == 502
    intent = await stage.intend()
    assert (intent.status_code, intent.json()["code"]) in [(502, "ocs_error"), (502, "ocs_timeout")]
    assert await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == []
    stage.world.sandbox.faults.clear()
    assert [(await stage.issue()).status_code, (await stage.intend()).status_code] == [201, 201]
    assert stage.dispatches() == 2


async def test_a_closed_port_frees_the_key(stage: IssuanceStage) -> None:
    deps = stage.world.pipeline.deps
    with socket.socket() as closed:  # bound, and never listening
        closed.bind(("127.0.0.1", 0))
        wire = OcsSettings(url=f"http://127.0.0.1:{closed.getsockname()[1]}/main/v1")
        nowhere = OcsPool(Outbound(ocs_limits(wire)), wire, stage.world.clock)
        stage.world.pipeline.deps = replace(deps, ocs=nowhere)
        said = await stage.issue()
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")
    assert await stage.ledger() == [] and await stage.world.store.read(ledgers.claimed) == []
    await nowhere.aclose()
    stage.world.pipeline.deps = deps
    assert (await stage.issue()).status_code == 201
    assert stage.dispatches() == 1


@pytest.mark.parametrize("ask", [IssuanceStage.issue, IssuanceStage.intend])
async def test_an_answer_that_names_another_key_s_esim_is_not_believed(stage: IssuanceStage, ask: Ask) -> None:
    gate = stage.road.gates[DRAW] = RoadGate(back=True)
    gate.open.set()
    first = (await stage.issue("first")).json()["data"]
    told = {"iccid": first["iccid"], "subsPackageId": 1, "subscriberId": 2, "esimId": 3, "activationCode": "STOLEN"}
    stage.road.answers[DRAW] = b'{"status":{"code":0,"msg":"OK"},"affectPackageToSubscriber":%s}' % orjson.dumps(told)
    said = await ask(stage)
    assert said.status_code in (201, 502) and first["iccid"] not in said.text and "STOLEN" not in said.text
    assert (said.json().get("code") or said.json()["error"]["code"]) == "OUTCOME_UNKNOWN"
    rows = {row.state: row for row in await stage.ledger()}
    assert rows["issued"].key == "first" and rows["issued"].held == first["iccid"]
    assert rows["outcome_unknown"].held is None and rows["outcome_unknown"].replied == first["iccid"]
    assert replay_of(await ask(stage)) == (said.status_code, said.content, "true")
    assert stage.dispatches() == 2


async def test_an_esim_that_came_back_to_stock_past_us_may_be_drawn_again(stage: IssuanceStage) -> None:
    intent = (await stage.intend()).json()
    line = await stage.line(intent["esim"]["iccid"])
    line.sim.status, line.packages[:] = "FREE", []
    await stage.live_on(10)
    again = (await stage.issue("again")).json()["data"]
    assert again["iccid"] == intent["esim"]["iccid"]
    assert await stage.states() == {intent["id"]: "released", "again": "issued"}
    seen = (await stage.http.get(f"/v1/connectivity/intents/{intent['id']}")).json()
    assert (seen["status"], seen["esim"], seen["error"]) == snapshot(
        (
            "failed",
            None,
            {"code": "released", "message": "This eSIM was returned to stock at the charging system, and belongs to another issuance now"},
        )
    )
    said = await stage.give_back(intent["id"])
    assert (said.status_code, said.json()["data"]["status"]) == (200, "released")
    assert (await stage.line(again["iccid"])).sim.status == "AFFECTED"


async def audited(stage: IssuanceStage, outcome: str) -> list[str]:
    await stage.world.journal.flush()
    return [row.operation for row in await stage.world.store.read(ledgers.audited) if row.outcome == outcome]


async def test_a_second_key_while_the_first_is_unknown_is_warned_and_not_stopped(stage: IssuanceStage) -> None:
    stage.trouble(NetworkFault(DRAW, drop_after=True))
    assert (await stage.issue("lost")).status_code == 502
    warned = await stage.issue("new")
    assert (warned.status_code, warned.json()["data"]["unresolved_issuance"]) == (201, "lost")
    assert replay_of(await stage.issue("new")) == (201, warned.content, "true")
    assert await audited(stage, "unresolved_issuance") == ["issue_esim_from_inventory"]
    intent = (await stage.intend()).json()
    assert (intent["status"], intent["unresolved_issuance"]) == ("succeeded", "lost")
    assert (await audited(stage, "unresolved_issuance"))[1:] == ["create_connectivity_intent"]
    assert stage.dispatches() == 3


async def test_the_warning_is_for_the_same_caller_template_and_day_alone(stage: IssuanceStage) -> None:
    stage.trouble(NetworkFault(DRAW, drop_after=True))
    await stage.issue("lost")
    assert "unresolved_issuance" not in (await stage.issue("other-template", template=55011)).json()["data"]
    colleague = await stage.world.caller(role=Role.MEMBER, organisation=stage.me.organisation)
    async with stage.world.client(colleague.secret) as http:
        assert "unresolved_issuance" not in (await stage.issue("colleague", http=http)).json()["data"]
    await stage.live_on(DAY_SECONDS - 1)
    assert (await stage.issue("before")).json()["data"]["unresolved_issuance"] == "lost"
    await stage.live_on(2)
    assert "unresolved_issuance" not in (await stage.issue("after")).json()["data"]


@pytest.mark.rule("4.2.49")
async def test_a_network_that_takes_600_seconds_is_asked_once(stage: IssuanceStage) -> None:
    gate = stage.road.gates[DRAW] = RoadGate(back=True)
    async with held(gate, stage.issue) as answers:
        for _ in range(60):
            await stage.live_on(10)
            await stage.world.store.write(recover_orphans, now=stage.world.clock.now())
            busy = await stage.issue()
            assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (409, "idempotency_in_progress", "1")
    assert answers[0].status_code == 201 and stage.dispatches() == 1
    assert replay_of(await stage.issue()) == (201, answers[0].content, "true")


@pytest.mark.cases
@pytest.mark.parametrize("end", ["lease", "left"])
@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize("ask", [IssuanceStage.issue, IssuanceStage.intend])
async def test_what_a_dead_process_had_sent_is_unknown_and_never_sent_again(
    stage: IssuanceStage, ask: Ask, end: str, *, reached: bool
) -> None:
    gate = stage.road.gates[DRAW] = RoadGate(back=reached)
    other = await another_process(stage)
    async with held(gate, lambda: ask(stage)) as answers:
        await end_of(stage, end)
        assert await stage.world.store.write(recover_orphans, now=stage.world.clock.now()) == 1
        async with other.client(stage.me.secret) as http:
            for days in range(3):
                said = await retried(stage, ask, http)
                assert (said.json().get("code") or said.json()["error"]["code"]) == "OUTCOME_UNKNOWN", days
                assert said.headers["Idempotent-Replayed"] == "true"
                stage.world.clock.advance(DAY_SECONDS)
        assert list((await stage.states()).values()) == ["outcome_unknown"]
        assert stage.dispatches() == int(reached)
    # It was only slow: what it was answered counts after all.
    assert answers[0].status_code == 201
    async with other.client(stage.me.secret) as http:
        assert replay_of(await retried(stage, ask, http)) == (201, answers[0].content, "true")
    assert list((await stage.states()).values()) == ["issued"]
    assert stage.dispatches() == 1
    assert len((await stage.http.get("/v1/connectivity/events")).json()["data"]) == 1


@pytest.mark.parametrize("end", ["lease", "left"])
async def test_what_a_dead_process_had_not_sent_is_free_again(stage: IssuanceStage, end: str) -> None:
    gate = stage.road.gates[TEMPLATES] = RoadGate()
    other = await another_process(stage)
    async with held(gate, stage.issue) as answers:
        await end_of(stage, end)
        assert await stage.world.store.write(recover_orphans, now=stage.world.clock.now()) == 0
        async with other.client(stage.me.secret) as http:
            taken = await stage.issue(http=http)
        assert taken.status_code == 201
    # It was only slow, and comes too late.
    assert (answers[0].status_code, answers[0].json()["code"]) == (409, "idempotency_in_progress")
    assert stage.dispatches() == 1
    stage.road.gates.clear()
    assert replay_of(await stage.issue()) == (201, taken.content, "true")
    assert await stage.states() == {"k": "issued"}


async def test_a_retry_itself_judges_what_a_dead_process_left(stage: IssuanceStage) -> None:
    gate = stage.road.gates[DRAW] = RoadGate()
    other = await another_process(stage)
    async with held(gate, stage.issue):
        await end_of(stage, "lease")
        async with other.client(stage.me.secret) as http:
            said = await stage.issue(http=http)
        assert (said.status_code, said.json()["code"]) == (502, "OUTCOME_UNKNOWN")
        assert await stage.states() == {"k": "outcome_unknown"} and stage.dispatches() == 0


async def end_of(stage: IssuanceStage, how: str) -> None:
    """The process is dead for all others, a lease later."""
    if how == "left":
        await stage.world.store.write(end_replica, replica=stage.world.journal.replica, now=stage.world.clock.now())
        stage.world.clock.advance(0.1)
    else:
        stage.world.clock.advance(REPLICA_LEASE_SECONDS + 1)


async def retried(stage: IssuanceStage, ask: Ask, http: httpx.AsyncClient) -> httpx.Response:
    """The same call at another process."""
    return await (stage.issue(http=http) if ask is IssuanceStage.issue else stage.intend(http=http))
