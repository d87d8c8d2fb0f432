"""Callers who hang up at the worst moment: what was done is paid for, recorded and replayed."""

import asyncio
from contextlib import suppress

import pytest

from operations.catalogue import CATALOGUE
from registry.call import Call, Reply
from registry.caller import Tier
from registry.limits import Limits
from registry.policy import quota_period
from storage.quota import read_quota_used
from tests.stage import opened
from tests.world import Credentials, World, open_world

ISSUE = CATALOGUE.operations["create_connectivity_intent"]
READ = CATALOGUE.operations["list_connectivity_intents"]


world = opened(open_world, CATALOGUE, limits=Limits(burst_enabled=False))


async def call(world: World, owner: Credentials, key: str | None) -> Reply:
    """A read, or with a key an order, as the MCP door makes it."""
    caller = await world.pipeline.directory.by_key(owner.secret, world.clock.now())
    arguments: dict[str, object] = {"plan": "test_eu_1gb"} if key else {"limit": 100}
    return await world.pipeline.run(Call(ISSUE if key else READ, "mcp", "req_x", caller=caller, arguments=arguments, idempotency_key=key))


async def spent(world: World, owner: Credentials) -> int:
    """Calls charged to the organisation, without those that were only leased."""
    period = quota_period(world.clock.now())
    leased = world.blocks.unspent(owner.organisation, period)
    return await world.store.read(read_quota_used, organisation=owner.organisation, period=period.name) - leased


@pytest.mark.long
async def test_an_order_whose_caller_hung_up_is_paid_for_and_replayed(world: World) -> None:
    for ticks in range(6):
        owner = await world.caller(Tier.FREE)
        await call(world, owner, None)  # from here on calls are paid from a leased block
        for number in range(20):
            order = asyncio.create_task(call(world, owner, f"k{number}"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            order.cancel()
            with suppress(asyncio.CancelledError):
                await order
        drawn = (await call(world, owner, None)).body.count(b'"cni_')
        assert await spent(world, owner) >= drawn + 2
        for number in range(20):
            await call(world, owner, f"k{number}")
        assert (await call(world, owner, None)).body.count(b'"cni_') == 20
