"""A real service with its pages: store, pipeline and application as `reseller serve` builds them; the clock and the ids are ours."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from clients.mail.letter import Letter
from registry.caller import Role, Tier
from storage.organisations import add_member, create_organisation
from storage.people import ensure_person
from tests.databases import migrated_sqlite
from tests.harness.network_cache import copy_networks
from tests.mail_catcher import MailCatcher
from tests.pages.browser import Browser, Seen
from tests.world import CountingIds, SettableClock
from transports.app import Application
from transports.logs import Logs
from transports.service import Service, build_service
from transports.settings_files import load_settings

HTTP = "http://127.0.0.1:8000"
HTTPS = "https://esim.example"


@dataclass
class Site:
    """The service, its clock, and what it wrote into its log."""

    service: Service
    app: Application
    clock: SettableClock
    base_url: str
    log: list[bytes] = field(default_factory=list[bytes])

    @asynccontextmanager
    async def browser(self, address: str = "203.0.113.7") -> AsyncGenerator[Browser]:
        transport = httpx.ASGITransport(app=self.app, client=(address, 50000))
        async with httpx.AsyncClient(transport=transport, base_url=self.base_url) as http:
            yield Browser(http)

    async def letters(self) -> list[Letter]:
        """Every mail so far, the newest last."""
        await self.service.mailer.deliver()
        assert isinstance(self.service.mailer.transport, MailCatcher)
        return self.service.mailer.transport.letters

    async def code(self) -> str:
        found = re.search(r"^(\d{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", (await self.letters())[-1].text, re.MULTILINE)
        assert found is not None
        return found[1]

    async def person(self, address: str, *, name: str | None = None) -> str:
        return await self.service.store.write(
            ensure_person, address=address, id=self.service.ids.new("usr_"), name=name, now=self.clock.now()
        )

    async def organisation(self, person: str, name: str = "Fjord", *, tier: Tier = Tier.FREE, role: Role = Role.ADMIN) -> str:
        id = self.service.ids.new("org_")
        await self.service.store.write(create_organisation, id=id, name=name, tier=tier, now=self.clock.now())
        await self.join(person, id, role)
        return id

    async def join(self, person: str, organisation: str, role: Role = Role.MEMBER) -> None:
        await self.service.store.write(add_member, person=person, organisation=organisation, role=role, now=self.clock.now())

    async def sign_in(self, browser: Browser, address: str, path: str = "/auth/account") -> Seen:
        """Open a page, be sent to sign in, do so with the mailed code, and be where one wanted to go."""
        seen = await browser.get(path)
        seen = await browser.send(seen.page.form("/auth/sign-in"), email=address)
        assert seen.path == "/auth/sign-in/code", seen.answer.text
        return await browser.send(seen.page.form("/auth/sign-in/code"), code=await self.code())


@asynccontextmanager
async def open_site(folder: Path, base_url: str = HTTP, *, burst_limit: bool = False, origins: str = "") -> AsyncGenerator[Site]:
    """A service over a new SQLite file."""
    clock, log = SettableClock(), list[bytes]()
    data = folder / "data"
    data.mkdir()
    migrated_sqlite(data)
    settings = load_settings({}, data=data, base_url=base_url, burst_limit=burst_limit, demo=False, allowed_origins=origins)
    copy_networks()
    service = build_service(settings, HTTP, clock=clock, ids=CountingIds(clock), report=lambda text: None)
    service.mailer.transport = MailCatcher()
    app = Application(service, Logs(log.append, clock, delay=0.0))
    await service.start(seed=False)
    try:
        yield Site(service, app, clock, base_url, log)
    finally:
        await service.stop()
