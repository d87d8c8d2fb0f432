"""A stage of a few lines, and the demo's."""

from tests.intelligence_costs.stage import DEMO, open_costs_stage
from tests.stage import opened

stage = opened(open_costs_stage)
demo = opened(open_costs_stage, lines=DEMO)
