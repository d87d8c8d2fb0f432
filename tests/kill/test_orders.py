"""kill -9 while a paid order is fulfilled, and what the next process makes of it: one eSIM, or none and the money owed back.

The processor is not here: that a refund is sent once, whatever dies, is tried in tests/simulation and tests/fulfilment.
"""

import asyncio

import pytest

from tests.harness.kill_points import Point
from tests.harness.tenant_stage import TenantStage
from tests.kill.campaign import CAMPAIGN_HELD_SECONDS, LEASE_OVER, PAUSES
from tests.kill.orders import PaidOrder, open_for_business, paid_order
from tests.network_facts import DRAW

TEMPLATES = "listPrepaidPackageTemplate"
CHORE_LEASE = 70
"""Seconds: a chore that its process died in is anybody's again."""
AFTERWARDS = {
    Point("before send", DRAW): ("failed", "owed", "failed"),
    Point("after send", DRAW): ("ready", None, "issued"),
    Point("after reply", DRAW): ("ready", None, "issued"),
    Point("before send", TEMPLATES): ("ready", None, "issued"),
}
"""Status, refund and row of the ledger in the end. The last was killed before anything was committed."""
STATES = "select o.id, o.status, o.refund, i.state, o.iccid from storefront_order o left join issuance i on i.key = o.id"
OPEN = "select count(*) from storefront_order where status in ('paid', 'provisioning', 'needs_review')"


@pytest.mark.long
@pytest.mark.parametrize("stage", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
async def test_a_paid_order_survives_a_kill_at_any_point_and_is_finished_by_the_next_process(stage: TenantStage) -> None:
    network, servers, before = stage.network, stage.servers, await stage.network.count(DRAW)
    shop, orders = await open_for_business(stage), list[PaidOrder]()
    for point in AFTERWARDS:
        orders.append(await paid_order(stage, shop))
        await killed_at(stage, point)
        await network.heal()
        await network.look()
        await network.advance(CHORE_LEASE)
    await servers.start()
    for seconds in (LEASE_OVER, *PAUSES):
        await network.advance(seconds)
        await servers.settled(network.clock.ahead)
        if not stage.number(OPEN):
            break
    await network.look()
    await servers.kill()
    ended = {id: (status, refund, ledger) for id, status, refund, ledger, _ in stage.rows(STATES)}
    assert [ended[order.id] for order in orders] == list(AFTERWARDS.values())
    held = {id: iccid for id, _, _, _, iccid in stage.rows(STATES)}
    given = {order.id: [drawn.iccid for drawn in network.given[order.asks]] for order in orders}
    assert given == {order.id: [] if held[order.id] is None else [held[order.id]] for order in orders}
    assert await network.count(DRAW) == before + sum(iccid is not None for iccid in held.values())


async def killed_at(stage: TenantStage, point: Point) -> None:
    """Nobody calls: the server finds the order by itself, and dies."""
    network, servers = stage.network, stage.servers
    if point.place != "after send":
        await servers.start(point)
        await servers.died()
        return
    sent = await network.count(DRAW)
    await network.meet(method=DRAW, delay=CAMPAIGN_HELD_SECONDS)
    await servers.start()
    async with asyncio.timeout(60):
        while await network.count(DRAW) == sent:
            await asyncio.sleep(0.002)
    await servers.kill()
