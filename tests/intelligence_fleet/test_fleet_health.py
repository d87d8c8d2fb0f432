"""The health of a fleet: what is counted, what it scores, what is missing."""

from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
from inline_snapshot import snapshot

from operations.intelligence.fleet_health import HEALTH_METHOD, HEALTH_NOTES
from simulators.network.entities import DAY_SECONDS, Line
from tests.intelligence_fleet.stage import FLEET_HEALTH, MARKET, FleetStage, fleet_answer, open_fleet_stage, total_of

pytestmark = pytest.mark.long

NOON_DAY = 20_833
"""Days from 1970 to the day that it is."""


class HealthAnswers(NamedTuple):
    """What is told of a fleet and of all accounts, asked once: the first answer about a fleet has to read all of it."""

    lines: list[Line]
    """Of the account."""
    own: dict[str, Any]
    all: dict[str, Any]
    pages: list[dict[str, Any]]
    """Of all accounts, in pages of three: the bodies."""
    cursors: list[str | None]
    page_calls: int
    """How often the network was asked for the pages."""
    shown: Any
    """To a model."""
    text: int
    """Letters of that."""
    one: dict[str, Any]
    """Of account 8103 alone."""
    again: dict[str, Any]
    later: dict[str, Any]
    """A minute later, and how many listings that took."""
    listings: int


KEPT: list[HealthAnswers] = []


@pytest.fixture
async def told(tmp_path: Path) -> HealthAnswers:
    if not KEPT:
        async with open_fleet_stage(tmp_path) as stage:
            KEPT.append(await ask_all(stage))
    [answers] = KEPT
    return answers._replace(own=orjson.loads(orjson.dumps(answers.own)))


async def ask_all(stage: FleetStage) -> HealthAnswers:
    for http in (stage.http, stage.all):
        await fleet_answer(http, MARKET)  # it needs the days that fleet_health does not ask for
    own, whole = await fleet_answer(stage.http, FLEET_HEALTH), await fleet_answer(stage.all, FLEET_HEALTH)
    asked, pages, cursors = len(stage.house.world.sandbox.calls), list[dict[str, Any]](), list[str | None]()
    for _ in range(2):
        said = await stage.all.post(FLEET_HEALTH, json={"limit": 3} | ({"starting_after": cursors[-1]} if cursors else {}))
        pages.append(said.json())
        cursors.append(following(said))
    calls = len(stage.house.world.sandbox.calls) - asked
    async with stage.house.connect(stage.managed) as client:
        shown = await client.call_tool("fleet_health", {})
    text = sum(len(block.text) for block in shown.content if block.type == "text")
    one = await fleet_answer(stage.all, FLEET_HEALTH, accountId=8103)
    listings, again = stage.asked("listSubscriber"), await fleet_answer(stage.http, FLEET_HEALTH)
    stage.forget()
    later = await fleet_answer(stage.http, FLEET_HEALTH)
    listings = stage.asked("listSubscriber") - listings
    return HealthAnswers(stage.lines(), own, whole, pages, cursors, calls, shown.structured_content, text, one, again, later, listings)


@pytest.mark.rule("4.7.40")
async def test_an_operator_sees_the_whole_state_of_the_fleet(told: HealthAnswers) -> None:
    said = told.own
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
                        "spent_daily": 3.279836,
                        "spending_read": 65,
                        "spending_lines": 65,
                        "balance_days": 117.9,
                    }
                ],
            },
            "as_of": "2027-01-15T12:00:00Z",
        }
    )


async def test_lines_and_stock_are_those_of_the_network(told: HealthAnswers) -> None:
    data, mine = told.own["data"], told.lines
    assert data["lines"]["in_stock"] == sum(line.sim.status == "FREE" for line in mine) == data["accounts"][0]["free_esims"]
    assert data["lines"]["issued"] == sum(line.sim.status != "FREE" for line in mine) == sum(data["lines"]["by_status"].values())
    assert data["lines"]["never_used"] == sum(line.sim.status != "FREE" and line.last_usage_at is None for line in mine)


async def test_an_account_spends_a_day_a_seventh_of_what_its_lines_were_charged_in_a_week(told: HealthAnswers) -> None:
    row = told.own["data"]["accounts"][0]
    days = range(NOON_DAY - 7, NOON_DAY)
    paying = [line for line in told.lines if line.use_account and (line.last_usage_at or 0) >= days.start * DAY_SECONDS]
    charged = sum(cdr.subscriber_cost for line in paying for cdr in line.cdrs if cdr.at // DAY_SECONDS in days)
    assert (row["spending_read"], row["spending_lines"]) == (len(paying), len(paying))
    assert round(row["spent_daily"] * 1_000_000) == charged // 7 > 0


@pytest.mark.rule("4.7.40")
async def test_the_factors_add_up_to_the_score(told: HealthAnswers) -> None:
    for data in (told.own["data"], told.all["data"]):
        assert round(sum(factor["weight"] for factor in data["factors"]), 1) == data["score"]
        assert 0 <= data["score"] <= 100 and len(data["first"]) <= 3
        assert [each["points"] for each in data["first"]] == sorted((each["points"] for each in data["first"]), reverse=True)


async def test_accounts_add_up_to_the_fleet_and_come_in_pages_of_one_state(told: HealthAnswers) -> None:
    rows = told.all["data"]["accounts"]
    assert [row["account_id"] for row in rows] == [8101, 8102, 8103, 8104]
    assert total_of(rows, "issued") == told.all["data"]["lines"]["issued"]
    assert {page["generated_at"] for page in told.pages} == {told.all["generated_at"]}
    assert [row for page in told.pages for row in page["data"]["accounts"]] == rows
    assert (told.cursors[-1], told.page_calls) == (None, 0)


async def test_a_model_gets_little_and_the_same_figures(told: HealthAnswers) -> None:
    assert told.shown == told.own
    assert told.text < 6_000


def following(said: httpx.Response) -> str | None:
    """The cursor of the next page."""
    link = said.links.get("next")
    return None if link is None else link["starting_after"]


async def test_one_account_is_counted_alone(told: HealthAnswers) -> None:
    assert [row["account_id"] for row in told.one["data"]["accounts"]] == [8103]
    assert told.one["data"]["accounts"] == [row for row in told.all["data"]["accounts"] if row["account_id"] == 8103]
    assert told.one["data"]["lines"]["issued"] == told.one["data"]["accounts"][0]["issued"] < told.all["data"]["lines"]["issued"]
    assert told.one["of"] == told.one["data"]["lines"]["issued"] + told.one["data"]["lines"]["in_stock"]


async def test_an_account_of_somebody_else_is_not_there(few: FleetStage) -> None:
    strange = await few.http.post(FLEET_HEALTH, json={"accountId": 8103})
    assert (strange.status_code, strange.json()["param"]) == (404, "accountId")


async def test_after_a_minute_the_figures_are_made_again_without_a_listing(told: HealthAnswers) -> None:
    assert told.again == told.own
    assert told.later["generated_at"] != told.own["generated_at"] and told.later["as_of"] == told.own["as_of"]
    assert told.listings == 0


async def test_what_could_not_be_counted_or_read_is_said(few: FleetStage) -> None:
    few.trouble("esimStatusPerAccount", code=3, times=2)  # it is asked twice
    few.trouble("subscriberUsageOverPeriod", code=3, times=6)
    partial = await fleet_answer(few.http, FLEET_HEALTH)
    assert partial["incomplete"] == snapshot(
        {
            "lines": 2,
            "reasons": [
                "The packages and use of 2 of 23 lines have not been read yet; that goes on now.",
                "The eSIMs of 1 accounts could not be counted; theirs are those that the list shows as free.",
            ],
        }
    )
    row = partial["data"]["accounts"][0]
    assert (row["free_esims"], row["spending_lines"] - row["spending_read"]) == snapshot((2, 2))
    few.house.world.sandbox.faults.clear()
    few.house.world.clock.advance(901)  # a line that failed is asked again after a quarter of an hour
    assert (await fleet_answer(few.http, FLEET_HEALTH))["incomplete"] is None


async def test_without_any_use_the_balance_has_no_end(few: FleetStage) -> None:
    few.trouble("subscriberUsageOverPeriod", code=3, times=None)
    said = await fleet_answer(few.http, FLEET_HEALTH)
    row = said["data"]["accounts"][0]
    assert (row["spent_daily"], row["spending_read"], row["balance_days"]) == (None, 0, None)
    assert said["incomplete"]["lines"] > 0


async def test_lines_that_no_list_shows_are_said_to_be_missing(few: FleetStage) -> None:
    few.trouble("listSubscriber", has_more=True, times=None)
    reasons = (await fleet_answer(few.http, FLEET_HEALTH))["incomplete"]["reasons"]
    assert "The charging system's lists did not show every line; those it left out are in no figure." in reasons


async def test_a_fleet_that_cannot_be_listed_is_the_networks_failure(few: FleetStage) -> None:
    few.trouble("listSubscriber", code=3, times=None)
    said = await few.http.post(FLEET_HEALTH, json={})
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")
    assert said.json()["error"].startswith("The charging system failed")
