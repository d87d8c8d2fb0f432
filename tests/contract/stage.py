"""The whole service behind its doors, and an organisation that has one of everything the examples speak of."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import quote, urlencode

import httpx
import orjson

from operations.caches.answers import ReadCache
from operations.catalogue import CATALOGUE
from registry.call import Call, Surface
from registry.caller import Role, Tier
from registry.catalogue import AnyOperation
from registry.errors import Unauthorized
from registry.limits import Limits
from registry.operation import Auth, Document
from registry.policy import quota_period
from registry.ports import SessionClaims, SharedSecrets
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from storage.affiliates import insert_affiliate
from storage.invitations import put_invitation
from storage.issuance import DrawnSim, NewIssuance, begin_issuance, mark_issued
from tests.contract.fleet import FJORD_TOKEN, Own, drawn_esim, network_way, new_network
from tests.contract.founding import found_organisation
from tests.contract.payments import prepared, signature
from tests.contract.shops import documented_product
from tests.direct import Direct
from tests.mcp.house import MODERN
from tests.mcp.refusals import refusal_in
from tests.network_facts import ACCOUNT, INTERNAL
from tests.registry.ledgers import AuditRow, audited, audited_by, audited_of, used_by
from tests.world import BASE, HOST, ORIGIN, SITE, Credentials, World, open_world
from transports.http.asgi import Receive, Scope, Send
from transports.http.door import InnerApplication
from transports.http.request import HttpRules
from transports.mcp.door import MCP_METADATA_PATH, MCP_PATH, McpDoor
from transports.mcp.settings import McpSettings
from transports.openapi.page import OpenapiPage

SHOP_KEY = "storefront-key-of-the-shops"
SECRETS = SharedSecrets(internal=INTERNAL, storefront=SHOP_KEY)
SETTINGS = McpSettings(version="1.0.0", state_keys=(bytes(range(32)),), allowed_hosts=(HOST,), allowed_origins=(ORIGIN,))
ID = re.compile(r"[a-z]{2,4}_[0-9a-z]{26}")
SIGNED = "the processor's signature"
"""In place of a credential: the body is signed."""
DIGITS = re.compile(r"\b[0-9]{6}\b")
OPERATIONS = tuple(CATALOGUE.operations.values())
AFFILIATE = "K7M2XQ4P"
"""The documented code of whoever brings organisations."""
NEVER = {
    "create_subscriber": "PROVISIONING_NOT_SUPPORTED",
    "operator_billing_decline_fraud_review": "not_implemented",
    "high_cost_subscribers_method_guard": "method_not_allowed",
    "decide_approval": "page_required",
}
"""Operations that are there to say, with these codes, that they are not offered; NEVER_STATUS says with which status."""
GUARD = "high_cost_subscribers_method_guard"
"""It says so with 405, to whoever has a credential, before anything else is looked at."""
NEVER_STATUS = {id: {GUARD: 405, "decide_approval": 403}.get(id, 501) for id in NEVER}
SERVED = tuple(o for o in OPERATIONS if o.id not in NEVER)
ROLLBACK_OPERATION = "rollback_esim_issuance"
VERIFY_OPERATION = "signup_verify"
MOVE = "move_subscriber_range_to_account"
RESUME = "stop_resume_recurring_package"
PERIOD = "modify_subscriber_package_active_period"
PRODUCT = "create_connectivity_product"
Input = dict[str, Any]


class StubProvider:
    """An identity provider whose tokens say `session.SUBJECT.ORGANISATION`, or `login.PERSON.GRANT` as the built-in one's do."""

    async def verify(self, token: str, surface: Surface) -> SessionClaims:
        kind, name, other = token.split(".")
        if kind not in ("session", "login"):
            raise Unauthorized("The session is not one of ours", presented=True)
        return SessionClaims(name, None, grant=other) if kind == "login" else SessionClaims(name, other)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a door said: the same shape for each."""

    status: int
    body: Any
    request_id: str
    media_type: str = "application/json"
    content: bytes = b""
    meta: Input = field(default_factory=Input)
    """What a tool result has in `_meta`."""


@dataclass(slots=True)
class ContractStage:
    """An organisation, its admin, the ids of what it has, and the network that its account is in."""

    who: Credentials
    sandbox: SimulatedNetwork
    own: Own
    place: int = 0
    """How many stages there were before it."""
    ids: dict[str, str] = field(default_factory=dict[str, str])
    proof: Input = field(default_factory=Input)
    """Of a sign-up that waits for its code: the token, and the code that was mailed."""
    waiting: str = ""
    iccid: str = ""
    """Of a test eSIM."""
    staged: int = 0
    """How many calls had reached the network when the stage was furnished."""

    @property
    def network(self) -> Network:
        assert self.sandbox.world is not None
        return self.sandbox.world

    def asked(self, since: int = 0) -> list[str]:
        """The methods that reached the network since the stage was furnished, but for the first ones."""
        return [call.method for call in self.sandbox.calls[self.staged + since :]]

    def fitted(self, operation: AnyOperation, example: Mapping[str, Any]) -> Input:
        """An example's input with this organisation's ids in place of the documented ones."""
        given: Input = {name: self._fit(operation, name, value) for name, value in example.items() if name not in self.proof}
        if operation.id == "confirm_connectivity_intent":
            given["id"] = self.waiting
        return given | self.proof

    def _fit(self, operation: AnyOperation, name: str, value: object) -> object:
        if name == "iccid" and CATALOGUE.toolset_of[operation.id] == "connectivity":
            return self.iccid
        if isinstance(value, Mapping):
            return {inner: self._fit(operation, inner, member) for inner, member in cast(Mapping[str, object], value).items()}
        if isinstance(value, str) and ID.fullmatch(value):
            prefix = value.partition("_")[0]
            if prefix == "apr" or operation.id == "find_record":
                return value  # nobody's: only the pages, which are not here, decide one; what nobody has, a search does not find
            return self.ids[prefix]
        if name == "email":  # what is mailed to one address is limited
            return f"someone{self.place}@fjord.example"
        return self._number(operation.id, name, value)

    def _number(self, operation: str, name: str, value: object) -> object:
        """What the network knows the stage's things by; numbers that its whole reseller may use stay."""
        own = self.own
        package = {RESUME: own.monthly, PERIOD: own.waiting}.get(operation, own.running)
        template = own.monthly_template if operation == "assign_recurring_package" else own.one_time_template
        fitting = {"iccid": own.iccid, "rangeStart": own.iccid, "rangeEnd": own.iccid, "packageId": package, "packageTemplateId": template}
        fitting |= {"accountId": ACCOUNT, "templateId": own.template}
        if operation == "change_network_profile_of_location_zone":
            fitting["locationZoneId"] = own.zone
        return fitting.get(name, value)


@dataclass(slots=True)
class ServiceHouse:
    world: World
    places: int = 0
    """How many stages there were."""
    callers: int = 0
    """How many clients there were: each comes from a network of its own, since what one network may do is limited."""

    async def stage(
        self,
        operation: AnyOperation | None = None,
        tier: Tier = Tier.ENTERPRISE,
        role: Role = Role.ADMIN,
        *,
        connected: bool = True,
        furnished: bool = True,
    ) -> ContractStage:
        """A new organisation with one of everything that the operation, or any, may ask for; from here on the network is its own."""
        network, own = new_network(int(self.world.clock.now()), self.places)
        self.places += 1
        sandbox = await self.enter(network)
        # Lines move between accounts, and only whoever brings a token of their own has two.
        token = FJORD_TOKEN.value if operation is not None and operation.id == MOVE and connected else None
        who = await found_organisation(self.world, own, tier=tier, role=role, token=token, connected=connected)
        stage = ContractStage(who, sandbox, own, self.places)
        if operation is not None and operation.id == ROLLBACK_OPERATION:
            await self._draw(stage, str(operation.examples[0].input["idempotencyKey"]))
        if operation is not None and operation.id == VERIFY_OPERATION:
            stage.proof = await self._sign_up(stage)
        if operation is not None:
            stage.proof = stage.proof | await prepared(self.world, who, operation.id)
        if furnished and (operation is None or CATALOGUE.toolset_of[operation.id] in ("connectivity", "events", "setup")):
            # A product that is asked for is compared with its template, which takes as long as all the rest of a stage.
            known = connected and operation is not None and operation.id != PRODUCT and tier is not Tier.FREE
            if known:
                stage.ids["cnp"] = await documented_product(self.world, who)
            await self._furnish(stage, product=not known and tier is not Tier.FREE)
        return stage

    async def enter(self, network: Network) -> SimulatedNetwork:
        """Everybody's upstream is this network from now on."""
        sandbox, pool = network_way(network, self.world.clock)
        before = self.world.pipeline.deps
        self.world.pipeline.deps = replace(before, ocs=pool, reads=ReadCache(self.world.clock))
        self.world.sandbox = sandbox
        await before.ocs.aclose()
        return sandbox

    async def _draw(self, stage: ContractStage, key: str) -> None:
        """An eSIM that the organisation drew before; its profile was installed, so that rolling it back is one write."""
        line, package = drawn_esim(stage.network)
        of = {"organisation": stage.who.organisation, "key": key}
        row = NewIssuance(
            **of,
            operation="issue_esim_from_inventory",
            claim_key=key,
            principal=stage.who.person,
            account_id=ACCOUNT,
            template_id=stage.own.one_time_template,
            validity_days=30,
            period=None,
            intent=None,
            owner="rpl_staged",
            lease="req_staged",
            stock="stk_staged",
        )
        now = self.world.clock.now()
        await self.world.store.write(begin_issuance, row=row, now=now)
        await self.world.store.write(mark_issued, **of, drawn=DrawnSim(line.iccid, line.id, line.sim.id, package), now=now)

    async def _sign_up(self, stage: ContractStage) -> Input:
        operation = CATALOGUE.operations["signup_start"]
        begun = await self.http(operation, None, stage.fitted(operation, operation.examples[0].input))
        letter = (await self.world.letters())[-1]
        (code,) = set(DIGITS.findall(letter.text))
        return {"client_token": begun.body["client_token"], "code": code}

    async def _furnish(self, stage: ContractStage, *, product: bool) -> None:
        """Test eSIMs, a product, an endpoint, events: what is the organisation's with us."""
        made: dict[str, Answered] = {}
        await self.world.store.write(
            put_invitation,
            id=stage.ids.setdefault("ivt", self.world.ids.new("ivt_")),
            organisation=stage.who.organisation,
            address=f"invited{stage.place}@fjord.example",
            role=Role.MEMBER,
            invited_by=stage.who.person,
            now=self.world.clock.now(),
            expires_at=self.world.clock.now() + 3600,
        )
        for id in (PRODUCT, "create_connectivity_webhook_endpoint", "create_connectivity_intent", "create_api_key"):
            operation = CATALOGUE.operations[id]
            if product or id != PRODUCT:
                made[id] = await self.http(operation, stage.who.secret, dict(operation.examples[0].input), key="staged")
                if made[id].status == 404:  # an account of another reseller has no such template, so there is no product of it
                    continue
                assert made[id].status == 201, made[id]
                stage.ids[made[id].body["id"].partition("_")[0]] = made[id].body["id"]
        intent = made["create_connectivity_intent"].body
        stage.iccid = intent["esim"]["iccid"]
        waiting = await self.http(CATALOGUE.operations["create_connectivity_intent"], stage.who.secret, {}, key="waiting")
        stage.waiting = waiting.body["id"]
        usage = CATALOGUE.operations["create_connectivity_usage_record"]
        record = await self.http(usage, stage.who.secret, {"intent": intent["id"], "quantity_mb": 1.0}, key="staged")
        events = await self.http(CATALOGUE.operations["list_connectivity_events"], stage.who.secret, {})
        event = {"id": events.body["data"][0]["id"]}
        sent = await self.http(CATALOGUE.operations["list_event_deliveries"], stage.who.secret, event)
        stage.ids |= {"ur": record.body["id"], "evt": event["id"], "dlv": sent.body["data"][0]["id"]}
        stage.staged = len(stage.sandbox.calls)  # a product is compared with its template

    def credential(self, operation: AnyOperation, stage: ContractStage) -> str | None:
        session = f"session.{stage.who.person}.{stage.who.organisation}"
        other = {Auth.INTERNAL: INTERNAL, Auth.BRIDGE: INTERNAL, Auth.PUBLIC: None, Auth.SESSION: session, Auth.SIGNATURE: SIGNED}
        other |= {Auth.STOREFRONT: SHOP_KEY, Auth.STOREFRONT_OPEN: SHOP_KEY}
        return other.get(operation.auth, stage.who.secret)

    def client(self, secret: str | None) -> httpx.AsyncClient:
        """A client of the door, from a network where nobody else is."""
        self.callers += 1
        address = f"10.{self.callers >> 16}.{self.callers >> 8 & 255}.{self.callers & 255}"
        transport = httpx.ASGITransport(app=self.world.door, raise_app_exceptions=False, client=(address, 50_000))
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return Direct(transport=transport, base_url=BASE, headers=headers)

    async def http(
        self,
        operation: AnyOperation,
        secret: str | None,
        given: Input,
        *,
        key: str | None = None,
        token: str | None = None,
        sure: bool = False,
    ) -> Answered:
        """One call over HTTP; whoever is sure sends the confirm token back at once."""
        async with self.client(None if secret == SIGNED else secret) as client:
            request = request_of(client, operation, given, key, token)
            if secret == SIGNED:
                request.headers["Stripe-Signature"] = signature(self.world, request.content)
            answer = await client.send(request)
        json = answer.headers["content-type"] == "application/json"
        body = answer.json() if json and answer.content else None
        if sure and answer.status_code == 202 and body is not None:
            return await self.http(operation, secret, given, key=key, token=body["confirm_token"])
        return Answered(answer.status_code, body, answer.headers["request-id"], answer.headers["content-type"], answer.content)

    async def mcp(
        self,
        operation: AnyOperation,
        secret: str | None,
        given: Input,
        *,
        key: str | None = None,
        token: str | None = None,
        sure: bool = False,
    ) -> Answered:
        """One call of the tool; a refusal of the credential is an HTTP answer."""
        arguments = {**given, "idempotency_key": key} if key is not None and operation.once is not None else given
        arguments = arguments if token is None else {**arguments, "confirm_token": token}
        envelope = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": operation.id, "arguments": arguments, "_meta": envelope}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": MODERN, "mcp-method": "tools/call"}
        async with self.client(secret) as client:
            answer = await client.post(
                "/mcp?toolsets=all",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
                headers={**headers, "mcp-name": operation.id},
            )
        if answer.status_code != 200:
            return Answered(answer.status_code, answer.json(), answer.headers["request-id"])
        result = message(answer)["result"]
        body = refusal_in(result) if result["isError"] else result["structuredContent"]
        if "confirm_token" in body:
            again = body["confirm_token"]
            return await self.mcp(operation, secret, given, key=key, token=again) if sure else Answered(202, body, "")
        assert orjson.loads(result["content"][0]["text"]) == body
        return Answered(400 if result.get("isError") else 200, body, answer.headers["request-id"], meta=result["_meta"])

    async def charged(self, organisation: str) -> int:
        """Calls charged to an organisation so far, all replicas and blocks counted."""
        total = await self.world.store.read(used_by, organisation=organisation)
        return total - self.unspent(organisation)

    def unspent(self, organisation: str) -> int:
        """Calls that were leased from an organisation's quota and not made."""
        return self.world.blocks.unspent(organisation, quota_period(self.world.clock.now()))

    async def committed(self, *, request: str | None = None, organisation: str | None = None) -> list[AuditRow]:
        """Audit rows that were committed with their call, of all or of one: nothing buffered is written for this."""
        if request is not None:
            return await self.world.store.read(audited_by, request=request)
        if organisation is not None:
            return await self.world.store.read(audited_of, organisation=organisation)
        return await self.world.store.read(audited)


def request_of(
    client: httpx.AsyncClient, operation: AnyOperation, given: Input, key: str | None, token: str | None = None
) -> httpx.Request:
    """The request an operation's documentation describes."""
    inside = set(re.findall(r"\{(\w+)\}", operation.path))
    path = re.sub(r"\{(\w+)\}", lambda name: quote(str(given[name[1]]), safe=""), operation.path)
    rest = {name: value for name, value in given.items() if name not in inside}
    headers = {"Idempotency-Key": key} if key is not None and operation.once is not None else {}
    headers |= {} if token is None else {"X-Confirm-Token": token}
    if operation.method in ("GET", "DELETE"):
        query = urlencode({name: text_of(value) for name, value in rest.items()})
        return client.build_request(operation.method, path + (f"?{query}" if query else ""), headers=headers)
    return client.build_request(operation.method, path, json=rest, headers=headers)


def is_document(operation: AnyOperation) -> bool:
    """Whether the answer is not JSON."""
    return Document in (operation.result, *get_args(operation.result))


def text_of(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, cast(list[object], value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def message(answer: httpx.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("text/event-stream"):
        lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
        return orjson.loads(lines[-1])
    return answer.json()


def key_for(operation: AnyOperation, name: str = "contract") -> str | None:
    """A key where the operation takes one."""
    return name if operation.once is not None else None


@asynccontextmanager
async def open_service_house(folder: Path, *hosts: str) -> AsyncGenerator[ServiceHouse]:
    """Every door over one world; `hosts` are further names it answers to."""
    rules = HttpRules(hosts=frozenset({HOST, *hosts}), origins=frozenset({ORIGIN}))
    doors: list[McpDoor] = []
    pages = OpenapiPage(CATALOGUE, SITE)

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await (pages if scope["path"] == "/openapi.json" else doors[0])(scope, receive, send)

    behind = InnerApplication(inner, frozenset((MCP_PATH, MCP_METADATA_PATH, "/openapi.json")))
    calm = Limits(burst_enabled=False)
    sessions = StubProvider()
    async with open_world(folder, CATALOGUE, limits=calm, secrets=SECRETS, sessions=sessions, rules=rules, inner=behind) as world:

        def report(call: Call, error: BaseException) -> None:
            world.faults.append((call.request_id, call.operation.id, error))

        await world.store.write(
            insert_affiliate, organisation=await world.organisation(name="Affiliate"), code=AFFILIATE, now=world.clock.now()
        )
        doors.append(McpDoor(world.pipeline, SETTINGS, report))
        async with doors[0].running():
            try:
                yield ServiceHouse(world)
            finally:
                await world.pipeline.deps.ocs.aclose()
