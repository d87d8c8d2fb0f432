"""The stages of these tests."""

from tests.fleet.stage import open_fleet_stage
from tests.stage import opened, opened_on_both

stage = opened(open_fleet_stage)
both = opened_on_both(open_fleet_stage)
"""The same on each database."""
