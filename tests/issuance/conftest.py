"""A stage for each test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.issuance.stage import Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage
