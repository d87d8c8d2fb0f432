"""Ten questions about the demo fleet: the model answers them through tools, and the figures are those of the network."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from simulators.model.fleet_script import FLEET_SKILLS, fleet_script
from simulators.network.entities import Line
from tests.assistant.stage import AssistantStage, spoken


class Question(NamedTuple):
    text: str
    tool: str
    answer: Callable[[AssistantStage, Line], str]


def own(stage: AssistantStage, status: str | None = None) -> list[Line]:
    return [line for line in stage.network.lines_of(8101) if status in (None, line.status)]


def suspended(stage: AssistantStage, line: Line) -> str:
    del line
    found = own(stage, "SUSPENDED")
    return f"{len(found)} suspended lines: {', '.join(each.imsis[-1].iccid for each in found)}."


def money(stage: AssistantStage, line: Line) -> str:
    del line
    return f"{stage.network.accounts[8101].balance / 1_000_000:.2f} EUR."


def free(stage: AssistantStage, line: Line) -> str:
    del line
    return f"{sum(each.sim.status == 'FREE' for each in own(stage))} free eSIMs."


def packages(stage: AssistantStage, line: Line) -> str:
    del stage
    return f"{len(line.packages)} packages, {sum(each.data_used for each in line.packages)} bytes used."


def cost(stage: AssistantStage, line: Line) -> str:
    del stage
    return f"It cost {sum(each.reseller_cost for each in line.cdrs) / 1_000_000:.6f} EUR in the last 7 days."


def countries(stage: AssistantStage, line: Line) -> str:
    networks = (stage.network.networks[each.network_id] for each in line.cdrs)
    return f"Seen in {', '.join(dict.fromkeys(stage.network.countries[each.iso2].name for each in networks))} in the last 7 days."


def cheapest(stage: AssistantStage, line: Line) -> str:
    del line
    found = [each for each in stage.network.templates.values() if each.reseller_id == 7001 and each.cost and not each.deleted]
    least = min(found, key=lambda each: each.cost)
    return f"{least.name} at {least.cost / 1_000_000} EUR."


def steering(stage: AssistantStage, line: Line) -> str:
    del line
    names = [each.name for each in stage.network.steering.values() if each.reseller_id == 7001]
    return f"{len(names)} lists: {', '.join(names)}."


QUESTIONS = [
    Question("How many lines do I have?", "list_subscribers", lambda stage, line: f"{len(own(stage))} lines."),
    Question("Which of them are suspended?", "list_subscribers", suspended),
    Question("How much money is on my account?", "list_reseller_accounts", money),
    Question("How many free eSIMs are left?", "esim_status_per_account", free),
    Question("What is the status of {iccid}?", "get_subscriber", lambda stage, line: "It is Active."),
    Question("What packages of {iccid} are there?", "list_subscriber_packages", packages),
    Question("What did {iccid} cost me?", "subscriber_usage", cost),
    Question("In which countries was {iccid}?", "subscriber_usage", countries),
    Question("Which is my cheapest package?", "list_package_templates", cheapest),
    Question("Which steering lists are there?", "list_steering_lists", steering),
]


async def test_every_question_the_simulated_model_understands_is_asked_here() -> None:
    assert len(QUESTIONS) == len(FLEET_SKILLS) == 10
    assert [question.tool for question in QUESTIONS] == [skill.tool for skill in FLEET_SKILLS]


@pytest.mark.cases
@pytest.mark.parametrize("question", QUESTIONS, ids=[question.text for question in QUESTIONS])
async def test_a_question_is_answered_from_what_the_tools_say(stage: AssistantStage, question: Question) -> None:
    stage.follow(fleet_script)
    line = next(each for each in own(stage, "ACTIVE") if each.sighting is not None)
    events = await stage.chat(question.text.format(iccid=line.imsis[-1].iccid))
    assert [event.name for event in events if event.name != "delta"] == ["quota", "done"]
    assert events[-1].data == {"operations": [{"operation": question.tool, "status": 200}]}
    assert spoken(events) == question.answer(stage, line)
