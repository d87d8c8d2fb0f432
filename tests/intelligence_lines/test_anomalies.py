"""Days unlike the others: over HTTP and MCP, for a fleet and for one line."""

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from operations.intelligence.usage_anomalies import ANOMALY_METHOD, anomaly_sheet
from simulators.network import charging
from simulators.network.entities import DATA, DAY_SECONDS, Line
from simulators.network.seed.scenario import ScenarioTruth
from tests.intelligence_lines.stage import ANOMALIES, PLANTED, SEED, FleetAnswers, UsageStage, planted_answer
from tests.sandbox.planted import planted

pytestmark = pytest.mark.long


def truth_of(told: FleetAnswers) -> tuple[ScenarioTruth, set[str]]:
    """What is true, and the lines that the caller has."""
    return planted(SEED, PLANTED).truth, told.iccids


def days_of(row: dict[str, Any]) -> set[date]:
    first = date.fromisoformat(row["day"])
    return {first + timedelta(days=place) for place in range(row["observed"] if row["kind"] == "silence" else 1)}


@pytest.fixture
async def told(tmp_path: Path) -> FleetAnswers:
    return await planted_answer(tmp_path, ANOMALIES)


async def test_a_small_fleet_is_searched(stage: UsageStage) -> None:
    bursts(stage, 1)
    said = await stage.anomalies()
    assert said.pop("method") == ANOMALY_METHOD
    assert said == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 9,
            "of": 10,
            "incomplete": None,
            "data": {
                "window": {"first": "2026-12-18", "last": "2027-01-14", "line_days": 95},
                "false_alarms": {"threshold": 2.8, "per_1000_line_days": 2.6, "expected": 0.2},
                "not_judged": {"stock": 1, "never_used": 0, "ended": 0, "unused": 0},
                "lines": 1,
                "kinds": {"spike": 1, "silence": 0, "cost": 0},
                "days": [{"day": "2027-01-06", "spike": 1, "silence": 0, "cost": 0}],
                "anomalies": [
                    {
                        "iccid": "8988303700000100054",
                        "day": "2027-01-06",
                        "kind": "spike",
                        "unit": "bytes",
                        "observed": 4456622055,
                        "expected": {"least": 9231974, "most": 767428016},
                        "score": 8.6,
                        "country": "DE",
                        "usual_country": "DE",
                        "context": ["outside_package"],
                    }
                ],
            },
            "as_of": "2027-01-15T12:00:00Z",
        }
    )


def used(line: Line) -> bool:
    return line.cdrs != []


def bursts(stage: UsageStage, count: int) -> None:
    """Far more data than ever on one day of the busiest lines, paid by balances that are deep enough."""
    for line in sorted(filter(used, stage.lines()), key=lambda line: -len(line.cdrs))[:count]:
        data = Counter[int]()
        for cdr in line.cdrs:
            data[cdr.at // DAY_SECONDS] += cdr.quantity if cdr.usage_type == DATA else 0
        line.use_account, line.balance = False, 10**12
        at = (stage.network.now // DAY_SECONDS - 9) * DAY_SECONDS + 50_000
        charging.charge_usage(stage.network, line, DATA, 10 * max(data.values()), line.cdrs[-1].network_id, at)


@pytest.mark.rule("4.7.11")
async def test_days_that_were_made_to_stand_out_are_found(told: FleetAnswers) -> None:
    truth, mine = truth_of(told)
    said = told.answer
    shown = {(row["iccid"], date.fromisoformat(row["day"])) for row in said["data"]["anomalies"] if row["kind"] == "spike"}
    true = {(iccid, day) for iccid, days in truth.spikes.items() if iccid in mine for day in days}
    assert len(shown & true) >= 0.8 * len(true) > 0


@pytest.mark.rule("4.7.11")
async def test_silences_of_regular_lines_are_found(told: FleetAnswers) -> None:
    truth, mine = truth_of(told)
    said = told.answer
    silent = {iccid: {*days} for iccid, days in truth.silences.items() if iccid in mine}
    rows = [row for row in said["data"]["anomalies"] if row["kind"] == "silence"]
    assert silent
    for iccid, days in silent.items():
        assert any(days_of(row) & days for row in rows if row["iccid"] == iccid)


@pytest.mark.parametrize("role", ["regular_heavy", "weekday", "first_trip"])
async def test_what_only_looks_unusual_raises_hardly_any_alarm(told: FleetAnswers, role: str) -> None:
    truth, mine = truth_of(told)
    lines = mine & {*truth.negatives[role]}
    said = told.answer
    alarms = [row for row in said["data"]["anomalies"] if row["iccid"] in lines and row["kind"] != "cost"]
    assert lines
    assert len(alarms) <= 1


async def test_every_anomaly_lies_outside_what_was_expected(told: FleetAnswers) -> None:
    data = told.answer["data"]
    for row in data["anomalies"]:
        assert row["observed"] > row["expected"]["most"] >= row["expected"]["least"] >= 0
        assert data["window"]["first"] <= row["day"] <= data["window"]["last"]
        assert row["unit"] == {"spike": "bytes", "silence": "days", "cost": "eur"}[row["kind"]]
    assert [row["score"] for row in data["anomalies"]] == sorted((row["score"] for row in data["anomalies"]), reverse=True)


async def test_counts_are_those_of_the_rows(told: FleetAnswers) -> None:
    said = told.answer
    data = said["data"]
    rows = data["anomalies"]
    assert data["lines"] == len({row["iccid"] for row in rows})
    for kind, count in data["kinds"].items():
        assert count == sum(row["kind"] == kind for row in rows) == sum(day[kind] for day in data["days"])
    assert said["sampled"] + sum(data["not_judged"].values()) == said["of"] == len(told.lines)
    assert data["false_alarms"]["expected"] == round(data["window"]["line_days"] * data["false_alarms"]["per_1000_line_days"] / 1000, 1)


async def test_one_line_alone_is_judged_as_in_its_fleet(fleet: UsageStage) -> None:
    data = (await fleet.anomalies(limit=500))["data"]
    iccid = data["anomalies"][0]["iccid"]
    said = await fleet.anomalies(iccid=iccid)
    assert (said["sampled"], said["of"]) == (1, 1)
    assert said["data"]["anomalies"] == [row for row in data["anomalies"] if row["iccid"] == iccid]


async def test_pages_show_one_state(half: UsageStage) -> None:
    bursts(half, 30)
    whole = (await half.anomalies(limit=500))["data"]["anomalies"]
    asked = half.asked("subscriberUsageOverPeriod", "listSubscriber")
    pages, cursor = [], None
    while True:
        said = await half.http.post(ANOMALIES, json={"limit": 7} | ({"starting_after": cursor} if cursor else {}))
        pages += said.json()["data"]["anomalies"]
        if "next" not in said.links:
            break
        cursor = said.links["next"]["starting_after"]
    assert pages == whole
    assert half.asked("subscriberUsageOverPeriod", "listSubscriber") == asked


async def test_what_is_known_already_is_not_read_again(half: UsageStage) -> None:
    await half.churn()
    asked = half.asked("subscriberUsageOverPeriod")
    await half.anomalies()
    assert half.asked("subscriberUsageOverPeriod") == asked


async def test_a_line_that_is_not_answered_for_is_counted(half: UsageStage) -> None:
    half.trouble("subscriberUsageOverPeriod", code=7, times=3)
    said = await half.anomalies(limit=500)
    missing = said["incomplete"]["lines"]
    assert missing > 0
    assert said["sampled"] + missing + sum(said["data"]["not_judged"].values()) == said["of"]
    half.wait_after_failures()
    assert (await half.anomalies(limit=500))["incomplete"] is None


async def test_a_tool_answers_in_few_characters_and_says_how_to_see_more(half: UsageStage) -> None:
    bursts(half, 30)
    result = await half.tool("detect_usage_anomalies", {})
    said = result["structuredContent"]
    assert len(said["data"]["anomalies"]) == 8
    assert len(orjson.dumps(said)) < 6_000
    rest = await half.tool("detect_usage_anomalies", {"starting_after": result["_meta"]["next"]})
    whole = (await half.anomalies(limit=16))["data"]["anomalies"]
    assert [*said["data"]["anomalies"], *rest["structuredContent"]["data"]["anomalies"]] == whole


async def test_the_sheet_names_lines_in_cells_of_lines_alone(fleet: UsageStage) -> None:
    bursts(fleet, 3)
    said = await fleet.anomalies()
    said["data"]["anomalies"].append({**said["data"]["anomalies"][0], "kind": "cost", "unit": "eur"})  # no line of this network has one
    made = anomaly_sheet(said)  # pyright: ignore[reportArgumentType]  # an answer as it came over HTTP
    assert made["headline"] == snapshot("4 lines stand out in four weeks; data spikes: 3, spikes of cost outside packages: 0, silences: 1.")
    assert [(figure["label"], figure["value"]) for figure in made["figures"]] == snapshot(
        [
            ("Data spikes", 3),
            ("Silences", 1),
            ("Cost outside packages", 0),
            ("Lines looked into", 46),
            ("Days of lines compared", 570),
            ("False alarms to expect", 1.5),
            ("Lines not used in these weeks", 2),
        ]
    )
    assert [[column["kind"] for column in table["columns"]] for table in made["tables"]] == snapshot(
        [
            ["line", "day", "bytes", "bytes", "number", "country", "country", "word"],
            ["line", "day", "money", "money", "number", "country", "country", "word"],
            ["line", "day", "days", "days", "number", "word"],
        ]
    )
    assert len(made["charts"][0]["places"]) == 28
    for series in made["charts"][0]["series"]:
        assert len(series["values"]) == 28
    for table in made["tables"]:
        assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])
    rest = orjson.dumps({**made, "tables": [{**table, "rows": [row[1:] for row in table["rows"]]} for table in made["tables"]]}).decode()
    assert "8988" not in rest
