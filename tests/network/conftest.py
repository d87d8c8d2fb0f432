"""What all tests of the network operations stand on."""

from tests.network.stage import open_network_stage
from tests.stage import opened

stage = opened(open_network_stage)
