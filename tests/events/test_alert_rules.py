"""Alerts on noisy histories: one opening for each true crossing, found at once, and none that comes and goes."""

from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.ledger.alert_rules import (
    LEAST_DAYS,
    TOP_UP_SECONDS,
    LevelLook,
    LevelState,
    is_quota_reached,
    judge_age,
    judge_level,
    median_use,
    supply_days,
)
from storage.alerts import AlertSettings
from tests.length import examples
from tests.world import NOON

LOOK_SECONDS = 60.0
NOTICED_SECONDS = 300.0
CHOICES = AlertSettings()


class Moment(NamedTuple):
    """What a look of a history showed, and what the alert did."""

    look: LevelLook
    left: float
    change: str | None


def history(random: Random, looks: int) -> list[LevelLook]:
    """Looks of a minute each: a level that falls with noise around a trend, refunds, top-ups, days whose use differs, and gaps."""
    trend = 10 ** random.uniform(-1, 3)
    uses = [max(0.0, trend * random.gauss(1, 0.3)) for _ in range(random.choice((2, 3, 5, 14, 14)))]
    level, noise = trend * random.uniform(5, 12), trend * random.choice((0.0, 0.01, 0.2, 0.45))
    pace, now, before, complete = random.choice((0.0, 0.01, 0.05)), NOON, None, True
    found: list[LevelLook] = []
    for _ in range(looks):
        now += LOOK_SECONDS
        level -= trend * pace
        if random.random() < 0.03:
            level += trend * random.choice((0.3, 2.0, 5.0, -3.0, 12.0))
        if random.random() < (0.01 if complete else 0.2):
            complete = not complete
        if random.random() < 0.005 and uses:
            uses = [*uses[1:], trend * random.uniform(0.5, 2)]
        shown = max(0.0, level + random.uniform(-noise, noise) / 2)
        found.append(LevelLook(shown, before, uses, complete, now))
        before = shown
    return found


def lived(looks: list[LevelLook]) -> list[Moment]:
    """What the alert did at each look."""
    state, moments = LevelState(), list[Moment]()
    for look in looks:
        change, after = judge_level(look, CHOICES, state)
        daily = median_use(look.uses)
        left = supply_days(look.level, daily) if daily is not None else float("inf")
        moments.append(Moment(look, left, change))
        state = after
    return moments


def has_held_top_up(moments: list[Moment]) -> bool:
    """Whether, at the last of these moments, a rise by a day's use is an hour old and the level was never low since."""
    last = moments[-1].look.now
    for place in range(len(moments) - 1, 0, -1):
        look, left = moments[place].look, moments[place].left
        if look.complete and left < CHOICES.days_to_open:
            return False
        rise = look.level - (look.before or 0.0)
        if last - look.now >= TOP_UP_SECONDS and look.complete and rise > 0 and rise >= (median_use(look.uses) or 0.0):
            return True
    return False


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_an_alert_opens_once_for_each_true_crossing_and_never_flaps(seed: int) -> None:
    moments = lived(history(Random(seed), 150))
    opened = False
    low_since: float | None = None
    for place, moment in enumerate(moments):
        look, days_known = moment.look, len(moment.look.uses) >= LEAST_DAYS
        if not look.complete or not days_known:
            assert moment.change is None
            continue
        is_low = moment.left < CHOICES.days_to_open
        if moment.change == "open":
            assert not opened and is_low
            opened = True
        elif moment.change == "close":
            # Inside the band nothing closes it but a top-up that has held for an hour.
            assert opened and not is_low
            assert moment.left > CHOICES.days_to_close or has_held_top_up(moments[: place + 1])
            opened = False
        low_since = (low_since or look.now) if is_low and not opened else None
        assert low_since is None or look.now - low_since < NOTICED_SECONDS


@pytest.mark.long
@given(st.lists(st.floats(min_value=7.0, max_value=10.0), min_size=1, max_size=200))
def test_noise_between_the_two_limits_changes_nothing(days: list[float]) -> None:
    for state in (LevelState(), LevelState(NOON, 1.0)):
        before: float | None = None
        now = NOON
        for level in days:
            # The noise is smaller than a day's use, so it is no top-up.
            shown = level if before is None else min(max(level, before - 0.9), before + 0.9)
            now += LOOK_SECONDS
            change, state = judge_level(LevelLook(shown, before, [1.0] * 14, complete=True, now=now), CHOICES, state)
            assert change is None
            before = shown


def test_a_top_up_that_is_spent_within_the_hour_closes_nothing() -> None:
    state, uses = LevelState(NOON, 10.0), [10.0] * 5
    levels = [(60.0, 50.0, 60.0), (85.0, 60.0, 120.0), (65.0, 85.0, 1800.0), (75.0, 65.0, 3000.0), (76.0, 75.0, 5000.0)]
    for level, before, seconds in levels:
        change, state = judge_level(LevelLook(level, before, uses, complete=True, now=NOON + seconds), CHOICES, state)
        assert change is None
    change, _ = judge_level(LevelLook(76.0, 76.0, uses, complete=True, now=NOON + 3000.0 + TOP_UP_SECONDS), CHOICES, state)
    assert change == "close"


def test_an_empty_account_that_uses_nothing_stays_low() -> None:
    look = LevelLook(0.0, 0.0, [0.0] * 14, complete=True, now=NOON)
    assert judge_level(look, CHOICES, LevelState(NOON - 60, 20.0)).change is None
    assert judge_level(look, CHOICES, LevelState()).change is None


def test_a_list_is_late_at_three_times_its_age_and_well_again_below_two() -> None:
    assert [judge_age(age, 300.0, 0.0) for age in (0.0, 900.0, 901.0)] == [None, None, "open"]
    assert [judge_age(age, 300.0, NOON) for age in (901.0, 601.0, 600.0)] == [None, None, "close"]


def test_a_share_of_the_quota_is_reached_with_its_last_call() -> None:
    assert [is_quota_reached(used, 1000, 80) for used in (799, 800)] == [False, True]
    assert [is_quota_reached(used, 1000, 100) for used in (999, 1000)] == [False, True]
