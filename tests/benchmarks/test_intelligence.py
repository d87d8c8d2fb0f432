"""The measurements of the composites: seeds that nobody chose, a second search that is right by hand, and what was not right is told."""

from benchmarks.commit_seeds import seeds_of
from benchmarks.intelligence import SEEDS, TITLES, Run, page
from benchmarks.intelligence_packages import Ware, cheapest, covers, turns
from benchmarks.intelligence_scores import Score, precision_and_recall, score
from simulators.network.entities import DATA, MO_SMS, MOC, MT_SMS, MTC

NOTHING = {MOC: {}, MTC: {}, MO_SMS: {}, MT_SMS: {}}
NORWAY, SWEDEN = 1, 2


def ware(number: int, price: int, data: int, *networks: int, turns: int = 1, calls: int = 0) -> Ware:
    return Ware(number, price, turns, (data, calls, 0, 0, 0), frozenset(networks))


def test_seeds_are_the_commits() -> None:
    assert seeds_of("0" * 40, SEEDS) == seeds_of("0" * 40, 20)[:SEEDS]
    assert seeds_of("0" * 40, SEEDS) != seeds_of("1" * 40, SEEDS)
    assert len({*seeds_of("0" * 40, SEEDS)}) == 3


def test_two_packages_that_share_a_need_may_be_cheaper_than_one() -> None:
    norway, sweden, both = ware(1, 4, 10, NORWAY), ware(2, 5, 10, SWEDEN), ware(3, 12, 20, NORWAY, SWEDEN)
    needs = {DATA: {NORWAY: 8, SWEDEN: 8}, **NOTHING}
    assert cheapest(needs, [norway, sweden, both]).price == 9
    assert cheapest(needs, [norway, both]).price == 12
    assert cheapest({DATA: {NORWAY: 25}, **NOTHING}, [norway, both]).price == 12


def test_a_network_is_moved_to_another_package_when_its_place_is_needed() -> None:
    norway, both = ware(1, 4, 10, NORWAY), ware(3, 12, 20, NORWAY, SWEDEN)
    needs = {DATA: {NORWAY: 15, SWEDEN: 15}, **NOTHING}
    assert covers(needs, [norway, both])
    assert not covers(needs, [norway, norway])
    assert not covers({DATA: {NORWAY: 5, SWEDEN: 26}, **NOTHING}, [norway, both])


def test_a_week_takes_no_more_than_its_share_of_a_month_and_calls_are_a_need_of_their_own() -> None:
    week = ware(4, 3, 100, NORWAY, turns=5)
    needs = {DATA: {NORWAY: 50}, **NOTHING}
    assert cheapest(needs, [week]).price == 15
    talk = ware(5, 20, 50, NORWAY, calls=60)
    assert cheapest({**needs, MOC: {NORWAY: 60}}, [week, talk]).price == 20
    assert turns({0, 1, 27}, 30) == 1
    assert turns({0, 10, 20}, 7) == 3
    assert turns({0, 6}, 7) == 1


def test_what_was_not_right_is_named_and_what_is_allowed_is_not_wrong() -> None:
    precision, recall = precision_and_recall("a", ["x", "y", "z"], {"x", "w"}, allowed={"y"})
    assert (precision.right, precision.of, precision.weak) == (2, 3, ("z",))
    assert (recall.right, recall.of, recall.weak) == (1, 2, ("w",))
    assert score("a", "b", {}).share == 1.0


def test_the_page_adds_seeds_up_and_says_what_a_simulator_is() -> None:
    tokens = dict.fromkeys(TITLES, 700)
    runs = [Run(seed, 320, [Score("churn_risk", "recall", right, 10, ("line 7",))], tokens, 1.0) for seed, right in ((1, 10), (2, 5))]
    text = page("abc", runs)
    assert "| `churn_risk` | recall | 1.000 (10/10) | 0.500 (5/10) | **0.750** |" in text
    assert "seed 00000002: line 7" in text
    assert "A simulator's truth is not a market's" in text
