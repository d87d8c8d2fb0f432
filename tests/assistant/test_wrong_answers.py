"""What a charging system says that is out of measure: the assistant and the cards go on without it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clients.http import Outbound
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from simulators.model.server import ModelRequest, ModelTurn, ToolUse
from tests.abuse.test_upstream_answers import Twisting
from tests.assistant.stage import AssistantStage, spoken
from transports.upstream import SIMULATED_OCS_URL

ACCOUNTS = "listResellerAccount"


def twist(stage: AssistantStage, change: Callable[[Any], bytes]) -> None:
    """The network's answer about accounts is changed on its way."""
    world, wire = stage.world, OcsSettings(url=SIMULATED_OCS_URL, backoff_seconds=0.0)
    between = Twisting(world.sandbox)
    between.method, between.change = ACCOUNTS, change
    world.pipeline.deps = replace(world.pipeline.deps, ocs=OcsPool(Outbound(ocs_limits(wire), transport=between), wire, world.clock))


def looking(heard: ModelRequest) -> ModelTurn:
    return ModelTurn(str(heard.results[0]["status"])) if heard.results else ModelTurn(uses=(ToolUse("list_reseller_accounts"),))


@pytest.mark.cases
@pytest.mark.parametrize("depth", [250, 251, 252])
async def test_an_answer_at_the_edge_of_what_json_holds_is_a_tools_failure_and_not_the_chats(stage: AssistantStage, depth: int) -> None:
    def nested(answer: Any) -> bytes:
        text = json.dumps(answer).replace('"name": "Demo Retail"', f'"name": "Demo Retail", "more": {"[" * depth}{"]" * depth}')
        return text.encode()

    twist(stage, nested)
    stage.follow(looking)
    events = await stage.chat("Well?")
    assert events[-1].name == "done"
    assert spoken(events) == ("200" if depth < 251 else "400" if depth == 251 else "502")


@pytest.mark.long
@pytest.mark.parametrize("balance", [1e308, -1e27])
@pytest.mark.rule("4.8.3")
async def test_an_amount_that_nobody_has_is_in_no_card(stage: AssistantStage, balance: float) -> None:
    def rich(answer: Any) -> bytes:
        for account in answer[ACCOUNTS]["reseller"][0]["account"]:
            account["balance"] = balance
        return json.dumps(answer).encode()

    twist(stage, rich)
    for text in ("No cards.", '{"cards": [{"title": "Lines", "text": "13 lines.", "kind": "fleet", "figures": ["lines"]}]}'):
        stage.follow(lambda heard, text=text: ModelTurn(text))
        found = await stage.insights()
        shown = [figure for card in found["cards"] for figure in card["figures"] if figure["name"] == "balance"]
        assert (found["generated"], shown) == ("measured" if text == "No cards." else "ai", [])
