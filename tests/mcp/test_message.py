"""What the SDK is given of a message that is larger than anything needs: less, and refused in the same words."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.mcp.house import House, open_house, request
from transports.mcp.message import shorten_message
from transports.mcp.tools import is_tool

TOOLS = [operation.id for operation in CATALOGUE.operations.values() if is_tool(operation)]
MANY: dict[str, Any] = {
    "unknown": {f"k{number}": 1 for number in range(19_000)},
    "one list": {"metadata": [1] * 19_000, "events": [1] * 19_000, "iccid": [1] * 19_000},
    "one object": {"metadata": {f"k{number}": 1 for number in range(19_000)}},
}
ENDS = {True: "refused", False: "done"}
MOST = 1_100
"""Entries of the longest list that an input may hold, and a few."""


def values(root: object) -> int:
    members = root.values() if isinstance(root, dict) else root if isinstance(root, list) else ()
    return 1 + sum(values(member) for member in members)


@pytest.mark.cases
@pytest.mark.parametrize("arguments", MANY.values(), ids=MANY)
def test_of_arguments_that_will_be_refused_the_sdk_sees_few(arguments: Any) -> None:
    for tool in [*TOOLS, "no_such_tool"]:
        message = request("tools/call", name=tool, arguments=arguments)
        assert values(shorten_message(message, 200_000, CATALOGUE.operations)) < MOST


@pytest.mark.cases
@pytest.mark.parametrize("name", ["get_note", "count_slowly", "delete_note", "no_such_tool"])
@pytest.mark.parametrize("member", [{"name": "first"}, {"confirm_token": 5}, {}])
async def test_thousands_of_arguments_are_refused_in_the_words_that_a_few_are_refused_in(house: House, name: str, member: Any) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    few, many = (member | {f"k{number}": 1 for number in range(count)} for count in (2, 19_000))
    answers = [await house.post(request("tools/call", name=name, arguments=each), secret=caller.secret) for each in (few, many)]
    said = [orjson.loads(answer.content) for answer in answers]
    refusals = [each.get("error") or orjson.loads(each["result"]["content"][0]["text"]) for each in said]
    for refusal in refusals:
        refusal.pop("request_id", None)
    assert refusals[0] == refusals[1]
    assert answers[0].status_code == answers[1].status_code


async def test_a_whole_number_of_any_length_in_arguments_that_are_shortened_is_no_fault(house: House) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    body = request("tools/call", name="get_note", arguments=MANY["unknown"] | {"name": [1 << 200]})
    answer = await house.post(body, secret=caller.secret)
    assert (answer.status_code, house.world.faults) == (200, [])
    assert orjson.loads(answer.json()["result"]["content"][0]["text"])["code"] in ("invalid_request", "unknown_field")


@pytest.mark.parametrize("method", ["initialize", "tools/list", "prompts/get", "resources/read", "no/such"])
async def test_a_message_that_is_no_call_is_small(house: House, method: str) -> None:
    caller = await house.world.caller(Tier.ENTERPRISE)
    many = await house.post(request(method, more={f"k{number}": 1 for number in range(2_000)}), secret=caller.secret)
    assert (many.status_code, many.json()["code"]) == (400, "invalid_json")
    assert many.json()["error"] == "The message has more than 1000 values beside the arguments of a tool"
    large = await house.post(request(method, more=["x" * 40_000] * 2), secret=caller.secret)
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("edge", [True, False])
@pytest.mark.parametrize(
    ("tool", "arguments", "outcomes"),
    [
        ("copy_note", {"name": "a", "tags": ["x" * 50_000], "idempotency_key": "one"}, ["done", "done", "done", 429]),
        ("get_note", {"name": "x" * 50_000}, ["refused", "refused", 429, 429]),
    ],
    ids=["replayed", "refused"],
)
async def test_a_large_message_that_costs_no_quota_is_charged_by_its_bytes(
    tmp_path: Path, edge: bool, tool: str, arguments: dict[str, Any], outcomes: list[str | int]
) -> None:
    async with open_house(tmp_path, edge=edge, limits=Limits(refused_bytes=99_000, refused_bytes_per_second=1)) as house:
        caller = await house.world.caller(Tier.ENTERPRISE)
        message = request("tools/call", name=tool, arguments=arguments)
        said = [await house.post(message, secret=caller.secret) for _ in outcomes]
    ends = [answer.status_code if answer.status_code != 200 else ENDS[answer.json()["result"]["isError"]] for answer in said]
    assert ends == outcomes
