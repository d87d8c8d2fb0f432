"""The stages of these tests."""

from tests.contract.stage import open_service_house
from tests.fleet.stage import open_read_model_stage
from tests.stage import opened, opened_on_both

stage = opened(open_read_model_stage)
both = opened_on_both(open_read_model_stage)
"""The same on each database."""
house = opened(open_service_house, faultless=True)
