"""Two real servers on one database let no more through together than one may, and a portion of each."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clients.ocs.client import reserved_places
from registry.caller import Tier
from tests.databases import NO_POSTGRES, migrated_postgres, migrated_sqlite
from tests.fuzz.limits import PLACES, holding, rate_bound, settings_of, try_places, try_rate
from tests.fuzz.loop import key_in
from tests.harness.processes import running

RATE, SIZE, SECONDS = 5.0, 20, 0.6


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            (tmp_path / "data").mkdir()
            yield migrated_sqlite(tmp_path / "data")
            return
        url = stack.enter_context(migrated_postgres())
        if url is None:
            pytest.skip(NO_POSTGRES)
        yield url


@pytest.mark.long
def test_two_servers_on_one_database_keep_the_rate_and_the_places_of_one(address: str, tmp_path: Path) -> None:
    async def trial() -> None:
        async with holding() as (system, port):
            settings = settings_of(port, RATE, SIZE) | ({} if address.startswith("sqlite") else {"SERVICE_DATABASE_URL": address})
            with ExitStack() as stack:
                both = [stack.enter_context(running(tmp_path / "data", settings, bare=True)) for _ in range(2)]
                ports = [urlsplit(server.base_url).port or 0 for server in both]
                paced = await try_rate(ports, await key_in(address, "paced", Tier.PRO), SECONDS)
                placed = await try_places(ports, await key_in(address, "placed", Tier.ENTERPRISE), SECONDS, system)
        assert SIZE <= paced.let_through <= rate_bound(RATE, SIZE, paced.seconds, 2)
        assert placed.most_under_way == PLACES - reserved_places(PLACES)  # the others are for calls that issue

    asyncio.run(trial())
