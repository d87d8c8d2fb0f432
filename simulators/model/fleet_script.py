"""A script that answers ten questions about a fleet, each from what its tools returned; a real model has judgement as well."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from simulators.model.server import ModelJson, ModelRequest, ModelTurn, ToolUse

ICCID_PATTERN = re.compile(r"\b89[0-9]{16,20}\b")
TEMPLATE_ARGUMENTS = {"limit": 100, "fields": ["prepaidpackagetemplatename", "cost"]}


@dataclass(frozen=True, slots=True)
class FleetSkill:
    """A question it understands, the tool it asks, and the sentence it makes of the answer."""

    words: str
    tool: str
    arguments: Mapping[str, object]
    answer: Callable[[object], str]
    needs_line: bool = False


def _answer_cheapest(data: object) -> str:
    found = min((each for each in _as_rows(data) if each.get("cost")), key=lambda each: _as_number(each["cost"]))
    return f"{found['prepaidpackagetemplatename']} at {found['cost']} EUR."


def _as_rows(data: object) -> list[ModelJson]:
    return cast("list[ModelJson]", data)


def _joined_members(data: object, member: str) -> str:
    return ", ".join(str(each[member]) for each in _as_rows(data))


def _as_row(data: object) -> ModelJson:
    return cast(ModelJson, data)


def _as_number(value: object) -> float:
    return cast(float, value)


FLEET_SKILLS = (
    FleetSkill(
        "how many lines", "list_subscribers", {"limit": 1000, "fields": ["currentStatus"]}, lambda data: f"{len(_as_rows(data))} lines."
    ),
    FleetSkill(
        "suspended",
        "list_subscribers",
        {"limit": 1000, "status": "SUSPENDED", "fields": ["iccid"]},
        lambda data: f"{len(_as_rows(data))} suspended lines: {_joined_members(data, 'iccid')}.",
    ),
    FleetSkill(
        "money", "list_reseller_accounts", {}, lambda data: f"{sum(_as_number(each['balance']) for each in _as_rows(data)):.2f} EUR."
    ),
    FleetSkill("free esims", "esim_status_per_account", {"accountId": 8101}, lambda data: f"{_as_row(data)['free']} free eSIMs."),
    FleetSkill("status of", "get_subscriber", {}, lambda data: f"It is {_as_row(data)['currentStatus']}.", needs_line=True),
    FleetSkill(
        "packages of",
        "list_subscriber_packages",
        {},
        lambda data: f"{len(_as_rows(data))} packages, {sum(_as_number(each['useddatabyte']) for each in _as_rows(data)):.0f} bytes used.",
        needs_line=True,
    ),
    FleetSkill(
        "cost",
        "subscriber_usage",
        {},
        lambda data: f"It cost {_as_number(_as_row(_as_row(data)['total'])['resellerCost']):.6f} EUR in the last 7 days.",
        needs_line=True,
    ),
    FleetSkill(
        "countries",
        "subscriber_usage",
        {},
        lambda data: f"Seen in {_joined_members(_as_row(_as_row(data)['total'])['quantityPerCountry'], 'name')} in the last 7 days.",
        needs_line=True,
    ),
    FleetSkill("cheapest package", "list_package_templates", TEMPLATE_ARGUMENTS, _answer_cheapest),
    FleetSkill("steering", "list_steering_lists", {}, lambda data: f"{len(_as_rows(data))} lists: {_joined_members(data, 'name')}."),
)
KNOWN_WORDS = ", ".join(skill.words for skill in FLEET_SKILLS)


def fleet_script(heard: ModelRequest) -> ModelTurn:
    """The turn of a model that asks the tool of a question that it knows, then answers from the tool's result."""
    question = heard.question.lower()
    skill = next((each for each in FLEET_SKILLS if each.words in question), None)
    if skill is None:
        return ModelTurn(f"I am a simulated model and understand questions with these words: {KNOWN_WORDS}.")
    if not heard.results:
        line = ICCID_PATTERN.search(question)
        return ModelTurn(uses=(ToolUse(skill.tool, {**skill.arguments, **({"iccid": line[0]} if line else {})}),))
    result = heard.results[-1]
    if "untrusted_data" not in result:
        return ModelTurn(f"The tool gave no whole answer: {result.get('error', result.get('cut', ''))}")
    data = _as_row(result["untrusted_data"])
    return ModelTurn(skill.answer(data["data"]) if result["status"] == 200 else f"It was refused: {data['error']}.")
