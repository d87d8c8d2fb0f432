"""The webhook and the connectivity operations over one world, with all three ways in."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from operations.bridge import notifications
from operations.connectivity import events, intents
from registry.catalogue import Catalogue, Toolset
from registry.ports import SharedSecrets
from tests.bridge.pushing import PUSH_SECRET
from tests.network_facts import INTERNAL
from tests.world import World, open_world

BRIDGE = Catalogue(
    [Toolset("bridge", "What the network tells.", (notifications,)), Toolset("connectivity", "Intents and events.", (intents, events))]
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(tmp_path, BRIDGE, secrets=SharedSecrets(internal=INTERNAL, bridge=PUSH_SECRET)) as world:
        yield world
        assert world.faults == []


@pytest.fixture
async def http(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client((await world.caller()).secret) as client:
        yield client


@pytest.fixture
async def bridge(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client(INTERNAL) as client:
        yield client


@pytest.fixture
async def upstream(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client() as client:
        yield client
