"""The judge of fleet problems on a network small enough to count by hand: every cause, on both sides of its limit."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterable

import pytest

from benchmarks.fleet_line import LineState, ObservedNetwork
from benchmarks.fleet_networks import CauseCount, count_cause, page
from benchmarks.fleet_truth import FLEET_CAUSES, CauseScore, LineTruth, add_scores, fleet_truth, line_truth, score_causes
from simulators.network import packages
from simulators.network.charging import charge_usage
from simulators.network.entities import DATA, DAY_SECONDS, MICRO_EURO, MOC, Line, Package, PackageSeries, StatusRow
from simulators.network.radio import attach_to_network
from simulators.network.seed.scenario import ScenarioPair, build_scenario_pair
from simulators.network.simulated_network import copy_world
from simulators.network.simulation import run_world_to
from simulators.network.world import World, Zone
from tests.network_facts import HOUR, MIB
from tests.sandbox.planted import MIDNIGHT
from tests.sandbox.small import BERGEN, NORWAY, OSLO, SMALL_NOON, STOCKHOLM, small_world, template

pytestmark = pytest.mark.long

FIRST_MIDNIGHT = SMALL_NOON + 12 * HOUR
LAST = 40
"""The day of the judgement, counted from the first midnight: it is made at that midnight."""
NOW = FIRST_MIDNIGHT + LAST * DAY_SECONDS
SMALL, NATIONAL, CITY, LARGE, DAILY = 50, 51, 52, 53, 54
CITY_ZONE = 3


class Story:
    """The life of one line, told in order; days count from the first midnight."""

    def __init__(self, *, balance: int = 0) -> None:
        self.world: World = small_world()
        self.line: Line = self.world.lines[900]
        self.line.balance = balance
        self.world.zones[CITY_ZONE] = Zone(CITY_ZONE, "Oslo", 7, 1, (OSLO,))
        for made in (
            template(data_bytes=2000 * MIB, cost=4 * MICRO_EURO),
            template(id=NATIONAL, zone_id=NORWAY, data_bytes=2000 * MIB, cost=4 * MICRO_EURO),
            template(id=CITY, zone_id=CITY_ZONE, data_bytes=2000 * MIB, cost=4 * MICRO_EURO),
            template(id=LARGE, data_bytes=9000 * MIB, cost=12 * MICRO_EURO),
            template(id=DAILY, data_bytes=50 * MIB, period_days=1, recurring=True, periodicity=0, frequency=1, occurrences=14),
        ):
            self.world.templates[made.id] = made

    def to(self, day: int, hour: float = 0.0) -> int:
        """Runs the network to an hour of a day."""
        run_world_to(self.world, FIRST_MIDNIGHT + day * DAY_SECONDS + int(hour * HOUR))
        return self.world.now

    def buy(self, number: int = SMALL, *, until: int | None = None) -> Package:
        period = None if until is None else (self.world.now, until)
        return packages.assign_package(self.world, self.line, self.world.templates[number], period=period, validity_days=None)

    def subscribe(self, begins: int) -> PackageSeries:
        found, _ = packages.assign_package_series(self.world, self.line, self.world.templates[DAILY], start=begins, at_first_use=False)
        return found

    def use(self, size: int = 10 * MIB, network: int = OSLO, kind: int = DATA) -> None:
        """Or a session that is refused, where nobody pays."""
        charge_usage(self.world, self.line, kind, size, network, self.world.now, "4790123456" if kind == MOC else None)

    def live(self, days: Iterable[int], size: int = 10 * MIB, network: int = OSLO) -> None:
        """Data at noon of each day."""
        for day in days:
            self.to(day, 12.0)
            self.use(size, network)

    def running(self) -> Package:
        """The first package that is in date."""
        return next(package for package in self.line.packages if package.in_date(self.world.now))

    def suspend(self) -> None:
        self.line.statuses[-1].end = self.world.now
        self.line.statuses.append(StatusRow(self.world.next_id("status"), "SUSPENDED", self.world.now))

    def truth(self, later: Iterable[int] = ()) -> LineTruth:
        """At the last midnight; the line is used on the `later` days, which nobody knows yet."""
        self.to(LAST)
        after = copy_world(self.world)
        for day in later:
            run_world_to(after, FIRST_MIDNIGHT + day * DAY_SECONDS)
            charge_usage(after, after.lines[900], DATA, MIB, OSLO, after.now)
        run_world_to(after, NOW + 28 * DAY_SECONDS)
        return fleet_truth(self.world, after)[self.line.iccid]


def lived(*, bought: int = SMALL, first: int = 0, end: int = LAST, balance: int = 0) -> Story:
    """A line with data every day, and a package that is never too small."""
    story = Story(balance=balance)
    story.to(first, 9.0)
    for start in range(first, end, 30):
        story.to(start, 9.0)
        story.buy(bought)
        story.live(range(start, min(end, start + 30)))
    return story


def test_a_line_whose_data_is_used_every_day_has_no_trouble() -> None:
    assert lived().truth(range(LAST, LAST + 9)) == LineTruth(frozenset(), frozenset(), frozenset(), frozenset())


def test_a_line_in_stock_is_not_judged() -> None:
    story = Story()
    story.to(LAST)
    assert fleet_truth(story.world, story.world) == {}
    story.buy()
    assert fleet_truth(story.world, story.world, reseller_id=7).keys() == {story.line.iccid}
    assert fleet_truth(story.world, story.world, reseller_id=8) == {}


def used_up(other_ends: int) -> Story:
    """One package is used up yesterday, the other one ends around now."""
    story = lived(end=39)
    other = story.buy(until=other_ends)
    story.to(39, 12.0)
    story.use(story.running().units_left(DATA))
    assert other.data_used == 0
    story.to(39, 23.5)
    story.use()
    return story


def test_exhausted_is_a_line_without_data_left_and_not_one_with_an_hour_of_it() -> None:
    gone = used_up(NOW - HOUR).truth()
    assert gone.causes == ["exhausted"]
    assert gone.borderline == {"exhausted"}
    assert {"silence", "churn", "spike"} <= gone.allowed
    left = used_up(NOW + HOUR).truth()
    assert "exhausted" in left.near
    assert left.causes == ["spike"]


def test_what_a_balance_pays_for_may_be_told_and_need_not_be() -> None:
    story = used_up(NOW - HOUR)
    story.line.balance = MICRO_EURO
    found = story.truth()
    assert "exhausted" in found.allowed
    assert "exhausted" not in found.true


def test_a_line_that_was_last_seen_eight_days_ago_need_not_be_missed() -> None:
    def expired(last_seen: int) -> LineTruth:
        story = Story()
        story.to(0, 9.0)
        story.buy(until=FIRST_MIDNIGHT + 25 * DAY_SECONDS)
        story.live(range(0, 25, 4))
        story.to(last_seen, 13.0)
        attach_to_network(story.world, story.line, OSLO, story.world.now)
        return story.truth()

    assert expired(34).causes == ["expired"]
    assert expired(34).borderline == {"expired"}
    assert "expired" in expired(31).allowed
    assert expired(31).causes == []


def test_expired_is_a_package_that_ended_an_hour_ago_unless_a_series_makes_another_within_twelve_hours() -> None:
    story = lived(end=10)
    story.buy(until=NOW - HOUR)
    story.live(range(10, 40))
    assert story.truth().causes == ["expired"]
    assert story.truth().borderline == {"expired"}
    story = lived(end=38)
    packages.remove_all_packages(story.world, story.line)
    series = story.subscribe(NOW + 6 * HOUR - 2 * DAY_SECONDS)
    story.live([38, 39])
    story.to(39, 20.0)
    packages.set_package_expiry(story.world, story.running(), NOW - HOUR)
    found = story.truth()
    assert series.created == 3
    assert found.causes == []
    assert "expired" in found.near


def test_a_line_that_another_package_waits_for_until_the_day_after_may_be_called_expired() -> None:
    story = lived(end=10)
    story.buy(until=NOW - HOUR)
    story.live(range(10, 40))
    packages.assign_package(
        story.world, story.line, story.world.templates[SMALL], period=(NOW + 13 * HOUR, NOW + DAY_SECONDS), validity_days=None
    )
    found = story.truth()
    assert "expired" in found.allowed
    assert found.causes == []


def test_blocked_is_a_paused_package_and_not_one_beside_another_that_works() -> None:
    def paused(*, other: bool) -> LineTruth:
        story = lived(end=36)
        if other:
            story.buy(until=NOW + HOUR)
        packages.set_package_active(story.world, story.running(), False)
        story.live(range(36, 40))
        return story.truth()

    assert paused(other=False).causes == ["blocked"]
    found = paused(other=True)
    assert found.causes == []
    assert "blocked" in found.near


@pytest.mark.parametrize(
    ("last_use", "cause", "side"), [(30, "true", "plain"), (26, "true", "borderline"), (25, "near", "outside"), (20, "none", "none")]
)
def test_suspended_is_a_line_that_was_used_in_the_last_two_weeks(last_use: int, cause: str, side: str) -> None:
    story = Story()
    story.to(5, 9.0)
    story.buy(until=FIRST_MIDNIGHT + 38 * DAY_SECONDS)
    story.live(range(5, last_use + 1))
    story.suspend()
    found = story.truth()
    assert ("suspended" in found.true) is (cause == "true")
    assert ("suspended" in found.borderline) is (side == "borderline")
    assert ("suspended" in found.near) is (cause == "near")


def test_a_suspended_line_is_missed_while_the_package_that_it_had_before_runs() -> None:
    story = lived(first=11, end=20)
    story.suspend()
    assert story.truth().causes == ["suspended"]
    story.line.statuses[-1].status = "DISCONNECTED"
    assert story.truth().causes == []


def test_forbidden_is_data_that_is_switched_off_although_a_package_holds_some() -> None:
    def switched_off(*, package: bool) -> LineTruth:
        story = lived(end=36) if package else Story(balance=40 * MICRO_EURO)
        if not package:
            packages.activate_line(story.world, story.line)
        story.line.allowed_data = False
        for day in range(36, 40):
            story.to(day, 12.0)
            story.use(60, kind=MOC)
        return story.truth()

    assert switched_off(package=True).causes == ["forbidden"]
    found = switched_off(package=False)
    assert found.causes == []
    assert found.near == {"forbidden"}


def test_no_coverage_is_a_country_where_no_package_with_data_works() -> None:
    def gone_to_sweden(*, works: bool) -> LineTruth:
        story = lived(bought=NATIONAL, end=39)
        story.to(39, 9.0)
        if works:
            story.buy(until=NOW + HOUR)
        story.live([39], network=STOCKHOLM)
        return story.truth()

    lost = gone_to_sweden(works=False)
    assert lost.causes == ["no_coverage"]
    assert lost.borderline == {"no_coverage"}
    assert {"abroad", "silence", "churn"} <= lost.allowed
    found = gone_to_sweden(works=True)
    assert found.causes == ["abroad"]
    assert "no_coverage" in found.near


@pytest.mark.parametrize(
    ("limit", "true", "near"), [("KB_5120", {"throttled"}, set[str]()), ("KB_10240", set[str](), {"throttled"}), ("KB_20480", set(), set())]
)
def test_throttled_is_a_speed_below_10240(limit: str, true: set[str], near: set[str]) -> None:
    story = lived()
    story.line.bitrate = limit
    found = story.truth(range(LAST, LAST + 9))
    assert (found.true, found.near, found.borderline) == (true, near, set())


def test_the_greatest_slow_speed_is_borderline() -> None:
    story = lived()
    story.line.bitrate = "KB_7680"
    assert story.truth().borderline == {"throttled"}


def test_mis_steered_is_half_of_a_weeks_data_beside_the_zone() -> None:
    def steered(days: Iterable[int]) -> LineTruth:
        story = lived(bought=CITY, end=33, balance=50 * MICRO_EURO)
        for day in range(33, 40):
            story.live([day], network=BERGEN if day in days else OSLO)
        return story.truth()

    assert steered(range(36, 40)).causes == ["mis_steered"]
    assert steered(range(36, 40)).borderline == {"mis_steered"}
    assert steered((33, 35, 37)).near == {"mis_steered"}
    assert steered((33, 35, 37)).causes == []
    assert "mis_steered" in steered((39,)).allowed


def test_a_line_that_is_steered_where_nobody_pays_is_mis_steered_by_its_sessions() -> None:
    story = lived(bought=CITY, end=35)
    story.live(range(35, 40), network=BERGEN)
    found = story.truth()
    assert found.causes == ["mis_steered"]
    assert "silence" in found.allowed


@pytest.mark.parametrize(("cost", "true", "near"), [(12, True, False), (9, True, False), (8, False, True), (5, False, False)])
def test_wrong_package_is_one_that_costs_twice_what_would_do_and_five_euro_more(cost: int, true: bool, near: bool) -> None:
    story = Story()
    story.world.templates[LARGE].cost = cost * MICRO_EURO
    story.to(10, 9.0)
    story.buy(LARGE)
    story.live(range(10, 40))
    found = story.truth()
    assert ("wrong_package" in found.true, "wrong_package" in found.near) == (true, near)


def test_a_package_is_not_too_large_where_another_would_not_cover_all() -> None:
    story = Story()
    for number in (SMALL, CITY):
        story.world.templates[number].deleted = True
    story.to(10, 9.0)
    story.buy(LARGE)
    story.live(range(10, 39))
    story.live([39], network=STOCKHOLM)
    assert "wrong_package" not in story.truth().true | story.truth().near


@pytest.mark.parametrize(
    ("cents", "true", "borderline", "near"), [(1200, True, False, False), (1000, True, True, False), (850, False, False, True)]
)
def test_high_cost_is_five_euro_more_than_the_customer_pays_and_half_as_much_again(
    cents: int, true: bool, borderline: bool, near: bool
) -> None:
    story = Story()
    buy = story.world.tariffs[512]
    buy.rules = tuple(rule._replace(data_rate=cents * MICRO_EURO // 28_000) for rule in buy.rules)
    story.to(12, 9.0)
    story.buy()
    story.live(range(12, 40))  # 280 MiB
    found = story.truth()
    assert ("high_cost" in found.true, "high_cost" in found.borderline, "high_cost" in found.near) == (true, borderline, near)


@pytest.mark.parametrize(
    ("days", "true", "borderline", "near"),
    [
        (range(36, 40), True, False, False),
        ([39], True, True, False),
        ([9, 19, 29, 39], False, False, True),
        (range(9, 40, 3), False, False, False),
        (range(20, 40), False, False, False),
    ],
)
def test_abroad_is_a_country_where_the_line_was_never_or_hardly_ever_before(
    days: Iterable[int], true: bool, borderline: bool, near: bool
) -> None:
    story = Story()
    for day in range(40):
        story.to(day, 9.0)
        if day % 30 == 0:
            story.buy()
        story.live([day], network=STOCKHOLM if day in days else OSLO)
    found = story.truth(range(LAST, LAST + 9))
    assert ("abroad" in found.true, "abroad" in found.borderline, "abroad" in found.near) == (true, borderline, near)


@pytest.mark.parametrize(
    ("day", "size", "true", "borderline", "near"),
    [
        (37, 60 * MIB, True, False, False),
        (37, 50 * MIB, True, True, False),
        (37, 50 * MIB - 1, False, False, True),
        (37, 44 * MIB, False, False, False),
        (20, 60 * MIB, False, False, False),
    ],
)
def test_a_spike_is_five_usual_days_of_data_at_once_in_the_last_week(day: int, size: int, true: bool, borderline: bool, near: bool) -> None:
    story = lived(end=day)
    story.live([day], size)
    story.live(range(day + 1, 30))
    story.to(max(30, day + 1), 9.0)
    story.buy()
    story.live(range(max(30, day + 1), 40))
    found = story.truth(range(LAST, LAST + 9))
    assert ("spike" in found.true, "spike" in found.borderline, "spike" in found.near) == (true, borderline, near)
    assert ("spike" in found.allowed) is (day == 20)


@pytest.mark.parametrize(
    ("last_use", "true", "borderline", "near"), [(30, True, False, False), (34, True, True, False), (35, False, False, True)]
)
def test_silence_is_five_days_without_use_of_a_line_that_is_used_on_nine_of_ten(
    last_use: int, true: bool, borderline: bool, near: bool
) -> None:
    story = Story()
    story.to(0, 9.0)
    story.buy()
    story.buy()
    story.live(day for day in range(last_use + 1) if day % 10 != 7)
    found = story.truth((LAST + 3,))
    assert ("silence" in found.true, "silence" in found.borderline, "silence" in found.near) == (true, borderline, near)


def test_ten_days_of_rest_are_no_silence_of_a_line_that_is_used_every_third_day() -> None:
    story = Story()
    story.to(0, 9.0)
    story.buy()
    story.live(range(0, 30, 3))
    assert story.truth((LAST + 3,)).causes == []


def test_a_line_that_fades_is_churn_when_it_is_not_used_in_the_next_four_weeks() -> None:
    def faded(*later: int) -> LineTruth:
        story = Story()
        story.to(0, 9.0)
        story.buy()
        story.buy()
        story.live((*range(11), 13, 16, 19, 22, 27, 32))
        return story.truth(later)

    assert faded().causes == ["churn"]
    assert faded().borderline == {"churn"}
    assert faded(LAST + 20).causes == []
    assert faded(LAST + 20).near == {"churn"}


def test_a_line_that_is_given_up_without_a_sign_may_be_called_churn() -> None:
    found = lived().truth()
    assert found.causes == []
    assert found.allowed == {"churn"}


@pytest.mark.parametrize(
    ("begins", "occurrences", "true", "borderline", "near"),
    [(28, None, True, False, False), (28, 14, True, True, False), (22, 14, False, False, True), (28, 2, False, False, True)],
)
def test_a_series_runs_on_a_suspended_line_as_long_as_it_makes_another_package(
    begins: int, occurrences: int | None, true: bool, borderline: bool, near: bool
) -> None:
    story = lived(end=10)
    packages.remove_all_packages(story.world, story.line)
    story.world.templates[DAILY].occurrences = occurrences
    story.subscribe(story.to(begins, 10.0))
    story.to(begins, 10.5)
    story.suspend()
    found = story.truth()
    cause = "series_running_on_suspended"
    assert (cause in found.true, cause in found.borderline, cause in found.near) == (true, borderline, near)
    assert found.true <= {cause}


def test_a_series_on_a_line_that_was_suspended_yesterday_is_explained_by_that() -> None:
    story = lived(end=38)
    story.subscribe(story.to(38, 10.0))
    story.suspend()
    found = story.truth()
    assert found.causes == ["suspended"]
    assert "series_running_on_suspended" in found.allowed


@pytest.mark.parametrize(
    ("hours", "true", "borderline", "near"), [(240, True, False, False), (74, True, True, False), (70, False, False, True)]
)
def test_never_attached_is_a_line_that_was_issued_three_days_ago(hours: int, true: bool, borderline: bool, near: bool) -> None:
    story = Story()
    run_world_to(story.world, NOW - hours * HOUR)
    story.buy()
    found = story.truth()
    assert ("never_attached" in found.true, "never_attached" in found.borderline, "never_attached" in found.near) == (
        true,
        borderline,
        near,
    )
    attach_to_network(story.world, story.line, OSLO, NOW - HOUR)
    assert "never_attached" not in story.truth().true


def test_what_is_told_is_right_or_false_or_counts_neither_way() -> None:
    truth = {
        "a": LineTruth(frozenset({"expired"}), frozenset({"silence"}), frozenset(), frozenset()),
        "b": LineTruth(frozenset({"silence"}), frozenset(), frozenset(), frozenset()),
        "c": LineTruth(frozenset(), frozenset(), frozenset(), frozenset({"expired"})),
    }
    scores = score_causes({"a": {"expired", "silence"}, "b": set(), "c": {"expired"}, "d": {"silence"}}, truth)
    assert scores["expired"] == CauseScore(1, (), ("c",))
    assert (scores["expired"].precision, scores["expired"].recall) == (0.5, 1.0)
    assert scores["silence"] == CauseScore(0, ("b",), ("d",))
    assert scores["churn"].precision == scores["churn"].recall == 1.0
    assert add_scores(scores.values()) == CauseScore(1, ("b",), ("c", "d"))


def test_causes_are_counted_over_networks() -> None:
    line = LineTruth(frozenset({"expired"}), frozenset({"silence"}), frozenset({"expired"}), frozenset({"spike"}))
    truths = [{"a": line, "b": line}, {"c": line}, {}]
    assert count_cause(truths, "expired") == CauseCount(3, 3, 0, 0, 2)
    assert count_cause(truths, "spike") == CauseCount(0, 0, 3, 0, 0)
    assert not count_cause(truths, "expired").enough
    assert "| `expired` | 3 | 3 | 0 | 0 | 2 |" in page("abc", truths)
    assert "3 lines of customers, 3 of them with 3 troubles" in page("abc", truths)


def test_the_judge_knows_nothing_of_what_it_judges() -> None:
    look = "import sys, benchmarks.fleet_networks; print({name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
    assert "simulators" in found
    assert not [room for room in ("operations", "storage", "transports", "clients", "registry") if room in found]


@pytest.fixture(scope="module")
def bordered() -> ScenarioPair:
    return build_scenario_pair(3, MIDNIGHT, lines=400, history_days=60, borders=True)


def test_lines_planted_beside_a_limit_are_on_the_side_that_they_were_planted_on(bordered: ScenarioPair) -> None:
    observed = ObservedNetwork(bordered.world, bordered.later)
    lines = {line.iccid: line for line in bordered.world.lines.values()}
    planted = {name: line_truth(LineState(observed, lines[iccid])) for name, iccid in bordered.borders.items()}
    assert {name.split()[0] for name in planted} == {*FLEET_CAUSES}
    sides = {"inside": "borderline", "outside": "near", "plain": "true"}
    assert [name for name, line in planted.items() for cause, side in [name.split()] if cause not in getattr(line, sides[side])] == []
    assert [name for name, line in planted.items() if name.endswith("plain") and line.borderline] == []


def test_a_network_with_borders_is_the_same_every_time(bordered: ScenarioPair) -> None:
    values = re.sub(r"\b[A-Za-z_][\w.]*\(", "(", repr((bordered.truth, bordered.world.lines)))  # without the names of classes
    assert hashlib.sha256(values.encode()).hexdigest()[:24] == "4958f7243dfb3a650f2c1a81"
