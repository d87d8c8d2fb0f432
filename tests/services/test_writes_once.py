"""Each write on a line reaches the network once per key, whatever became of the answer."""

from collections import Counter

import anyio
import httpx
import pytest
from inline_snapshot import snapshot

from simulators.network.faults import NetworkFault
from tests.subscribers.staged import LINE_WRITES, LineStage, Write

ALL = [write.operation for write in LINE_WRITES]


def strike(stage: LineStage, write: Write, **fault: object) -> None:
    stage.world.sandbox.faults.add(NetworkFault(write.sends, **fault))  # pyright: ignore[reportArgumentType]  # the tests name its fields


def shown(answer: httpx.Response) -> tuple[int, str, int | None]:
    """Status, code and the upstream's own code."""
    body = answer.json()
    return answer.status_code, body["code"], body.get("ocs_code")


async def test_a_key_of_one_line_is_refused_for_another(stage: LineStage) -> None:
    one, other = stage.in_status()[:2]
    for write in LINE_WRITES:
        assert (await stage.write(write, one, key="k")).status_code == 200, write
        answer = await stage.write(write, other, key="k")
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused"), write
        one.statuses = one.statuses[:1] + [row for row in one.statuses if row.status == "ACTIVE"]  # suspended lines take no SMS
    assert Counter(method for method, _ in stage.writes()) == Counter(write.sends for write in LINE_WRITES)


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


@pytest.mark.cases
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
