"""The stages of these tests."""

from tests.changes.stage import open_change_stage
from tests.stage import opened, opened_on_both

stage = opened(open_change_stage)
both = opened_on_both(open_change_stage)
"""The same on each database."""
