"""The stages of these tests."""

from tests.intelligence_fleet.stage import open_fleet_stage
from tests.stage import opened

stage = opened(open_fleet_stage)
few = opened(open_fleet_stage, few=True)
"""Twenty-three lines."""
