"""kill -9 at random moments and named points, with calls under way (security.md 1a 8)."""

import pytest

from tests.kill.campaign import Campaign
from tests.kill.stage import Stage

pytestmark = pytest.mark.anyio
KILLS = {"sqlite": 20, "postgresql": 13}


async def test_killed_at_any_moment_no_key_draws_twice_and_no_esim_is_forgotten(stage: Stage) -> None:
    said: list[str] = []
    broken = await Campaign(stage, 1, said.append).run(KILLS[stage.url.split(":")[0]])
    assert broken == [], said
