"""A staged operator with a fleet and a model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.assistant.stage import AssistantStage, open_assistant_stage
from tests.world import SettableClock, new_sandbox


@pytest.fixture
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[AssistantStage]:
    """With a small fleet, or with the one of the demo."""
    large = getattr(request, "param", "small") == "large"
    async with open_assistant_stage(tmp_path, sandbox=new_sandbox(SettableClock()) if large else None) as stage:
        yield stage
