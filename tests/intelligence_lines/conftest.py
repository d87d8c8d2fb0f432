"""The stages of these tests."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.intelligence_lines.stage import DEMO, Stage, Told, open_stage

KEPT: list[Told] = []


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    """Few lines."""
    async with open_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncGenerator[Stage]:
    """The 140 lines of the demo."""
    async with open_stage(tmp_path, lines=DEMO) as stage:
        yield stage


@pytest.fixture
async def told(tmp_path: Path) -> Told:
    """What a fleet is told in which some lines have a part to play, asked once for all tests of it."""
    if not KEPT:
        async with open_stage(tmp_path, planted=True) as fleet:
            KEPT.append(Told(fleet.lines(), await fleet.churn(limit=500), await fleet.anomalies(limit=500)))
    lines, churn, anomalies = KEPT[0]
    return Told(lines, json.loads(json.dumps(churn)), json.loads(json.dumps(anomalies)))
