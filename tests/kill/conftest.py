"""Stages on either engine: most tests share one charging system, whose log they read from where it stood when they began.

Each of these tests is played on one engine, every engine by several of them; tests/kill/test_kills.py plays all of it on both.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import NO_POSTGRES
from tests.harness.killable_servers import ServerForks, server_forks
from tests.harness.network_process import NetworkProcess, network_process
from tests.harness.tenant_stage import TenantStage, open_tenant_stage
from tests.stage import opened

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
async def shared_network(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[NetworkProcess]:
    async with network_process(tmp_path_factory.mktemp("network")) as made:
        yield made


@pytest.fixture(scope="session")
async def shared_forks(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServerForks]:
    async with server_forks(tmp_path_factory.mktemp("forks")) as made:
        yield made


own_network = opened(network_process)


@pytest.fixture(params=ENGINES)
async def stage(
    request: pytest.FixtureRequest, tmp_path: Path, shared_network: NetworkProcess, shared_forks: ServerForks
) -> AsyncGenerator[TenantStage]:
    async with open_tenant_stage(tmp_path, shared_network, shared_forks, postgres=request.param == "postgres") as made:
        if made is None:
            pytest.skip(NO_POSTGRES)
        yield made


@pytest.fixture(params=ENGINES)
async def own_stage(
    request: pytest.FixtureRequest, tmp_path: Path, own_network: NetworkProcess, shared_forks: ServerForks
) -> AsyncGenerator[TenantStage]:
    """With a stock that nobody has drawn from."""
    async with open_tenant_stage(tmp_path, own_network, shared_forks, postgres=request.param == "postgres") as made:
        if made is None:
            pytest.skip(NO_POSTGRES)
        yield made
