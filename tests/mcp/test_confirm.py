"""The two halves of a confirmed operation, with a person asked by the client and with a token handed to the model."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from registry.caller import Tier
from tests.mcp.house import ERAS, House, open_house, request
from tests.mcp.refusals import refusal_in, refusal_of
from tests.note_rows import every_note
from tests.world import Credentials

ARGUMENTS = {"name": "first"}
ASKING = {"elicitation": {"form": {}}}


class AnsweringPerson:
    """Somebody in front of the client, who answers every question in one way."""

    def __init__(self, action: Any = "accept", content: dict[str, Any] | None = None) -> None:
        self.action, self.content, self.asked = action, content, list[str]()

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return ElicitResult(action=self.action, content=self.content)


async def deletions(house: House) -> int:
    return sum(row.value for row in await house.world.store.read(every_note))


async def post(house: House, who: Credentials, **params: Any) -> httpx.Response:
    given: dict[str, Any] = {"name": "delete_note", "arguments": ARGUMENTS, **params}
    return await house.post(request("tools/call", capabilities=ASKING, **given), secret=who.secret)


def accepted(yes: bool = True) -> dict[str, Any]:
    return {"confirm": {"action": "accept", "content": {"confirm": yes}}}


async def test_a_person_who_agrees_gets_it_done(house: House, pro: Credentials) -> None:
    person = AnsweringPerson("accept", {"confirm": True})
    async with house.connect(pro, elicit=person) as client:
        done = await client.call_tool("delete_note", ARGUMENTS)
    assert not done.is_error
    assert done.structured_content == {"name": "first", "writes": 1}
    assert person.asked == ["This will remove a note for good (name first). Carry it out?"]


@pytest.mark.cases
@pytest.mark.parametrize(
    ("action", "content"),
    [("decline", None), ("cancel", None), ("accept", {"confirm": False}), ("accept", None), ("accept", {"confirm": "yes"})],
)
async def test_anything_but_a_clear_yes_does_nothing(house: House, pro: Credentials, action: str, content: dict[str, Any] | None) -> None:
    async with house.connect(pro, elicit=AnsweringPerson(action, content)) as client:
        refused = await client.call_tool("delete_note", ARGUMENTS)
    assert refused.is_error
    assert refusal_of(refused)["code"] == "confirm_declined"
    assert await deletions(house) == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_gets_the_token_and_the_words_to_ask_with(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        challenge = await client.call_tool("delete_note", ARGUMENTS)
        body = refusal_of(challenge)
        assert await deletions(house) == 0
        done = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": body["confirm_token"]})
        again = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": body["confirm_token"]})
    assert challenge.is_error
    assert (body["expires_in_seconds"], body["route"]) == (120, "DELETE /v1/notes/{name}")
    assert body["message"] == "This will remove a note for good (name first)."
    assert "ask whether to go on" in body["hint"] and "header" not in body["hint"]
    assert done.structured_content == {"name": "first", "writes": 1}
    assert (again.is_error, refusal_of(again)["code"]) == (True, "confirm_token_invalid")


async def test_a_legacy_client_that_could_ask_is_given_the_token(house: House, pro: Credentials) -> None:
    person = AnsweringPerson("accept", {"confirm": True})
    async with house.connect(pro, "legacy", elicit=person) as client:
        challenge = await client.call_tool("delete_note", ARGUMENTS)
    assert challenge.is_error
    assert "confirm_token" in refusal_of(challenge)
    assert person.asked == []


async def test_a_client_that_only_opens_addresses_is_not_shown_a_form(house: House, pro: Credentials) -> None:
    call = request("tools/call", capabilities={"elicitation": {"url": {}}}, name="delete_note", arguments=ARGUMENTS)
    result = (await house.post(call, secret=pro.secret)).json()["result"]
    assert (result["resultType"], result["isError"]) == ("complete", True)


async def test_a_token_works_once_for_its_owner_and_arguments_and_for_two_minutes(house: House, pro: Credentials) -> None:
    other = await house.world.caller(Tier.PRO)
    async with house.connect(pro) as client, house.connect(other) as stranger:
        body = refusal_of(await client.call_tool("delete_note", ARGUMENTS))
        token = {"confirm_token": body["confirm_token"]}
        foreign = await stranger.call_tool("delete_note", {**ARGUMENTS, **token})
        elsewhere = await client.call_tool("delete_note", {"name": "second", **token})
        house.world.clock.advance(119.999)
        done = await client.call_tool("delete_note", {**ARGUMENTS, **token})
        late = refusal_of(await client.call_tool("delete_note", ARGUMENTS))
        house.world.clock.advance(120)
        expired = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": late["confirm_token"]})
    assert {refusal_of(foreign)["code"], refusal_of(elsewhere)["code"]} == {"confirm_token_invalid"}
    assert not done.is_error
    assert refusal_of(expired)["code"] == "confirm_token_invalid"
    assert await deletions(house) == 1


async def test_a_token_from_the_http_door_works_here_and_the_other_way_round(house: House, pro: Credentials) -> None:
    async with house.connect(pro) as client, house.world.client(pro.secret) as http:
        over_http = (await http.delete("/v1/notes/first")).json()["confirm_token"]
        here = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": over_http})
        over_mcp = refusal_of(await client.call_tool("delete_note", ARGUMENTS))["confirm_token"]
        there = await http.delete("/v1/notes/first", headers={"X-Confirm-Token": over_mcp})
    assert not here.is_error
    assert there.status_code == 200


@pytest.mark.parametrize("token", [7, "", "not a token"])
async def test_a_token_that_is_none_is_refused(house: House, pro: Credentials, token: object) -> None:
    async with house.connect(pro) as client:
        refused = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": token})
    assert refused.is_error
    assert refusal_of(refused)["code"] in ("confirm_token_invalid", "invalid_request")
    assert await deletions(house) == 0


async def test_replaying_a_sealed_answer_runs_nothing_again(house: House, pro: Credentials) -> None:
    first = (await post(house, pro)).json()["result"]
    assert first["resultType"] == "input_required"
    answer = {"requestState": first["requestState"], "inputResponses": accepted()}
    done = (await post(house, pro, **answer)).json()["result"]
    replayed = (await post(house, pro, **answer)).json()["result"]
    assert done["structuredContent"] == {"name": "first", "writes": 1}
    assert (replayed["isError"], refusal_in(replayed)["code"]) == (True, "confirm_token_invalid")
    assert await deletions(house) == 1


async def test_sealed_state_shows_no_token_and_fits_no_other_call(house: House, pro: Credentials) -> None:
    other = await house.world.caller(Tier.PRO)
    state = (await post(house, pro)).json()["result"]["requestState"]
    answer = {"inputResponses": accepted()}
    refusals = [
        await post(house, pro, requestState=state + "A", **answer),
        await post(house, pro, requestState=state[:-2], **answer),
        await post(house, pro, requestState=state, arguments={"name": "second"}, **answer),
        await post(house, pro, requestState=state, name="get_note", **answer),
        await post(house, other, requestState=state, **answer),
    ]
    assert {refusal.status_code for refusal in refusals} == {400}
    assert {refusal.json()["error"]["message"] for refusal in refusals} == {"Invalid or expired requestState"}
    assert await deletions(house) == 0


@pytest.mark.parametrize("responses", [None, {}, {"other": {"action": "accept", "content": {"confirm": True}}}])
async def test_a_call_that_brings_no_answer_is_asked_again(house: House, pro: Credentials, responses: dict[str, Any] | None) -> None:
    state = (await post(house, pro)).json()["result"]["requestState"]
    given = {"requestState": state} if responses is None else {"requestState": state, "inputResponses": responses}
    again = (await post(house, pro, **given)).json()["result"]
    assert again["resultType"] == "input_required"
    assert await deletions(house) == 0


async def test_an_answer_without_our_question_is_asked_first(house: House, pro: Credentials) -> None:
    result = (await post(house, pro, inputResponses=accepted())).json()["result"]
    assert result["resultType"] == "input_required"
    assert await deletions(house) == 0


async def test_state_sealed_with_an_older_key_is_still_opened(tmp_path: Path) -> None:
    old, new = bytes(range(32)), bytes(range(1, 33))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with open_house(tmp_path / "one", state_keys=(old,)) as house:
        pro = await house.world.caller()
        state = (await post(house, pro)).json()["result"]["requestState"]
    async with open_house(tmp_path / "two", state_keys=(new, old)) as house:
        pro = await house.world.caller()
        result = (await post(house, pro, requestState=state, inputResponses=accepted())).json()["result"]
    assert refusal_in(result)["code"] == "confirm_token_invalid"  # opened: another database does not know the token


async def test_a_deployment_may_insist_that_a_person_is_asked(tmp_path: Path) -> None:
    async with open_house(tmp_path, insist_on_elicitation=True) as house:
        pro = await house.world.caller()
        async with house.connect(pro) as plain:
            token = refusal_of(await plain.call_tool("delete_note", ARGUMENTS))["confirm_token"]
        person = AnsweringPerson("decline")
        async with house.connect(pro, elicit=person) as client:
            refused = await client.call_tool("delete_note", {**ARGUMENTS, "confirm_token": token})
        assert refusal_of(refused)["code"] == "confirm_declined"
        assert len(person.asked) == 1
        assert await deletions(house) == 0
