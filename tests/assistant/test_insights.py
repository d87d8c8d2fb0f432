"""Cards about the fleet: written by a model from measured figures, or measured; always there."""

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from registry.caller import Restrictions, Tier
from registry.policy import quota_period
from simulators.model.server import ModelFault, ModelRequest, ModelScript, ModelTurn
from storage.quota import charge_ai_call, read_quota_used
from tests.assistant.stage import AssistantStage, open_assistant_stage

CANARY = "Canary of the Upstream Text"


def measured(heard: ModelRequest) -> list[dict[str, Any]]:
    return json.loads(heard.question)["measured"]


def card(text: str, *, title: str = "The fleet", kind: str = "fleet", figures: tuple[str, ...] = ("active",)) -> str:
    return json.dumps({"cards": [{"title": title, "text": text, "kind": kind, "figures": figures}]})


def writing(text: str) -> ModelScript:
    """A model that writes one card; {active} is the measured figure."""

    def script(heard: ModelRequest) -> ModelTurn:
        figures = {figure["name"]: figure["value"] for each in measured(heard) for figure in each["figures"]}
        return ModelTurn(text.replace("{active}", str(figures["active"])).replace("{balance}", str(figures["balance"])))

    return script


@pytest.mark.rule("4.8.3")
async def test_without_a_model_the_figures_speak_for_themselves_and_nothing_is_spent(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, settings=None) as stage:
        found = await stage.insights()
        assert found["generated"] == "measured"
        cards = {each["kind"]: each for each in found["cards"]}
        assert cards["balance"] == snapshot(
            {
                "title": "Accounts",
                "text": "accounts: 1; balance: 406.47 EUR.",
                "kind": "balance",
                "figures": [{"name": "accounts", "value": 1, "unit": ""}, {"name": "balance", "value": 406.47, "unit": "EUR"}],
            }
        )
        assert cards["stock"] == snapshot(
            {
                "title": "eSIMs in stock",
                "text": "free eSIMs: 1; eSIMs in use: 12; eSIMs: 13.",
                "kind": "stock",
                "figures": [
                    {"name": "free eSIMs", "value": 1, "unit": ""},
                    {"name": "eSIMs in use", "value": 12, "unit": ""},
                    {"name": "eSIMs", "value": 13, "unit": ""},
                ],
            }
        )
        assert cards["fleet"]["text"] == "lines: 13; active: 12 lines; pending: 1 lines."
        assert found["quota"]["used"] == 0
        lines = list(stage.network.lines_of(8101))
        active = sum(line.status == "ACTIVE" for line in lines)
        assert cards["fleet"]["figures"][:2] == [
            {"name": "lines", "value": len(lines), "unit": ""},
            {"name": "active", "value": active, "unit": "lines"},
        ]
        assert cards["health"]["figures"][0]["name"] == "lines looked into" and cards["health"]["title"] == "Health of the fleet"


@pytest.mark.long
@pytest.mark.rule("4.8.3")
async def test_a_model_writes_the_cards_from_the_figures_and_the_allowance_is_spent(stage: AssistantStage) -> None:
    stage.follow(writing(card("You have {active} active lines and {balance} EUR.", figures=("active", "balance"))))
    found = await stage.insights()
    assert (found["generated"], found["quota"]["used"]) == ("ai", 1)
    [written] = found["cards"]
    active = sum(line.status == "ACTIVE" for line in stage.network.lines_of(8101))
    assert written["text"].startswith(f"You have {active} active lines") and written["kind"] == "fleet"
    assert [figure["name"] for figure in written["figures"]] == ["active", "balance"]


UNMEASURED = (
    "no json at all",
    "{}",
    json.dumps({"cards": []}),
    json.dumps({"cards": "x"}),
    json.dumps({"cards": [{"title": "T"}]}),
    card("Some text.", kind="secret"),
    card("Some text.", kind="note"),
    card("Some text.", figures=("invented",)),
    card("x" * 401),
    card("", title="T"),
    card("Some text.", title="t" * 81),
    card("You have 99999 active lines."),
    card("You have {active}5 lines."),
    card("Twelve lines are active."),
    card("\u0661\u0662 lines are active."),
    card("About \u00bd of {active} lines."),
    card("{active} lines", title="97.25 times more"),
    card("See https://evil.example for {active} lines."),
    card("<b>{active}</b> lines."),
    card("Write to me@evil.example."),
)
"""What a model may write that was not measured, or is no card."""


@pytest.mark.long
async def test_cards_that_say_what_was_not_measured_are_dropped(stage: AssistantStage) -> None:
    for used, text in enumerate(UNMEASURED, 1):
        stage.follow(writing(text))
        found = await stage.insights()
        assert (found["generated"], found["quota"]["used"], bool(found["cards"])) == ("measured", used, True), text


async def test_numbers_may_be_written_in_a_sentence(stage: AssistantStage) -> None:
    for text in ("{active} lines.", "**{active}** lines.", "Balance: {balance} EUR!", "Here: ```json\n%s\n```"):
        stage.follow(writing(text % card("{active} lines.") if "%s" in text else card(text)))
        assert (await stage.insights())["generated"] == "ai", text


async def test_thousands_may_be_grouped(stage: AssistantStage) -> None:
    stage.network.accounts[8101].balance = 1_234_000_000
    for written in ("1,234", "1 234", "1.234", "1\u202f234", "1234", "1234.00"):
        stage.follow(lambda heard, written=written: ModelTurn(card(f"{written} EUR.", kind="balance", figures=("balance",))))
        assert (await stage.insights())["generated"] == "ai", written


@pytest.mark.long
@pytest.mark.rule("4.8.3")
async def test_a_model_that_fails_leaves_measured_cards(stage: AssistantStage) -> None:
    faults: tuple[ModelFault, ...] = ("broken", "busy", "breaks_off", "garbage", "endless_error")
    for used, fault in enumerate(faults, 1):
        stage.follow(lambda heard, fault=fault: ModelTurn("One two three four.", fault=fault))
        found = await stage.insights()
        assert (found["generated"], found["quota"]["used"]) == ("measured", used), fault


@pytest.mark.long
@pytest.mark.rule("4.8.3")
async def test_with_the_allowance_spent_the_cards_are_measured(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, tier=Tier.FREE) as stage:
        for _ in range(10):
            await stage.world.store.write(charge_ai_call, owner=stage.me.organisation, period="2027-01-15", limit=10)
        found = await stage.insights()
        assert (found["generated"], found["quota"]["remaining"], stage.model.calls) == ("measured", 0, [])


async def test_a_charging_system_that_fails_leaves_a_card_that_says_so(stage: AssistantStage) -> None:
    await stage.world.sandbox.handle("POST", "/control/faults", body=json.dumps({"method": "*", "status": 500, "times": 500}).encode())
    found = await stage.insights()
    assert (found["generated"], found["quota"]["used"], stage.model.calls) == ("measured", 0, [])
    [only] = found["cards"]
    assert (only["title"], only["kind"]) == ("No figures", "note")
    assert "list_subscribers (ocs_error)" in only["text"]


async def test_an_organisation_that_is_not_connected_has_cards_all_the_same(tmp_path: Path) -> None:
    async with open_assistant_stage(tmp_path, mode=None) as stage:
        found = await stage.insights()
        assert found["generated"] == "measured" and "org_not_connected" in found["cards"][0]["text"]


async def test_an_account_may_be_named_and_anothers_has_no_figures(stage: AssistantStage) -> None:
    found = await stage.insights(accountId=8101)
    assert {"fleet", "stock"} <= {each["kind"] for each in found["cards"]}
    other = await stage.insights(accountId=8102)
    assert "not_found" in json.dumps(other["cards"][-1]["text"])
    assert not any(each["kind"] in ("fleet", "stock", "health") for each in other["cards"])


async def test_a_restricted_key_gets_the_figures_it_may_see(stage: AssistantStage) -> None:
    held = Restrictions(toolsets=("assistant", "accounts"))
    _, secret = await stage.world.key(stage.me.person, stage.me.organisation, restrictions=held)
    async with stage.world.client(secret) as http:
        found = (await http.post("/v1/ai/insights", json={})).json()
    assert {each["kind"] for each in found["cards"]} == {"balance", "stock", "note"}


@pytest.mark.long
async def test_no_text_of_the_charging_systems_reaches_the_model(stage: AssistantStage) -> None:
    for line in stage.network.lines.values():
        line.name = line.email = line.company = CANARY
    stage.network.accounts[8101].name = CANARY
    for id, network in stage.network.networks.items():
        stage.network.networks[id] = network._replace(name=CANARY)
    for template in stage.network.templates.values():
        template.name = CANARY
    stage.follow(writing(card("{active} lines.")))
    assert (await stage.insights())["generated"] == "ai"
    assert len(stage.model.calls) == 1 and CANARY not in json.dumps(stage.model.calls[0].body)
    assert stage.model.calls[0].tools == []


@pytest.mark.long
async def test_what_insights_look_at_is_audited_as_the_assistants_and_all_is_one_call(stage: AssistantStage) -> None:
    await stage.insights()
    organisation, period = stage.me.organisation, quota_period(stage.world.clock.now())
    used = await stage.world.store.read(read_quota_used, organisation=organisation, period=period.name)
    assert used - stage.world.blocks.unspent(organisation, period) == 1
    assert {"list_subscribers", "list_reseller_accounts", "esim_status_per_account"} <= {name for name, _ in await stage.audited()}
