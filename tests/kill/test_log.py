"""The log that a run is judged by: what the network may have forgotten before anybody read it is said, and blamed on nobody."""

import pytest

from tests.harness import network_process
from tests.harness.network_process import NetworkProcess


async def test_log_more_calls_than_the_network_remembers_is_said(own_network: NetworkProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_process, "LOGGED", 3)
    await own_network.read_log()
    for _ in range(3):
        await own_network.ocs.zones.detailed_location_zones(network_process.FJORD)
    await own_network.read_log()
    for _ in range(4):
        await own_network.ocs.zones.detailed_location_zones(network_process.FJORD)
    with pytest.raises(AssertionError, match="4 calls since the log was read, and the network remembers 3: read it more often"):
        await own_network.read_log()
