"""Stages on either engine: most tests share one charging system, whose log they read from where it stood when they began."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import NO_POSTGRES
from tests.kill.network import Network, network
from tests.kill.servers import Nursery, nursery
from tests.kill.stage import Stage, open_stage

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
async def shared_network(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Network]:
    async with network(tmp_path_factory.mktemp("network")) as made:
        yield made


@pytest.fixture(scope="session")
async def shared_nursery(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Nursery]:
    async with nursery(tmp_path_factory.mktemp("nursery")) as made:
        yield made


@pytest.fixture
async def own_network(tmp_path: Path) -> AsyncGenerator[Network]:
    async with network(tmp_path) as made:
        yield made


@pytest.fixture(params=ENGINES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path, shared_network: Network, shared_nursery: Nursery) -> AsyncGenerator[Stage]:
    async with open_stage(tmp_path, shared_network, shared_nursery, postgres=request.param == "postgres") as made:
        if made is None:
            pytest.skip(NO_POSTGRES)
        yield made


@pytest.fixture(params=ENGINES)
async def own_stage(request: pytest.FixtureRequest, tmp_path: Path, own_network: Network, shared_nursery: Nursery) -> AsyncGenerator[Stage]:
    """With a stock that nobody has drawn from."""
    async with open_stage(tmp_path, own_network, shared_nursery, postgres=request.param == "postgres") as made:
        if made is None:
            pytest.skip(NO_POSTGRES)
        yield made
