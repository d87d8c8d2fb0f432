"""Bills add up to the micro-euro, whatever the records and whatever the totals say."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.caches.usage import DayUse, PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import LineUse
from operations.intelligence.money.advice import LineAdvice
from operations.intelligence.money.bill_figures import (
    NETWORKS_SHOWN,
    cost_figures,
    line_cost,
    network_costs,
    other_networks,
    unattributed_figures,
)
from operations.intelligence.money.bills import NO_MONEY, FleetBill, LineBill, fleet_bill, line_bill, sum_money
from operations.intelligence.offers.coverage_map import CoverageMap, NetworkCodes
from storage.fleet_costs import LineMoney, NetworkMoney
from storage.fleet_usage import FleetNetworkRow
from tests.length import examples

CODES = NetworkCodes(CoverageMap(), [])
NOTHING = LineAdvice("none", "cheapest")
MICROS = st.integers(-5, 10**12)
PLACES = st.builds(
    PlaceUse,
    st.sampled_from([242, 244, 262, 901]),
    st.integers(1, 4),
    st.sampled_from(["NO", "", "DE"]),
    st.sampled_from(["Telco", "\u202eocleT"]),
    st.sampled_from([1, 15, 21, 22, 33, 40, 41, 99]),
    st.integers(0, 10**12),
    MICROS,
    MICROS,
    st.integers(0, 10**12),
)


class UsedLine(NamedTuple):
    """A line, its use and its bill."""

    number: int
    use: LineUse
    bill: LineBill


@st.composite
def used_lines(draw: st.DrawFn) -> list[UsedLine]:
    """A few lines; the totals of their use need not be what the records say."""
    made: list[UsedLine] = []
    for number in range(draw(st.integers(0, 6))):
        line = FleetLine(number, f"89{number:018d}", 8101, "ACTIVE", {})
        day = DayUse(date(2027, 1, 1), 0, draw(MICROS), draw(MICROS))
        use = LineUse((day,), tuple(draw(st.lists(PLACES, max_size=8))), day.reseller_cost, day.subscriber_cost)
        made.append(UsedLine(number, use, line_bill(line, use, CODES, draw(st.none() | MICROS))))
    return made


def bill_of_all(found: Sequence[UsedLine]) -> FleetBill:
    """The fleet's bill from sums as the database makes them: by line, dearest first, and by network and kind."""
    lines = [LineMoney(each.number, each.use.reseller_cost, each.use.subscriber_cost) for each in found]
    dearest = sorted(lines, key=lambda line: (-line.network_cost, -line.usage_income))
    places = [place for each in found for place in each.use.places]
    uses = [NetworkMoney(place.mcc, place.mnc, place.usage_type, 1, 0, place.reseller_cost, place.subscriber_cost) for place in places]
    networks = {(place.mcc, place.mnc): FleetNetworkRow(place.mcc, place.mnc, place.iso2, place.operator) for place in places}
    incomes = [each.bill.package_income for each in found]
    return fleet_bill(dearest, uses, networks, CODES, None if None in incomes else sum(income for income in incomes if income is not None))


def micro(euros: float) -> int:
    """An amount as it is shown, back in micro-euros: nothing is lost."""
    assert round(euros * 1_000_000) / 1_000_000 == euros
    return round(euros * 1_000_000)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(40))
@given(used_lines())
def test_whatever_the_records_say_bills_add_up(found: list[UsedLine]) -> None:
    bills = [each.bill for each in found]
    for bill in bills:
        assert sum_money([*(cost for _, cost in bill.networks), bill.unattributed]) == bill.total
        assert sum_money([*(cost for _, cost in bill.kinds), bill.unattributed]) == bill.total
    fleet = bill_of_all(found)
    assert fleet.total == sum_money(bill.total for bill in bills)
    assert fleet.unattributed == sum_money(bill.unattributed for bill in bills)
    assert sum_money([*(country.total for country in fleet.countries), fleet.unattributed]) == fleet.total
    assert sum_money([*(cost for _, cost in fleet.kinds), fleet.unattributed]) == fleet.total
    for country in fleet.countries:
        assert sum_money(cost for _, cost in country.networks) == country.total
    costs = {each.number: each.bill.total.network_cost for each in found}
    assert sorted(fleet.lines) == sorted(costs)
    assert [costs[number] for number in fleet.lines] == sorted(costs.values(), reverse=True)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(40))
@given(used_lines())
def test_what_is_shown_of_a_bill_adds_up(found: list[UsedLine]) -> None:
    for _, _, bill in found:
        row = line_cost(bill, bill.total, NOTHING, CODES)
        for name in ("cost", "charged", "network_cost", "usage_income"):
            parts = [*row["networks"], row["rest"], row["unattributed"]]
            assert sum(micro(part[name]) for part in parts if part is not None) == micro(row[name])
        assert len(network_costs(bill.networks)) <= NETWORKS_SHOWN
        rest = other_networks(bill.networks)
        assert (rest is None) == (len(bill.networks) <= NETWORKS_SHOWN)
        assert (unattributed_figures(bill.unattributed) is None) == (bill.unattributed == NO_MONEY)
        assert all("\u202e" not in network["operator"] for network in row["networks"])
        assert cost_figures(bill.total)["cost"] == row["cost"] == row["network_cost"]
        assert (row["package_income"] is None) == (row["margin_with_packages"] is None) == (bill.package_income is None)
        if row["package_income"] is not None and row["margin_with_packages"] is not None:
            income = micro(row["package_income"]) + micro(row["usage_income"])
            assert micro(row["margin_with_packages"]) == income - micro(row["network_cost"])


@given(st.lists(st.integers(0, 1000), max_size=12))
def test_the_fewest_lines_make_four_fifths_of_the_cost(costs: list[int]) -> None:
    ordered = sorted(costs, reverse=True)
    fleet = fleet_bill([LineMoney(number, cost, 0) for number, cost in enumerate(ordered)], [], {}, CODES, 0)
    fewest = next(count for count in range(len(costs) + 1) if sum(ordered[:count]) * 100 >= sum(costs) * 80)
    assert (fleet.pareto, fleet.pareto_cost) == (fewest, sum(ordered[:fewest]))
