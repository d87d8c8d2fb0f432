"""A service over a planted network, its clock at the network's start."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

import pytest

from benchmarks.intelligence_ask import Asker
from benchmarks.intelligence_reference import Reference
from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from simulators.network.simulated_network import SimulatedNetwork
from tests.sandbox.planted import MIDNIGHT, original, planted
from tests.world import no_sleep, open_world
from transports.upstream import SIMULATED_OCS_TOKEN


class Measured(NamedTuple):
    """Who asks, and what is true."""

    ask: Asker
    world: Reference


@pytest.fixture(scope="module")
async def measured(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Measured]:
    """All lines of the first reseller, by a token of its own; for all tests of a file, which only read, since the first question about a
    fleet has to read all of it.
    """
    folder = tmp_path_factory.mktemp("measured")
    sandbox = SimulatedNetwork(original().copy(), wall=lambda: float(MIDNIGHT), sleep=no_sleep)
    async with open_world(folder, CATALOGUE, sandbox=sandbox, limits=Limits(burst_enabled=False)) as world:
        world.clock.wall = float(MIDNIGHT)
        caller = await world.caller(Tier.PRO, mode="own", token=SIMULATED_OCS_TOKEN)
        async with world.client(caller.secret) as http:
            yield Measured(Asker(http), Reference(planted()))
