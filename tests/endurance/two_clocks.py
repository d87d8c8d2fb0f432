"""Two replicas of the service on one database, whose wall clocks are ten minutes apart."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.databases import migrated_sqlite
from tests.network_facts import ACCOUNT
from tests.world import Credentials, World, open_world

APART = 600.0


@dataclass(slots=True)
class Pair:
    """The one whose time is right, the other one, and an operator who calls both."""

    right: World
    wrong: World
    me: Credentials
    doors: tuple[httpx.AsyncClient, httpx.AsyncClient]

    def sent(self, method: str) -> int:
        """How many calls of a method reached the network that both have."""
        return sum(call.method == method for call in self.right.sandbox.calls)


@asynccontextmanager
async def open_pair(
    folder: Path, url: str | None, ahead: float, limits: Limits | None = None, tier: Tier = Tier.ENTERPRISE
) -> AsyncGenerator[Pair]:
    """Over a new SQLite file, or over the migrated database at `url`; the other's clock is ahead by so much, or behind."""
    url, limits = url or migrated_sqlite(folder), limits or Limits(burst_enabled=False)
    async with (
        open_world(folder, CATALOGUE, url=url, limits=limits) as right,
        open_world(folder, CATALOGUE, url=url, limits=limits, sandbox=right.sandbox, payments=right.payments, replica=1) as wrong,
    ):
        wrong.clock.wall += ahead
        me = await right.caller(tier, mode="managed", account=ACCOUNT)
        async with right.client(me.secret) as first, wrong.client(me.secret) as second:
            yield Pair(right, wrong, me, (first, second))
        assert right.faults == wrong.faults == []
