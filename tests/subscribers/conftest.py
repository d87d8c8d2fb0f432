"""A staged operator with a line in use."""

from tests.stage import opened
from tests.subscribers.staged import open_line_stage

stage = opened(open_line_stage)
