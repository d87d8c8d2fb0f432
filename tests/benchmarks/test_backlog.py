"""The measurement of claims compares backlogs that are what it says they are."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.backlog import Sample, measured, opened, page, ratios, silent
from benchmarks.names import OURS_SQLITE


@pytest.mark.long
async def test_a_claim_takes_as_many_of_a_long_backlog_as_of_a_short_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cells = [cell for pending in (100, 400) for cell in opened(stack, tmp_path, 100, pending, silent, postgres=False)]
        samples = await measured(cells, 2)
    assert {sample.taken for sample in samples} == {100}
    assert page(samples).count("this service on SQLite") == 2


def test_ratios_are_of_the_same_round() -> None:
    times = {(0, 100): 1.0, (0, 400): 1.5, (1, 100): 2.0, (1, 400): 2.0}
    samples = [Sample(OURS_SQLITE, 1, pending, number, 2, ms) for (number, pending), ms in times.items()]
    assert ratios(samples, OURS_SQLITE, 1, 400) == [1.5, 1.0]
