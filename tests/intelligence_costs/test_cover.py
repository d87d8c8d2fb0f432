"""The search for the cheapest packages finds what trying every set finds, and its sets cover."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from operations.intelligence.offers.offers import packages_in_turn
from operations.intelligence.offers.plans import COVER_PACKAGE_LIMIT, CoverResult, PackageChoice, PackageOption, cheapest_cover
from tests.intelligence_costs.brute_force import Problem, covers, two_cheapest

MOST = 4
"""Packages of the sets that are tried: every package is large enough that more are never needed."""
KINDS = 2


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """A few packages, a few places, needs that a handful of packages cover if any do."""
    places = draw(st.integers(1, 3))
    needs = tuple(tuple(draw(st.integers(0, 60)) for _ in range(places)) for _ in range(KINDS))
    most = [max(1, sum(amounts)) for amounts in needs]
    options = tuple(
        PackageOption(
            number,
            draw(st.integers(1, 30)),
            draw(st.sampled_from([1, 1, 2, 3])),
            tuple(draw(st.sampled_from([0, -(-whole // 4), -(-whole // 2), -(-whole * 2 // 3), whole, 2 * whole])) for whole in most),
            frozenset(draw(st.sets(st.integers(0, places - 1), min_size=1))),
        )
        for number in range(1, draw(st.integers(1, 4)) + 1)
    )
    return Problem(options, needs)


def bought(problem: Problem, chosen: PackageChoice) -> list[PackageOption]:
    by_id = {option.id: option for option in problem.options}
    return [by_id[id] for id, count in chosen.counts for _ in range(count)]


@pytest.mark.long
@pytest.mark.rule("4.7.32")
@settings(deadline=None, max_examples=60)
@given(problems())
def test_the_search_finds_what_trying_every_set_finds(problem: Problem) -> None:
    found = cheapest_cover(problem.options, problem.needs)
    assert found.proven
    for chosen in (found.best, found.next):
        if chosen is not None:
            packages = bought(problem, chosen)
            assert sum(option.price for option in packages) == chosen.price
            assert covers(problem, packages)
    prices = [chosen.price for chosen in (found.best, found.next) if chosen is not None]
    tried = two_cheapest(problem, MOST)
    # Sets of more packages than are tried may exist, and cost no less than what the search found.
    assert prices[: len(tried)] == tried or small(found) is False
    assert all(price <= other for price, other in zip(prices, tried, strict=False))
    assert len(prices) >= len(tried)


def small(found: CoverResult) -> bool:
    """Whether its sets are among those that are tried."""
    return all(sum(count for _, count in chosen.counts) <= MOST for chosen in (found.best, found.next) if chosen is not None)


@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(st.integers(1, 10_000), st.lists(st.tuples(st.integers(1, 500), st.integers(100, 5_000)), min_size=1, max_size=6))
@example(10_000, [(1, 100)] * 3)
def test_one_kind_at_one_place_is_the_knapsack_of_old(need: int, wares: list[tuple[int, int]]) -> None:
    options = [PackageOption(number, price, 1, (volume,), frozenset({0})) for number, (price, volume) in enumerate(wares)]
    least = [0] + [0] * need
    for amount in range(1, need + 1):
        least[amount] = min(price + least[max(0, amount - volume)] for price, volume in wares)
    found = cheapest_cover(options, [[need]])
    if found.proven and all(volume * COVER_PACKAGE_LIMIT >= need for _, volume in wares):
        assert found.best is not None and found.best.price == least[need]


def test_what_nothing_covers_has_no_set() -> None:
    option = PackageOption(1, 10, 1, (100,), frozenset({0}))
    assert cheapest_cover([option], [[50, 1]]) == CoverResult(None, None, True)
    assert cheapest_cover([], [[1]]) == CoverResult(None, None, True)


def test_the_next_best_set_has_nothing_superfluous() -> None:
    cheap, dear = PackageOption(1, 10, 1, (100,), frozenset({0})), PackageOption(2, 30, 1, (100,), frozenset({0}))
    found = cheapest_cover([cheap, dear], [[100]])
    assert (found.best, found.next) == (PackageChoice(10, ((1, 1),)), PackageChoice(30, ((2, 1),)))
    assert cheapest_cover([cheap], [[100]]).next is None


def test_short_packages_take_their_share_of_the_time_only() -> None:
    week, month = PackageOption(1, 5, 5, (100,), frozenset({0})), PackageOption(2, 20, 1, (40,), frozenset({0}))
    assert cheapest_cover([week, month], [[40]]).best == PackageChoice(20, ((2, 1),))
    assert cheapest_cover([week], [[40]]).best == PackageChoice(25, ((1, 5),))


def test_packages_for_one_country_and_for_all_share_the_need() -> None:
    home, world = PackageOption(1, 10, 1, (100,), frozenset({0})), PackageOption(2, 40, 1, (100,), frozenset({0, 1}))
    found = cheapest_cover([home, world], [[120, 50]])
    assert (found.best, found.next) == (PackageChoice(50, ((1, 1), (2, 1))), PackageChoice(80, ((2, 2),)))


DAYS = st.lists(st.booleans(), min_size=28, max_size=28)


@settings(deadline=None, max_examples=100)
@given(DAYS, st.integers(1, 40))
def test_so_many_packages_reach_over_the_days_of_use(used: list[bool], days: int) -> None:
    turns = packages_in_turn(used, days)
    assert 1 <= turns <= max(1, -(-30 // days), sum(used) + 2)
    assert turns == 1 or packages_in_turn(used, days + 1) <= turns


@pytest.mark.parametrize(("used", "days", "turns"), [("1" * 28, 7, 5), ("1" * 28, 30, 1), ("1" * 28, 1, 30), ("0" * 28, 1, 1)])
def test_even_use_takes_packages_all_the_time(used: str, days: int, turns: int) -> None:
    assert packages_in_turn([day == "1" for day in used], days) == turns


@pytest.mark.parametrize("first", range(28))
def test_one_trip_of_a_week_takes_one_package_of_a_week(first: int) -> None:
    used = [(day - first) % 28 < 7 for day in range(28)]
    assert (packages_in_turn(used, 7), packages_in_turn(used, 3), packages_in_turn(used, 1)) == (1, 3, 7)
