"""Cheapest packages of real lines: the need is what the network recorded, and no set of one or two templates' packages is cheaper."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from operations.intelligence import savings
from operations.intelligence.offers.offers import packages_in_turn
from operations.intelligence.offers.plans import PackageOption
from registry.caller import Tier
from simulators.network.entities import DATA, DAY_SECONDS, Line, PackageTemplate
from tests.intelligence_costs.brute_force import Problem, covers, sets
from tests.intelligence_costs.stage import PACKAGES, WINDOW, CostsStage, DemoAnswers, open_costs_stage

pytestmark = pytest.mark.long

FIRST = (date.fromisoformat(WINDOW["start"]) - date(1970, 1, 1)).days


def problem_of(stage: CostsStage, line: Line) -> Problem:
    """The line's need of data by network, and what its sponsor's templates hold of it: from the network's own tables."""
    amounts: dict[int, int] = {}
    used = [False] * 28
    for cdr in line.cdrs:
        place = cdr.at // DAY_SECONDS - FIRST
        if 0 <= place < 28:
            used[place] = True
            if cdr.usage_type == DATA:
                amounts[cdr.network_id] = amounts.get(cdr.network_id, 0) + cdr.quantity
    networks = sorted(amounts)
    needs = tuple(-(-amounts[network] * 30 * 110 // (28 * 100)) for network in networks)
    templates = [one for one in stage.network.templates.values() if fits(one, line)]
    return Problem(tuple(option(stage, one, networks, packages_in_turn(used, one.period_days)) for one in templates), (needs,))


def fits(template: PackageTemplate, line: Line) -> bool:
    """Whether the line may get it."""
    return not template.deleted and (template.reseller_id, template.sponsor_id) == (line.reseller_id, line.sim.sponsor_id)


def option(stage: CostsStage, template: PackageTemplate, networks: list[int], turns: int) -> PackageOption:
    days, held = max(30, template.period_days), template.data_bytes or 0
    works = frozenset(place for place, one in enumerate(networks) if one in stage.network.zones[template.zone_id].network_ids)
    return PackageOption(template.id, -(-template.cost * 30 // days), turns, (held * 30 // days,), works)


def micro(euros: float) -> int:
    return round(euros * 1_000_000)


def chosen(problem: Problem, told: dict[str, Any]) -> list[PackageOption]:
    by_id = {option.id: option for option in problem.options}
    return [by_id[one["template_id"]] for one in told["packages"] for _ in range(one["count"])]


async def test_a_line_is_told_what_it_needs_has_and_could_have(stage: CostsStage) -> None:
    row = (await stage.packages(limit=1))["data"]["lines"][0]
    found = await stage.packages(iccid=row["iccid"])
    assert found.pop("method") == savings.PLAN_METHOD
    assert found == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 1,
            "of": 1,
            "incomplete": None,
            "data": {
                "start": "2026-12-18",
                "end": "2027-01-14",
                "now": 21.2364,
                "saving": 11.814286,
                "package_income": 16.714286,
                "usage_income": 4.522114,
                "network_cost": 2.858449,
                "margin": 18.377951,
                "lines_losing_money": 0,
                "saving_customer": 11.814286,
                "saving_operator": 0.0,
                "verdicts": {"change": 1},
                "unpriced_templates": 0,
                "templates": [
                    {
                        "template_id": 55014,
                        "name": "Europe 1GB 30d",
                        "days": 30,
                        "data_mb": 1073.742,
                        "cost": 4.9,
                        "price": 4.9,
                        "package_income": 4.9,
                        "package_income_30_days": 4.9,
                    },
                    {
                        "template_id": 55015,
                        "name": "Europe 3GB 30d",
                        "days": 30,
                        "data_mb": 3221.225,
                        "cost": 9.9,
                        "price": 9.9,
                        "package_income": 9.9,
                        "package_income_30_days": 9.9,
                    },
                    {
                        "template_id": 55034,
                        "name": "Europe weekly 1GB",
                        "days": 7,
                        "data_mb": 1073.742,
                        "cost": 3.9,
                        "price": 3.9,
                        "package_income": 3.9,
                        "package_income_30_days": 3.9,
                    },
                ],
                "lines": [
                    {
                        "iccid": "8988303700000100021",
                        "account_id": 8101,
                        "verdict": "change",
                        "saving": 11.814286,
                        "saving_customer": 11.814286,
                        "saving_operator": 0.0,
                        "network_cost": 2.858449,
                        "margin": 18.377951,
                        "need": {"data_mb": 960.923, "others": {}, "days": 20, "countries": ["FI", "GR"]},
                        "now": {
                            "price": 16.714286,
                            "charged": 4.522114,
                            "package_income": 16.714286,
                            "usage_income": 4.522114,
                            "total": 21.2364,
                            "packages": [{"template_id": 55034, "count": 5}],
                        },
                        "best": {
                            "price": 4.9,
                            "charged": 4.522114,
                            "package_income": 4.9,
                            "usage_income": 4.522114,
                            "total": 9.422114,
                            "packages": [{"template_id": 55014, "count": 1}],
                        },
                        "best_is_present": False,
                        "next": {
                            "price": 9.9,
                            "charged": 4.522114,
                            "package_income": 9.9,
                            "usage_income": 4.522114,
                            "total": 14.422114,
                            "packages": [{"template_id": 55015, "count": 1}],
                        },
                        "proven": True,
                        "uncovered": [],
                    }
                ],
            },
        }
    )


@pytest.mark.rule("4.7.32")
async def test_no_set_of_one_or_two_packages_is_cheaper(stage: CostsStage) -> None:
    rows = {row["iccid"]: row for row in (await stage.packages())["data"]["lines"]}
    looked = 0
    for line in stage.lines():
        row = rows.get(line.iccid)
        if row is None or row["best"] is None or row["need"]["others"] or row["uncovered"] or not row["need"]["data_mb"]:
            continue
        cheapest = row["next"] if row["best_is_present"] else row["best"]
        problem, best = problem_of(stage, line), micro(cheapest["price"])
        for told in (cheapest,) if row["best_is_present"] else (row["best"], row["next"]):
            packages = chosen(problem, told)
            assert covers(problem, packages)
            assert sum(one.price for one in packages) == micro(told["price"])
        cheaper = [found for found in sets(problem, 2) if sum(one.price for one in found) < best]
        assert not any(covers(problem, found) for found in cheaper)
        assert row["proven"] and best <= micro(row["next"]["price"])
        looked += 1
    assert looked >= 5


async def test_savings_are_what_is_paid_now_less_the_cheapest(demo: DemoAnswers) -> None:
    data = (await demo.packages(limit=500))["data"]
    savings = [micro(row["saving"]) for row in data["lines"]]
    assert savings == sorted(savings, reverse=True) and sum(savings) == micro(data["saving"]) > 0
    assert sum(micro(row["now"]["total"]) for row in data["lines"]) == micro(data["now"])
    for row in data["lines"]:
        for told in (row["now"], row["best"], row["next"]):
            assert told is None or micro(told["total"]) == micro(told["package_income"]) + micro(told["usage_income"])
            assert told is None or (told["package_income"], told["usage_income"]) == (told["price"], told["charged"])
        gain = micro(row["now"]["total"]) - micro(row["best"]["total"])
        assert gain >= 0 and row["saving_operator"] == 0
        assert micro(row["saving"]) == micro(row["saving_customer"]) == (gain if row["verdict"] in ("change", "unused") else 0)
        assert micro(row["margin"]) == micro(row["now"]["total"]) - micro(row["network_cost"])
    assert sum(data["verdicts"].values()) == 140 > len(data["lines"])
    assert micro(data["margin"]) == micro(data["package_income"]) + micro(data["usage_income"]) - micro(data["network_cost"])
    assert (data["saving_customer"], data["saving_operator"]) == (data["saving"], 0)
    assert data["lines_losing_money"] == sum(row["margin"] < 0 for row in data["lines"]) > 0
    named = {one["template_id"] for row in data["lines"] for part in ("now", "best", "next") if row[part] for one in row[part]["packages"]}
    assert {template["template_id"] for template in data["templates"]} <= named


async def test_what_a_line_has_is_best_where_no_set_of_the_catalogue_costs_less(demo: DemoAnswers) -> None:
    rows = (await demo.packages(limit=500))["data"]["lines"]
    kept = [row for row in rows if row["best_is_present"]]
    assert kept and {row["verdict"] for row in kept} <= {"keep", "loses_money", "mis_steered"}
    for row in kept:
        assert row["best"] == row["now"] and row["saving_customer"] == 0
        assert row["verdict"] == "mis_steered" or micro(row["next"]["total"]) > micro(row["now"]["total"])


async def test_a_line_that_costs_more_than_it_brings_in_is_not_simply_kept(stage: CostsStage, tmp_path: Path) -> None:
    kept = next(row for row in (await stage.packages())["data"]["lines"] if row["verdict"] == "keep")
    (tmp_path / "again").mkdir()
    async with open_costs_stage(tmp_path / "again") as again:
        line = next(line for line in again.lines() if line.iccid == kept["iccid"])
        place = next(place for place, cdr in enumerate(line.cdrs) if cdr.at // DAY_SECONDS >= FIRST)
        line.cdrs[place] = line.cdrs[place]._replace(reseller_cost=600_000_000)
        row = (await again.packages(iccid=line.iccid))["data"]["lines"][0]
    assert (row["verdict"], row["saving_customer"], row["saving_operator"]) == ("loses_money", 0.0, 0.0)
    assert row["network_cost"] > 600 and micro(row["margin"]) == micro(row["now"]["total"]) - micro(row["network_cost"])
    assert (row["now"], row["best"]) == (kept["now"], kept["best"])


async def test_what_a_package_pays_in_no_template_any_more_has_no_replacement(stage: CostsStage) -> None:
    for number, template in stage.network.templates.items():
        stage.network.templates[number] = replace(template, deleted=True)
    data = (await stage.packages())["data"]
    assert set(data["verdicts"]) <= {"no_replacement", "unused", "keep"} and data["verdicts"]["no_replacement"] > 0
    row = next(row for row in data["lines"] if row["verdict"] == "no_replacement")
    assert (row["best"], row["next"], row["saving"]) == (None, None, 0) and row["uncovered"]


async def test_templates_without_a_price_are_left_out_and_counted(stage: CostsStage) -> None:
    for number, template in stage.network.templates.items():
        if template.name.startswith("Europe"):
            stage.network.templates[number] = replace(template, cost=0)
    data = (await stage.packages())["data"]
    assert data["unpriced_templates"] == sum(
        one.cost == 0 and one.reseller_id == 7001 and not one.deleted for one in stage.network.templates.values()
    )
    rows = [row for row in data["lines"] if row["best"] and not row["best_is_present"]]
    best = {one["template_id"] for row in rows for one in row["best"]["packages"]}
    assert rows and all(stage.network.templates[number].cost for number in best)


async def test_only_templates_of_the_lines_sponsor_and_reseller_are_offered(demo: DemoAnswers) -> None:
    lines = {line.iccid: line for line in demo.lines()}
    for row in (await demo.packages(limit=500))["data"]["lines"]:
        for told in (None if row["best_is_present"] else row["best"], row["next"]):
            assert all(
                fits(demo.network.templates[one["template_id"]], lines[row["iccid"]]) for one in (told or {"packages": []})["packages"]
            )


async def test_a_line_that_cannot_be_read_is_counted(stage: CostsStage) -> None:
    stage.trouble("listSubscriberPrepaidPackages", code=7, times=1)
    found = await stage.packages()
    assert found["incomplete"] == {
        "lines": 1,
        "reasons": ["The packages and use of 1 of 10 lines have not been read yet; that goes on now."],
    }
    assert found["sampled"] == found["of"] - 1
    stage.wait_after_failures()
    assert (await stage.packages())["incomplete"] is None


async def test_one_line_that_cannot_be_read_is_the_networks_failure(stage: CostsStage) -> None:
    line = next(line for line in stage.lines() if line.cdrs)
    stage.trouble("listSubscriberPrepaidPackages", code=7, times=None)
    said = await stage.http.post(PACKAGES, json={"iccid": line.iccid})
    assert (said.status_code, said.json()["ocs_code"]) == (502, 7)


async def test_pages_are_parts_of_one_ranking_and_take_no_call(demo: DemoAnswers) -> None:
    assert demo.told("package pages", {}) == (await demo.packages(limit=500))["data"]["lines"]
    assert demo.calls_for_pages == 0


async def test_nobody_is_told_of_anothers_lines(stage: CostsStage) -> None:
    await stage.packages()
    other = await stage.world.caller(Tier.PRO, mode="managed", account=8103)
    async with stage.world.client(other.secret) as http:
        rows = (await http.post(PACKAGES, json={})).json()["data"]["lines"]
    assert rows and {row["iccid"] for row in rows} <= {line.iccid for line in stage.lines(8103)}


async def test_a_tools_answer_is_short_and_has_a_way_to_the_rest(demo: DemoAnswers) -> None:
    said, more = demo.told("optimize_package", {})
    assert len(said["content"][0]["text"]) < 6_500 and said["structuredContent"]["of"] == 140
    rows = said["structuredContent"]["data"]["lines"] + more["structuredContent"]["data"]["lines"]
    assert rows == (await demo.packages(limit=10))["data"]["lines"]
