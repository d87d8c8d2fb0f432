"""No agent does more than the worst case of its key, and that is not far above what one can do."""

import pytest

from tests.limits.agent_days import REACHED, hold_agent_days

AGENT_DAYS = 40
"""`python -m tests.limits.agent_days --count 10000` lives more of them."""
NEAR_SHARE = 0.9


@pytest.mark.long
def test_adversarial_days_stay_below_the_shown_worst_case() -> None:
    hold_agent_days(AGENT_DAYS)


@pytest.mark.long
def test_9_of_10_adversarial_days_come_near_the_shown_worst_case() -> None:
    reached = hold_agent_days(AGENT_DAYS, same=True)  # of forty days that nobody chose more than one in ten can miss it
    assert len(reached) >= AGENT_DAYS / 4
    assert sum(share >= REACHED for share in reached) >= NEAR_SHARE * len(reached), sorted(reached)
