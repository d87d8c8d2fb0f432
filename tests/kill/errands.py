"""What the callers want: eSIMs, each under a key of its own, and some of them given back."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from tests.harness.history import History, Key, Kind
from tests.harness.network_process import Drawn, NetworkProcess
from tests.harness.tenant_stage import Tenant
from tests.network_facts import TEMPLATE
from tests.simulation.clients import RELEASE, UNSURE, understood
from tests.simulation.errands import INTENT, INVENTORY
from tests.simulation.replica import ClientAnswer

ISSUE_OPERATION, RELEASE_OPERATION = INVENTORY, RELEASE


@dataclass(slots=True)
class KilledErrand:
    tenant: Tenant
    key: str
    asks: Drawn
    product: str | None = None
    decided: Literal["ok", "fail"] | None = None
    iccid: str | None = None
    ledger_key: str | None = None
    """What the ledger calls it: the key, or the intent's id."""
    given_back: bool = False
    call: int = 0
    """What stands for all its calls where nothing tells which of them it was; no answer is noted under it."""
    confirmed: list[int] = field(default_factory=list[int])
    """The calls that were to give it back and had a token: only these may send anything."""
    bodies: set[bytes] = field(default_factory=set[bytes])
    """Every final answer that the key has had: there should be one."""

    @property
    def name(self) -> Key:
        """What the history knows it by."""
        return Key(self.tenant.id, self.key)

    @property
    def operation(self) -> str:
        return ISSUE_OPERATION if self.asks.days is not None else INTENT


def inventory_errand(network: NetworkProcess, tenant: Tenant, key: str) -> KilledErrand:
    """From stock, for days that nobody else asks for."""
    return KilledErrand(tenant, key, Drawn(tenant.account, TEMPLATE, network.next_days()), ledger_key=key)


async def intent_errand(http: httpx.AsyncClient, network: NetworkProcess, tenant: Tenant, key: str) -> KilledErrand | None:
    """A live intent for a product of a template that nobody else draws. None: no template is left, or the server died first."""
    template = network.next_template(tenant.account)
    if template is None:
        return None
    product = {"name": f"Plan {template}", "price_cents": 990, "currency": "EUR", **await network.offer_of(template)}
    try:
        made = await http.post("/v1/connectivity/products", json=product, headers=bearer_of(tenant) | {"Idempotency-Key": f"product-{key}"})
    except httpx.TransportError:  # it went on with what the one before it left, and met its point there
        return None
    assert made.status_code == 201, made.text
    return KilledErrand(tenant, key, Drawn(tenant.account, template, None), product=made.json()["id"])


def bearer_of(tenant: Tenant) -> dict[str, str]:
    return {"Authorization": f"Bearer {tenant.secret}"}


class Callers:
    """They call, and the history keeps what they were told."""

    def __init__(self, network: NetworkProcess) -> None:
        self._clock = network.clock
        self.history = History()

    async def issue(self, http: httpx.AsyncClient, errand: KilledErrand) -> httpx.Response | None:
        """One call with the errand's key. None: the server died before it had answered."""
        if errand.product is None:
            body: dict[str, Any] = {"accountId": errand.asks.account, "packageTemplateId": TEMPLATE, "validityPeriod": errand.asks.days}
            path = "/v1/subscribers/issue-from-inventory"
        else:
            path, body = "/v1/connectivity/intents", {"plan": errand.product}
        said = await self._send(http, "POST", path, errand, errand.operation, {"Idempotency-Key": errand.key}, body)
        if said is not None and errand.product is not None and said.status_code == 201:
            errand.ledger_key = said.json()["id"]
        return said

    async def roll_back(self, http: httpx.AsyncClient, errand: KilledErrand) -> httpx.Response | None:
        """Ask, confirm. None: the server died before it had answered."""
        path = f"/v1/subscribers/issue-from-inventory/{errand.ledger_key}"
        errand.given_back = True
        asked = await self._send(http, "DELETE", path, errand, RELEASE_OPERATION, {})
        if asked is None or asked.status_code != 202:
            return asked
        return await self._send(http, "DELETE", path, errand, RELEASE_OPERATION, {"X-Confirm-Token": str(asked.json()["confirm_token"])})

    async def _send(
        self,
        http: httpx.AsyncClient,
        method: str,
        path: str,
        errand: KilledErrand,
        operation: str,
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response | None:
        """One call, noted before and after."""
        history, name = self.history, errand.name
        errand.call = errand.call or history.begin(self._clock.now(), operation, name)
        call = history.begin(self._clock.now(), operation, name)
        errand.confirmed += [call] if "X-Confirm-Token" in headers else []
        try:
            said = await http.request(method, path, json=body, headers={**bearer_of(errand.tenant), **headers})
        except httpx.TransportError:
            history.add(self._clock.now(), "info", call, operation, name, "gone")
            return None
        kind, detail = read(operation, said)
        lasts = operation != RELEASE_OPERATION and kind in ("ok", "fail")
        digest = hashlib.sha256(said.content).hexdigest()[:16] if lasts else ""
        history.add(self._clock.now(), kind, call, operation, name, detail, digest)
        if lasts:
            errand.decided = "ok" if kind == "ok" else "fail"
            errand.bodies.add(said.content)
            errand.iccid = detail if kind == "ok" else None
        return said


def read(operation: str, said: httpx.Response) -> tuple[Kind, str]:
    """What an answer means for the key, as the simulation's callers see it. A fault of the service is no answer."""
    body = said.json()
    assert said.status_code != 500 or body.get("code") in UNSURE, said.text
    return understood(operation, ClientAnswer(said.status_code, body, said.content, "idempotent-replayed" in said.headers))
