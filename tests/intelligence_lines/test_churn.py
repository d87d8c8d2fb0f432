"""Which lines are about to be given up: over HTTP and MCP, for a fleet and for one line."""

from pathlib import Path

import orjson
import pytest
from inline_snapshot import snapshot

from operations.intelligence.churn_risk import CHURN_BANDS, CHURN_METHOD, churn_sheet
from registry.caller import Tier
from tests.intelligence_lines.stage import CHURN, PLANTED, SEED, FleetAnswers, UsageStage, lines_answer, planted_answer
from tests.sandbox.planted import planted
from tests.tables import tabled

pytestmark = pytest.mark.long


@pytest.fixture
async def told(tmp_path: Path) -> FleetAnswers:
    return await planted_answer(tmp_path, CHURN)


async def test_a_small_fleet_is_ranked_worst_first(stage: UsageStage) -> None:
    said = await stage.churn()
    assert said.pop("method") == CHURN_METHOD
    assert tabled(said) == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 9,
            "of": 10,
            "incomplete": None,
            "data": {
                "bands": {"high": {"at_least": 50, "lines": 0}, "medium": {"at_least": 30, "lines": 0}, "low": {"at_least": 0, "lines": 9}},
                "not_scored": {"stock": 1, "never_used": 0, "ended": 0, "lapsed": 0},
                "lines": {
                    "columns": ["iccid", "score", "band", "last_use", "factors"],
                    "rows": [
                        [
                            "8988303700000100070",
                            15.0,
                            "low",
                            "2027-01-15",
                            [{"name": "trend_percent_per_week", "value": -37.5, "weight": 15.0}],
                        ],
                        [
                            "8988303700000100062",
                            7.0,
                            "low",
                            "2027-01-15",
                            [{"name": "trend_percent_per_week", "value": -16.667, "weight": 7.0}],
                        ],
                        ["8988303700000100013", 0.8, "low", "2027-01-12", [{"name": "silent_days", "value": 2, "weight": 0.8}]],
                        ["8988303700000100021", 0, "low", "2027-01-15", []],
                        ["8988303700000100039", 0, "low", "2027-01-13", []],
                        ["8988303700000100047", 0, "low", "2027-01-14", []],
                        ["8988303700000100054", 0, "low", "2027-01-15", []],
                        ["8988303700000100088", 0, "low", "2027-01-15", []],
                        ["8988303700000100096", 0, "low", "2027-01-13", []],
                    ],
                },
            },
            "as_of": "2027-01-15T12:00:00Z",
        }
    )


async def test_one_line_is_told_with_a_sentence_for_each_factor(fleet: UsageStage) -> None:
    worst = (await fleet.churn(limit=1))["data"]["lines"][0]
    said = await fleet.churn(iccid=worst["iccid"])
    assert (said["sampled"], said["of"]) == (1, 1)
    row = said["data"]["lines"][0]
    reasons = row.pop("reasons")
    assert row == worst
    assert len(reasons) == len(row["factors"])
    assert reasons == snapshot(
        [
            "Silent for 23 days; 20 of 33 days before had use, and such a line is silent so long at odds of 3.7e-05.",
            "Without a package for 15 whole days after the last use.",
            "No balance pays for use outside packages.",
        ]
    )


@pytest.mark.rule("4.7.10")
async def test_the_factors_add_up_to_every_score(told: FleetAnswers) -> None:
    rows = told.answer["data"]["lines"]
    assert len(rows) > 50
    for row in rows:
        assert round(sum(factor["weight"] for factor in row["factors"]), 1) == row["score"] <= 100
        assert all(factor["weight"] > 0 for factor in row["factors"])
        assert row["score"] >= CHURN_BANDS[row["band"]]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


async def test_every_line_is_scored_or_counted_apart(told: FleetAnswers) -> None:
    said = told.answer
    data = said["data"]
    assert said["incomplete"] is None
    assert sum(band["lines"] for band in data["bands"].values()) == said["sampled"] == len(data["lines"])
    assert said["sampled"] + sum(data["not_scored"].values()) == said["of"] == len(told.lines)
    assert data["not_scored"]["stock"] == sum(line.sim.status == "FREE" and line.last_usage_at is None for line in told.lines)
    assert data["not_scored"]["ended"] == sum(line.status in ("DISCONNECTED", "END_OF_LIFE") for line in told.lines)


@pytest.mark.rule("4.7.10")
async def test_lines_that_were_made_to_leave_are_mostly_at_high_risk(told: FleetAnswers) -> None:
    truth = planted(SEED, PLANTED).truth
    high = {row["iccid"] for row in told.answer["data"]["lines"] if row["band"] == "high"}
    judged = high & {*truth.gone, *truth.staying}
    assert len(judged & {*truth.gone}) >= 0.75 * len(judged) > 0
    assert len(high & {*truth.churn}) >= 0.7 * len(told.iccids & {*truth.churn}) > 0


async def test_who_only_pauses_is_not_at_high_risk(told: FleetAnswers) -> None:
    rows = told.answer["data"]["lines"]
    pausing = {*planted(SEED, PLANTED).truth.negatives["pause"]}
    found_ = [row["band"] for row in rows if row["iccid"] in pausing]
    assert found_
    assert found_.count("high") <= len(found_) // 3


async def test_pages_show_one_state(half: UsageStage) -> None:
    whole = (await half.churn(limit=500))["data"]["lines"]
    asked = half.asked("subscriberUsageOverPeriod", "listSubscriber", "listSubscriberPrepaidPackages")
    pages, cursor = [], None
    while True:
        given = {"limit": 9} | ({"starting_after": cursor} if cursor else {})
        said = await half.http.post(CHURN, json=given)
        pages += said.json()["data"]["lines"]
        if "next" not in said.links:
            break
        cursor = said.links["next"]["starting_after"]
        half.lines()[0].last_usage_at = None  # nothing of a later state is seen
    assert pages == whole
    assert half.asked("subscriberUsageOverPeriod", "listSubscriber", "listSubscriberPrepaidPackages") == asked


async def test_a_line_that_is_not_answered_for_is_counted(half: UsageStage) -> None:
    half.trouble("subscriberUsageOverPeriod", code=7, times=3)
    said = await half.churn(limit=500)
    missing = said["incomplete"]["lines"]
    assert missing > 0
    assert said["incomplete"]["reasons"][0] == "The packages and use of 3 of 28 lines have not been read yet; that goes on now."
    assert said["sampled"] + missing + sum(said["data"]["not_scored"].values()) == said["of"]
    half.wait_after_failures()
    again = await half.churn(limit=500)
    assert again["incomplete"] is None
    assert again["sampled"] == said["sampled"] + missing


async def test_a_fleet_of_which_nothing_can_be_read_is_no_fleet_without_risk(stage: UsageStage) -> None:
    stage.trouble("subscriberUsageOverPeriod", status=500, times=10_000)
    said = await stage.http.post(CHURN, json={})
    assert said.status_code == 502


async def test_a_line_that_was_never_used_has_no_score(stage: UsageStage) -> None:
    fresh = next(line for line in stage.lines() if line.sim.status == "FREE")
    said = await stage.churn(iccid=fresh.iccid)
    assert said["data"]["lines"] == []
    assert said["data"]["not_scored"] == {"stock": 1, "never_used": 0, "ended": 0, "lapsed": 0}
    assert stage.asked("subscriberUsageOverPeriod") == 0


async def test_a_tool_answers_in_few_characters_and_says_how_to_see_more(half: UsageStage) -> None:
    result = await half.tool("churn_risk", {})
    said = result["structuredContent"]
    assert len(said["data"]["lines"]) == 10
    assert len(orjson.dumps(said)) < 6_000
    rest = await half.tool("churn_risk", {"starting_after": result["_meta"]["next"]})
    whole = (await half.churn(limit=20))["data"]["lines"]
    assert [*said["data"]["lines"], *rest["structuredContent"]["data"]["lines"]] == whole


async def test_an_own_token_sees_the_lines_of_all_its_accounts(stage: UsageStage) -> None:
    own = await stage.world.caller(Tier.FREE, token="sandbox-7001-token")
    async with stage.world.client(own.secret) as http:
        said = await lines_answer(http, CHURN)
    assert said["of"] == sum(len(stage.lines(account)) for account in (8101, 8102, 8103, 8104))


async def test_the_sheet_names_lines_in_cells_of_lines_alone(fleet: UsageStage) -> None:
    said = await fleet.churn()
    made = churn_sheet(said)  # pyright: ignore[reportArgumentType]  # an answer as it came over HTTP
    assert made["headline"] == snapshot("2 of 46 lines in use are at high risk of being given up.")
    assert [figure["value"] for figure in made["figures"]] == snapshot([2, 1, 43, 1, 1, 6, 2])
    assert [(chart["title"], chart["places"], chart["series"]) for chart in made["charts"]] == snapshot(
        [
            ("Lines by band", ["High", "Medium", "Low"], [{"label": "Lines", "values": [2, 1, 43]}]),
            (
                "Points by factor, mean of the lines below",
                ["Silence", "Fewer days with use", "No package", "Not active", "No balance"],
                [{"label": "Points", "values": [4.0, 2.0, 1.9, 0.1, 0.3]}],
            ),
        ]
    )
    table = made["tables"][0]
    assert [column["kind"] for column in table["columns"]] == snapshot(
        ["line", "number", "word", "day", "number", "number", "number", "number", "number"]
    )
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
    rest = orjson.dumps({**made, "tables": [{**table, "rows": [row[1:] for row in table["rows"]]}]}).decode()
    assert "8988" not in rest
