"""kill -9 at every step of a call that is approved: the request, the decision, the execution and its end; and what is left to do."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx

from operations.secret_tokens import new_api_key, new_secret_token, secret_digest
from registry.caller import Approval, Restrictions
from registry.clock import SystemClock
from registry.ids import SystemIds
from storage.api_keys import insert_key, write_restrictions
from storage.browser_sessions import insert_browser_session
from storage.engine.sql import Connection
from storage.engine.store import open_store
from tests.approvals.office import APPROVALS_PATH, HOOKS
from tests.harness.kill_points import Point
from tests.harness.tenant_stage import Tenant, TenantStage
from tests.kill.campaign import LEASE_OVER
from tests.network_facts import DRAW, TEMPLATE
from tests.pages.document import Document

HOOK, DECIDE, ISSUE = "create_connectivity_webhook_endpoint", "decide_approval", "issue_esim_from_inventory"
ASKED = tuple(Point(place, "_keep") for place in ("before write", "after write"))
DECIDED = tuple(Point(place, DECIDE) for place in ("before settle", "after settle"))
ENDED = tuple(Point(place, "end_approval") for place in ("before write", "after write"))
HOOK_POINTS = (*ASKED, *DECIDED, *(Point(place, HOOK) for place in ("before settle", "after settle")), *ENDED)
DRAW_PLACES = ("before claim", "after claim", "before dispatch", "after dispatch", "before save", "within save", "after save")
ISSUE_POINTS = (
    *DECIDED,
    *(Point(place, ISSUE) for place in DRAW_PLACES),
    *(Point(place, DRAW) for place in ("before send", "after reply")),
    *ENDED,
)
EVERY_KILL = (*((HOOK, point) for point in HOOK_POINTS), *((ISSUE, point) for point in ISSUE_POINTS))
LOOK_SECONDS, MOST_LOOKS = 0.1, 15
SETTLING_PAUSES = (LEASE_OVER, LEASE_OVER, 901, 901, 901)


class ApprovalParty(NamedTuple):
    """A key that has to ask, and the cookie of the browser of its person."""

    secret: str
    cookie: str


async def hire(stage: TenantStage, tenant: Tenant) -> ApprovalParty:
    """One for a tenant: by hand, since no server runs yet."""
    store, ids = open_store(stage.url, pool=1), SystemIds(SystemClock())
    key, cookie = new_api_key(ids), new_secret_token(ids)
    members = f"select person_id from membership where organisation_id = '{tenant.id}' and person_id <> '{tenant.reader}'"
    [(person,)] = stage.rows(members)

    def insert(connection: Connection) -> None:
        now = stage.network.clock.now()
        insert_key(
            connection,
            id=ids.new("key_"),
            digest=key.digest,
            prefix=key.prefix,
            organisation=tenant.id,
            person=str(person),
            name="agent",
            now=now,
            restrictions=write_restrictions(Restrictions(approval=Approval.EVERY_WRITE)),
        )
        digest, id = secret_digest(cookie), ids.new("bse_")
        insert_browser_session(
            connection, digest=digest, id=id, person=str(person), organisation=tenant.id, now=now, expires_at=now + 86_400
        )

    try:
        await store.write(insert)
    finally:
        await store.aclose()
    return ApprovalParty(key.secret, cookie)


@dataclass
class ApprovedErrand:
    """One call under one key, from the request to the answer, however often the server dies meanwhile."""

    stage: TenantStage
    party: ApprovalParty
    operation: str
    key: str
    account: int
    days: int
    answers: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])

    def request(self) -> tuple[str, dict[str, Any]]:
        if self.operation == HOOK:
            return HOOKS, {"url": f"https://{self.key}.example/hook"}
        body = {"accountId": self.account, "packageTemplateId": TEMPLATE, "validityPeriod": self.days}
        return "/v1/subscribers/issue-from-inventory", body

    async def ask(self, http: httpx.AsyncClient) -> httpx.Response | None:
        """The asker's call; None when the server died before it had answered."""
        path, body = self.request()
        headers = {"Authorization": f"Bearer {self.party.secret}", "Idempotency-Key": self.key}
        try:
            said = await http.post(path, json=body, headers=headers)
        except httpx.TransportError:
            return None
        if said.status_code != 202:
            self.answers.append((said.status_code, said.content))
        return said

    async def ask_until_ended(self, http: httpx.AsyncClient) -> httpx.Response | None:
        """The same, again and again while a process that lives makes the call: time must not be moved on meanwhile."""
        said = await self.ask(http)
        for _ in range(MOST_LOOKS):
            if said is None or said.status_code != 409:
                break
            await asyncio.sleep(LOOK_SECONDS)
            said = await self.ask(http)
        return said

    async def approve(self, http: httpx.AsyncClient, approval: str) -> bool:
        """The person's press of the button; False when the server died, or nothing waits any more."""
        cookie = {"Cookie": f"session={self.party.cookie}"}
        origin = str(http.base_url).rstrip("/")
        try:
            page = Document((await http.get(f"{APPROVALS_PATH}?approval={approval}", headers=cookie)).text)
            forms = [form for form in page.forms if form.fields.get("id") == approval]
            if not forms:
                return False
            fields = {**forms[0].fields, "do": "approve"}
            said = await http.post(APPROVALS_PATH, data=fields, headers={**cookie, "Origin": origin, "Sec-Fetch-Site": "same-origin"})
        except httpx.TransportError:
            return False
        return said.status_code == 303


async def killed_errand(stage: TenantStage, party: ApprovalParty, tenant: Tenant, operation: str, point: Point, number: int) -> str:
    """What went wrong with one call whose server dies at `point`; empty where it was executed once and answered once."""
    network, servers = stage.network, stage.servers
    errand = ApprovedErrand(stage, party, operation, f"k{number}", tenant.account, network.next_days())
    drawn, hooks = await network.count(DRAW), stage.number("select count(*) from webhook_endpoint")
    await servers.start(point)
    async with stage.client() as http:
        said = await errand.ask(http)
        if said is not None:
            await errand.approve(http, said.json()["approval"]["id"])
    await servers.died()
    await network.advance(LEASE_OVER)
    await servers.start()
    async with stage.client() as http:
        said = await errand.ask(http)
        if said is not None and said.status_code == 202:
            await errand.approve(http, said.json()["approval"]["id"])
        for seconds in SETTLING_PAUSES:
            await network.advance(seconds)
            await servers.settled(network.clock.ahead)
            last = await errand.ask_until_ended(http)
            noted = not stage.number(f"select count(*) from approval where idempotency_key = '{errand.key}' and state = 'approved'")
            if noted and last is not None and last.status_code == 201:
                break
        again = await errand.ask(http)
    await servers.kill()
    await network.look()
    states = [state for (state,) in stage.rows(f"select state from approval where idempotency_key = '{errand.key}'")]
    executed = stage.number("select count(*) from webhook_endpoint") - hooks + await network.count(DRAW) - drawn
    finals = {body for status, body in errand.answers if status == 201}
    statuses = [status for status, _ in errand.answers]
    unsent = point.place in ("after dispatch", "before send") and executed == 0 and 201 not in statuses
    if unsent and states == ["executed"]:  # committed as sent, and never sent: nobody can know it, so nothing is drawn for it later either
        return ""
    if executed == 1 and len(finals) == 1 and states == ["executed"] and again is not None and again.status_code == 201:
        return ""
    return f"{operation} {point.place} {point.subject}: executed {executed} times, states {states}, answers {statuses}"


async def kill_all(stage: TenantStage, kills: Sequence[tuple[str, Point]]) -> list[str]:
    """What these kills broke."""
    tenant = stage.tenants[0]
    broken: list[str] = []
    for number, (operation, point) in enumerate(kills):
        party = await hire(stage, tenant)  # a sign-in is good for deciding for a quarter of an hour
        found = await killed_errand(stage, party, tenant, operation, point, number)
        broken += [found] if found else []
    return broken


def drawn_kills(seed: int, count: int) -> list[tuple[str, Point]]:
    """So many of them, in an order of the seed's own."""
    rng = random.Random(seed)
    return [EVERY_KILL[rng.randrange(len(EVERY_KILL))] for _ in range(count)]
