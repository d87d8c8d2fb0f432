"""The prompts."""

import re

import pytest
from inline_snapshot import snapshot
from mcp_types import TextContent

from operations.catalogue import CATALOGUE
from operations.connectivity.plans import TEST_PLANS
from registry.catalogue import ToolSelection
from tests.mcp.house import ERAS, House, request
from tests.world import Credentials
from transports.mcp.prompts import PROMPT_TASKS


async def prompt(house: House, who: Credentials, name: str, arguments: dict[str, str], era: str = "auto") -> str:
    async with house.connect(who, era) as client:
        result = await client.get_prompt(name, arguments)
    (message,) = result.messages
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.parametrize("era", ERAS)
async def test_every_prompt_and_argument_is_described(house: House, pro: Credentials, era: str) -> None:
    async with house.connect(pro, era) as client:
        prompts = (await client.list_prompts()).prompts
    assert all(prompt.description and all(argument.description for argument in prompt.arguments or []) for prompt in prompts)
    shown = {prompt.name: {argument.name: argument.required for argument in prompt.arguments or []} for prompt in prompts}
    assert shown == snapshot(
        {
            "issue_esim": {"plan": False},
            "investigate_intent": {"intent": True},
            "choose_plan": {"country": True, "days": True},
            "why_no_data": {"iccid": True},
        }
    )


@pytest.mark.parametrize("era", ERAS)
async def test_a_prompt_holds_its_arguments(house: House, pro: Credentials, era: str) -> None:
    text = await prompt(house, pro, "choose_plan", {"country": "Norway", "days": "10"}, era)
    assert text.startswith("Recommend a plan for 10 days in Norway.")
    assert "cni_1" in await prompt(house, pro, "investigate_intent", {"intent": "cni_1"}, era)
    assert "the line 8988303700000100286 has no mobile data" in await prompt(
        house, pro, "why_no_data", {"iccid": "8988303700000100286"}, era
    )


async def test_the_tools_that_prompts_name_are_shown_without_a_choice_of_toolsets() -> None:
    named = {word for task in PROMPT_TASKS.values() for word in re.findall(r"\b(?:get|list|create|hlr|subscriber)_\w+", task.text)}
    assert len(named) > 10
    assert named - CATALOGUE.chosen(ToolSelection()) == set()


def test_prompts_name_plans_and_tools_that_exist() -> None:
    plans: set[str] = set()
    for task in PROMPT_TASKS.values():
        said = [task.text, *task.defaults.values(), *(argument.description or "" for argument in task.prompt.arguments or [])]
        words = {word for text in said for word in re.findall(r"\b[a-z0-9]+(?:[_-][a-z0-9]+)+\b", text)}
        plans |= {word for word in words if word.startswith("test")}
        names = {word for word in words if "_" in word and not word.startswith(("test", "cni"))}
        assert names <= CATALOGUE.operations.keys() | {"idempotency_key"}, task.prompt.name
    assert plans and plans <= TEST_PLANS.keys()


async def test_an_optional_argument_has_words_of_its_own_when_it_is_absent(house: House, pro: Credentials) -> None:
    assert "The plan: nordic-1gb." in await prompt(house, pro, "issue_esim", {"plan": "nordic-1gb"})
    assert "not chosen yet" in await prompt(house, pro, "issue_esim", {})


async def test_braces_in_an_argument_are_only_text(house: House, pro: Credentials) -> None:
    assert "{plan}{0.__class__}" in await prompt(house, pro, "investigate_intent", {"intent": "{plan}{0.__class__}"})


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("nothing", {}, "known are issue_esim, investigate_intent, choose_plan, why_no_data"),
        ("choose_plan", {"country": "Norway"}, "days: missing"),
        ("choose_plan", {"country": "Norway", "days": "1", "hours": "2"}, "hours: unknown argument"),
        ("investigate_intent", {"intent": "x" * 201}, "at most 200 characters"),
    ],
)
async def test_a_wrong_prompt_or_argument_is_refused_with_the_fix(
    house: House, pro: Credentials, name: str, arguments: dict[str, str], words: str
) -> None:
    answer = await house.post(request("prompts/get", name=name, arguments=arguments), secret=pro.secret)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32602
    assert words in answer.json()["error"]["message"]
