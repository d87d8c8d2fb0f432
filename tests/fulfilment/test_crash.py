"""A paid order survives a crash at any point: another worker finishes it, or a person is told; never a second eSIM, never a silent loss."""

from contextlib import suppress

import pytest

from operations.storefronts.sales.order_fulfilment import Fulfilment
from registry.errors import StoreUnavailable
from tests.fulfilment.floor import Floor
from tests.fulfilment.mortal import Forgetful, Killed, Mortal
from tests.network_facts import MINUTE

MOST_COMMITS = 20


async def step_and_die(worker: Fulfilment) -> bool:
    """Whether the process died of it."""
    try:
        await worker.step()
    except (Killed, BaseExceptionGroup) as end:
        if isinstance(end, BaseExceptionGroup) and end.split(Killed)[1] is not None:
            raise
        return True
    return False


async def outlive(floor: Floor) -> None:
    """Others notice, find out, and finish: until nothing more is to be done."""
    await floor.mourn()
    await floor.work()
    await floor.reconcile(18 * MINUTE)
    await floor.work(4, every=MINUTE)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_that_dies_at_any_commit_of_a_delivery_loses_nothing(floor: Floor, after: bool) -> None:
    orders, died = list[str](), True
    for at in range(MOST_COMMITS):
        orders.append(await floor.paid())
        deps, _ = await floor.born(Mortal(floor.deps.store, at, after))
        died = await step_and_die(Fulfilment(deps, floor.shop.reports.append))
        await outlive(floor)
        assert await floor.is_settled_well(orders[-1]), (at, await floor.end(orders[-1]))
        if not died:
            break
    rows = [await floor.row(order) for order in orders]
    assert 4 <= len(orders) < MOST_COMMITS and not died
    ready = [row for row in rows if row.status == "ready"]
    assert (await floor.gone(), sorted(await floor.told())) == (len(ready), sorted(row.iccid or "" for row in ready))
    assert sum(floor.refunds()) == 1000 * sum(row.status == "failed" for row in rows)
    assert floor.draws() <= len(orders)
    assert len(await floor.letters("buyer@home.test")) == len(orders)


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_that_dies_at_any_commit_of_a_refund_gives_the_money_back_once(floor: Floor, after: bool) -> None:
    orders, died = list[str](), True
    for at in range(MOST_COMMITS):
        orders.append(await floor.paid())
        floor.strike(code=6)
        deps, _ = await floor.born()
        await Fulfilment(deps, floor.shop.reports.append).step()
        mortal, _ = await floor.born(Mortal(floor.deps.store, at, after))
        died = await step_and_die(Fulfilment(mortal, floor.shop.reports.append))
        floor.shop.world.sandbox.faults.clear()
        await outlive(floor)
        assert await floor.end(orders[-1]) == ("failed", "no_inventory", "done")
        assert sum(floor.refunds()) == 1000 * len(orders)
        if not died:
            break
    assert not died


async def test_a_store_that_is_away_when_the_esim_is_there_is_waited_for(floor: Floor) -> None:
    order = await floor.paid()
    deps, worker = await floor.born(Forgetful(floor.deps.store, {3}))
    with pytest.raises(StoreUnavailable):
        await worker.step()
    assert ((await floor.row(order)).status, await floor.gone()) == ("provisioning", 1)
    await worker.step()
    assert ((await floor.row(order)).status, floor.draws(), deps.replica) == ("ready", 1, "rpl_1")


@pytest.mark.cases
@pytest.mark.parametrize("away", range(6))
async def test_a_store_that_is_away_for_a_while_fails_no_order(floor: Floor, away: int) -> None:
    order = await floor.paid()
    _, worker = await floor.born(Forgetful(floor.deps.store, {away, away + 1}))
    for _ in range(4):
        with suppress(StoreUnavailable):
            await worker.step()
        await floor.work(0)
        floor.shop.world.clock.advance(125)
        await floor.born()
    await outlive(floor)
    assert (await floor.row(order)).status == "ready" and floor.draws() == 1
