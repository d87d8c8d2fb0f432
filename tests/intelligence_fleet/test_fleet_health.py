"""The health of a fleet: what is counted, what it scores, what is missing."""

from typing import Any

import httpx
import pytest
from inline_snapshot import snapshot

from operations.intelligence.fleet_health import HEALTH_METHOD, HEALTH_NOTES
from tests.intelligence_fleet.stage import FLEET_HEALTH, FleetStage, fleet_answer, total_of
from tests.network_facts import ACCOUNT


@pytest.mark.rule("4.7.40")
async def test_an_operator_sees_the_whole_state_of_the_fleet(stage: FleetStage) -> None:
    said = await fleet_answer(stage.http, FLEET_HEALTH)
    assert (said.pop("method"), said["data"].pop("notes")) == (HEALTH_METHOD, HEALTH_NOTES)
    assert said == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 140,
            "of": 140,
            "incomplete": None,
            "data": {
                "score": 62.7,
                "factors": [
                    {"name": "full_marks", "value": 100.0, "weight": 100.0},
                    {"name": "never_used_share", "value": 0.294, "weight": -14.7},
                    {"name": "suspended_share", "value": 0.024, "weight": -1.8},
                    {"name": "stock_days", "value": 10.0, "weight": -20.8},
                ],
                "first": [
                    {"do": "order_esims", "account_id": 8101, "more_accounts": 0, "lines": None, "days": 10.0, "points": 20.8},
                    {"do": "start_unused_lines", "account_id": None, "more_accounts": 0, "lines": 37, "days": None, "points": 14.7},
                    {"do": "settle_suspended_lines", "account_id": None, "more_accounts": 0, "lines": 3, "days": None, "points": 1.8},
                ],
                "lines": {
                    "in_stock": 14,
                    "issued": 126,
                    "by_status": {"ACTIVE": 118, "DISCONNECTED": 3, "END_OF_LIFE": 2, "SUSPENDED": 3},
                    "used_7d": 89,
                    "used_30d": 89,
                    "never_used": 37,
                    "idle_30d": 0,
                    "silent_60d": 0,
                    "suspended": 3,
                },
                "accounts": [
                    {
                        "account_id": 8101,
                        "name": "Demo Retail",
                        "issued": 126,
                        "used_30d": 89,
                        "free_esims": 14,
                        "issued_30d": 42,
                        "stock_days": 10.0,
                        "balance": 386.689103,
                        "package_only": False,
                        "spent_daily": 3.696024,
                        "spending_read": 40,
                        "spending_lines": 65,
                        "balance_days": 104.6,
                    }
                ],
            },
        }
    )


async def test_lines_and_stock_are_those_of_the_network(stage: FleetStage) -> None:
    network = await stage.house.world.network()
    mine = list(network.lines_of(ACCOUNT))
    data = (await fleet_answer(stage.http, FLEET_HEALTH))["data"]
    assert data["lines"]["in_stock"] == sum(line.sim.status == "FREE" for line in mine) == data["accounts"][0]["free_esims"]
    assert data["lines"]["issued"] == sum(line.sim.status != "FREE" for line in mine) == sum(data["lines"]["by_status"].values())
    assert data["lines"]["never_used"] == sum(line.sim.status != "FREE" and line.last_usage_at is None for line in mine)


@pytest.mark.rule("4.7.40")
async def test_the_factors_add_up_to_the_score(stage: FleetStage) -> None:
    for http in (stage.http, stage.all):
        data = (await fleet_answer(http, FLEET_HEALTH))["data"]
        assert round(sum(factor["weight"] for factor in data["factors"]), 1) == data["score"]
        assert 0 <= data["score"] <= 100 and len(data["first"]) <= 3
        assert [each["points"] for each in data["first"]] == sorted((each["points"] for each in data["first"]), reverse=True)


async def test_accounts_add_up_to_the_fleet_and_come_in_pages_of_one_state(stage: FleetStage) -> None:
    whole = await fleet_answer(stage.all, FLEET_HEALTH)
    rows = whole["data"]["accounts"]
    assert [row["account_id"] for row in rows] == [8101, 8102, 8103, 8104]
    assert total_of(rows, "issued") == whole["data"]["lines"]["issued"]
    asked = len(stage.house.world.sandbox.calls)
    pages: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(2):
        said = await stage.all.post(FLEET_HEALTH, json={"limit": 3} | ({"starting_after": cursor} if cursor else {}))
        assert said.json()["generated_at"] == whole["generated_at"]
        pages += said.json()["data"]["accounts"]
        cursor = following(said)
    assert (pages, cursor, len(stage.house.world.sandbox.calls)) == (rows, None, asked)


def following(said: httpx.Response) -> str | None:
    """The cursor of the next page."""
    link = said.links.get("next")
    return None if link is None else link["starting_after"]


async def test_after_a_minute_the_fleet_is_looked_at_again(stage: FleetStage) -> None:
    former = await fleet_answer(stage.http, FLEET_HEALTH)
    assert await fleet_answer(stage.http, FLEET_HEALTH) == former
    assert stage.asked("listSubscriber") == 1
    stage.forget()
    assert (await fleet_answer(stage.http, FLEET_HEALTH))["generated_at"] != former["generated_at"]
    assert stage.asked("listSubscriber") == 2


async def test_what_could_not_be_counted_or_read_is_said(stage: FleetStage) -> None:
    stage.trouble("esimStatusPerAccount", code=3, times=2)  # it is asked twice
    stage.trouble("subscriberUsageOverPeriod", code=3, times=6)
    partial = await fleet_answer(stage.http, FLEET_HEALTH)
    assert partial["incomplete"] == snapshot(
        {"lines": 0, "reasons": ["The eSIMs of 1 accounts could not be counted; theirs are those that the list shows as free."]}
    )
    row = partial["data"]["accounts"][0]
    assert (row["free_esims"], row["spending_read"]) == snapshot((14, 40))
    stage.house.world.sandbox.faults.clear()
    assert (await fleet_answer(stage.http, FLEET_HEALTH))["incomplete"] is None


async def test_without_any_use_the_balance_has_no_end(stage: FleetStage) -> None:
    stage.trouble("subscriberUsageOverPeriod", code=3, times=None)
    said = await fleet_answer(stage.http, FLEET_HEALTH)
    row = said["data"]["accounts"][0]
    assert (row["spent_daily"], row["spending_read"], row["balance_days"]) == (None, 0, None)
    assert said["incomplete"]["lines"] == 40


async def test_lines_that_no_list_shows_are_said_to_be_missing(stage: FleetStage) -> None:
    stage.trouble("listSubscriber", has_more=True)
    reasons = (await fleet_answer(stage.http, FLEET_HEALTH))["incomplete"]["reasons"]
    assert reasons == ["The charging system's lists did not show every line; those it left out are in no figure."]


async def test_a_fleet_that_cannot_be_listed_is_the_networks_failure(stage: FleetStage) -> None:
    stage.trouble("listSubscriber", code=3, times=None)
    said = await stage.http.post(FLEET_HEALTH, json={})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 3)


async def test_a_model_gets_little_and_the_same_figures(stage: FleetStage) -> None:
    async with stage.house.connect(stage.managed) as client:
        shown = await client.call_tool("fleet_health", {})
    assert shown.structured_content == await fleet_answer(stage.http, FLEET_HEALTH)
    assert sum(len(block.text) for block in shown.content if block.type == "text") < 6_000
