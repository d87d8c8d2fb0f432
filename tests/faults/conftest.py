"""A staged operator; the tests of a fault share nothing."""

from tests.faults.stage import open_stage
from tests.stage import opened

stage = opened(open_stage)
