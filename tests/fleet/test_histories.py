"""Seeded histories: after whatever happened, a finished sync is what the network is."""

from collections import Counter
from random import Random

import anyio
import pytest

from simulators.network.faults import NetworkFault
from storage.upstream_connections import set_connection
from tests.fleet.histories import FleetHistory, run_history
from tests.fleet.history_stage import HistoryStage, build_history_stage
from tests.simulation.loop import SimLoop

HISTORIES = 12
"""`python -m tests.fleet.histories --count 2000` plays as many as it is told."""
PER_TEST = 12


@pytest.fixture(scope="module")
def stage() -> HistoryStage:
    return build_history_stage(small=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST), ids=lambda first: f"seeds-{first}-to-{first + PER_TEST - 1}")
def test_after_any_history_the_model_is_what_the_network_is(stage: HistoryStage, first: int) -> None:
    verdicts = [run_history(stage, seed) for seed in range(first, first + PER_TEST)]
    assert [(f"python -m tests.fleet.histories --seed {each.seed}", *each.broken) for each in verdicts if each.broken] == []


@pytest.mark.long
def test_one_seed_has_one_history(stage: HistoryStage) -> None:
    assert run_history(stage, 0).told == run_history(stage, 0).told


def test_a_lease_is_held_as_long_as_a_listing_takes(stage: HistoryStage) -> None:
    """It takes longer than a lease; another worker must not begin it meanwhile."""
    rng = Random(1)
    loop = SimLoop(rng)
    history = FleetHistory(stage, loop, rng, 0)
    for other in history.tenants[1:]:  # one fleet, so that a worker has nothing to do
        stage.disk.transact(set_connection, organisation=other.organisation, mode=None, account_id=None, own_token=None)
    history.world.row_cap = 2
    history.network.faults.add(NetworkFault("listSubscriber", delay=9.0, times=None))

    async def play() -> None:
        for worker in history.workers:
            await worker.replica.renew()
        for _ in range(60):
            for worker in history.workers:
                worker.begin_step()
            await anyio.sleep(2)

    loop.run_until_complete(play())
    for worker in history.workers:
        worker.replica.process.crash()
    loop.run_until_complete(anyio.sleep(1))
    loop.close()
    lists = [call for call in history.network.calls if call.method == "listSubscriber"]
    whole = Counter(repr(call.payload) for call in lists if "accountId" in repr(call.payload))
    assert lists[-1].at - lists[0].at > 60
    assert (whole, history.broken) == ({"{'accountId': 8101}": 1}, [])
