"""The market that a fleet is: where it goes, who it is, what it buys, and that nobody can be seen in it."""

from collections import defaultdict
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from operations.intelligence.marketing_intelligence import MARKET_METHOD, SMALLEST_GROUP
from simulators.network.charging import find_tariff_rule, use_service
from simulators.network.entities import DATA
from simulators.network.methods.statistics import network_country
from simulators.network.packages import assign_package
from simulators.network.world import World as Network
from tests.intelligence_fleet.stage import MARKET, FleetStage, fleet_answer, open_fleet_stage, total_of
from tests.network_facts import ACCOUNT
from tests.tables import tabled

pytestmark = pytest.mark.long

USE, PACKAGES = "subscriberUsageOverPeriod", "listSubscriberPrepaidPackages"


@pytest.fixture(scope="module")
async def known(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[FleetStage]:
    """A fleet that has been read, for tests that only ask."""
    async with open_fleet_stage(tmp_path_factory.mktemp("market")) as made:
        await fleet_answer(made.http, MARKET)
        yield made


@pytest.mark.rule("4.7.41")
async def test_an_operator_sees_the_whole_market(known: FleetStage) -> None:
    said = await fleet_answer(known.http, MARKET)
    assert said.pop("method") == MARKET_METHOD
    assert tabled(said) == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 126,
            "of": 126,
            "incomplete": None,
            "as_of": "2027-01-15T12:00:00Z",
            "data": {
                "first_day": "2026-12-18",
                "last_day": "2027-01-14",
                "in_stock": 14,
                "countries": {
                    "columns": ["country", "lines", "home_lines", "line_days", "data_bytes"],
                    "rows": [
                        ["NO", 38, 38, 61, 5413101157],
                        ["DK", 15, None, 25, 2464403783],
                        ["SE", 11, 11, 18, 831150630],
                        ["DE", 8, 8, 12, 804028587],
                        ["FI", 7, None, 15, 1367901034],
                        ["other", 14, None, 19, 943316777],
                    ],
                },
                "more_countries": 0,
                "segments": {
                    "columns": ["segment", "lines", "data_bytes", "rule"],
                    "rows": [
                        ["at_home", 84, 9887355033, "of the others: in one country"],
                        ["dormant", 33, 0, "ACTIVE, and no use"],
                        ["other", 9, 1936546935, ""],
                    ],
                },
                "package_lines": 126,
                "packages": {
                    "columns": [
                        "template_id",
                        "name",
                        "price",
                        "package_income_each",
                        "lines",
                        "sold",
                        "sold_before",
                        "revenue",
                        "package_income",
                        "used_percent",
                    ],
                    "rows": [
                        [55028, "World 1GB 30d", 14.9, 14.9, 26, 26, 0, 387.4, 387.4, 4.2],
                        [55027, "World 500MB 15d", 8.9, 8.9, 22, 22, 0, 195.8, 195.8, 8.9],
                        [55013, "Europe 500MB 7d", 3.5, 3.5, 17, 17, 0, 59.5, 59.5, 9.7],
                        [55014, "Europe 1GB 30d", 4.9, 4.9, 14, 14, 0, 68.6, 68.6, 4.7],
                        [55029, "World 5GB 30d", 49.9, 49.9, 11, 11, 0, 548.9, 548.9, 4.6],
                        [55015, "Europe 3GB 30d", 9.9, 9.9, 9, 9, 0, 89.1, 89.1, 2.3],
                        [55031, "Europe Business 5GB 30d", 29.9, 29.9, 6, 6, 0, 179.4, 179.4, 3.5],
                        [55034, "Europe weekly 1GB", 3.9, 3.9, 6, 6, 0, 23.4, 23.4, 9.0],
                        [None, "", None, None, 15, 18, 0, 189.4, 189.4, 5.8],
                    ],
                },
                "more_packages": 0,
                "upsell": [],
                "trends": {
                    "columns": ["figure", "days", "now", "before", "change_percent"],
                    "rows": [
                        ["data_bytes", 14, 11823901968, 0, None],
                        ["lines_in_use", 14, 89, 0, None],
                        ["lines_issued", 28, 32, 0, None],
                        ["packages_sold", 28, 129, 0, None],
                    ],
                },
            },
        }
    )


async def test_countries_are_those_of_the_networks_records(known: FleetStage) -> None:
    network = await known.house.world.network()
    lines, data = defaultdict[str, set[int]](set), defaultdict[str, int](int)
    day = int(known.house.world.clock.now()) // 86_400
    for line in network.lines_of(ACCOUNT):
        for cdr in (cdr for cdr in line.cdrs if day - 28 <= cdr.at // 86_400 < day):
            country = network_country(network, cdr.network_id).iso2.upper()
            lines[country].add(line.id)
            data[country] += cdr.quantity if cdr.usage_type == 33 else 0
    rows = {row["country"]: row for row in (await fleet_answer(known.http, MARKET))["data"]["countries"]}
    for country in rows.keys() - {"other"}:
        assert (rows[country]["lines"], rows[country]["data_bytes"]) == (len(lines[country]), data[country])
    assert sum(row["data_bytes"] for row in rows.values()) == sum(data.values())


@pytest.mark.rule("4.7.41")
async def test_no_group_is_smaller_than_five_lines(known: FleetStage) -> None:
    for http in (known.http, known.all):
        data = (await fleet_answer(http, MARKET))["data"]
        for name in ("countries", "segments", "packages", "upsell"):
            assert all(row["lines"] >= SMALLEST_GROUP for row in data[name]), name
        for row in data["countries"]:
            assert (
                row["home_lines"] is None
                or row["home_lines"] in {0, row["lines"]}
                or SMALLEST_GROUP <= row["home_lines"] <= row["lines"] - SMALLEST_GROUP
            )


async def test_every_line_is_in_one_segment(known: FleetStage) -> None:
    said = await fleet_answer(known.all, MARKET)
    assert total_of(said["data"]["segments"], "lines") == said["sampled"] == said["of"]
    assert said["of"] + said["data"]["in_stock"] == 320
    assert total_of(said["data"]["countries"], "data_bytes") == total_of(said["data"]["segments"], "data_bytes")


async def test_fewer_rows_are_shown_when_fewer_are_asked_for(known: FleetStage) -> None:
    whole, part = await fleet_answer(known.http, MARKET), await fleet_answer(known.http, MARKET, limit=2)
    assert part["data"]["countries"] == whole["data"]["countries"][:2]
    assert part["data"]["more_countries"] == len(whole["data"]["countries"]) - 2
    assert part["data"]["packages"] == whole["data"]["packages"][:2]
    assert part["data"]["more_packages"] == len(whole["data"]["packages"]) - 2


async def test_figures_are_kept_for_a_minute_and_lines_are_read_once(few: FleetStage) -> None:
    first = await fleet_answer(few.http, MARKET)
    weeks, lists = few.asked(USE), few.asked(PACKAGES)
    assert lists == sum(line.sim.status != "FREE" for line in few.lines())
    assert (await fleet_answer(few.http, MARKET), few.asked(USE), few.asked(PACKAGES)) == (first, weeks, lists)
    few.forget()
    again = await fleet_answer(few.http, MARKET)
    assert (again["data"], few.asked(USE), few.asked(PACKAGES)) == (first["data"], weeks, lists)


async def test_the_next_day_only_days_that_are_not_known_or_not_final_are_read(few: FleetStage) -> None:
    await fleet_answer(few.http, MARKET)
    weeks = few.asked(USE)
    few.house.world.clock.advance(86_400)
    await fleet_answer(few.http, MARKET)
    assert few.asked(USE) - weeks <= 23


async def test_what_could_not_be_read_is_counted_and_read_later(few: FleetStage) -> None:
    few.trouble(USE, code=3, times=6)
    partial = await fleet_answer(few.http, MARKET)
    missing = partial["incomplete"]["lines"]
    assert 0 < missing <= 3
    assert partial["incomplete"]["reasons"] == [f"The packages and use of {missing} of 23 lines have not been read yet; that goes on now."]
    assert partial["sampled"] + partial["incomplete"]["lines"] == partial["of"]
    few.house.world.clock.advance(1000)
    whole = await fleet_answer(few.http, MARKET)
    assert (whole["incomplete"], whole["sampled"]) == (None, whole["of"])


async def nearly_used_up(stage: FleetStage, beside: bool) -> None:
    """Six lines whose one package is nearly used up; `beside`: most data of this week went past it, on another network of the country."""
    network = await stage.house.world.network()
    template = next(one for one in network.templates.values() if one.name == "Europe 1GB 30d")
    swedish = [one.network_id for one in network.networks.values() if one.iso2 == "se" and find_rule(network, one.network_id)][:2]
    zone = max(network.zones) + 1
    network.zones[zone] = replace(network.zones[template.zone_id], id=zone, network_ids=tuple(swedish[:1]))
    lines = [line for line in network.lines_of(ACCOUNT) if line.sim.sponsor_id == template.sponsor_id and line.sim.status != "FREE"][:6]
    for line in lines:
        line.statuses[-1].status = "ACTIVE"
        line.packages.clear()
        line.cdrs.clear()
        package = assign_package(network, line, template, period=None, validity_days=None)
        line.use_account, line.balance, line.allowed_data = False, 900_000_000, True
        package.zone_id = zone if beside else template.zone_id
        use_service(network, line, DATA, int(0.95 * (template.data_bytes or 0)), network_id=swedish[0], at=network.now - 20 * 86_400)
        use_service(network, line, DATA, 20 << 20, network_id=swedish[1] if beside else swedish[0], at=network.now - 86_400)


def find_rule(network: Network, network_id: int) -> bool:
    """Whether data on a network is bought and sold."""
    return all(find_tariff_rule(network, tariff, network_id, 31, network.now) is not None for tariff in (512, 530))


@pytest.mark.parametrize("beside", [False, True])
async def test_a_line_that_is_steered_past_its_package_is_offered_no_larger_one(stage: FleetStage, beside: bool) -> None:
    await nearly_used_up(stage, beside)
    rows = {row["kind"]: row for row in (await fleet_answer(stage.http, MARKET))["data"]["upsell"]}
    assert ("larger_package" in rows) == (not beside)
    if not beside:
        assert rows["larger_package"]["lines"] == 6 and rows["larger_package"]["package_income"] == rows["larger_package"]["potential"] > 0


async def test_without_the_catalogue_there_are_no_prices_and_it_is_said(few: FleetStage) -> None:
    await fleet_answer(few.http, MARKET)
    few.trouble("listPrepaidPackageTemplate", code=3, times=None)
    few.forget()
    said = await fleet_answer(few.http, MARKET)
    assert said["incomplete"] == snapshot(
        {"lines": 0, "reasons": ["The catalogue could not be read: there are no prices, and nothing is said of what could be sold."]}
    )
    assert {row["price"] for row in said["data"]["packages"]} == {None} and said["data"]["upsell"] == []


async def test_a_fleet_whose_use_cannot_be_read_is_told_of_as_such(stage: FleetStage) -> None:
    stage.trouble(USE, code=3, times=None)
    said = await fleet_answer(stage.http, MARKET)
    assert said["data"]["countries"] == said["data"]["upsell"] == [] and said["sampled"] < said["of"] * 0.2 + 1
    assert any(reason.startswith("The charging system could not be read") for reason in said["incomplete"]["reasons"])
    assert stage.asked(USE) < 200  # of 504


@pytest.mark.parametrize("method", [PACKAGES, "listSubscriber"])
async def test_a_fleet_of_which_nothing_can_be_read_is_the_networks_failure(few: FleetStage, method: str) -> None:
    few.trouble(method, code=3, times=None)
    said = await few.http.post(MARKET, json={})
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")


async def test_a_model_gets_little_and_the_same_figures(known: FleetStage) -> None:
    async with known.house.connect(known.managed) as client:
        shown = await client.call_tool("marketing_intelligence", {})
    assert shown.structured_content == await fleet_answer(known.http, MARKET, limit=6)
    assert sum(len(block.text) for block in shown.content if block.type == "text") < 6_000
