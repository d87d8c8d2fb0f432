"""The service with the test operations, and a caller of the pro tier."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from operations import system
from registry.catalogue import Catalogue, Toolset
from tests.http import notes
from tests.pages.site import open_site
from tests.stage import opened
from tests.world import World, open_world

HTTP_OPERATIONS = Catalogue([Toolset("system", "Health.", (system,)), Toolset("notes", "Notes.", (notes,))])


world = opened(open_world, HTTP_OPERATIONS)


site = opened(open_site)
"""The whole service with its pages."""


@pytest.fixture
async def anonymous(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    async with world.client() as client:
        yield client


@pytest.fixture
async def http(world: World) -> AsyncGenerator[httpx.AsyncClient]:
    """A client with a key of the pro tier."""
    caller = await world.caller()
    async with world.client(caller.secret) as client:
        yield client
