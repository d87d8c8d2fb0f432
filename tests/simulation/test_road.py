"""The real client over the simulated road: what each fault does to the charging system, and what the client says of it."""

from random import Random

import anyio
import pytest

from clients.http import Outbound, OutboundLimits
from clients.ocs.client import Ocs, OcsPool
from clients.ocs.link import OcsSettings
from registry.errors import OcsError
from tests.simulation.clock import SimClock
from tests.simulation.loop import SimLoop
from tests.simulation.process import Process
from tests.simulation.provider import ModelNetwork, Template
from tests.simulation.road import SimRoad
from tests.simulation.upstream_faults import WEIGHTS, WITHOUT_EFFECT, UpstreamFault, UpstreamFaults
from tests.world import NOON

WIRE = OcsSettings(url="http://ocs.sim.invalid/main/v1")
CERTAIN = {"refused", "code100"}
"""The client knows that nothing was sent, or that nothing was done."""
REFUSED = {"code3", "code6", "code14"}
"""The charging system said no."""


class Wire:
    """One replica's client, and the charging system behind it."""

    def __init__(self, seed: int = 1, fault: UpstreamFault | None = None) -> None:
        rng = Random(seed)
        self.loop = SimLoop(rng)
        self.provider = ModelNetwork(lambda: NOON + self.loop.time(), {8101: 5}, (Template(55010, "One", 30),))
        self.faults = UpstreamFaults(rng, 0.0 if fault is None else 1.0, WEIGHTS if fault is None else {fault: 1})
        road = SimRoad(self.loop, self.provider, Process(self.loop, "p"), self.faults)
        limits = OutboundLimits(total_seconds=WIRE.total_seconds)
        self.ocs: Ocs = OcsPool(Outbound(limits, transport=road), WIRE, SimClock(self.loop)).for_token("simulated-token")

    def draw(self, days: int) -> str | OcsError:
        """One eSIM: its ICCID, or how it went wrong."""

        async def call() -> str | OcsError:
            try:
                affected = await self.ocs.packages.affect_from_account(55010, 8101, validity_days=days)
            except OcsError as error:
                return error
            return affected.get("iccid", "")

        return self.loop.run_until_complete(call())

    def settle(self) -> None:
        """Let what is still on its way arrive."""

        self.loop.run_until_complete(anyio.sleep(4000))


@pytest.mark.cases
@pytest.mark.parametrize("fault", WEIGHTS)
def test_a_fault_has_the_effect_that_it_says_and_the_client_never_calls_an_unknown_outcome_certain(fault: UpstreamFault) -> None:
    for seed in range(20):
        wire = Wire(seed, fault)
        said = wire.draw(7)
        wire.settle()
        wire.loop.close()
        drawn = [entry.iccid for entry in wire.provider.log if entry.effect]
        assert len(drawn) == (0 if fault in WITHOUT_EFFECT else 1)
        if isinstance(said, str):
            assert fault in ("late_reply", "late_effect", "duplicate") and drawn == [said]
        elif fault in CERTAIN:
            assert said.before_execution and not said.outcome_unknown
        elif fault in REFUSED:
            assert not said.outcome_unknown
        else:
            assert said.outcome_unknown, (fault, said)


def test_a_duplicate_reply_names_the_esim_of_the_call_before() -> None:
    wire = Wire()
    first = wire.draw(7)
    wire.faults.only("duplicate")
    assert wire.draw(8) == first
    wire.loop.close()
    assert len({entry.iccid for entry in wire.provider.log}) == 2
