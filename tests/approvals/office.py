"""A service with its pages, an organisation with a connected account, people who decide, and keys that have to ask."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from operations.secret_tokens import new_api_key
from registry.caller import UNRESTRICTED, Approval, Restrictions, Role, Tier
from storage.api_keys import insert_key, write_restrictions
from storage.organisations import create_organisation
from tests.pages.browser import Browser, Seen
from tests.pages.site import HTTP, Site, open_site
from transports.http.asgi import Receive, Scope, Send
from transports.upstream import DEMO_ACCOUNT

ADA_OF_FJORD, BOB_OF_FJORD = "ada@fjord.example", "bob@fjord.example"
EVERY_WRITE = Restrictions(approval=Approval.EVERY_WRITE)
IRREVERSIBLE = Restrictions(approval=Approval.IRREVERSIBLE)
APPROVALS_PATH = "/auth/approvals"
HOOKS = "/v1/connectivity/webhook_endpoints"


@dataclass
class ApprovalOffice:
    """`ada` is an admin and makes keys; `bob` is another admin."""

    site: Site
    organisation: str
    ada: str
    bob: str
    http: httpx.AsyncClient

    async def key(self, restrictions: Restrictions = EVERY_WRITE, *, person: str | None = None, name: str = "support agent") -> str:
        """The secret of a new key."""
        return (await self.named_key(restrictions, person=person, name=name))[1]

    async def named_key(
        self, restrictions: Restrictions = EVERY_WRITE, *, person: str | None = None, name: str = "support agent"
    ) -> tuple[str, str]:
        """The id and the secret of a new key."""
        ids = self.site.service.ids
        key, id = new_api_key(ids), ids.new("key_")
        await self.site.service.store.write(
            insert_key,
            id=id,
            digest=key.digest,
            prefix=key.prefix,
            organisation=self.organisation,
            person=person or self.ada,
            name=name,
            now=self.site.clock.now(),
            restrictions=None if restrictions == UNRESTRICTED else write_restrictions(restrictions),
        )
        return id, key.secret

    async def ask(self, secret: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """A call over HTTP; `headers` have underscores for hyphens."""
        sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        return await self.http.request(method, path, json=body, headers={b"Authorization": f"Bearer {secret}".encode(), **sent})

    async def hook(self, secret: str, name: str = "cleo", **headers: str) -> httpx.Response:
        """A call that writes our own store, with an effect that is counted easily."""
        return await self.ask(secret, "POST", HOOKS, {"url": f"https://{name}.example/hook"}, **headers)

    async def note(self, secret: str, iccid: str, text: str = "called", **headers: str) -> httpx.Response:
        return await self.ask(secret, "POST", f"/v1/subscribers/{iccid}/notes", {"note": text}, **headers)

    async def lines(self) -> list[str]:
        """ICCIDs of the account's lines."""
        secret = await self.key(UNRESTRICTED)
        found = (await self.ask(secret, "GET", f"/v1/subscribers?accountId={DEMO_ACCOUNT}&limit=50")).json()
        return [row["iccid"] for row in found["data"] if row.get("iccid")]

    @asynccontextmanager
    async def browser(self, address: str = "203.0.113.7") -> AsyncGenerator[Browser]:
        async with self.site.browser(address) as browser:
            yield browser

    async def decide(self, browser: Browser, approval: str, button: str = "Approve", **fields: str) -> Seen:
        """Opens the page and presses a button of the request; `fields` are sent instead of what the form holds."""
        seen = await browser.get(f"{APPROVALS_PATH}?approval={approval}")
        form = seen.page.form(APPROVALS_PATH, id=approval)
        form.fields |= fields
        label = next(each[0] for each in form.buttons if each[0].startswith(button))
        return await browser.send(form, label)

    async def state(self, approval: str) -> dict[str, Any]:
        """The request as an unrestricted key of the organisation sees it."""
        secret = await self.key(UNRESTRICTED, person=self.bob)
        rows = (await self.ask(secret, "GET", "/v1/approvals?limit=100")).json()["data"]
        return next(row for row in rows if row["id"] == approval)

    async def hooks(self) -> int:
        """How many webhook endpoints there are."""
        secret = await self.key(UNRESTRICTED, person=self.bob)
        return len((await self.ask(secret, "GET", HOOKS)).json()["data"])

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """All doors; like a real server, the scope has a place for what they tell each other."""
        await self.site.app({**scope, "state": {}}, receive, send)

    @asynccontextmanager
    async def connect(self, secret: str, mode: str = "auto", elicit: ElicitationFnT | None = None) -> AsyncGenerator[Client]:
        """An MCP client of the SDK."""
        transport = httpx2.ASGITransport(app=self._app)
        async with (
            self.site.app.mcp.running(),
            httpx2.AsyncClient(transport=transport, headers={"Authorization": f"Bearer {secret}"}) as http,
            Client(streamable_http_client(f"{HTTP}/mcp?toolsets=all", http_client=http), mode=mode, elicitation_callback=elicit) as client,
        ):
            yield client


@asynccontextmanager
async def open_approval_office(folder: Path) -> AsyncGenerator[ApprovalOffice]:
    async with open_site(folder) as site:
        service = site.service
        ada, bob = await site.person(ADA_OF_FJORD, name="Ada Berg"), await site.person(BOB_OF_FJORD, name="Bob Vik")
        organisation = service.ids.new("org_")
        await service.store.write(
            create_organisation,
            id=organisation,
            name="Fjord",
            tier=Tier.ENTERPRISE,
            now=site.clock.now(),
            mode="managed",
            account_id=DEMO_ACCOUNT,
            simulated=True,
        )
        await site.join(ada, organisation, Role.ADMIN)
        await site.join(bob, organisation, Role.ADMIN)
        transport = httpx.ASGITransport(app=site.app, client=("203.0.113.50", 50000))
        async with httpx.AsyncClient(transport=transport, base_url=HTTP) as http:
            yield ApprovalOffice(site, organisation, ada, bob, http)
