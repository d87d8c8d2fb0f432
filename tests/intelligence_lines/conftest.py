"""The stages of these tests."""

import json
from pathlib import Path

import pytest

from tests.intelligence_lines.stage import DEMO_LINES, MIDDLE, FleetAnswers, open_usage_stage
from tests.stage import opened

KEPT: list[FleetAnswers] = []


stage = opened(open_usage_stage)
"""Few lines."""
fleet = opened(open_usage_stage, lines=MIDDLE)
"""Fifty-six lines."""
demo = opened(open_usage_stage, lines=DEMO_LINES)
"""The 140 lines of the demo."""


@pytest.fixture
async def told(tmp_path: Path) -> FleetAnswers:
    """What a fleet is told in which some lines have a part to play, asked once for all tests of it."""
    if not KEPT:
        async with open_usage_stage(tmp_path, planted=True) as fleet:
            KEPT.append(FleetAnswers(fleet.lines(), await fleet.churn(limit=500), await fleet.anomalies(limit=500)))
    lines, churn, anomalies = KEPT[0]
    return FleetAnswers(lines, json.loads(json.dumps(churn)), json.loads(json.dumps(anomalies)))
