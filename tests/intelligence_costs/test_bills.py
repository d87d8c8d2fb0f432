"""Bills add up to the micro-euro, whatever the records and whatever the totals say."""

from datetime import date

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
from operations.intelligence.money.bills import NO_MONEY, LineBill, fleet_bill, line_bill, sum_money
from operations.intelligence.offers.coverage_map import CoverageMap, NetworkCodes

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


@st.composite
def bills(draw: st.DrawFn) -> list[LineBill]:
    """Bills of a few lines; their totals need not be what the records say."""
    made: list[LineBill] = []
    for number in range(draw(st.integers(0, 6))):
        line = FleetLine(number, f"89{number:018d}", 8101, "ACTIVE", {})
        day = DayUse(date(2027, 1, 1), 0, draw(MICROS), draw(MICROS))
        use = LineUse((day,), tuple(draw(st.lists(PLACES, max_size=8))), day.reseller_cost, day.subscriber_cost)
        made.append(line_bill(line, use, CODES, draw(st.none() | MICROS)))
    return made


def micro(euros: float) -> int:
    """An amount as it is shown, back in micro-euros: nothing is lost."""
    assert round(euros * 1_000_000) / 1_000_000 == euros
    return round(euros * 1_000_000)


@settings(deadline=None, max_examples=100)
@given(bills())
def test_whatever_the_records_say_bills_add_up(found: list[LineBill]) -> None:
    for bill in found:
        assert sum_money([*(cost for _, cost in bill.networks), bill.unattributed]) == bill.total
        assert sum_money([*(cost for _, cost in bill.kinds), bill.unattributed]) == bill.total
    fleet = fleet_bill(found)
    assert fleet.total == sum_money(bill.total for bill in found)
    assert sum_money([*(country.total for country in fleet.countries), fleet.unattributed]) == fleet.total
    assert sum_money([*(cost for _, cost in fleet.kinds), fleet.unattributed]) == fleet.total
    for country in fleet.countries:
        assert sum_money(cost for _, cost in country.networks) == country.total
    incomes = [bill.package_income for bill in found]
    assert fleet.package_income == (None if None in incomes else sum(income for income in incomes if income is not None))
    assert [bill.total.network_cost for bill in fleet.lines] == sorted((bill.total.network_cost for bill in fleet.lines), reverse=True)


@settings(deadline=None, max_examples=100)
@given(bills())
def test_what_is_shown_of_a_bill_adds_up(found: list[LineBill]) -> None:
    for bill in found:
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
    uses = [LineUse((), (), cost, 0) for cost in costs]
    lines = [line_bill(FleetLine(number, f"89{number:018d}", 1, "ACTIVE", {}), use, CODES, 0) for number, use in enumerate(uses)]
    fleet = fleet_bill(lines)
    ordered = sorted(costs, reverse=True)
    fewest = next(count for count in range(len(costs) + 1) if sum(ordered[:count]) * 100 >= sum(costs) * 80)
    assert fleet.pareto == fewest
