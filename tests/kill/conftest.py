"""Two stages: one for each engine."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import NO_POSTGRES
from tests.kill.network import network
from tests.kill.stage import Stage, open_stage


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage]:
    async with network(tmp_path) as upstream, open_stage(tmp_path, upstream, postgres=request.param == "postgres") as made:
        if made is None:
            pytest.skip(NO_POSTGRES)
        yield made
