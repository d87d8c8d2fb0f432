"""Each write on a line reaches the network once per key, whatever became of the answer."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.transport import SimulatorTransport
from tests.subscribers.staged import LINE_WRITES, LineStage, Write, open_line_stage
from tests.world import NOON

ALL = [write.operation for write in LINE_WRITES]
KEPT = [write.operation for write in LINE_WRITES if write.changes is not None]
UNKNOWN = "It may have been carried out all the same: read the state before you repeat it."


def strike(stage: LineStage, write: Write, **fault: object) -> None:
    stage.world.sandbox.faults.add(NetworkFault(write.sends, **fault))  # pyright: ignore[reportArgumentType]  # the tests name its fields


def shown(answer: httpx.Response) -> tuple[int, str, int | None]:
    """Status, code and the upstream's own code."""
    body = answer.json()
    return answer.status_code, body["code"], body.get("ocs_code")


def state(lines: dict[str, Line]) -> dict[str, object]:
    """What the writes change, as it is now."""
    return {write.operation: write.changes(lines[write.operation]) for write in LINE_WRITES if write.changes is not None}


@pytest.mark.parametrize(
    ("fault", "carried_out", "code", "ocs_code"),
    [
        pytest.param({"code": 18}, False, "ocs_timeout", 18, id="code 18 before the commit"),
        pytest.param({"code": 18, "commit": True}, True, "ocs_timeout", 18, id="code 18 after the commit"),
        pytest.param({"drop_before": True}, False, "ocs_error", None, id="dropped before the commit"),
        pytest.param({"drop_after": True}, True, "ocs_error", None, id="dropped after the commit"),
        pytest.param({"malformed": True}, True, "ocs_error", None, id="an answer cut off"),
        pytest.param({"empty": True}, True, "ocs_error", None, id="an empty answer"),
        pytest.param({"status": 500}, False, "ocs_error", None, id="status 500 before the commit"),
        pytest.param({"status": 500, "commit": True}, True, "ocs_error", None, id="status 500 after the commit"),
    ],
)
async def test_a_write_whose_outcome_is_unknown_is_not_sent_again(
    stage: LineStage, fault: dict[str, object], carried_out: bool, code: str, ocs_code: int | None
) -> None:
    lines = stage.prepared()
    before = state(lines)
    first: dict[str, httpx.Response] = {}
    for write in LINE_WRITES:
        strike(stage, write, **fault)
        first[write.operation] = await stage.write(write, lines[write.operation], key=write.operation)
    assert {name: shown(answer) for name, answer in first.items()} == dict.fromkeys(ALL, (502, code, ocs_code))
    assert [name for name, answer in first.items() if not answer.json()["error"].endswith(UNKNOWN)] == []
    assert await stage.claims() == dict.fromkeys(ALL, "unknown")
    after = state(lines)
    assert [name for name in KEPT if (after[name] != before[name]) != carried_out] == []
    assert await stage.charged() == len(ALL)
    again = {write.operation: await stage.write(write, lines[write.operation], key=write.operation) for write in LINE_WRITES}
    assert {name: (answer.status_code, answer.content) for name, answer in again.items()} == {
        name: (502, answer.content) for name, answer in first.items()
    }
    assert {name: answer.headers["Idempotent-Replayed"] for name, answer in again.items()} == dict.fromkeys(ALL, "true")
    assert Counter(method for method, _ in stage.writes()) == Counter(write.sends for write in LINE_WRITES)
    assert (await stage.charged(), state(lines), stage.world.sandbox.faults.queue) == (len(ALL), after, [])


async def test_a_write_that_worked_is_answered_again_and_not_sent_again(stage: LineStage) -> None:
    lines = stage.prepared()
    before = state(lines)
    first = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    after = state(lines)
    again = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    assert {name: answer.status_code for name, answer in first.items()} == dict.fromkeys(ALL, 200)
    assert {name: answer.content for name, answer in again.items()} == {name: answer.content for name, answer in first.items()}
    assert {name: answer.headers.get("Idempotent-Replayed") for name, answer in again.items()} == dict.fromkeys(ALL, "true")
    assert [name for name in KEPT if after[name] == before[name]] == [] and state(lines) == after
    assert Counter(method for method, _ in stage.writes()) == Counter(write.sends for write in LINE_WRITES)
    assert await stage.charged() == len(ALL)


async def test_a_key_of_one_line_is_refused_for_another(stage: LineStage) -> None:
    one, other = stage.in_status()[:2]
    for write in LINE_WRITES:
        assert (await stage.write(write, one, key="k")).status_code == 200, write
        answer = await stage.write(write, other, key="k")
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused"), write
        one.statuses = one.statuses[:1] + [row for row in one.statuses if row.status == "ACTIVE"]  # suspended lines take no SMS
    assert Counter(method for method, _ in stage.writes()) == Counter(write.sends for write in LINE_WRITES)


async def test_the_traffic_limit_frees_the_key(stage: LineStage) -> None:
    lines = stage.prepared()
    before = state(lines)
    refused: dict[str, httpx.Response] = {}
    for write in LINE_WRITES:
        strike(stage, write, code=100)
        refused[write.operation] = await stage.write(write, lines[write.operation], key="k")
    assert {name: shown(answer) for name, answer in refused.items()} == dict.fromkeys(ALL, (502, "ocs_error", 100))
    assert {name: answer.headers["Retry-After"] for name, answer in refused.items()} == dict.fromkeys(ALL, "1")
    assert (await stage.claims(), state(lines)) == ({}, before)
    again = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    assert {name: (answer.status_code, "Idempotent-Replayed" in answer.headers) for name, answer in again.items()} == dict.fromkeys(
        ALL, (200, False)
    )
    assert [name for name in KEPT if state(lines)[name] == before[name]] == []
    assert await stage.charged() == len(ALL)


async def test_a_refusal_of_the_network_is_the_key_s_answer(stage: LineStage) -> None:
    lines = stage.prepared()
    before = state(lines)
    first: dict[str, httpx.Response] = {}
    for write in LINE_WRITES:
        strike(stage, write, code=14)
        first[write.operation] = await stage.write(write, lines[write.operation], key="k")
    assert {name: shown(answer) for name, answer in first.items()} == dict.fromkeys(ALL, (409, "conflict", 14))
    assert "injected fault" not in "".join(answer.text for answer in first.values())
    again = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    assert {name: answer.content for name, answer in again.items()} == {name: answer.content for name, answer in first.items()}
    assert (await stage.claims(), state(lines)) == ({"k": "done"}, before)
    assert Counter(method for method, _ in stage.writes()) == Counter(write.sends for write in LINE_WRITES)
    assert await stage.charged() == len(ALL)


async def test_a_line_at_its_end_of_life_takes_no_more_changes(stage: LineStage) -> None:
    ended = stage.in_status(status="END_OF_LIFE")[0]
    ended.sighting = stage.line.sighting
    refusing = {"modify_subscriber_status", "affect_subscriber_phone_number", "send_sms"}
    refusing |= {"push_steering_to_subscriber", "set_subscriber_traffic_restrictions"}
    answers = {write.operation: await stage.write(write, ended, key="k") for write in LINE_WRITES if write.operation in refusing}
    assert {name: shown(answer) for name, answer in answers.items()} == dict.fromkeys(refusing, (409, "subscriber_end_of_life", 17))
    assert (ended.statuses[-1].status, ended.allowed_moc, ended.number) == ("END_OF_LIFE", True, ended.own_number)


async def test_the_end_of_life_is_told_whichever_write_meets_it(stage: LineStage) -> None:
    lines = stage.prepared()
    first: dict[str, httpx.Response] = {}
    for write in LINE_WRITES:
        strike(stage, write, code=17)
        first[write.operation] = await stage.write(write, lines[write.operation], key="k")
    assert {name: shown(answer) for name, answer in first.items()} == dict.fromkeys(ALL, (409, "subscriber_end_of_life", 17))
    assert first["send_sms"].json()["error"] == snapshot(
        "The line has reached its end of life: it takes no more changes. Only the provider can undo that; use another line."
    )
    again = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    assert {name: answer.content for name, answer in again.items()} == {name: answer.content for name, answer in first.items()}


async def test_a_read_that_fails_before_the_write_claims_no_key(stage: LineStage) -> None:
    lines = stage.prepared()
    before = state(lines)
    failed: dict[str, httpx.Response] = {}
    for write in LINE_WRITES:
        stage.world.sandbox.faults.add(NetworkFault("getSingleSubscriber", status=500, times=2))  # reads are asked once more
        failed[write.operation] = await stage.write(write, lines[write.operation], key="k")
    assert {name: shown(answer) for name, answer in failed.items()} == dict.fromkeys(ALL, (502, "ocs_error", None))
    assert [name for name, answer in failed.items() if UNKNOWN in answer.text] == []
    assert (await stage.claims(), stage.writes(), state(lines)) == ({}, [], before)
    assert await stage.charged() == len(ALL)  # the network was asked
    again = {write.operation: await stage.write(write, lines[write.operation], key="k") for write in LINE_WRITES}
    assert {name: answer.status_code for name, answer in again.items()} == dict.fromkeys(ALL, 200)
    assert await stage.charged() == 2 * len(ALL)


@pytest.mark.parametrize(
    ("path", "body", "method"),
    [
        ("steering-list", {"listId": 17}, "listSteeringList"),
        ("mobile-plan", {"planId": 530}, "listSubscriberTariff"),
        ("voip-plan", {"planId": 92}, "listSubscriberVoipTariff"),
        ("steering-list", {"listId": 17}, "getResellerInfo"),
    ],
)
async def test_a_list_that_cannot_be_read_claims_no_key(stage: LineStage, path: str, body: dict[str, object], method: str) -> None:
    stage.world.sandbox.faults.add(NetworkFault(method, malformed=True, times=2))
    failed = await stage.ask(path, body, key="k")
    assert shown(failed) == (502, "ocs_error", None)
    assert (await stage.claims(), stage.writes()) == ({}, [])
    again = await stage.ask(path, body, key="k")
    assert (again.status_code, len(stage.writes())) == (200, 1)


async def test_calls_with_one_key_at_the_same_time_send_one_write(stage: LineStage) -> None:
    stage.line.balance = 5_000_000
    answers: list[httpx.Response] = []

    async def lower() -> None:
        answers.append(await stage.ask("balance", {"amount": -1}, key="k"))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lower)
    codes = {(answer.status_code, answer.json().get("code")) for answer in answers}
    assert (200, None) in codes and codes <= {(200, None), (409, "idempotency_in_progress")}
    assert ([method for method, _ in stage.writes()], stage.line.balance) == (["modifySubscriberBalance"], 4_000_000)


async def test_an_answer_that_comes_too_late_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    sandbox = SimulatedNetwork(lambda: build_world(1, int(NOON), history_days=3), wall=lambda: NOON)  # its delays take the time they say
    async with open_line_stage(tmp_path, sandbox) as stage:
        wire = OcsSettings(url="http://ocs.test/main/v1", total_seconds=0.05)
        pool = OcsPool(Outbound(ocs_limits(wire), transport=lambda: SimulatorTransport(sandbox)), wire, stage.world.clock)
        pipeline = stage.world.pipeline
        pipeline.deps = replace(pipeline.deps, ocs=pool)
        write = LINE_WRITES[1]
        stage.line.balance = 5_000_000
        strike(stage, write, delay=600.0)
        late = await stage.write(write, stage.line, key="k")
        assert (shown(late), stage.line.balance) == ((502, "ocs_timeout", 18), 4_000_000)
        again = await stage.write(write, stage.line, key="k")
        assert (again.content, stage.line.balance, len(stage.writes())) == (late.content, 4_000_000, 1)
        await pool.aclose()


@pytest.mark.parametrize(
    "write", [write for write in LINE_WRITES if write.operation in ("send_sms", "change_sim_status", "reset_subscriber_gz_counter")]
)
async def test_a_confirm_challenge_sends_and_charges_nothing(stage: LineStage, write: Write) -> None:
    url = f"/v1/subscribers/{stage.line.iccid}/{write.path}"
    challenge = await stage.http.request(write.method, url, json=write.body, headers={"Idempotency-Key": "k"})
    assert (challenge.status_code, challenge.json()["route"]) == (202, f"{write.method} /v1/subscribers/{{iccid}}/{write.path}")
    assert stage.line.iccid in challenge.json()["message"]
    assert (stage.writes(), await stage.charged(), await stage.claims()) == ([], 0, {})
    other = stage.in_status()[1].iccid
    elsewhere = await stage.http.request(
        write.method, url.replace(stage.line.iccid, other), json=write.body, headers={"X-Confirm-Token": challenge.json()["confirm_token"]}
    )
    assert (elsewhere.status_code, elsewhere.json()["code"], stage.writes()) == (400, "confirm_token_invalid", [])
