"""The sheets of both composites: what strangers may see is of a public kind, and rows have as many values as columns."""

from typing import Any

import orjson
from inline_snapshot import snapshot

from operations.intelligence import high_cost_subscribers, savings
from operations.intelligence.reports.sheet import Sheet
from tests.intelligence_costs.stage import CostsStage


def checked(sheet: Sheet) -> Sheet:
    for table in sheet["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for chart in sheet["charts"]:
        assert all(len(one["values"]) == len(chart["places"]) for one in chart["series"])
    return sheet


def public(sheet: Sheet) -> str:
    """All of it but cells of private kinds."""
    shown: dict[str, Any] = orjson.loads(orjson.dumps(sheet))
    for table in shown["tables"]:
        hidden = {place for place, column in enumerate(table["columns"]) if column["kind"] in ("line", "text")}
        table["rows"] = [[value for place, value in enumerate(row) if place not in hidden] for row in table["rows"]]
    return orjson.dumps(shown).decode()


async def test_the_sheet_of_costs(stage: CostsStage) -> None:
    sheet = checked(high_cost_subscribers.cost_sheet(await stage.costs(limit=2)))  # pyright: ignore[reportArgumentType]  # JSON
    assert sheet == snapshot(
        {
            "title": "What lines cost",
            "headline": "4 of 10 lines make 80 % of what use cost: EUR 24.42.",
            "figures": [
                {"label": "Cost", "kind": "money", "value": 24.419367},
                {"label": "Charged outside packages", "kind": "money", "value": 14.812381},
                {"label": "Margin without packages", "kind": "money", "value": -9.606986},
                {"label": "Lines with cost", "kind": "number", "value": 9},
                {"label": "First day", "kind": "day", "value": "2026-12-18"},
                {"label": "Last day", "kind": "day", "value": "2027-01-14"},
            ],
            "charts": [
                {
                    "title": "Cost by country, stacked by network",
                    "shape": "stacked",
                    "kind": "money",
                    "places_kind": "country",
                    "places": ["FI", "DE"],
                    "series_kind": "word",
                    "series": [
                        {"label": "Dearest network", "values": [6.589413, 4.870408]},
                        {"label": "Second network", "values": [4.040798, 0.428385]},
                        {"label": "Third network", "values": [0.039687, None]},
                    ],
                },
                {
                    "title": "Cost by kind of use",
                    "shape": "bar",
                    "kind": "money",
                    "places_kind": "word",
                    "places": ["Data", "Calls made", "Calls received", "Messages sent"],
                    "series_kind": "word",
                    "series": [{"label": "Cost", "values": [18.662967, 4.6032, 0.8232, 0.33]}],
                },
            ],
            "tables": [
                {
                    "title": "Dearest lines",
                    "columns": [
                        {"label": "Line", "kind": "line"},
                        {"label": "Cost", "kind": "money"},
                        {"label": "Share", "kind": "percent"},
                        {"label": "Charged", "kind": "money"},
                        {"label": "Margin", "kind": "money"},
                        {"label": "Country", "kind": "country"},
                        {"label": "Network", "kind": "network"},
                    ],
                    "rows": [
                        ["8988303700000100088", 7.962325, 32.6, 2.72292, -5.239405, "FI", "244-12"],
                        ["8988303700000100054", 5.298793, 21.7, 0.7266, -4.572193, "DE", "262-06"],
                    ],
                    "note": "2 of 9 lines with cost; country and network are the dearest of each",
                },
                {
                    "title": "Countries",
                    "columns": [
                        {"label": "Country", "kind": "country"},
                        {"label": "Cost", "kind": "money"},
                        {"label": "Share", "kind": "percent"},
                        {"label": "Charged", "kind": "money"},
                        {"label": "Dearest network", "kind": "network"},
                    ],
                    "rows": [["FI", 10.669898, 43.7, 6.94356, "244-12"], ["DE", 5.298793, 21.7, 0.7266, "262-06"]],
                    "note": None,
                },
            ],
        }
    )


async def test_the_sheet_of_savings(stage: CostsStage) -> None:
    sheet = checked(savings.savings_sheet(await stage.packages(limit=2)))  # pyright: ignore[reportArgumentType]  # JSON
    assert sheet == snapshot(
        {
            "title": "Cheapest packages",
            "headline": "Other packages would save EUR 34.31 of EUR 88.10 in 30 days.",
            "figures": [
                {"label": "Cost now in 30 days", "kind": "money", "value": 88.100361},
                {"label": "Saving in 30 days", "kind": "money", "value": 34.314482},
                {"label": "Lines to change", "kind": "number", "value": 4},
                {"label": "Lines without use", "kind": "number", "value": 1},
                {"label": "First day of use", "kind": "day", "value": "2026-12-18"},
                {"label": "Last day of use", "kind": "day", "value": "2027-01-14"},
            ],
            "charts": [
                {
                    "title": "Lines by verdict",
                    "shape": "bar",
                    "kind": "number",
                    "places_kind": "word",
                    "places": ["Keep", "Change", "Unused"],
                    "series_kind": "word",
                    "series": [{"label": "Lines", "values": [5, 4, 1]}],
                },
                {
                    "title": "Listed lines that could save, by country of most use",
                    "shape": "bar",
                    "kind": "number",
                    "places_kind": "country",
                    "places": ["FI", "SE"],
                    "series_kind": "word",
                    "series": [{"label": "Lines", "values": [1, 1]}],
                },
            ],
            "tables": [
                {
                    "title": "Largest savings",
                    "columns": [
                        {"label": "Line", "kind": "line"},
                        {"label": "Verdict", "kind": "word"},
                        {"label": "Saving", "kind": "money"},
                        {"label": "Now", "kind": "money"},
                        {"label": "Cheapest", "kind": "money"},
                        {"label": "Next best", "kind": "money"},
                        {"label": "Data needed", "kind": "bytes"},
                        {"label": "Packages", "kind": "text"},
                    ],
                    "rows": [
                        ["8988303700000100021", "Change", 11.814286, 21.2364, 9.422114, 14.422114, 960923000, "1 x 55014"],
                        ["8988303700000100096", "Change", 10.0, 14.9, 4.9, 9.9, 649001000, "1 x 55014"],
                    ],
                    "note": "EUR in 30 days; data with a tenth more than was used",
                }
            ],
        }
    )


async def test_no_name_and_no_number_of_a_line_is_public(demo: CostsStage) -> None:
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
