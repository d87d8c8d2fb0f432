"""What all tests of the network composites stand on."""

from tests.intelligence_network.stage import open_diagnosis_stage
from tests.stage import opened

stage = opened(open_diagnosis_stage)
