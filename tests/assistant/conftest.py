"""A staged operator with a fleet and a model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.assistant.stage import Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage
