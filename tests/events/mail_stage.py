"""A service whose people are told of events by mail: Ada and Bo are admins of Fjord, Cy is a member."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson

from clients.mail.letter import Letter
from operations.deps import Deps
from operations.ledger.event_letters import EventMails
from operations.ledger.event_placing import queue_event_mails
from operations.people.session_tokens import new_console_token
from registry.caller import Role, Tier
from storage.engine.sql import Connection
from storage.event_log import LogEntry, log_event, place_events
from tests.pages.site import HTTPS, Site, open_site

SUBSCRIPTIONS = "/v1/me/mail-subscriptions"
LINE = "8999012345678901237"
ORDER = "ord_01k0a8w7zv6q4k3m2n1p0r9s8t"


@dataclass
class MailStage:
    """The service, its organisation and its people by their first names."""

    site: Site
    organisation: str
    people: dict[str, str]

    @property
    def deps(self) -> Deps:
        return self.site.service.pipeline.deps

    async def happen(self, type: str, *, count: int = 1, line: str | None = None, livemode: int = 1, **data: object) -> list[str]:
        """Events of this type, placed in the log and queued for mails in one commit; their ids."""
        now, ids = self.site.clock.now(), self.deps.ids
        entries = [
            LogEntry(ids.new("evt_"), self.organisation, type, livemode, orjson.dumps(data).decode(), line, int(now)) for _ in range(count)
        ]

        def write(connection: Connection) -> None:
            for entry in entries:
                log_event(connection, event=entry)
            queue_event_mails(connection, place_events(connection, most=1000), now=now)

        await self.site.service.store.write(write)
        return [entry.id for entry in entries]

    async def mailed(self) -> list[Letter]:
        """The mails that go out now."""
        before = len(await self.site.letters())
        await EventMails(self.deps).step()
        return (await self.site.letters())[before:]

    def at(self, moment: str) -> None:
        """It is this moment, RFC 3339."""
        self.site.clock.advance(datetime.fromisoformat(moment).timestamp() - self.site.clock.now())

    async def session(self, name: str) -> str:
        now = self.site.clock.now()
        token, _ = await new_console_token(self.deps, person=self.people[name], organisation=self.organisation, now=now)
        return token

    async def ask(self, name: str, method: str = "GET", **body: Any) -> httpx.Response:
        """The subscriptions of one person, or a change of them, over HTTP."""
        transport = httpx.ASGITransport(app=self.site.app)
        headers = {"Authorization": f"Bearer {await self.session(name)}"}
        async with httpx.AsyncClient(transport=transport, base_url=self.site.base_url, headers=headers) as http:
            return await http.request(method, SUBSCRIPTIONS, json=body or None)

    async def choose(self, name: str, **body: Any) -> dict[str, Any]:
        answer = await self.ask(name, "PUT", **body)
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def open_mail_stage(folder: Path) -> AsyncGenerator[MailStage]:
    """Over a new SQLite file."""
    async with open_site(folder, HTTPS) as site:
        site.clock.advance(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() - site.clock.now())  # before both changes of the clock
        people = {name: await site.person(f"{name}@fjord.example") for name in ("ada", "bo", "cy")}
        organisation = await site.organisation(people["ada"], tier=Tier.PRO)
        await site.join(people["bo"], organisation, Role.ADMIN)
        await site.join(people["cy"], organisation, Role.MEMBER)
        yield MailStage(site, organisation, people)
