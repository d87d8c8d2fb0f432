"""A staged operator; the tests of a fault share nothing."""

from tests.faults.stage import open_faults_stage
from tests.stage import opened

stage = opened(open_faults_stage)
