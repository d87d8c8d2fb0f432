"""Limits that processes share: the sum is never above a limit by more than a portion for each process, whatever happens to them."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from registry.shared_limits import ALONE_AFTER_SECONDS, LEASE_SECONDS, CountingMode
from tests.length import examples
from tests.registry.limit_cluster import LIMIT, PORTION, RATE, SIZE, LimitCluster, LimitProcess

WHICH = st.integers(0, 3)


class LimitMachine(RuleBasedStateMachine):
    """Processes that ask, use, stand still, die and come back. `level` is one true bucket; `leeway` is how far it may be overdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = LimitCluster()
        self.cluster.start()
        self.level, self.at = float(SIZE), self.cluster.clock.time
        self.lost, self.seen = 0.0, 1

    def one(self, which: int) -> LimitProcess:
        return self.cluster.processes[which % len(self.cluster.processes)]

    def refill(self) -> None:
        now = self.cluster.clock.time
        self.level, self.at = min(float(SIZE), self.level + (now - self.at) * RATE), now
        if self.level >= SIZE:
            self.lost, self.seen = 0.0, len(self.cluster.processes)

    @precondition(lambda self: len(self.cluster.processes) < 4)
    @rule()
    def come(self) -> None:
        self.cluster.start()
        self.seen += 1

    @precondition(lambda self: len(self.cluster.processes) > 1)
    @rule(which=WHICH)
    def die(self, which: int) -> None:
        process = self.one(which)
        if process.lease.counting is CountingMode.ALONE:
            self.lost += SIZE  # its count is gone with it
        self.cluster.processes.remove(process)

    @precondition(lambda self: len(self.cluster.processes) > 1)
    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        process = self.one(which)
        if process.pending is None:
            if process.lapsed and process.lease.counting is CountingMode.ALONE:
                self.lost += SIZE
            process.leave()
            self.cluster.processes.remove(process)

    @rule(which=WHICH, tokens=st.integers(1, 30))
    def spend(self, which: int, tokens: int) -> None:
        self.refill()
        self.level -= self.one(which).spend(tokens)

    @rule(which=WHICH)
    def spend_all(self, which: int) -> None:
        """Everything that it can get, as a caller does who never waits."""
        self.refill()
        process = self.one(which)
        process.hear()
        for _ in range(4):
            self.level -= process.spend(2 * SIZE)
            process.report()

    @rule(which=WHICH)
    def report(self, which: int) -> None:
        process = self.one(which)
        process.hear()
        process.report()

    @rule(which=WHICH)
    def ask(self, which: int) -> None:
        process = self.one(which)
        process.hear()
        process.ask()

    @rule(which=WHICH)
    def hear(self, which: int) -> None:
        self.one(which).hear()

    @rule(which=WHICH)
    def lose_answer(self, which: int) -> None:
        self.one(which).pending = None

    @rule(which=WHICH, calls=st.integers(1, 6))
    def begin(self, which: int, calls: int) -> None:
        self.one(which).begin(calls)

    @rule(which=WHICH)
    def end(self, which: int) -> None:
        self.one(which).end()

    @rule(seconds=st.sampled_from([0.1, 0.1, 0.5, 0.5, 1.0, 3.0, LEASE_SECONDS, ALONE_AFTER_SECONDS, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.cluster.clock.advance(seconds)
        for process in self.cluster.processes:
            if process.note_lapse():
                self.lost += SIZE  # others may take over while it stands still
        self.refill()

    @invariant()
    def no_more_calls_are_under_way_than_the_limit(self) -> None:
        assert self.cluster.under_way <= LIMIT

    @invariant()
    def no_more_is_spent_than_the_bucket_and_a_portion_of_each_process(self) -> None:
        assert self.level >= -(self.seen * PORTION + self.lost) - 1e-6

    @invariant()
    def at_most_one_process_counts_alone(self) -> None:
        now = self.cluster.clock.time
        assert sum(now < process.lease.alone_until for process in self.cluster.processes) <= 1


TestLimitMachine = LimitMachine.TestCase
TestLimitMachine.settings = settings(max_examples=examples(20), stateful_step_count=40, deadline=None)


def cluster_of_two() -> tuple[LimitCluster, LimitProcess, LimitProcess]:
    """Two processes that know of each other."""
    cluster = LimitCluster()
    first, second = cluster.start(), cluster.start()
    first.report()
    second.report()
    return cluster, first, second


def test_a_process_that_is_alone_reports_once_a_second_and_never_for_a_call() -> None:
    cluster = LimitCluster()
    process = cluster.start()
    process.ask()
    process.hear()
    reports = cluster.database.reports
    assert [process.spend(SIZE + 5), process.look() is None] == [SIZE, False]
    cluster.clock.advance(1)
    assert process.spend(SIZE) == RATE
    assert cluster.database.reports == reports


def test_a_second_process_waits_until_the_first_has_told_what_it_counted() -> None:
    cluster = LimitCluster()
    first, second = cluster.start(), cluster.start()
    first.report()
    assert first.spend(15) == 15
    second.report()
    assert second.lease.counting is CountingMode.WAITING
    assert second.spend(10) == PORTION
    first.report()
    second.report()
    assert {first.lease.counting, second.lease.counting} == {CountingMode.SHARED}
    assert second.spend(10) == PORTION  # what it had spent is counted
    second.report()
    assert second.spend(10) == PORTION
    second.report()
    assert second.spend(10) == SIZE + PORTION - 15 - 3 * PORTION  # a portion more than the bucket had, and no more
    first.report()
    assert (first.spend(10), first.look() is None) == (PORTION, False)


def test_what_dead_processes_held_is_the_others_after_the_lease_and_no_sooner() -> None:
    cluster, first, second = cluster_of_two()
    first.begin(LIMIT)
    first.report()
    assert first.places.in_use == LIMIT
    second.begin(1)
    cluster.processes.remove(first)  # killed
    second.report()
    assert second.places.in_use == 0
    cluster.clock.advance(LEASE_SECONDS + 0.1)
    second.report()
    assert second.places.in_use == 1
    cluster.clock.advance(ALONE_AFTER_SECONDS)
    second.report()
    assert second.lease.counting is CountingMode.ALONE


def test_a_process_that_stood_still_for_longer_than_its_lease_begins_no_call_before_it_has_reported() -> None:
    cluster, first, second = cluster_of_two()
    first.begin(LIMIT)
    first.report()
    for _ in range(LIMIT):
        first.end()  # nobody is told
    cluster.clock.advance(LEASE_SECONDS)
    second.begin(LIMIT)
    second.report()
    first.begin(1)
    assert (first.places.in_use, second.places.in_use) == (0, LIMIT)
    first.report()
    assert (first.places.in_use, second.places.in_use) == (0, LIMIT)


def test_a_process_that_is_left_alone_goes_on_with_what_all_have_spent() -> None:
    cluster, first, second = cluster_of_two()
    first.report()
    for _ in range(SIZE):
        second.spend(1)
        second.report()
    second.leave()
    cluster.processes.remove(second)
    first.report()
    assert first.lease.counting is CountingMode.ALONE
    assert first.spend(SIZE) == 0
    cluster.clock.advance(1)
    assert first.spend(SIZE) == RATE


@pytest.mark.parametrize("waiting", [1, LIMIT, 3 * LIMIT])
def test_a_process_with_all_places_gives_up_half_of_them_as_its_calls_end_when_another_waits(waiting: int) -> None:
    _, first, second = cluster_of_two()
    first.begin(LIMIT + 20)
    first.report()
    second.begin(waiting)
    second.report()
    for _ in range(2 * LIMIT):
        first.report()
        first.end()
        first.report()
        second.report()
    assert second.places.in_use == min(waiting, LIMIT // 2)
    assert first.places.in_use == LIMIT - second.places.in_use


def test_of_three_processes_and_one_place_each_gets_its_turn() -> None:
    cluster = LimitCluster()
    processes = [cluster.start() for _ in range(3)]
    for process in processes:
        process.places.limit = 1
        process.report()
    served = [0, 0, 0]
    for process in processes:
        process.begin(20)
    for _ in range(30):
        cluster.clock.advance(0.1)
        for process in processes:
            process.report()
        assert sum(process.places.in_use for process in processes) <= 1
        for number, process in enumerate(processes):
            served[number] += process.places.in_use
            process.end()
    assert min(served) >= 5


def test_what_is_not_used_is_free_for_another_at_the_next_report() -> None:
    _, first, second = cluster_of_two()
    first.begin(LIMIT)
    first.report()
    for _ in range(LIMIT):
        first.end()
    first.report()
    second.begin(LIMIT)
    second.report()
    assert second.places.in_use == LIMIT


def spent_in(cluster: LimitCluster, seconds: int, *processes: LimitProcess) -> int:
    """How much they get, who all want as much as there is."""
    spent = 0
    for _ in range(2 * seconds):
        for process in processes:
            spent += process.spend(SIZE)
            process.report()
        cluster.clock.advance(0.5)
    return spent


@pytest.mark.long
def test_a_clock_that_was_ahead_and_is_set_right_stops_nobody() -> None:
    cluster, first, second = cluster_of_two()
    cluster.clock.ahead = 3600
    assert spent_in(cluster, 60, first, second) <= 60 * RATE + SIZE + 2 * PORTION
    cluster.clock.ahead = 0
    assert 55 * RATE <= spent_in(cluster, 60, first, second) <= 60 * RATE + SIZE + 2 * PORTION
    first.leave()
    cluster.processes.remove(first)
    cluster.clock.ahead = 3600
    spent_in(cluster, 60, second)
    assert second.lease.counting is CountingMode.ALONE
    cluster.clock.ahead = 0
    assert 55 * RATE <= spent_in(cluster, 60, second) <= 60 * RATE + SIZE + 2 * PORTION


def test_a_dead_process_whose_clock_was_ahead_keeps_nobody_waiting() -> None:
    cluster = LimitCluster()
    first = cluster.start()
    cluster.clock.ahead = 3600
    first.spend(SIZE)
    first.report()
    assert first.lease.counting is CountingMode.ALONE
    cluster.processes.remove(first)
    cluster.clock.ahead = 0
    second = cluster.start()
    assert spent_in(cluster, 60, second) >= 55 * RATE
