"""Orders are in flight together, no faster than an organisation may write; who stood still does nothing to what it lost."""

import anyio
import anyio.lowlevel
import pytest

from operations.storefronts.sales.order_fulfilment import ORDERS_AT_ONCE, Fulfilment
from registry.limits import Limits
from storage.order_queue import ORDER_LEASE_MS, claim_order
from tests.fulfilment.floor import Floor
from tests.fulfilment.test_stock import sold
from tests.issuance.road import RoadGate
from tests.network_facts import DRAW

LEASE = ORDER_LEASE_MS / 1000
LOOK = "listSubscriber"


class Crowd(RoadGate):
    """Holds requests, and knows how many it holds."""

    held = 0

    async def pass_through(self) -> None:
        self.held += 1
        await super().pass_through()


async def until(gate: Crowd, held: int) -> None:
    """So many requests wait at the gate, and no more come by themselves."""
    with anyio.fail_after(60):
        while gate.held < held:
            await anyio.lowlevel.checkpoint()
    for _ in range(50):
        await anyio.lowlevel.checkpoint()
    assert gate.held == held


async def test_eight_orders_of_an_organisation_are_drawn_at_once_and_ten_in_a_second(floor: Floor) -> None:
    await sold(floor, 13)
    gate = floor.shop.road.gates[DRAW] = Crowd()
    async with anyio.create_task_group() as group:
        group.start_soon(floor.shop.worker.step)
        await until(gate, ORDERS_AT_ONCE)
        gate.open.set()
    assert (floor.draws(), ORDERS_AT_ONCE) == (Limits().upstream_writes_per_second, 8)
    await floor.work(1)
    assert floor.draws() == 10
    await floor.work(1, every=1)
    assert (floor.draws(), await floor.gone(), len(await floor.told())) == (13, 13, 13)


async def test_a_worker_that_stood_still_before_the_draw_has_lost_the_order_to_another(floor: Floor) -> None:
    order = await floor.paid()
    _, slow = await floor.born()
    gate = floor.shop.road.gates[LOOK] = Crowd()
    async with anyio.create_task_group() as group:
        group.start_soon(slow.step)
        await until(gate, 1)
        del floor.shop.road.gates[LOOK]
        other = floor.shop.another_process()
        await floor.work(1, every=LEASE, worker=Fulfilment(other, floor.shop.reports.append))
        assert (await floor.row(order)).status == "ready"
        gate.open.set()
    assert ((await floor.row(order)).status, floor.draws(), await floor.gone(), floor.shop.reports) == ("ready", 1, 1, [])


async def test_an_order_whose_draw_takes_longer_than_its_lease_is_sent_by_nobody_else(floor: Floor) -> None:
    order = await floor.paid()
    _, slow = await floor.born()
    gate = floor.shop.road.gates[DRAW] = Crowd(back=True)
    async with anyio.create_task_group() as group:
        group.start_soon(slow.step)
        await until(gate, 1)
        await floor.work(2, every=LEASE + 1)
        assert (await floor.row(order)).status in ("provisioning", "needs_review")
        gate.open.set()
    assert ((await floor.row(order)).status, floor.draws(), len(await floor.told())) == ("ready", 1, 1)


@pytest.mark.parametrize("at", [LOOK, DRAW])
async def test_a_chore_that_is_ended_in_the_middle_ends_no_draw_that_was_sent(floor: Floor, at: str) -> None:
    order = await floor.paid()
    gate = floor.shop.road.gates[at] = Crowd()
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(until_held, gate, scope)
            await floor.shop.worker.step()
    assert ((await floor.row(order)).status, floor.draws(), floor.refunds()) == ("ready", 1, [])


async def until_held(gate: Crowd, scope: anyio.CancelScope) -> None:
    """End it when it waits at the gate, which opens a moment later."""
    await until(gate, 1)
    scope.cancel()
    gate.open.set()


async def test_pages_that_nobody_paid_keep_no_paid_order_waiting(on_both: Floor) -> None:
    floor, store = on_both, on_both.deps.store
    unpaid = {(await floor.shop.begin()).order for _ in range(3)}
    floor.shop.world.clock.advance(1000)
    paid = await floor.paid()
    of, now_ms = floor.shop.me.organisation, int(floor.shop.world.clock.now() * 1000)
    taken = [await store.write(claim_order, organisation=of, token=f"lse_{turn}", now_ms=now_ms) for turn in range(5)]
    ids = [row.id for row in taken if row is not None]
    assert (ids[0], set(ids[1:]), taken[4]) == (paid, unpaid, None)
