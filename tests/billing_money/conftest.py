"""The stage, with an account of a test's own and with one of the simulated processor."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.billing_money.stage import Stage, open_stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    """What happens in the account is what a test tells."""
    async with open_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Stage]:
    """What happens in the account happens at the simulated processor."""
    async with open_stage(tmp_path, connected=True) as stage:
        yield stage
