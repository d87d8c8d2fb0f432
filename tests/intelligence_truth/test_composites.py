"""The composites find what was planted in a network, and add up what its own records say; benchmarks/intelligence.py measures how well."""

import pytest

from benchmarks.intelligence_advice import HELPED, advice
from benchmarks.intelligence_behaviour import anomalies, churn
from benchmarks.intelligence_scores import Score, costs, country_entry, coverage, diagnosis, health, market, packages
from tests.intelligence_truth.conftest import Measured

pytestmark = pytest.mark.long


def shares(scores: list[Score]) -> dict[str, float]:
    """By measure; something was there to be measured."""
    assert sum(score.of for score in scores) > 0
    return {score.measure: score.share for score in scores}


def missed(scores: list[Score]) -> list[tuple[str, tuple[str, ...]]]:
    """What was not right, of measures that leave no room."""
    assert all(score.of for score in scores)
    return [(score.measure, score.weak) for score in scores if score.right < score.of]


async def test_lines_that_churn_are_ranked_first_and_few_of_those_warned_of_stay(measured: Measured) -> None:
    found = shares(await churn(measured.ask, measured.world))
    assert found["precision at k"] >= 0.7
    assert found["high: precision"] >= 0.8
    assert found["high, medium: recall"] >= 0.6


async def test_spikes_and_silences_are_told_and_little_else_is(measured: Measured) -> None:
    scores = await anomalies(measured.ask, measured.world)
    assert shares(scores)["precision"] >= 0.8
    true = [score for score in scores if score.measure.endswith(": recall")]
    assert sum(score.right for score in true) >= 0.8 * sum(score.of for score in true)


async def test_mis_steered_lines_are_told_with_the_country_and_nearly_no_others(measured: Measured) -> None:
    found = shares(await coverage(measured.ask, measured.world))
    assert found["precision"] >= 0.9
    assert found["recall"] >= 0.8
    assert found["country"] == 1.0


async def test_no_set_of_packages_is_cheaper_than_the_one_that_is_told(measured: Measured) -> None:
    assert missed(await packages(measured.ask, measured.world)) == []


async def test_costs_add_up_to_the_bill_to_the_last_digit(measured: Measured) -> None:
    assert missed(await costs(measured.ask, measured.world)) == []


async def test_lines_are_where_they_were_seen_and_those_abroad_are_told(measured: Measured) -> None:
    assert missed(await country_entry(measured.ask, measured.world)) == []


async def test_the_fleet_is_counted_as_the_network_counts_it(measured: Measured) -> None:
    assert missed(await health(measured.ask, measured.world)) == []


async def test_countries_and_packages_are_counted_as_the_network_counts_them(measured: Measured) -> None:
    assert missed(await market(measured.ask, measured.world)) == []


async def test_every_trouble_is_called_by_its_name_and_no_healthy_line_has_one(measured: Measured) -> None:
    assert missed(await diagnosis(measured.ask, measured.world)) == []


async def test_advice_leads_where_it_says_and_costs_nobody_more(measured: Measured) -> None:
    scores = await advice(measured.ask, measured.world)
    assert [(score.composite, score.measure, score.weak) for score in scores if score.right < score.of and score.measure != HELPED] == []
    assert sum(score.of for score in scores if score.measure.startswith("steering")) > 0
