"""The stages of these tests."""

from tests.intelligence_lines.stage import FEWER, MIDDLE, open_usage_stage
from tests.stage import opened

stage = opened(open_usage_stage)
"""Few lines."""
half = opened(open_usage_stage, lines=FEWER)
"""Twenty-eight lines."""
fleet = opened(open_usage_stage, lines=MIDDLE)
"""Fifty-six lines."""
