"""The sheets of both composites: what strangers may see is of a public kind, and rows have as many values as columns."""

from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from operations.intelligence import high_cost_subscribers, savings
from operations.intelligence.reports.sheet import Sheet
from tests.intelligence_costs.stage import CostsStage, DemoAnswers

pytestmark = pytest.mark.long


def checked(sheet: Sheet) -> Sheet:
    for table in sheet["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for chart in sheet["charts"]:
        assert all(len(one["values"]) == len(chart["places"]) for one in chart["series"])
    return sheet


def brief(sheet: Sheet) -> dict[str, Any]:
    """All of it, with a line for a figure, for what a chart is of and for the columns of a table."""
    return {
        **sheet,
        "figures": [(one["label"], one["kind"], one["value"]) for one in sheet["figures"]],
        "charts": [
            (
                chart["title"],
                f"{chart['shape']} of {chart['kind']} by {chart['places_kind']}, series by {chart['series_kind']}",
                chart["places"],
                {one["label"]: one["values"] for one in chart["series"]},
            )
            for chart in sheet["charts"]
        ],
        "tables": [
            (table["title"], [f"{one['label']} {one['kind']}" for one in table["columns"]], table["rows"], table["note"])
            for table in sheet["tables"]
        ],
    }


def public(sheet: Sheet) -> str:
    """All of it but cells of private kinds."""
    shown: dict[str, Any] = orjson.loads(orjson.dumps(sheet))
    for table in shown["tables"]:
        hidden = {place for place, column in enumerate(table["columns"]) if column["kind"] in ("line", "text")}
        table["rows"] = [[value for place, value in enumerate(row) if place not in hidden] for row in table["rows"]]
    return orjson.dumps(shown).decode()


async def test_the_sheet_of_costs(stage: CostsStage) -> None:
    sheet = checked(high_cost_subscribers.cost_sheet(await stage.costs(limit=2)))  # pyright: ignore[reportArgumentType]  # JSON
    assert brief(sheet) == snapshot(
        {
            "title": "What lines cost",
            "headline": "4 of 10 lines make 80 % of the network cost: EUR 24.42.",
            "figures": [
                ("Network cost", "money", 24.419367),
                ("Package income", "money", 67.414623),
                ("Usage income", "money", 14.812381),
                ("Margin", "money", 57.807637),
                ("Lines with cost", "number", 9),
                ("First day", "day", "2026-12-18"),
                ("Last day", "day", "2027-01-14"),
            ],
            "charts": [
                (
                    "Network cost by country, stacked by network",
                    "stacked of money by country, series by word",
                    ["FI", "DE"],
                    {"Dearest network": [6.6291, 4.870408], "Second network": [4.040798, 0.428385]},
                ),
                (
                    "Network cost by kind of use",
                    "bar of money by word, series by word",
                    ["Data", "Calls made", "Calls received", "Messages sent"],
                    {"Network cost": [18.662967, 4.6032, 0.8232, 0.33]},
                ),
            ],
            "tables": [
                (
                    "Dearest lines",
                    [
                        "Line line",
                        "Network cost money",
                        "Share percent",
                        "Package income money",
                        "Usage income money",
                        "Margin money",
                        "Country country",
                        "Network network",
                        "What to do word",
                        "Saving for the operator money",
                        "Saving for the customer money",
                    ],
                    [
                        ["8988303700000100088", 7.962325, 32.6, 8.553038, 2.72292, 3.313633, "FI", "244-12", "none", None, None],
                        ["8988303700000100054", 5.298793, 21.7, 1.860026, 0.7266, -2.712167, "DE", "262-06", "none", None, None],
                    ],
                    "2 of 9 lines with cost; country and network are the dearest of each",
                ),
                (
                    "Countries",
                    ["Country country", "Network cost money", "Share percent", "Usage income money", "Dearest network network"],
                    [["FI", 10.669898, 43.7, 6.94356, "244-12"], ["DE", 5.298793, 21.7, 0.7266, "262-06"]],
                    None,
                ),
            ],
        }
    )


async def test_the_sheet_of_savings(stage: CostsStage) -> None:
    sheet = checked(savings.savings_sheet(await stage.packages(limit=2)))  # pyright: ignore[reportArgumentType]  # JSON
    assert brief(sheet) == snapshot(
        {
            "title": "Cheapest packages",
            "headline": "Other packages would save customers EUR 34.31 of EUR 88.10 in 30 days; 2 lines cost more than they bring in.",
            "figures": [
                ("Network cost in 30 days", "money", 26.163608),
                ("Package income in 30 days", "money", 72.229953),
                ("Usage income in 30 days", "money", 15.870408),
                ("Margin in 30 days", "money", 61.936753),
                ("Saving for customers in 30 days", "money", 34.314482),
                ("Lines to change", "number", 4),
                ("Lines that lose money", "number", 2),
                ("Lines without use", "number", 1),
                ("First day of use", "day", "2026-12-18"),
                ("Last day of use", "day", "2027-01-14"),
            ],
            "charts": [
                (
                    "Lines by verdict",
                    "bar of number by word, series by word",
                    ["Change", "Keep", "Loses money", "Unused"],
                    {"Lines": [4, 3, 2, 1]},
                ),
                (
                    "Listed lines that could save, by country of most use",
                    "bar of number by country, series by word",
                    ["FI", "SE"],
                    {"Lines": [1, 1]},
                ),
            ],
            "tables": [
                (
                    "Largest savings",
                    [
                        "Line line",
                        "Verdict word",
                        "Saving for the customer money",
                        "Customer pays now money",
                        "Cheapest money",
                        "Next best money",
                        "Margin now money",
                        "Data needed bytes",
                        "Packages text",
                    ],
                    [
                        ["8988303700000100021", "Change", 11.814286, 21.2364, 9.422114, 14.422114, 18.377951, 960923000, "1 x 55014"],
                        ["8988303700000100096", "Change", 10.0, 14.9, 4.9, 9.9, 14.278039, 649001000, "1 x 55014"],
                    ],
                    "EUR in 30 days; data with a tenth more than was used. What a customer saves you receive less.",
                ),
                (
                    "Lines that lose money",
                    ["Line line", "Verdict word", "Network cost money", "Package income money", "Usage income money", "Margin money"],
                    [],
                    None,
                ),
            ],
        }
    )


async def test_no_name_and_no_number_of_a_line_is_public(demo: DemoAnswers) -> None:
    costs, packages = await demo.costs(limit=500), await demo.packages(limit=500)
    for sheet in (high_cost_subscribers.cost_sheet(costs), savings.savings_sheet(packages)):  # pyright: ignore[reportArgumentType]  # JSON
        text = public(checked(sheet))
        names = {network.name for network in demo.network.networks.values()} | {one.name for one in demo.network.templates.values()}
        assert [line.iccid for line in demo.lines() if line.iccid in text] == []
        assert [name for name in names if len(name) > 5 and f'"{name}"' in text] == []


async def test_a_fleet_that_cost_nothing_has_a_sheet(stage: CostsStage) -> None:
    empty = await stage.costs(start="2026-06-01", end="2026-06-02")
    sheet = checked(high_cost_subscribers.cost_sheet(empty))  # pyright: ignore[reportArgumentType]  # JSON
    assert sheet["tables"][0]["rows"] == []
