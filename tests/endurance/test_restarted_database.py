"""PostgreSQL is stopped as by a crash while calls are under way, and started again, or is a standby: the service goes on by itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.databases import required_database
from tests.harness.killable_servers import server_forks
from tests.harness.network_process import network_process
from tests.harness.postgres_processes import OwnPostgres, own_postgres
from tests.harness.tenant_stage import TenantStage, tenant_stage_on
from tests.kill.campaign import finish_campaign
from tests.kill.errands import Callers, KilledErrand, bearer_of, inventory_errand

pytestmark = pytest.mark.postgres
CALLERS, ENOUGH, FRESH, REST = 3, 9, 4, 0.05


@dataclass(slots=True)
class Load:
    """Callers who hardly rest: new eSIMs, their keys again, and reads. What they were answered, counted since somebody last looked."""

    stage: TenantStage
    callers: Callers
    errands: list[KilledErrand] = field(default_factory=list[KilledErrand])
    answers: Counter[int] = field(default_factory=Counter[int])
    most: int = 0
    ended: bool = False

    async def call(self, http: httpx.AsyncClient) -> None:
        tenant = self.stage.tenants[0]
        while not self.ended:
            if len(self.errands) < self.most:
                self.errands.append(inventory_errand(self.stage.network, tenant, f"order-{len(self.errands)}"))
            for errand in self.errands[-1:] + self.errands[:1]:
                said = await self.callers.issue(http, errand)
                assert said is not None, "the server hung up"
                self.answers[said.status_code] += 1
            read = await http.get("/v1/connectivity/intents", headers=bearer_of(tenant))
            self.answers[read.status_code] += 1
            await asyncio.sleep(REST)

    async def seen(self, *statuses: int) -> Counter[int]:
        """What was answered until there were enough of these from now on."""
        self.most = len(self.errands) + FRESH  # what was answered once is answered so for ever
        self.answers.clear()
        async with asyncio.timeout(60):
            while sum(self.answers[status] for status in statuses) < ENOUGH:
                await asyncio.sleep(0.01)
        return self.answers.copy()

    async def healed(self) -> None:
        """Until calls are answered again, and then no other answer comes."""
        await self.seen(200)
        answers = await self.seen(200)
        assert answers[503] == answers[500] == 0, answers


@asynccontextmanager
async def loaded(tmp_path: Path) -> AsyncGenerator[tuple[OwnPostgres, Load, httpx.AsyncClient]]:
    """A server under load on a database of its own; afterwards the ledgers are held against each other."""
    with required_database(own_postgres()) as postgres:
        async with (
            network_process(tmp_path) as upstream,
            server_forks(tmp_path) as born_by,
            tenant_stage_on(postgres.url, tmp_path, upstream, born_by) as stage,
        ):
            await stage.servers.start()
            load = Load(stage, Callers(upstream))
            async with stage.client() as http:
                calling = asyncio.gather(*(load.call(http) for _ in range(CALLERS)))
                await load.seen(200)
                yield postgres, load, http
                load.ended = True
                await calling
            await stage.servers.kill()
            assert await finish_campaign(stage, load.callers, load.errands) == []
            assert {errand.decided for errand in load.errands} <= {"ok", "fail"}


@pytest.mark.long
async def test_calls_are_refused_while_the_database_is_down_or_a_standby_and_none_draws_twice(tmp_path: Path) -> None:
    async with loaded(tmp_path) as (postgres, load, http):
        await asyncio.to_thread(postgres.stop_at_once)
        down = await load.seen(503)
        assert down[500] == 0
        await asyncio.to_thread(postgres.start)
        await load.healed()
        await asyncio.to_thread(postgres.stop_at_once)
        await load.seen(503)
        await asyncio.to_thread(postgres.start_as_standby)
        await until_ready_says(http, ["database_read_only"])
        standby = await load.seen(503)
        assert standby[500] == 0, standby
        await asyncio.to_thread(postgres.promote)
        await until_ready_says(http, [])
        await load.healed()


async def until_ready_says(http: httpx.AsyncClient, reasons: list[str]) -> None:
    async with asyncio.timeout(60):
        while (await http.get("/health/ready")).json()["reasons"] != reasons:
            await asyncio.sleep(0.05)
