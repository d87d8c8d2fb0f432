"""A person who says yes to programs of a running server."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from operations.people.consents import grant_consent
from storage.organisations import list_members
from tests.harness.processes import Running
from transports.service import Service, build_service
from transports.settings_files import load_settings


@dataclass(frozen=True, slots=True)
class ConsentingPerson:
    """The server's demo person. What their browser shows them is left out: it is tested with the pages."""

    service: Service
    organisation: str
    person: str

    async def answer(self, authorization_url: str, scopes: Sequence[str]) -> str:
        """Follow a program's link and allow it these scopes: where the browser is sent."""
        async with httpx.AsyncClient() as browser:
            shown = await browser.get(authorization_url)
        assert shown.status_code == 302, shown.text
        location = shown.headers["location"]
        assert location.startswith(f"{self.service.site.base_url}/auth/consent?"), location
        [token] = parse_qs(urlsplit(location).query)["request"]
        now = self.service.clock.now()
        return await grant_consent(
            self.service.pipeline.deps, token=token, person=self.person, organisation=self.organisation, scopes=scopes, now=now
        )


@asynccontextmanager
async def person_of(server: Running, data: Path) -> AsyncGenerator[ConsentingPerson]:
    """The person, who shares the server's database."""
    settings = load_settings({}, data=data, base_url=server.base_url)
    service = build_service(settings, server.base_url, report=lambda text: None, apart=True)
    [member] = await service.store.read(list_members, organisation=server.organisation)
    try:
        yield ConsentingPerson(service, server.organisation, member.person_id)
    finally:
        await service.stop()
