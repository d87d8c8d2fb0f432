"""One house for each file of contract tests: every test stages organisations of its own."""

from collections.abc import AsyncGenerator

import pytest

from tests.contract.stage import ServiceHouse, open_service_house


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServiceHouse]:
    async with open_service_house(tmp_path_factory.mktemp("house")) as house:
        yield house
        assert house.world.faults == []


@pytest.fixture(scope="module")
async def twin(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServiceHouse]:
    """A second house: equal stages in both have equal numbers in equal networks."""
    async with open_service_house(tmp_path_factory.mktemp("twin")) as house:
        yield house
        assert house.world.faults == []
