"""When calls are sent to an outside system that may have stopped answering, and whose: against a slow model, and in any order of events."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clients.circuit_breaker import PROBE_PAUSE_SECONDS, WINDOW_SECONDS, BreakerVerdict, CircuitBreaker

pytestmark = pytest.mark.long

SEND, PROBE, REFUSE = BreakerVerdict.SEND, BreakerVerdict.PROBE, BreakerVerdict.REFUSE
NAMES = ("a", "b", "c", "d")


def told(breaker: CircuitBreaker, name: str, now: float, outcomes: str) -> None:
    """Calls of one organisation that ended: F failed, S was answered."""
    for outcome in outcomes:
        breaker.ended(name, now, failed=outcome == "F")


def test_two_hostile_organisations_open_nothing_for_a_third() -> None:
    breaker, now = CircuitBreaker(), 1000.0
    told(breaker, "third", now, "S")
    for second in range(60):
        now = 1000.0 + second / 2
        for hostile in ("one", "two"):
            if breaker.verdict(hostile, now) is not REFUSE:
                told(breaker, hostile, now, "FFFF")
        assert breaker.verdict("third", now) is SEND
        told(breaker, "third", now, "S")
    assert (breaker.verdict("one", now), breaker.verdict("two", now), breaker.open_owners) == (PROBE, PROBE, 2)


def test_an_organisation_of_which_nothing_is_known_is_probed_for_and_not_refused_while_two_others_fail() -> None:
    breaker = CircuitBreaker()
    told(breaker, "one", 1000, "FFF")
    told(breaker, "two", 1000, "FFF")
    assert breaker.open_for_all
    breaker.begin_probe("third")
    assert breaker.verdict("third", 1000.1) is PROBE, "as many as it asks for: one that is answered opens the way"
    breaker.end_probe("third", 1000.2, answered=True)
    assert (breaker.open_for_all, breaker.verdict("third", 1000.3), breaker.verdict("fourth", 1000.3)) == (False, SEND, SEND)
    assert breaker.verdict("one", 1000.3) is PROBE, "its own calls failed"


@pytest.mark.parametrize(
    ("outcomes", "open_for_all", "open_owners"),
    [
        pytest.param({"a": "FFF"}, True, 1, id="the only one that calls"),
        pytest.param({"a": "FF"}, False, 0, id="too few to say anything"),
        pytest.param({"a": "FFFSSS"}, False, 0, id="half of its calls"),
        pytest.param({"a": "FFFFSSS"}, True, 1, id="more than half"),
        pytest.param({"a": "FFF", "b": "S"}, False, 1, id="one of two"),
        pytest.param({"a": "FFF", "b": "F"}, True, 1, id="both of two"),
        pytest.param({"a": "FFF", "b": "FFF", "c": "SSSSSSS"}, False, 2, id="less than half of all calls"),
        pytest.param({"a": "FFFFFFFFF", "b": "FFF", "c": "S", "d": "S", "e": "S"}, False, 2, id="less than half of those who call"),
        pytest.param({"a": "FFF", "b": "FFF", "c": "S", "d": "S"}, True, 2, id="half of those who call"),
    ],
)
def test_it_is_open_for_all_when_most_calls_of_half_of_the_organisations_fail(
    outcomes: dict[str, str], open_for_all: bool, open_owners: int
) -> None:
    breaker = CircuitBreaker()
    for outcome in "SF":  # the failures last: each may open it
        for name, ended in outcomes.items():
            told(breaker, name, 1000, outcome * ended.count(outcome))
    assert (breaker.open_for_all, breaker.open_owners) == (open_for_all, open_owners)


def test_a_failed_probe_is_followed_by_the_next_after_a_pause_and_an_answered_one_by_calls() -> None:
    breaker = CircuitBreaker()
    told(breaker, "b", 1000, "S")
    told(breaker, "a", 1000, "FFF")
    assert breaker.verdict("a", 1000) is PROBE, "at once: a few calls that took too long tell nothing about the others"
    breaker.begin_probe("a")
    assert breaker.verdict("a", 1001) is REFUSE, "one at a time"
    breaker.end_probe("a", 1003, answered=False)
    assert (breaker.verdict("a", 1003 + PROBE_PAUSE_SECONDS / 2), breaker.retry_after("a", 1003)) == (REFUSE, 1)
    assert breaker.verdict("a", 1003 + PROBE_PAUSE_SECONDS) is PROBE
    breaker.begin_probe("a")
    breaker.end_probe("a", 1005, answered=None)  # whoever waited for it hung up
    assert breaker.verdict("a", 1005) is PROBE
    breaker.begin_probe("a")
    breaker.end_probe("a", 1005, answered=True)
    assert (breaker.verdict("a", 1005), breaker.open_owners, breaker.opened) == (SEND, 0, {"all": 0, "organisation": 1})


class AnyOrder(RuleBasedStateMachine):
    """The breaker, beside a list of all that happened."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker, self.now = CircuitBreaker(), 1000.0
        self.ended: list[tuple[int, str, bool]] = []
        self.forgotten: dict[str, int] = {}
        """For whom what happened before which place of the list is forgotten; "" is for all."""
        self.probes: dict[str, int] = dict.fromkeys(NAMES, 0)

    def window(self, name: str) -> list[bool]:
        """Whether each call failed that counts for an organisation, or for all."""
        seen = enumerate(self.ended)
        return [
            failed
            for place, (second, owner, failed) in seen
            if place >= self.forgotten.get(name, 0) and name in ("", owner) and second > int(self.now) - WINDOW_SECONDS
        ]

    def end(self, name: str, tell: Callable[[], None], *, failed: bool) -> None:
        was_open, open_owners = self.breaker.open_for_all, self.breaker.open_owners
        self.ended.append((int(self.now), name, failed))
        tell()
        if self.breaker.open_owners < open_owners:
            self.forgotten[name] = len(self.ended)
        if was_open and not failed:
            self.forgotten[""] = len(self.ended)

    @rule(name=st.sampled_from(NAMES), failed=st.booleans())
    def call_ends(self, name: str, failed: bool) -> None:
        self.end(name, lambda: self.breaker.ended(name, self.now, failed=failed), failed=failed)
        if failed:
            self.judged(name)

    def judged(self, name: str) -> None:
        """What has just failed opened what the definition says."""
        own, every = self.window(name), self.window("")
        if sum(own) >= 3 and 2 * sum(own) > len(own):
            assert self.breaker.verdict(name, self.now) is not SEND
        windows = [window for each in NAMES if (window := self.window(each))]
        failing = sum(2 * sum(window) > len(window) for window in windows)
        if sum(every) >= 3 and 2 * sum(every) > len(every) and failing >= min(2, len(windows)) and 2 * failing >= len(windows):
            assert self.breaker.open_for_all

    @rule(seconds=st.floats(0.0, 12.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=st.sampled_from(NAMES))
    def asks(self, name: str) -> None:
        if self.breaker.verdict(name, self.now) is PROBE:
            self.breaker.begin_probe(name)
            self.probes[name] += 1

    @precondition(lambda self: any(self.probes.values()))
    @rule(answered=st.sampled_from([True, False, None]), place=st.integers(0, 3))
    def probe_ends(self, answered: bool | None, place: int) -> None:
        under_way = [name for name, count in self.probes.items() if count]
        name = under_way[place % len(under_way)]
        self.probes[name] -= 1
        if answered is None:
            self.breaker.end_probe(name, self.now, answered=None)
            return
        self.end(name, lambda: self.breaker.end_probe(name, self.now, answered=answered), failed=not answered)
        if answered:
            assert self.breaker.verdict(name, self.now) is SEND and not self.breaker.open_for_all

    @invariant()
    def whoever_is_answered_is_never_refused(self) -> None:
        for name in NAMES:
            window = self.window(name)
            if window and not any(window):
                assert self.breaker.verdict(name, self.now) is SEND

    @invariant()
    def nobody_is_shut_out_for_ever(self) -> None:
        later = self.now + WINDOW_SECONDS + PROBE_PAUSE_SECONDS
        for name in NAMES:
            if not self.probes[name]:
                assert deepcopy(self.breaker).verdict(name, later) is not REFUSE

    @invariant()
    def nothing_is_open_that_did_not_fail(self) -> None:
        failed = {name for _, name, failed in self.ended if failed}
        assert self.breaker.open_owners <= len(failed)
        if not failed:
            assert not self.breaker.open_for_all


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
