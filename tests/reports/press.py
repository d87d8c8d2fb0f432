"""Reports that lie in the store as if a schedule had made them, and their links."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import sqlalchemy as sa

from operations.intelligence import schedule_reports, schedules, shared_reports
from operations.intelligence.reports.sheet import Sheet
from operations.secret_tokens import new_secret_token, secret_digest
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from simulators.network.simulated_network import SimulatedNetwork
from storage.engine.sql import Command, Connection
from storage.schedules import IntelligenceReportTable, NewSchedule, insert_schedule
from tests.world import Credentials, World, open_world
from transports.app import dead_link_page
from transports.http.asgi import Receive, Scope, Send
from transports.http.door import InnerApplication

SHARES = Catalogue([Toolset("intelligence", "Reports.", (schedules, schedule_reports, shared_reports))])
REPORT = IntelligenceReportTable.table
SHARE = "/v1/intelligence/share"
METHOD = "Status, packages and last registration of each line, as the charging system tells them."
FINDING: dict[str, Any] = {
    "generated_at": "2027-01-15T12:00:00Z",
    "sampled": 118,
    "of": 120,
    "method": METHOD,
    "incomplete": None,
    "data": {"secret": "kept with its owner"},
}
INSERT = Command(sa.insert(REPORT))


def insert_report(connection: Connection, *, row: dict[str, Any]) -> None:
    connection.run(INSERT, **row)


@dataclass(frozen=True, slots=True)
class Link:
    """A schedule and the link that was told once."""

    schedule: str
    token: str


@dataclass(slots=True)
class Press:
    """A service, and somebody who shares reports."""

    world: World
    caller: Credentials
    public: httpx.AsyncClient

    async def link(self, sheet: Sheet | None = None, *, composite: str = "fleet_health", **told: Any) -> Link:
        """A schedule with a link, and its first report where there is a sheet."""
        ids, now = self.world.ids, self.world.clock.now()
        made = Link(ids.new("sch_"), new_secret_token(ids))
        schedule = NewSchedule(
            id=made.schedule,
            organisation=self.caller.organisation,
            composite=composite,
            input="{}",
            cron="0 6 * * *",
            timezone="UTC",
            endpoint=None,
            share_digest=secret_digest(made.token),
            created_by=self.caller.person,
            next_ms=int(now * 1000) + 1,
            created=int(now),
        )
        await self.world.store.write(insert_schedule, schedule=schedule, endpoint=None)
        if sheet is not None:
            await self.report(made, sheet, **told)
        return made

    async def report(self, link: Link, sheet: Sheet, *, state: str = "done", **told: Any) -> None:
        """One more report of a schedule."""
        body = orjson.dumps({"finding": {**FINDING, **told}, "sheet": sheet}).decode() if state == "done" else None
        now = self.world.clock.now()
        row = {"id": self.world.ids.new("rep_"), "schedule": link.schedule, "organisation": self.caller.organisation, "state": state}
        row |= {"body": body, "created": now, "finished": now, "fire_ms": None, "error": None, "lease": None, "due_ms": None, "tries": 1}
        await self.world.store.write(insert_report, row=row)

    async def read(self, link: Link) -> Any:
        answer = await self.public.get(f"{SHARE}/{link.token}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def page(self, link: Link) -> httpx.Response:
        answer = await self.public.get(f"{SHARE}/{link.token}", params={"format": "html"})
        assert answer.status_code == 200, answer.text
        return answer

    async def end(self, link: Link) -> None:
        async with self.world.client(self.caller.secret) as http:
            answer = await http.delete(f"/v1/intelligence/schedules/{link.schedule}")
        assert answer.status_code == 200, answer.text


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError(scope["type"])


@asynccontextmanager
async def open_press(
    folder: Path, *, catalogue: Catalogue = SHARES, name: str = "Fjord Travel", sandbox: SimulatedNetwork | None = None
) -> AsyncGenerator[Press]:
    async with open_world(
        folder, catalogue, sandbox=sandbox, inner=InnerApplication(nothing_else, operation_refused=dead_link_page)
    ) as world:
        organisation = await world.organisation(Tier.ENTERPRISE, name=name, mode="managed", account=8101)
        caller = await world.caller(organisation=organisation)
        async with world.client() as public:
            yield Press(world, caller, public)
