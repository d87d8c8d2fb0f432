"""Both ways in which a clock can be wrong."""

import pytest

from tests.endurance.two_clocks import APART


@pytest.fixture(params=[APART, -APART], ids=["ahead", "behind"])
def ahead(request: pytest.FixtureRequest) -> float:
    """How far the other replica's clock is ahead."""
    return float(request.param)
