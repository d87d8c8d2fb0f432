"""Seeded histories: after whatever happened, a finished sync is what the network is."""

import pytest

from tests.fleet.histories import run_history
from tests.fleet.history_stage import HistoryStage, build_history_stage

HISTORIES = 200
PER_TEST = 50


@pytest.fixture(scope="module")
def stage() -> HistoryStage:
    return build_history_stage(small=True)


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST), ids=lambda first: f"seeds-{first}-to-{first + PER_TEST - 1}")
def test_after_any_history_the_model_is_what_the_network_is(stage: HistoryStage, first: int) -> None:
    verdicts = [run_history(stage, seed) for seed in range(first, first + PER_TEST)]
    assert [(f"python -m tests.fleet.histories --seed {each.seed}", *each.broken) for each in verdicts if each.broken] == []


def test_one_seed_has_one_history(stage: HistoryStage) -> None:
    assert [run_history(stage, seed).told for seed in range(3)] == [run_history(stage, seed).told for seed in range(3)]
