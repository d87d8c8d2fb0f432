"""A script that answers ten questions about a fleet, each from what its tools returned; a real model has judgement as well."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from clients.sandbox.model.script import Heard, Json, Turn, Use

ICCID = re.compile(r"\b89[0-9]{16,20}\b")


class Skill(NamedTuple):
    """A question it understands, the tool it asks, and the sentence it makes of the answer."""

    words: str
    tool: str
    arguments: Mapping[str, object]
    answer: Callable[[object], str]
    needs_line: bool = False


def lines(data: object) -> str:
    """How many rows there are."""
    return f"{len(rows(data))} lines."


def suspended(data: object) -> str:
    """Which they are."""
    return f"{len(rows(data))} suspended lines: {listed(data, 'iccid')}."


def money(data: object) -> str:
    """All balances together."""
    return f"{sum(figure(each['balance']) for each in rows(data)):.2f} EUR."


def free(data: object) -> str:
    """The stock."""
    return f"{row(data)['free']} free eSIMs."


def status(data: object) -> str:
    """Of one line."""
    return f"It is {row(data)['currentStatus']}."


def packages(data: object) -> str:
    """How many, and what was used of them."""
    return f"{len(rows(data))} packages, {sum(figure(each['useddatabyte']) for each in rows(data)):.0f} bytes used."


def cost(data: object) -> str:
    """What a line cost the reseller."""
    return f"It cost {figure(row(row(data)['total'])['resellerCost']):.6f} EUR in the last 7 days."


def countries(data: object) -> str:
    """Where a line was used."""
    return f"Seen in {listed(row(row(data)['total'])['quantityPerCountry'], 'name')} in the last 7 days."


def cheapest(data: object) -> str:
    """Of the templates with a price."""
    found = min((each for each in rows(data) if each.get("cost")), key=lambda each: figure(each["cost"]))
    return f"{found['prepaidpackagetemplatename']} at {found['cost']} EUR."


def steering(data: object) -> str:
    """Their names."""
    return f"{len(rows(data))} lists: {listed(data, 'name')}."


def rows(data: object) -> list[Json]:
    """A list of the answer."""
    return cast("list[Json]", data)


def listed(data: object, member: str) -> str:
    """One member of all rows."""
    return ", ".join(str(each[member]) for each in rows(data))


def row(data: object) -> Json:
    """An object of the answer."""
    return cast(Json, data)


def figure(value: object) -> float:
    """A number of the answer."""
    return cast(float, value)


TEMPLATES = {"limit": 100, "fields": ["prepaidpackagetemplatename", "cost"]}
SKILLS = (
    Skill("how many lines", "list_subscribers", {"limit": 1000, "fields": ["currentStatus"]}, lines),
    Skill("suspended", "list_subscribers", {"limit": 1000, "status": "SUSPENDED", "fields": ["iccid"]}, suspended),
    Skill("money", "list_reseller_accounts", {}, money),
    Skill("free esims", "esim_status_per_account", {"accountId": 8101}, free),
    Skill("status of", "get_subscriber", {}, status, needs_line=True),
    Skill("packages of", "list_subscriber_packages", {}, packages, needs_line=True),
    Skill("cost", "subscriber_usage", {}, cost, needs_line=True),
    Skill("countries", "subscriber_usage", {}, countries, needs_line=True),
    Skill("cheapest package", "list_package_templates", TEMPLATES, cheapest),
    Skill("steering", "list_steering_lists", {}, steering),
)
KNOWN = ", ".join(skill.words for skill in SKILLS)


def fleet(heard: Heard) -> Turn:
    """Ask the tool, then tell what it said."""
    question = heard.question.lower()
    skill = next((each for each in SKILLS if each.words in question), None)
    if skill is None:
        return Turn(f"I am a simulated model and understand questions with these words: {KNOWN}.")
    if not heard.results:
        line = ICCID.search(question)
        return Turn(uses=(Use(skill.tool, {**skill.arguments, **({"iccid": line[0]} if line else {})}),))
    result = heard.results[-1]
    if "untrusted_data" not in result:
        return Turn(f"The tool gave no whole answer: {result.get('error', result.get('cut', ''))}")
    data = row(result["untrusted_data"])
    return Turn(skill.answer(data["data"]) if result["status"] == 200 else f"It was refused: {data['error']}.")
