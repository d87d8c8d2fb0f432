"""A script that answers ten questions about a fleet, each from what its tools returned; a real model has judgement as well."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from simulators.model.server import ModelJson, ModelRequest, ModelTurn, ToolUse

ICCID_PATTERN = re.compile(r"\b89[0-9]{16,20}\b")


class FleetSkill(NamedTuple):
    """A question it understands, the tool it asks, and the sentence it makes of the answer."""

    words: str
    tool: str
    arguments: Mapping[str, object]
    answer: Callable[[object], str]
    needs_line: bool = False


def answer_lines(data: object) -> str:
    """How many rows there are."""
    return f"{len(as_rows(data))} lines."


def answer_suspended(data: object) -> str:
    """Which they are."""
    return f"{len(as_rows(data))} suspended lines: {joined_members(data, 'iccid')}."


def answer_money(data: object) -> str:
    """All balances together."""
    return f"{sum(as_number(each['balance']) for each in as_rows(data)):.2f} EUR."


def answer_free(data: object) -> str:
    """The stock."""
    return f"{as_row(data)['free']} free eSIMs."


def answer_status(data: object) -> str:
    """Of one line."""
    return f"It is {as_row(data)['currentStatus']}."


def answer_packages(data: object) -> str:
    """How many, and what was used of them."""
    return f"{len(as_rows(data))} packages, {sum(as_number(each['useddatabyte']) for each in as_rows(data)):.0f} bytes used."


def answer_cost(data: object) -> str:
    """What a line cost the reseller."""
    return f"It cost {as_number(as_row(as_row(data)['total'])['resellerCost']):.6f} EUR in the last 7 days."


def answer_countries(data: object) -> str:
    """Where a line was used."""
    return f"Seen in {joined_members(as_row(as_row(data)['total'])['quantityPerCountry'], 'name')} in the last 7 days."


def answer_cheapest(data: object) -> str:
    """Of the templates with a price."""
    found = min((each for each in as_rows(data) if each.get("cost")), key=lambda each: as_number(each["cost"]))
    return f"{found['prepaidpackagetemplatename']} at {found['cost']} EUR."


def answer_steering(data: object) -> str:
    """Their names."""
    return f"{len(as_rows(data))} lists: {joined_members(data, 'name')}."


def as_rows(data: object) -> list[ModelJson]:
    """A list of the answer."""
    return cast("list[ModelJson]", data)


def joined_members(data: object, member: str) -> str:
    """One member of all rows."""
    return ", ".join(str(each[member]) for each in as_rows(data))


def as_row(data: object) -> ModelJson:
    """An object of the answer."""
    return cast(ModelJson, data)


def as_number(value: object) -> float:
    """A number of the answer."""
    return cast(float, value)


TEMPLATE_ARGUMENTS = {"limit": 100, "fields": ["prepaidpackagetemplatename", "cost"]}
FLEET_SKILLS = (
    FleetSkill("how many lines", "list_subscribers", {"limit": 1000, "fields": ["currentStatus"]}, answer_lines),
    FleetSkill("suspended", "list_subscribers", {"limit": 1000, "status": "SUSPENDED", "fields": ["iccid"]}, answer_suspended),
    FleetSkill("money", "list_reseller_accounts", {}, answer_money),
    FleetSkill("free esims", "esim_status_per_account", {"accountId": 8101}, answer_free),
    FleetSkill("status of", "get_subscriber", {}, answer_status, needs_line=True),
    FleetSkill("packages of", "list_subscriber_packages", {}, answer_packages, needs_line=True),
    FleetSkill("cost", "subscriber_usage", {}, answer_cost, needs_line=True),
    FleetSkill("countries", "subscriber_usage", {}, answer_countries, needs_line=True),
    FleetSkill("cheapest package", "list_package_templates", TEMPLATE_ARGUMENTS, answer_cheapest),
    FleetSkill("steering", "list_steering_lists", {}, answer_steering),
)
KNOWN_WORDS = ", ".join(skill.words for skill in FLEET_SKILLS)


def fleet_script(heard: ModelRequest) -> ModelTurn:
    """Ask the tool, then tell what it said."""
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
    data = as_row(result["untrusted_data"])
    return ModelTurn(skill.answer(data["data"]) if result["status"] == 200 else f"It was refused: {data['error']}.")
