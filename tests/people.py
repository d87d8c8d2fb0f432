"""Somebody with a browser and a mailbox at a running server whose mails go to its console."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.harness.processes import Running
from tests.pages.browser import Browser, Seen

CODE = re.compile(r"^(\d{6}|[0-9A-Z]{4}-[0-9A-Z]{4})$", re.MULTILINE)
SECONDS = 60


def console_of(data: Path) -> Path:
    """Where the server of a data directory writes its mails."""
    return data.with_name(f"{data.name}.log")


async def code_in(console: Path, since: int) -> str:
    """The code of the next mail on a console."""
    async with asyncio.timeout(SECONDS):
        while (found := CODE.search(console.read_text()[since:])) is None:
            await asyncio.sleep(0.02)
    return found[1]


@dataclass
class Person:
    """One person; their browser stays signed in."""

    server: Running
    console: Path
    address: str
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def mailed(self) -> int:
        """How much there is on the console already."""
        return len(self.console.read_text())

    def sign_up(self, organisation: str) -> str:
        before = self.mailed()
        with httpx.Client(base_url=self.server.base_url) as http:
            started = http.post("/v1/signup", json={"email": self.address, "organization_name": organisation})
            assert started.status_code == 201, started.text
            proof = {"client_token": started.json()["client_token"], "code": asyncio.run(code_in(self.console, before))}
            done = http.post("/v1/signup/verify", json=proof)
        assert done.status_code == 201, done.text
        return done.json()["organization_id"]

    def allow(self, address: str, *, admin: bool = True) -> str:
        """Follow a program's link and allow it everything: where the browser is sent."""
        return asyncio.run(self.answer(address, "Allow", **({"scope_admin": "on"} if admin else {})))

    def deny(self, address: str) -> str:
        return asyncio.run(self.answer(address, "Deny"))

    async def answer(self, address: str, button: str, **ticked: str) -> str:
        """Sign in where that is asked for, then press the button."""
        async with self.browser() as browser:
            seen = await browser.get(address)
            if seen.path.startswith("/auth/sign-in"):
                seen = await self.sign_in(browser, seen)
            assert seen.path.startswith("/auth/consent?"), seen.answer.text
            return (await browser.send(seen.page.form("/auth/consent"), button, **ticked)).way[-1]

    async def sign_in(self, browser: Browser, seen: Seen) -> Seen:
        """With the mailed code: the page that was wanted."""
        before = self.mailed()
        seen = await browser.send(seen.page.form("/auth/sign-in"), email=self.address)
        return await browser.send(seen.page.form("/auth/sign-in/code"), code=await code_in(self.console, before))

    @asynccontextmanager
    async def browser(self) -> AsyncGenerator[Browser]:
        async with httpx.AsyncClient(base_url=self.server.base_url, cookies=self.cookies) as http:
            yield Browser(http)
            self.cookies = http.cookies
