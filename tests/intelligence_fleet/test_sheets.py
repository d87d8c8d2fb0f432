"""Reports of fleets: what strangers may read holds no word of anybody else's."""

from typing import Any

import pytest

from operations.intelligence import fleet_health, marketing_intelligence
from operations.intelligence.reports.sheet import Sheet
from tests.intelligence_fleet.stage import FLEET_HEALTH, MARKET, FleetStage, fleet_answer, open_fleet_stage

CANARY = "Canary 4711"


async def renamed(stage: FleetStage) -> None:
    """Whatever somebody may name has the name."""
    network = await stage.house.world.network()
    for thing in (*network.accounts.values(), *network.templates.values()):
        thing.name = CANARY


def private(sheet: Sheet) -> set[Any]:
    """Values of columns that strangers do not see."""
    return {
        value
        for table in sheet["tables"]
        for place, column in enumerate(table["columns"])
        if column["kind"] in ("text", "line")
        for value in (row[place] for row in table["rows"])
    }


def public(sheet: Sheet) -> str:
    tables = [
        [
            table["title"],
            table["note"],
            [
                [value for place, value in enumerate(row) if table["columns"][place]["kind"] not in ("text", "line")]
                for row in table["rows"]
            ],
        ]
        for table in sheet["tables"]
    ]
    return str([sheet["title"], sheet["headline"], sheet["figures"], sheet["charts"], tables])


@pytest.fixture(scope="module")
async def sheets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sheet, Sheet]:
    """Both reports of a fleet in which everything has the name."""
    async with open_fleet_stage(tmp_path_factory.mktemp("sheets")) as stage:
        await renamed(stage)
        health: Any = await fleet_answer(stage.all, FLEET_HEALTH)
        market: Any = await fleet_answer(stage.all, MARKET)
        return fleet_health.health_sheet(health), marketing_intelligence.market_sheet(market)


@pytest.mark.long
async def test_names_stand_where_strangers_do_not_look(sheets: tuple[Sheet, Sheet]) -> None:
    for sheet in sheets:
        assert CANARY in private(sheet) and CANARY not in public(sheet)


@pytest.mark.long
async def test_every_row_has_a_value_for_every_column_and_every_chart_one_for_every_place(sheets: tuple[Sheet, Sheet]) -> None:
    for sheet in sheets:
        assert all(len(row) == len(table["columns"]) for table in sheet["tables"] for row in table["rows"])
        assert all(len(series["values"]) == len(chart["places"]) for chart in sheet["charts"] for series in chart["series"])


@pytest.mark.long
async def test_a_report_says_at_once_how_it_stands(stage: FleetStage) -> None:
    health: Any = await fleet_answer(stage.http, FLEET_HEALTH)
    market: Any = await fleet_answer(stage.http, MARKET)
    assert fleet_health.health_sheet(health)["headline"] == (
        "The fleet scores 62.7 of 100: 89 of 126 issued lines were used in 30 days. First: order esims."
    )
    assert marketing_intelligence.market_sheet(market)["headline"] == (
        "Lines were used in 5 countries with five lines or more; 0 lines could be sold something."
    )
