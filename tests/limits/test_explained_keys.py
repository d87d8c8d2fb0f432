"""What a key is told of itself: whoami, explain_key, and the worst case that it is made with."""

from typing import Any

import orjson
import pytest

from registry.caller import Role, Tier
from tests.contract.stage import ServiceHouse
from tests.mcp.house import request, wire_headers
from tests.mcp.tool_sizes import count_tokens

WHOAMI_TOKENS = 300
CAUTIOUS: dict[str, Any] = {
    "toolsets": ["connectivity"],
    "calls_per_day": 500,
    "spend_per_day": {"amount": 4000, "currency": "EUR"},
    "times": {"create_connectivity_intent": 12, "confirm_connectivity_intent": 0},
}


async def mint(house: ServiceHouse, secret: str, **restrictions: Any) -> dict[str, Any]:
    async with house.world.client(secret) as http:
        made = await http.post("/v1/api-keys", json={"name": "agent", **({"restrictions": restrictions} if restrictions else {})})
    assert made.status_code == 201, made.text
    return made.json()


async def ask(house: ServiceHouse, secret: str, path: str, status: int = 200) -> dict[str, Any]:
    async with house.world.client(secret) as http:
        said = await http.get(path)
    assert said.status_code == status, said.text
    return said.json()


async def tool(house: ServiceHouse, secret: str, method: str, **params: Any) -> dict[str, Any]:
    body = request(method, **params)
    async with house.world.client(secret) as http:
        said = await http.post("/mcp", json=body, headers=wire_headers(body))
    return orjson.loads(said.content)["result"]


async def test_a_new_key_with_restrictions_shows_its_worst_case_and_one_without_shows_none(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    worst = (await mint(house, caller.secret, **CAUTIOUS))["worst_case"]
    assert worst["sentence"].startswith("In a UTC day at most 500 calls, 12 lines, 40.00 EUR; 3 operations that cannot be undone: ")
    assert (worst["calls"], worst["lines"], worst["money_a_day"], worst["finite"]) == (500, 12, {"amount": 4000, "currency": "EUR"}, True)
    assert worst["money_a_month"] == {"amount": 31 * 4000, "currency": "EUR"}
    assert {"create_connectivity_product", "create_connectivity_webhook_endpoint"} <= set(worst["waits_for_approval"])
    assert (await mint(house, caller.secret))["worst_case"] is None


@pytest.mark.parametrize(
    ("restrictions", "calls", "lines", "day"),
    [
        ({"read_only": True, "calls_per_day": 9}, 9, 0, 0),
        ({"calls_per_day": 9, "spend_per_call": {"amount": 100, "currency": "EUR"}}, 9, 9, 900),
        ({"spend_per_month": {"amount": 700, "currency": "EUR"}, "iccids": ["8988303700000100286"]}, None, 1, 700),
        ({"calls_per_day": 9}, 9, 9, None),
    ],
)
async def test_the_worst_case_is_the_least_of_what_ends_each_thing(
    house: ServiceHouse, restrictions: dict[str, Any], calls: int | None, lines: int | None, day: int | None
) -> None:
    worst = (await mint(house, (await house.world.caller(Tier.ENTERPRISE)).secret, **restrictions))["worst_case"]
    assert (worst["calls"], worst["lines"]) == (calls, lines)
    assert (None if worst["money_a_day"] is None else worst["money_a_day"]["amount"]) == day


async def test_limits_in_two_currencies_let_no_money_through(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    amounts = {"spend_per_day": {"amount": 9, "currency": "EUR"}, "spend_per_call": {"amount": 9, "currency": "USD"}}
    made = await mint(house, caller.secret, **amounts)
    assert made["worst_case"]["money_a_day"]["amount"] == 0
    assert [each["code"] for each in made["warnings"]] == ["no_money_passes"] and "EUR and USD" in made["warnings"][0]["message"]


def amount(cents: int, currency: str = "EUR") -> dict[str, Any]:
    return {"amount": cents, "currency": currency}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("restrictions", "warned"),
    [
        (
            {"spend_per_call": amount(1000), "spend_per_day": amount(500)},
            ["spend_per_call, 10.00 EUR, has no effect: spend_per_day is 5.00"],
        ),
        ({"spend_per_call": amount(500), "spend_per_day": amount(500)}, []),
        (
            {"spend_per_day": amount(900), "spend_per_month": amount(800)},
            ["spend_per_day, 9.00 EUR, has no effect: spend_per_month is 8.00"],
        ),
        ({"spend_per_call": amount(500), "approve_above": amount(500)}, ["approve_above, 5.00 EUR, never asks for an amount"]),
        (
            {"spend_per_day": amount(500), "approve_above": amount(5, "USD")},
            ["approve_above is in USD, and spend_per_day in EUR: every call"],
        ),
        ({"approve_above": amount(5), "approval": "every_write"}, ["approve_above, 0.05 EUR, has no effect: with approval every_write"]),
        ({"calls_per_day": 5, "times": {"tag_lines": 6}}, ["times of tag_lines, 6, has no effect: calls_per_day is 5"]),
        ({"another_person": True}, ["another_person has no effect"]),
        ({"another_person": True, "approval": "irreversible"}, []),
        ({"tags": ["trucks"]}, ["No line has the tag trucks now"]),
    ],
)
async def test_a_new_key_is_warned_of_restrictions_without_effect(
    house: ServiceHouse, restrictions: dict[str, Any], warned: list[str]
) -> None:
    told = (await mint(house, (await house.world.caller(Tier.PRO)).secret, **restrictions))["warnings"]
    assert len(told) == len(warned) and all(each["message"].startswith(said) for each, said in zip(told, warned, strict=True)), told


async def test_a_limit_wider_than_that_of_the_key_it_is_made_with_is_warned_of(house: ServiceHouse) -> None:
    outer = await mint(house, (await house.world.caller(Tier.PRO)).secret, spend_per_day=amount(500))
    [told] = (await mint(house, outer["secret"], spend_per_day=amount(600)))["warnings"]
    assert told["message"] == "spend_per_day, 6.00 EUR, has no effect: spend_per_day of a key that this one was made with is 5.00 EUR"


async def test_the_worst_case_says_when_all_of_it_waits_for_a_person(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    ends = {
        "every_write": "each call that changes something waits for a person's approval",
        "irreversible": "what cannot be undone waits for a person's approval",
    }
    for approval, end in ends.items():
        made = await mint(house, caller.secret, **CAUTIOUS, approval=approval)
        assert made["worst_case"]["sentence"].endswith(end)
        assert (await ask(house, made["secret"], "/v1/api-keys/explanation"))["worst_case"] == made["worst_case"]
    assert "waits" not in (await mint(house, caller.secret, **CAUTIOUS))["worst_case"]["sentence"]


async def test_a_key_of_other_toolsets_is_explained_to_itself_alone(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.PRO)
    made, other = await mint(house, caller.secret, toolsets=["network"]), await mint(house, caller.secret)
    told = await ask(house, made["secret"], "/v1/api-keys/explanation")
    assert (told["id"], told["in_words"]) == (made["id"], ["only the toolsets network"])
    assert (await ask(house, made["secret"], f"/v1/api-keys/explanation?id={made['id']}"))["id"] == made["id"]
    said = await ask(house, made["secret"], f"/v1/api-keys/explanation?id={other['id']}", 403)
    assert said["code"] == "credential_restricted" and said["hint"] == "Leave id out to explain the credential that you use"
    wide = await mint(house, caller.secret, toolsets=["changes"])
    assert (await ask(house, wide["secret"], f"/v1/api-keys/explanation?id={other['id']}"))["id"] == other["id"]


async def test_a_key_is_explained_to_itself_its_maker_and_admins_and_to_nobody_else(house: ServiceHouse) -> None:
    admin = await house.world.caller(Tier.PRO)
    member = await house.world.caller(organisation=admin.organisation, role=Role.MEMBER)
    other, stranger = await house.world.caller(organisation=admin.organisation, role=Role.MEMBER), await house.world.caller(Tier.PRO)
    made = await mint(house, member.secret, **CAUTIOUS)
    path = f"/v1/api-keys/explanation?id={made['id']}"
    own = await ask(house, made["secret"], "/v1/whoami")
    assert own["credential"] == made["id"]
    for who in (member, admin):
        told = await ask(house, who.secret, path)
        assert (told["id"], told["worst_case"]) == (made["id"], made["worst_case"])
        assert "at most 40.00 EUR a UTC day" in told["in_words"]
        left = {use["limit"]: use["left"] for use in told["used"]}
        assert left["spend_per_day"] == 4000 and 400 < left["calls_per_day"] < 500
    for who in (other, stranger):
        assert (await ask(house, who.secret, path, 404))["code"] == "not_found"


async def test_whoami_answers_any_credential_in_few_words(house: ServiceHouse) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    narrow = [
        {"toolsets": ["network"]},
        {"iccids": ["8988303700000100286"]},
        {"account_ids": [8101]},
        {"read_only": True},
        {**CAUTIOUS, "spend_per_month": CAUTIOUS["spend_per_day"], "iccids": ["8988303700000100286"], "approval": "every_write"},
    ]
    for restrictions in narrow:
        secret = (await mint(house, caller.secret, **restrictions))["secret"]
        told = await ask(house, secret, "/v1/whoami")
        assert told["organisation"] == caller.organisation and told["restrictions"] and told["calls"]["used"] >= 1
        assert told["calls"]["of"] == "organisation"
        result = await tool(house, secret, "tools/call", name="whoami", arguments={})
        assert result["structuredContent"]["credential"] == told["credential"]
        assert count_tokens([result["structuredContent"]]) <= WHOAMI_TOKENS


async def test_whoami_is_among_the_tools_of_whoever_asks_for_none(house: ServiceHouse) -> None:
    secret = (await mint(house, (await house.world.caller(Tier.FREE)).secret, toolsets=["network"]))["secret"]
    listed = (await tool(house, secret, "tools/list"))["tools"]
    assert "whoami" in {tool["name"] for tool in listed}
