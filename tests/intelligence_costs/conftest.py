"""A stage of a few lines, and the demo's."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.intelligence_costs.stage import DEMO, Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path, lines=DEMO) as stage:
        yield stage
