"""The arithmetic of scores and anomalies: what holds whatever a line did."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operations.intelligence.churn_risk import ChurnSigns, score_churn, silence_points, theil_sen_slope, use_by_week
from operations.intelligence.lines.usage import inter_use_model, silence_odds
from operations.intelligence.usage_anomalies import (
    FALSE_SPIKES_PER_1000,
    SILENCE_ODDS_LIMIT,
    DaySample,
    find_silences,
    find_spikes,
    pooled_deviation,
    robust_deviation,
)

days = st.lists(st.booleans(), min_size=1, max_size=56)
figures = st.lists(st.integers(1_000, 10**11), min_size=1, max_size=28)


def signs_of(used: list[bool], silent: int, active: bool = True, unsupplied: int | None = None, no_balance: bool = False) -> ChurnSigns:
    return ChurnSigns(silent, inter_use_model(used), use_by_week(used), active, unsupplied, False, no_balance)


def samples_of(values: list[int]) -> list[DaySample]:
    return [DaySample(place, value, place % 7 >= 5) for place, value in enumerate(values)]


@pytest.mark.long
@given(days, st.integers(0, 60), st.booleans(), st.one_of(st.none(), st.integers(0, 60)), st.booleans())
def test_weights_add_up_to_a_score_between_nothing_and_a_hundred(
    used: list[bool], silent: int, active: bool, unsupplied: int | None, no_balance: bool
) -> None:
    score = score_churn(signs_of(used, silent, active, unsupplied, no_balance))
    assert round(sum(factor["weight"] for factor in score.factors), 1) == score.points
    assert 0 <= score.points <= 100


@pytest.mark.long
@given(days, st.integers(0, 55))
def test_a_longer_silence_never_lowers_a_score(used: list[bool], silent: int) -> None:
    shorter, longer = (score_churn(signs_of(used, length)).points for length in (silent, silent + 1))
    assert shorter <= longer


@pytest.mark.long
@given(days, st.integers(0, 55), st.integers(0, 55))
def test_a_longer_time_without_a_package_never_lowers_a_score(used: list[bool], silent: int, without: int) -> None:
    none = score_churn(signs_of(used, silent)).points
    shorter, longer = (score_churn(signs_of(used, silent, unsupplied=length)).points for length in (without, without + 1))
    assert none <= shorter <= longer


def test_five_silent_days_of_a_traveller_who_rests_are_nothing_and_of_a_daily_line_something() -> None:
    traveller, daily = [True] * 5 + [False] * 13 + [True] * 5, [True] * 23
    assert silence_points(5, inter_use_model(traveller)) == 0
    assert silence_points(5, inter_use_model(daily)) > 20


@pytest.mark.long
@given(days)
def test_odds_begin_at_one_and_fall_with_every_day(used: list[bool]) -> None:
    odds = [silence_odds(inter_use_model(used), length) for length in range(30)]
    assert odds[0] == 1
    assert all(later < earlier for earlier, later in pairwise(odds))


def test_odds_come_true_of_lines_that_are_used_by_chance() -> None:
    dice, rare = Random(8), Counter[float]()
    for _ in range(6_000):
        share = dice.uniform(0.3, 0.8)
        used = [dice.random() < share for _ in range(28)]
        rhythm = inter_use_model(used)
        odds = silence_odds(rhythm, 28 - rhythm.days)
        rare.update(limit for limit in (0.05, 0.01) if odds <= limit)
    assert 0.03 < rare[0.05] / 6_000 < 0.06
    assert 0.006 < rare[0.01] / 6_000 < 0.015


@example([1000, 1000, 3097, 3097, 3097, 13333, 1000, 3097], 10)  # days just as usual, which rounding put below
@given(figures, st.sampled_from([2, 3, 10, 1_000]))
def test_a_multiple_of_all_figures_has_the_same_anomalies(values: list[int], times: int) -> None:
    found, scaled = (find_spikes(samples_of([value * factor for value in values]), 1) for factor in (1, times))
    assert [spike.place for spike in found] == [spike.place for spike in scaled]


@pytest.mark.long
@given(figures, st.randoms(use_true_random=False))
def test_the_order_of_days_changes_nothing(values: list[int], random: Random) -> None:
    samples = samples_of(values)
    shuffled = random.sample(samples, len(samples))
    assert find_spikes(samples, 1_000_000) == find_spikes(shuffled, 1_000_000)


@pytest.mark.long
@given(figures)
def test_what_stands_out_lies_beyond_what_was_expected(values: list[int]) -> None:
    for spike in find_spikes(samples_of(values), 1_000_000):
        assert spike.figure >= spike.most >= spike.least >= 0
        assert spike.figure > 1_000_000


@pytest.mark.long
@given(st.integers(10**6, 10**10), st.integers(6, 28))
def test_the_same_every_day_is_no_anomaly(value: int, count: int) -> None:
    assert find_spikes(samples_of([value] * count), 1) == []


def test_a_second_spike_does_not_hide_behind_the_first() -> None:
    values = [30, 40, 50, 60, 45, 35, 55, 42, 48, 52, 38, 44, 900, 400]
    assert [spike.place for spike in find_spikes(samples_of([value * 10**6 for value in values]), 1_000_000)] == [12, 13]


def test_false_spikes_are_as_rare_as_promised_of_days_that_are_sums_of_sessions() -> None:
    dice, line_days, alarms = Random(5), 0, 0
    for _ in range(1_000):
        values = [int(10**7 * dice.gammavariate(3, 1)) for _ in range(24)]
        line_days += len(values)
        alarms += len(find_spikes(samples_of(values), 1_000_000))
    assert alarms / line_days <= FALSE_SPIKES_PER_1000 / 1_000


def test_false_silences_are_rare_of_lines_that_are_used_by_chance() -> None:
    dice, alarms = Random(5), 0
    for _ in range(3_000):
        alarms += len(find_silences([dice.random() < 0.8 for _ in range(28)]))
    assert alarms / (3_000 * 28) < SILENCE_ODDS_LIMIT


@pytest.mark.long
@given(days)
def test_silences_are_stretches_without_use_after_one(used: list[bool]) -> None:
    for silence in find_silences(used):
        assert not any(used[silence.place : silence.place + silence.days])
        assert used[silence.place - 1]
        assert silence.days > silence.most
        assert silence.lasting == (silence.place + silence.days == len(used))


def test_robust_estimates() -> None:
    assert theil_sen_slope([1, 2, 3, 4, 500]) == 1.0
    assert theil_sen_slope([5]) == 0
    assert round(robust_deviation([-1, 1, 2, -2, 1000]), 4) == 2.9652
    assert pooled_deviation(3, 4, 1, 4) == 5**0.5
