"""The whole service, somebody of the pro tier who bills, and somebody of another organisation."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from operations.catalogue import CATALOGUE
from registry.limits import Limits, Tier
from tests.invoices.billing import Billing
from tests.world import World, open_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(tmp_path, CATALOGUE, limits=Limits(burst_enabled=False)) as world:
        yield world
        assert world.faults == []


@pytest.fixture
async def bill(world: World) -> AsyncGenerator[Billing]:
    """Somebody who bills, with no account at the payment processor."""
    caller = await world.caller(Tier.PRO)
    async with world.client(caller.secret) as http:
        yield Billing(world, caller, http)


@pytest.fixture
async def stranger(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client((await world.caller(Tier.ENTERPRISE)).secret) as http:
        yield http
