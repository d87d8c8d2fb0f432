"""kill -9 at steps of each kind between a request and its answer: exactly one execution, and one answer."""

import pytest

from tests.approvals.kills import EVERY_KILL, kill_all
from tests.harness.tenant_stage import TenantStage
from tests.kill.conftest import shared_forks, shared_network, stage

FIXTURES = (shared_forks, shared_network, stage)
STRIDE = 3
"""`python -m tests.approvals.main` kills at every step."""


@pytest.mark.long
@pytest.mark.parametrize("stage", ["sqlite"], indirect=True)
async def test_killed_at_each_third_step_what_was_approved_is_executed_once(stage: TenantStage) -> None:
    assert len(EVERY_KILL) >= 20
    assert await kill_all(stage, EVERY_KILL[::STRIDE]) == []
