"""Reports that lie in the store as if a schedule had made them, and their links."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import sqlalchemy as sa

from clients.sandbox.ocs.sandbox import Sandbox
from operations.intelligence import schedule_report, schedules, share
from operations.intelligence.sheet import Sheet
from operations.services.secret_token import digest_of, new_token
from registry.catalogue import Catalogue, Toolset
from registry.limits import Tier
from storage.connection import Connection
from storage.reports.intelligence_tables import IntelligenceReportTable
from storage.reports.schedules import NewSchedule, insert_schedule
from storage.statement import Command, table
from tests.world import Credentials, World, open_world
from transports.http.asgi import Receive, Scope, Send
from transports.http.inner import Inner
from transports.shared_report import dead_link_page

SHARES = Catalogue([Toolset("intelligence", "Reports.", (schedules, schedule_report, share))])
REPORT = table(IntelligenceReportTable)
PATH = "/v1/intelligence/share"
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
    """A report that has ended."""
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
        made = Link(ids.new("sch_"), new_token(ids))
        schedule = NewSchedule(
            id=made.schedule,
            organisation=self.caller.organisation,
            composite=composite,
            input="{}",
            cron="0 6 * * *",
            timezone="UTC",
            endpoint=None,
            share_digest=digest_of(made.token),
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
        """What strangers read."""
        answer = await self.public.get(f"{PATH}/{link.token}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def page(self, link: Link) -> httpx.Response:
        """The page that strangers see."""
        answer = await self.public.get(f"{PATH}/{link.token}", params={"format": "html"})
        assert answer.status_code == 200, answer.text
        return answer

    async def end(self, link: Link) -> None:
        """The schedule is deleted by its owner."""
        async with self.world.client(self.caller.secret) as http:
            answer = await http.delete(f"/v1/intelligence/schedules/{link.schedule}")
        assert answer.status_code == 200, answer.text


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    """No path leads here."""
    raise AssertionError(scope["type"])


@asynccontextmanager
async def open_press(
    folder: Path, *, catalogue: Catalogue = SHARES, name: str = "Fjord Travel", sandbox: Sandbox | None = None
) -> AsyncGenerator[Press]:
    """Over a new SQLite file."""
    async with open_world(folder, catalogue, sandbox=sandbox, inner=Inner(nothing_else, operation_refused=dead_link_page)) as world:
        organisation = await world.organisation(Tier.ENTERPRISE, name=name, mode="managed", account=8101)
        caller = await world.caller(organisation=organisation)
        async with world.client() as public:
            yield Press(world, caller, public)
