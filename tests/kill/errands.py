"""What the callers want: eSIMs, each under a key of its own, and some of them given back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from tests.kill.network import TEMPLATE, Drawn, Network
from tests.kill.stage import Tenant
from tests.simulation.history import History, Key, Kind

ISSUE, INTENT, ROLLBACK = "issue_esim_from_inventory", "create_connectivity_intent", "rollback_esim_issuance"
NOT_OURS = {401, 409, 429, 503}
"""Statuses of answers that are not bound to the key; 409 is where it says that there is no free eSIM."""
UNSURE = ("OUTCOME_UNKNOWN", "MANUAL_RECONCILIATION_REQUIRED")


@dataclass(slots=True)
class Errand:
    """One eSIM that somebody wants."""

    tenant: Tenant
    key: str
    asks: Drawn
    product: str | None = None
    decided: Literal["ok", "fail"] | None = None
    iccid: str | None = None
    ledger_key: str | None = None
    """What the ledger calls it: the key, or the intent's id."""
    given_back: bool = False
    bodies: set[bytes] = field(default_factory=set[bytes])
    """Every final answer that the key has had: there should be one."""

    @property
    def name(self) -> Key:
        """What the history knows it by."""
        return Key(self.tenant.id, self.key)

    @property
    def operation(self) -> str:
        """Which operation draws it."""
        return ISSUE if self.asks.days is not None else INTENT

    @property
    def number(self) -> int:
        """What tells its dispatch from all others."""
        return number_of(self.asks)


def number_of(asks: Drawn) -> int:
    """The days, which are its own; an intent has none, and a template of its own in its account."""
    return asks.days if asks.days is not None else asks.template * 10_000 + asks.account


def inventory_errand(network: Network, tenant: Tenant, key: str) -> Errand:
    """From stock, for days that nobody else asks for."""
    return Errand(tenant, key, Drawn(tenant.account, TEMPLATE, network.next_days()), ledger_key=key)


async def intent_errand(http: httpx.AsyncClient, network: Network, tenant: Tenant, key: str) -> Errand | None:
    """A live intent for a product of a template that nobody else draws; None when there is no template left."""
    template = network.next_template(tenant.account)
    if template is None:
        return None
    product = {
        "name": f"Plan {template}",
        "data_mb": 1000,
        "validity_days": 30,
        "countries": ["NO"],
        "price_cents": 990,
        "currency": "EUR",
        "package_template_id": template,
    }
    made = await http.post("/v1/connectivity/products", json=product, headers=bearer(tenant) | {"Idempotency-Key": f"product-{key}"})
    assert made.status_code == 201, made.text
    return Errand(tenant, key, Drawn(tenant.account, template, None), product=made.json()["id"])


def bearer(tenant: Tenant) -> dict[str, str]:
    """The caller's credential."""
    return {"Authorization": f"Bearer {tenant.secret}"}


class Callers:
    """They call, and the history keeps what they were told."""

    def __init__(self, network: Network) -> None:
        self._clock = network.clock
        self.history = History()

    async def issue(self, http: httpx.AsyncClient, errand: Errand) -> httpx.Response | None:
        """One call with the errand's key. None: the server died before it had answered."""
        if errand.product is None:
            body: Mapping[str, Any] = {"accountId": errand.asks.account, "packageTemplateId": TEMPLATE, "validityPeriod": errand.asks.days}
            path = "/v1/subscribers/issue-from-inventory"
        else:
            path, body = "/v1/connectivity/intents", {"plan": errand.product}
        call = self._begin(errand)
        try:
            said = await http.post(path, json=body, headers=bearer(errand.tenant) | {"Idempotency-Key": errand.key})
        except httpx.TransportError as broken:
            self._add("info", call, errand, type(broken).__name__)
            return None
        kind, detail = understood(said)
        self._add(kind, call, errand, detail)
        assert kind != "fault", f"{said.status_code}: {said.text}"
        if kind in ("ok", "fail"):
            errand.decided = kind
            errand.bodies.add(said.content)
            errand.iccid = detail if kind == "ok" else None
        if errand.product is not None and said.status_code == 201:
            errand.ledger_key = said.json()["id"]
        return said

    async def roll_back(self, http: httpx.AsyncClient, errand: Errand) -> httpx.Response | None:
        """Ask, confirm. None: the server died before it had answered."""
        path = f"/v1/subscribers/issue-from-inventory/{errand.ledger_key}"
        errand.given_back = True
        try:
            asked = await http.delete(path, headers=bearer(errand.tenant))
            if asked.status_code != 202:
                return asked
            token = {"X-Confirm-Token": str(asked.json()["confirm_token"])}
            return await http.delete(path, headers=bearer(errand.tenant) | token)
        except httpx.TransportError:
            return None

    def _begin(self, errand: Errand) -> int:
        self.history.calls += 1
        self._add("invoke", self.history.calls, errand, "")
        return self.history.calls

    def _add(self, kind: Any, call: int, errand: Errand, detail: str) -> None:
        self.history.add(self._clock.now(), kind, call, errand.operation, errand.name, detail)


def understood(said: httpx.Response) -> tuple[Kind | Literal["fault"], str]:
    """What an answer means for the key."""
    body = said.json()
    if said.status_code == 201:
        return understood_intent(body) if "object" in body else ("ok", body["data"]["iccid"])
    code = str(body.get("code"))
    if code in UNSURE:
        return "info", code
    if said.status_code == 500:
        return "fault", code
    return ("refused" if said.status_code in NOT_OURS and code != "no_inventory" else "fail"), code


def understood_intent(body: Mapping[str, Any]) -> tuple[Kind, str]:
    """An intent tells by its status."""
    if body["status"] == "succeeded":
        return "ok", body["esim"]["iccid"]
    return ("fail" if body["status"] == "failed" else "info"), str((body["error"] or {}).get("code"))
