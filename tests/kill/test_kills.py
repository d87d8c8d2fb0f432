"""kill -9 at random moments and named points, with calls under way."""

import pytest

from tests.harness.tenant_stage import TenantStage
from tests.kill.campaign import Campaign

pytestmark = pytest.mark.long

SEED = 1
KILLS = {"sqlite": 5, "postgresql": 4}
"""`python3 ./run kill` has campaigns of 20 on either database, as many as it is told."""


async def test_killed_at_any_moment_no_key_draws_twice_and_no_esim_is_forgotten(own_stage: TenantStage) -> None:
    said: list[str] = []
    broken = await Campaign(own_stage, SEED, said.append).run(KILLS[own_stage.url.split(":")[0]])
    assert not broken, "\n".join([*broken, *said])
