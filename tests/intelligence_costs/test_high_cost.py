"""What lines cost: every micro-euro of the network's own records is in one line, one country and one network."""

from collections import Counter
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from operations.intelligence import high_cost_subscribers
from registry.caller import Tier
from simulators.network.entities import DAY_SECONDS, Cdr
from simulators.network.simulated_network import SimulatedNetwork
from simulators.server import WireAnswer
from tests.intelligence_costs.stage import COSTS, WINDOW, CostsStage, DemoAnswers, open_costs_stage
from tests.network_facts import OWN_TOKEN

pytestmark = pytest.mark.long


def records(stage: CostsStage | DemoAnswers, first: str = WINDOW["start"], last: str = WINDOW["end"]) -> list[Cdr]:
    """What the network recorded of the account's lines on these days."""
    days = range(date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal() + 1)
    return [cdr for line in stage.lines() for cdr in line.cdrs if datetime.fromtimestamp(cdr.at, UTC).date().toordinal() in days]


def micro(euros: float) -> int:
    """An amount as whole micro-euros; it has no more decimals than that."""
    exact = round(euros * 1_000_000)
    assert exact / 1_000_000 == euros
    return exact


def total(rows: list[dict[str, Any] | None], name: str = "cost") -> int:
    return sum(micro(row[name]) for row in rows if row is not None)


async def test_the_dearest_line_is_shown_with_where_its_cost_comes_from(stage: CostsStage) -> None:
    found = await stage.costs(limit=1)
    assert found.pop("method") == high_cost_subscribers.COST_METHOD
    assert found == snapshot(
        {
            "generated_at": "2027-01-15T12:00:00Z",
            "sampled": 10,
            "of": 10,
            "incomplete": None,
            "data": {
                "window": {"start": "2026-12-18", "end": "2027-01-14", "days": 28, "provisional_from": "2027-01-13"},
                "cost": 24.419367,
                "charged": 14.812381,
                "network_cost": 24.419367,
                "usage_income": 14.812381,
                "margin": -9.606986,
                "package_income": 67.414623,
                "margin_with_packages": 57.807637,
                "lines_with_cost": 9,
                "pareto": {"percent": 80, "lines": 4, "cost": 20.369479, "network_cost": 20.369479},
                "kinds": {"calls_in": 0.8232, "calls_out": 4.6032, "data": 18.662967, "sms_out": 0.33},
                "countries": [
                    {
                        "country": "FI",
                        "cost": 10.669898,
                        "charged": 6.94356,
                        "network_cost": 10.669898,
                        "usage_income": 6.94356,
                        "share_percent": 43.7,
                        "networks": [
                            {
                                "country": "FI",
                                "mcc": 244,
                                "mnc": 12,
                                "operator": "DNA",
                                "cost": 6.6291,
                                "charged": 6.47376,
                                "network_cost": 6.6291,
                                "usage_income": 6.47376,
                            },
                            {
                                "country": "FI",
                                "mcc": 244,
                                "mnc": 91,
                                "operator": "Telia",
                                "cost": 4.040798,
                                "charged": 0.4698,
                                "network_cost": 4.040798,
                                "usage_income": 0.4698,
                            },
                        ],
                        "rest": None,
                    }
                ],
                "other_countries": {
                    "countries": 9,
                    "cost": 13.749469,
                    "charged": 7.868821,
                    "network_cost": 13.749469,
                    "usage_income": 7.868821,
                },
                "unattributed": None,
                "unpriced_networks": 2,
                "lines": [
                    {
                        "iccid": "8988303700000100088",
                        "account_id": 8101,
                        "cost": 7.962325,
                        "charged": 2.72292,
                        "network_cost": 7.962325,
                        "usage_income": 2.72292,
                        "margin": -5.239405,
                        "package_income": 8.553038,
                        "margin_with_packages": 3.313633,
                        "share_percent": 32.6,
                        "networks": [
                            {
                                "country": "FI",
                                "mcc": 244,
                                "mnc": 12,
                                "operator": "DNA",
                                "cost": 4.289175,
                                "charged": 2.25312,
                                "network_cost": 4.289175,
                                "usage_income": 2.25312,
                            },
                            {
                                "country": "FI",
                                "mcc": 244,
                                "mnc": 91,
                                "operator": "Telia",
                                "cost": 3.67315,
                                "charged": 0.4698,
                                "network_cost": 3.67315,
                                "usage_income": 0.4698,
                            },
                        ],
                        "rest": None,
                        "kinds": {"calls_out": 1.00155, "data": 6.827775, "sms_out": 0.133},
                        "unattributed": None,
                        "action": "none",
                        "why": "cheapest",
                        "do": [],
                        "leads_to": None,
                        "saving_operator": None,
                        "saving_customer": None,
                    }
                ],
            },
            "as_of": "2027-01-15T12:00:00Z",
        }
    )


@pytest.mark.rule("4.7.31")
async def test_the_fleets_cost_is_that_of_the_networks_records(demo: DemoAnswers) -> None:
    data = (await demo.costs(limit=500))["data"]
    own = records(demo)
    assert micro(data["cost"]) == sum(cdr.reseller_cost for cdr in own) > 0
    assert micro(data["charged"]) == sum(cdr.subscriber_cost for cdr in own) > 0
    assert micro(data["margin"]) == micro(data["charged"]) - micro(data["cost"])
    for name in ("cost", "charged", "network_cost", "usage_income"):
        assert total(data["lines"], name) == micro(data[name])
        assert total([*data["countries"], data["other_countries"], data["unattributed"]], name) == micro(data[name])
    assert sum(map(micro, data["kinds"].values())) == micro(data["cost"])
    assert data["other_countries"] is None and data["unattributed"] is None


async def test_every_line_adds_up_to_its_own_records(demo: DemoAnswers) -> None:
    data = (await demo.costs(limit=500))["data"]
    iccids = {line.id: line.iccid for line in demo.lines()}
    costs, charged, places = Counter[str](), Counter[str](), Counter[tuple[str, int]]()
    codes = {(int(mcc), int(mnc)): one.network_id for one in demo.network.networks.values() for mcc, mnc in one.codes}
    for cdr in records(demo):
        costs[iccids[cdr.line_id]] += cdr.reseller_cost
        charged[iccids[cdr.line_id]] += cdr.subscriber_cost
        places[iccids[cdr.line_id], cdr.network_id] += cdr.reseller_cost
    assert {row["iccid"]: micro(row["cost"]) for row in data["lines"] if row["cost"]} == dict(+costs)
    for row in data["lines"]:
        assert micro(row["charged"]) == charged[row["iccid"]]
        assert total([*row["networks"], row["rest"], row["unattributed"]]) == micro(row["cost"])
        assert total([*row["networks"], row["rest"], row["unattributed"]], "charged") == micro(row["charged"])
        assert sum(map(micro, row["kinds"].values())) == micro(row["cost"])
        for network in row["networks"]:
            assert micro(network["cost"]) == places[row["iccid"], codes[network["mcc"], network["mnc"]]]
    assert any(row["rest"] for row in data["lines"])


def package_incomes(stage: CostsStage | DemoAnswers) -> dict[str, int]:
    """By line, the part of each package's price that its part of life in the window is; micro-euros, whole for each package."""
    first = int(datetime.fromisoformat(f"{WINDOW['start']}T00:00:00+00:00").timestamp())
    end, found = first + 28 * DAY_SECONDS, Counter[str]()
    for line in stage.lines():
        for package in line.packages:
            if package.activated is not None and package.expires is not None:
                inside = max(0, min(package.expires, end) - max(package.activated, first))
                found[line.iccid] += round(Fraction(package.cost * inside, package.expires - package.activated))
    return dict(found)


async def test_packages_bring_in_of_their_price_the_part_of_their_life_in_the_days(demo: DemoAnswers) -> None:
    data, incomes = (await demo.costs(limit=500))["data"], package_incomes(demo)
    assert micro(data["package_income"]) == sum(incomes.values()) > 0
    assert micro(data["margin_with_packages"]) == micro(data["package_income"]) + micro(data["usage_income"]) - micro(data["network_cost"])
    for row in data["lines"]:
        assert micro(row["package_income"]) == incomes.get(row["iccid"], 0)
        margin = micro(row["package_income"]) + micro(row["usage_income"]) - micro(row["network_cost"])
        assert micro(row["margin_with_packages"]) == margin


async def test_packages_that_were_never_read_leave_income_and_margin_unknown_and_it_is_said(stage: CostsStage) -> None:
    stage.trouble("listSubscriberPrepaidPackages", code=7, times=1)
    found = await stage.costs()
    data = found["data"]
    assert found["incomplete"] == snapshot(
        {
            "lines": 1,
            "reasons": [
                "The packages and use of 1 of 10 lines have not been read yet; that goes on now.",
                "The packages of 1 lines have not been read: their package income is not known, nor is the fleet's.",
            ],
        }
    )
    assert (data["package_income"], data["margin_with_packages"]) == (None, None)
    assert [row["package_income"] for row in data["lines"]].count(None) == 0


async def test_without_zones_and_templates_the_bill_is_the_same_and_nothing_is_advised(stage: CostsStage) -> None:
    whole = await stage.costs()
    stage.trouble("listPrepaidPackageTemplate", code=3, times=None)
    stage.world.clock.advance(121)
    found = await stage.costs()
    assert found["incomplete"] == {"lines": 0, "reasons": [high_cost_subscribers.NO_CATALOGUE]}
    assert [row["network_cost"] for row in found["data"]["lines"]] == [row["network_cost"] for row in whole["data"]["lines"]]
    assert {(row["action"], row["why"]) for row in found["data"]["lines"]} == {("none", "not_read")}


async def test_a_network_of_several_codes_is_one_row_under_one_code(demo: DemoAnswers) -> None:
    data = (await demo.costs(limit=500))["data"]
    networks = {(int(mcc), int(mnc)): one.network_id for one in demo.network.networks.values() for mcc, mnc in one.codes}
    shown: dict[int, set[tuple[int, int]]] = {}
    for row in (*data["lines"], *data["countries"]):
        codes = [(network["mcc"], network["mnc"]) for network in row["networks"]]
        assert len({networks[code] for code in codes}) == len(codes)
        for code in codes:
            shown.setdefault(networks[code], set()).add(code)
    assert {len(codes) for codes in shown.values()} == {1}
    assert any(len(demo.network.networks[number].codes) > 1 for number in shown)


async def test_lines_come_dearest_first_and_few_make_most_of_the_cost(demo: DemoAnswers) -> None:
    data = (await demo.costs(limit=500))["data"]
    costs = [micro(row["cost"]) for row in data["lines"]]
    assert costs == sorted(costs, reverse=True) and len(costs) == data["lines_with_cost"] < 140
    few = data["pareto"]["lines"]
    assert sum(costs[: few - 1]) * 100 < sum(costs) * 80 <= sum(costs[:few]) * 100
    assert micro(data["pareto"]["cost"]) == sum(costs[:few])


async def test_countries_that_are_not_named_stand_together(demo: DemoAnswers) -> None:
    whole, few = (await demo.costs(limit=500))["data"], (await demo.costs(limit=2))["data"]
    assert few["countries"] == whole["countries"][:2]
    rest = whole["countries"][2:]
    assert few["other_countries"] == {
        "countries": len(rest),
        "cost": total(rest) / 1_000_000,
        "charged": total(rest, "charged") / 1_000_000,
        "network_cost": total(rest) / 1_000_000,
        "usage_income": total(rest, "charged") / 1_000_000,
    }


async def test_pages_are_parts_of_one_ranking_and_take_no_call(demo: DemoAnswers) -> None:
    assert demo.told("cost pages", {}) == (await demo.costs(limit=500))["data"]["lines"]
    assert demo.calls_for_pages == 0


class Forgetful(SimulatedNetwork):
    """A network that has lost the first record of each day, but not what the day cost."""

    async def handle(self, *given: Any, **named: Any) -> WireAnswer:
        answer = await super().handle(*given, **named)
        if b'"subscriberUsageOverPeriod"' not in answer.body:
            return answer
        told = orjson.loads(answer.body)
        for usage in told["subscriberUsageOverPeriod"].get("usages", []):
            for day in usage["subsPeriodUsages"]:
                del day["subsDailyUsages"][0]
        return answer._replace(body=orjson.dumps(told))


async def test_what_the_totals_have_and_the_records_have_not_is_shown_apart(tmp_path: Path) -> None:
    async with open_costs_stage(tmp_path, kind=Forgetful) as stage:
        data = (await stage.costs())["data"]
        first = {(cdr.line_id, cdr.at // DAY_SECONDS): cdr for cdr in reversed(records(stage))}
        lost = sum(cdr.reseller_cost for cdr in first.values())
        assert micro(data["cost"]) == sum(cdr.reseller_cost for cdr in records(stage))
        assert micro(data["unattributed"]["cost"]) == lost > 0
        assert micro(data["unattributed"]["charged"]) == sum(cdr.subscriber_cost for cdr in first.values())
        assert total([*data["countries"], data["other_countries"], data["unattributed"]]) == micro(data["cost"])
        assert sum(map(micro, data["kinds"].values())) + lost == micro(data["cost"])
        for row in data["lines"]:
            assert total([*row["networks"], row["rest"], row["unattributed"]]) == micro(row["cost"])


async def test_a_line_that_cannot_be_read_is_counted(stage: CostsStage) -> None:
    stage.trouble("subscriberUsageOverPeriod", code=7, times=1)
    found = await stage.costs()
    of = len(stage.lines())
    assert (found["sampled"], found["of"]) == (of - 1, of)
    assert found["incomplete"]["lines"] == 1
    assert found["incomplete"]["reasons"][0] == "The packages and use of 1 of 10 lines have not been read yet; that goes on now."
    stage.world.clock.advance(901)  # a line that failed is asked again after a quarter of an hour
    again = await stage.costs()
    assert (again["sampled"], again["incomplete"]) == (of, None)
    assert micro(again["data"]["cost"]) == sum(cdr.reseller_cost for cdr in records(stage))


async def test_a_fleet_whose_use_cannot_be_read_is_the_networks_failure(stage: CostsStage) -> None:
    stage.trouble("subscriberUsageOverPeriod", code=7, times=None)
    said = await stage.http.post(COSTS, json=WINDOW)
    assert (said.status_code, said.json()["code"]) == (502, "ocs_error")


async def test_a_fleet_that_was_read_is_told_of_while_the_network_is_away(stage: CostsStage) -> None:
    former = await stage.costs()
    stage.trouble("listSubscriber", code=7, times=None)
    stage.world.clock.advance(120)
    assert (await stage.costs())["data"] == former["data"]


NO_RANGES: list[tuple[dict[str, Any], str]] = [
    ({"end": "2027-01-14"}, "start"),
    ({"start": "2027-01-14"}, "end"),
    ({"start": "2027-01-15", "end": "2027-01-14"}, "start"),
    ({"start": "2026-10-14", "end": "2027-01-14"}, "start"),
    ({"start": "soon", "end": "2027-01-14"}, "start"),
    ({**WINDOW, "starting_after": "soon"}, "starting_after"),
]


@pytest.mark.parametrize(("body", "param"), NO_RANGES)
async def test_what_is_no_question_is_refused_by_its_field(stage: CostsStage, body: dict[str, Any], param: str) -> None:
    said = await stage.http.post(COSTS, json=body)
    assert (said.status_code, said.json()["param"]) == (400, param)


async def test_days_that_are_not_kept_any_more_are_said_to_be_in_no_figure(stage: CostsStage) -> None:
    found = await stage.costs(start="2026-10-15")
    assert found["data"]["window"] == {"start": "2026-10-15", "end": "2027-01-14", "days": 92, "provisional_from": "2027-01-13"}
    assert found["incomplete"] == snapshot(
        {"lines": 0, "reasons": ["Use is kept for 90 days: what was used before 2026-10-18 is in no figure."]}
    )
    assert micro(found["data"]["cost"]) == sum(cdr.reseller_cost for cdr in records(stage, "2026-10-15"))
    kept = await stage.costs(start="2026-10-18")
    assert (kept["incomplete"], kept["data"]["cost"]) == (None, found["data"]["cost"])
    former = await stage.costs(start="2026-07-01", end="2026-07-31")
    assert (former["data"]["cost"], former["data"]["lines"]) == (0, [])


async def test_a_line_that_left_is_in_no_sum_any_more(stage: CostsStage) -> None:
    before = await stage.costs(limit=500)
    line = next(line for line in stage.lines() if line.iccid == before["data"]["lines"][0]["iccid"])
    line.account_id = 8103
    stage.network.lookup.moved()
    stage.world.clock.advance(400)
    after = await stage.costs(limit=500)
    assert after["of"] == before["of"] - 1 and line.iccid not in {row["iccid"] for row in after["data"]["lines"]}
    for name in ("network_cost", "usage_income"):
        assert micro(after["data"][name]) == micro(before["data"][name]) - micro(before["data"]["lines"][0][name])
        assert total(after["data"]["lines"], name) == micro(after["data"][name])
        assert total([*after["data"]["countries"], after["data"]["other_countries"]], name) == micro(after["data"][name])
    assert after["data"]["unattributed"] is None


async def test_nobody_sees_what_anothers_lines_cost(stage: CostsStage) -> None:
    other = await stage.world.caller(Tier.PRO, mode="managed", account=8103)
    own = {line.iccid for line in stage.lines(8103)}
    await stage.costs()
    async with stage.world.client(other.secret) as http:
        rows = (await http.post(COSTS, json=WINDOW)).json()["data"]["lines"]
    assert rows and {row["iccid"] for row in rows} <= own


async def test_whoever_brings_a_token_sees_all_accounts(stage: CostsStage) -> None:
    other = await stage.world.caller(Tier.PRO, token=OWN_TOKEN)
    async with stage.world.client(other.secret) as http:
        rows = (await http.post(COSTS, json=WINDOW)).json()["data"]["lines"]
    assert len({row["account_id"] for row in rows}) > 1


async def test_a_tools_answer_is_short_and_has_a_way_to_the_rest(demo: DemoAnswers) -> None:
    said, more = demo.told("high_cost_subscribers", {})
    text = said["content"][0]["text"]
    assert len(text) < 6_000 and said["structuredContent"]["of"] == 140
    assert len(said["structuredContent"]["data"]["lines"]) == 3
    rows = said["structuredContent"]["data"]["lines"] + more["structuredContent"]["data"]["lines"]
    assert rows == (await demo.costs(limit=6))["data"]["lines"]


async def test_days_that_have_not_come_are_refused(stage: CostsStage) -> None:
    answer = await stage.http.post("/v1/intelligence/high-cost-subscribers", json={"start": "2030-01-01", "end": "2030-01-07"})
    assert (answer.status_code, answer.json()["param"]) == (400, "start")
    assert answer.json()["error"] == "start: 2030-01-01 has not come, so nothing has been used then"
