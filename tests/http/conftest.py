"""The service with the test operations, and a caller of the pro tier."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from operations import health
from registry.catalogue import Catalogue, Toolset
from tests.http import notes
from tests.pages.site import Site, open_site
from tests.world import World, open_world

CATALOGUE = Catalogue([Toolset("system", "Health.", (health,)), Toolset("notes", "Notes.", (notes,))])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(tmp_path, CATALOGUE) as world:
        yield world


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[Site]:
    """The whole service with its pages."""
    async with open_site(tmp_path) as site:
        yield site


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
