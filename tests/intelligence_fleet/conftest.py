"""The stage of these tests."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.intelligence_fleet.stage import Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage
