"""A stage of a few lines, and what the demo's fleet is told."""

from pathlib import Path

import pytest

from tests.intelligence_costs.stage import DemoAnswers, ask_demo, open_costs_stage
from tests.stage import opened

KEPT: list[DemoAnswers] = []

stage = opened(open_costs_stage)


@pytest.fixture
async def demo(tmp_path: Path) -> DemoAnswers:
    """What the demo's 140 lines are told, asked once for all tests of them."""
    if not KEPT:
        KEPT.append(await ask_demo(tmp_path))
    return KEPT[0]
