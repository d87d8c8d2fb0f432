"""A bench of operations that make money due."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from tests.contract.stage import open_service_house
from tests.databases import migrated_sqlite
from tests.limits import purchases
from tests.limits.holders import LimitBench
from tests.registry.bench import BENCH_SECRETS, StubSessions
from tests.stage import opened, opened_on_both
from tests.world import open_world

PURCHASES = Catalogue([Toolset("purchases", "Purchases.", (purchases,))])


@pytest.fixture
def database_url(database_url: str | None, tmp_path: Path) -> str:
    """The address of an empty database at HEAD."""
    return database_url or migrated_sqlite(tmp_path)


@asynccontextmanager
async def open_limit_bench(folder: Path, url: str | None = None) -> AsyncGenerator[LimitBench]:
    limits = Limits(burst_enabled=False)
    async with open_world(folder, PURCHASES, url=url, limits=limits, secrets=BENCH_SECRETS, sessions=StubSessions()) as world:
        yield LimitBench(world)


house = opened(open_service_house, faultless=True)
bench: Callable[..., LimitBench] = opened_on_both(open_limit_bench)
