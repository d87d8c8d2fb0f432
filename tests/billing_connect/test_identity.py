"""Identity sessions: recorded by the organisation, moved with the internal key."""

import asyncio

import pytest
from inline_snapshot import snapshot

from registry.caller import Tier
from tests.billing_connect.asking import BILLING_PATH, ConnectAnswer, call_connect
from tests.contract.stage import ServiceHouse
from tests.network_facts import INTERNAL
from tests.stage import without_request_id

SESSIONS = f"{BILLING_PATH}/identity/sessions"
STATUS = f"{BILLING_PATH}/identity/status"


async def begin(house: ServiceHouse, secret: str, **given: object) -> ConnectAnswer:
    return await call_connect(house, secret, "POST", SESSIONS, {"type": "document", **given})


async def move(house: ServiceHouse, id: str, status: str, **given: object) -> ConnectAnswer:
    return await call_connect(house, INTERNAL, "PATCH", f"{SESSIONS}/{id}", {"status": status, **given})


@pytest.mark.rule("4.5.48")
async def test_a_session_is_recorded_and_the_status_tells_of_it(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    assert await call_connect(house, caller.secret, "GET", STATUS) == (
        200,
        snapshot({"object": "identity_status", "status": "unverified", "session": None}),
    )
    status, session = await begin(house, caller.secret, return_url="https://fjord.example/done")
    assert status == 201
    assert {**session, "id": "ids_"} == snapshot(
        {
            "id": "ids_",
            "object": "identity_session",
            "type": "document",
            "status": "requires_input",
            "reason": None,
            "return_url": "https://fjord.example/done",
            "created": 1800014400,
            "updated": 1800014400,
        }
    )
    assert await call_connect(house, caller.secret, "GET", STATUS) == (
        200,
        {"object": "identity_status", "status": "requires_input", "session": session},
    )


@pytest.mark.rule("4.5.49")
async def test_the_internal_key_moves_a_session_to_verified(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    for moved in ("processing", "requires_input", "processing", "verified"):
        house.world.clock.advance(60)
        status, answer = await move(house, session["id"], moved, reason=f"now {moved}")
        assert (status, answer["status"], answer["reason"], answer["updated"]) == (
            200,
            moved,
            f"now {moved}",
            int(house.world.clock.now()),
        )
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1] == {
        "object": "identity_status",
        "status": "verified",
        "session": {**session, "status": "verified", "reason": "now verified", "updated": int(house.world.clock.now())},
    }


@pytest.mark.parametrize("way", [["canceled"], ["processing", "verified"], ["processing", "canceled"]])
async def test_verified_and_canceled_are_final(house: ServiceHouse, way: list[str]) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    moves = [await move(house, session["id"], step) for step in way]
    assert [status for status, _ in moves] == [200] * len(way)
    _, answer = moves[-1]
    for status in {"requires_input", "processing", "verified", "canceled"} - {way[-1]}:
        refused, body = await move(house, session["id"], status)
        assert (refused, body["code"], body["param"]) == (409, "identity_session_final", "status")
        assert body["hint"] == f"{way[-1]} is final: the organisation begins again with a new session"
    assert await move(house, session["id"], way[-1]) == (200, answer)
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"] == answer


async def test_verified_is_reached_through_processing_alone(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    status, body = await move(house, session["id"], "verified")
    assert status == 409
    assert without_request_id(body) == snapshot(
        {
            "error": "status: the session is requires_input, and does not become verified",
            "code": "conflict",
            "param": "status",
            "hint": "From requires_input it becomes processing or canceled",
        }
    )
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"] == session


async def test_of_many_who_decide_at_once_one_does(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    await move(house, session["id"], "processing")
    said = await asyncio.gather(*(move(house, session["id"], ("verified", "canceled")[n % 2]) for n in range(16)))
    final = (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"]["status"]
    assert {body["status"] for status, body in said if status == 200} == {final}
    assert sorted(status for status, _ in said) == [200] * 8 + [409] * 8


async def test_an_organisation_that_was_verified_stays_so(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, first = await begin(house, caller.secret)
    await move(house, first["id"], "processing")
    await move(house, first["id"], "verified")
    house.world.clock.advance(1)
    _, second = await begin(house, caller.secret, type="id_number")
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1] == {
        "object": "identity_status",
        "status": "verified",
        "session": second,
    }


async def test_after_a_canceled_session_an_organisation_is_unverified(house: ServiceHouse) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    await move(house, session["id"], "canceled", reason="nobody came")
    _, body = await call_connect(house, caller.secret, "GET", STATUS)
    assert (body["status"], body["session"]["status"], body["session"]["reason"]) == ("unverified", "canceled", "nobody came")


@pytest.mark.rule("4.5.49")
async def test_nobody_moves_their_own_session(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    _, session = await begin(house, caller.secret)
    for secret in (caller.secret, None, "ak_" + "0" * 46):
        status, _ = await call_connect(house, secret, "PATCH", f"{SESSIONS}/{session['id']}", {"status": "canceled"})
        assert status == 401
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"] == session


async def test_an_unknown_session_is_not_found(house: ServiceHouse) -> None:
    status, body = await move(house, "ids_" + "0" * 26, "processing")
    assert (status, body["code"], body["param"]) == (404, "not_found", "id")


async def test_an_organisation_sees_its_own_sessions_alone(house: ServiceHouse) -> None:
    mine, theirs = await house.world.caller(), await house.world.caller()
    await begin(house, theirs.secret)
    assert (await call_connect(house, mine.secret, "GET", STATUS))[1]["session"] is None


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"type": "selfie"}, "type"),
        ({"return_url": "http://fjord.example"}, "return_url"),
        ({"return_url": "https://user:pw@fjord.example"}, "return_url"),
        ({"return_url": "javascript:alert(1)"}, "return_url"),
        ({"return_url": "https://"}, "return_url"),
        ({"return_url": "https://fjord.example/\u202e"}, "return_url"),
        ({"status": "verified"}, "status"),
        ({"org_id": "org_1"}, "org_id"),
    ],
)
async def test_what_is_wrong_with_a_session_is_named_and_nothing_is_kept(house: ServiceHouse, given: dict[str, object], param: str) -> None:
    caller = await house.world.caller()
    status, body = await begin(house, caller.secret, **given)
    assert (status, body["param"]) == (400, param)
    assert "user:pw" not in str(body)
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"] is None


@pytest.mark.parametrize("reason", ["", " ", "two\nlines", "x" * 201, "\u202eturned", 5])
async def test_a_reason_is_one_plain_line(house: ServiceHouse, reason: object) -> None:
    caller = await house.world.caller()
    _, session = await begin(house, caller.secret)
    status, body = await move(house, session["id"], "processing", reason=reason)
    assert (status, body["param"]) == (400, "reason")
    assert (await call_connect(house, caller.secret, "GET", STATUS))[1]["session"] == session
