"""An organisation with an account at the processor, and the processor's events as a test writes and signs them."""

import hashlib
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import sqlalchemy as sa

from operations.billing import charges, disputes, payments_webhook, payouts, refunds
from operations.ledger.payment_intake import sync_payments
from registry.caller import Tier
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits
from storage.commissions import PlatformFeeTable
from storage.connect_accounts import attach_connect_account
from storage.engine.sql import Connection, Query
from storage.payment_records import find_refunds
from tests.world import NOON, Credentials, World, open_world

MODULES = (charges, disputes, charges, payouts, payouts, refunds, refunds, payments_webhook)
BILLING = Catalogue([Toolset("billing", "Charges, refunds, disputes, payouts, fees.", MODULES)])
WEBHOOK = "/v1/operator-billing/payments-webhook"
PAYEE, OTHER_PAYEE = "acct_1Fjord", "acct_1Alpine"
START = int(NOON)
Object = dict[str, Any]


class PlatformFee(NamedTuple):
    ref: str
    organisation: str
    month: str
    currency: str
    amount: int


ALL_FEES = Query(PlatformFee, sa.select(*(PlatformFeeTable.table.c[name] for name in PlatformFee._fields)).order_by("ref"))


def all_fees(connection: Connection) -> list[PlatformFee]:
    return connection.all(ALL_FEES)


def charge_json(id: str = "ch_1", amount: int = 10_000, **said: Any) -> Object:
    given: Object = {"id": id, "object": "charge", "amount": amount, "amount_refunded": 0, "currency": "eur", "status": "succeeded"}
    given |= {"refunded": False, "disputed": False, "created": START - 60, "payment_intent": f"pi_of_{id}", "application_fee": None}
    return {**given, "failure_code": None, "metadata": {}, **said}


def refund_json(id: str = "re_1", amount: int = 1000, **said: Any) -> Object:
    given: Object = {"id": id, "object": "refund", "amount": amount, "currency": "eur", "status": "succeeded", "charge": "ch_1"}
    return {**given, "payment_intent": "pi_of_ch_1", "reason": None, "created": START, "metadata": {}, **said}


def dispute_json(id: str = "du_1", **said: Any) -> Object:
    given: Object = {"id": id, "object": "dispute", "amount": 10_000, "currency": "eur", "status": "needs_response", "charge": "ch_1"}
    given |= {"reason": "fraudulent", "payment_intent": "pi_of_ch_1", "created": START, "metadata": {}}
    return {**given, "evidence_details": {"due_by": START + 604_800, "submission_count": 0}, **said}


def payout_json(id: str = "po_1", amount: int = 5000, **said: Any) -> Object:
    given: Object = {"id": id, "object": "payout", "amount": amount, "currency": "eur", "status": "pending", "automatic": False}
    return {**given, "arrival_date": START + 86_400, "created": START, "failure_code": None, "metadata": {}, **said}


def fee_json(id: str = "fee_1", amount: int = 100, **said: Any) -> Object:
    given: Object = {"id": id, "object": "application_fee", "account": PAYEE, "amount": amount, "amount_refunded": 0}
    return {**given, "currency": "eur", "charge": "ch_1", "created": START, "refunded": False, **said}


def event_json(type: str, about: Object, *, id: str = "", account: str | None = PAYEE, created: int = START, live: bool = False) -> Object:
    """An event on the wire; without an id, one made of what it says."""
    body = {"object": "event", "type": type, "created": created, "livemode": live, "data": {"object": about}}
    body |= {} if account is None else {"account": account}
    return {"id": id or "evt_" + hashlib.sha256(orjson.dumps(body)).hexdigest()[:24], **body}


def sign(body: bytes, secret: str, at: float) -> str:
    digest = hmac.new(secret.encode(), b"%d.%b" % (int(at), body), hashlib.sha256).hexdigest()
    return f"t={int(at)},v1={digest}"


@dataclass(slots=True)
class MoneyStage:
    world: World
    who: Credentials
    account: str = PAYEE
    told: list[int] = field(default_factory=list[int])

    def http(self, who: Credentials | None = None) -> httpx.AsyncClient:
        return self.world.client((who or self.who).secret)

    async def post(self, body: bytes, signature: str | None) -> httpx.Response:
        headers = {"content-type": "application/json"} | ({} if signature is None else {"Stripe-Signature": signature})
        async with self.world.client() as http:
            return await http.post(WEBHOOK, content=body, headers=headers)

    async def tell(self, *events: Object) -> None:
        """Events as the processor sends them, all of which are taken."""
        for each in events:
            body = orjson.dumps(each)
            answer = await self.post(body, sign(body, self.world.payments.webhook_secret, self.world.clock.now()))
            assert (answer.status_code, answer.json()) == (200, {"received": True}), answer.text

    async def listed(self, what: str, who: Credentials | None = None, **query: Any) -> Object:
        async with self.http(who) as http:
            answer = await http.get(f"/v1/operator-billing/{what}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refund(self, key: str | None = None, who: Credentials | None = None, **body: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        async with self.http(who) as http:
            return await http.post("/v1/operator-billing/refunds", json=body, headers=headers)

    def at_processor(self, what: str) -> list[Any]:
        return list(getattr(self.world.payments.state.book(self.account), what).values())

    async def trouble(self, kind: str, path: str, *, after: bool = False, times: int = 9) -> None:
        """What the processor's next calls meet; `after`: they take effect all the same."""
        await self.world.ask_payments("POST", "faults", {"trouble": kind, "path": path, "after": after, "times": times})

    async def calm(self) -> None:
        await self.world.ask_payments("DELETE", "faults")

    async def reserved(self, charge: str) -> int:
        found = await self.world.store.read(find_refunds, account=self.account, charge=charge)
        return 0 if found is None else found.reserved

    async def sync(self) -> int:
        return await sync_payments(self.world.pipeline.deps, organisation=self.who.organisation, account=self.account)

    async def platform_fees(self) -> list[PlatformFee]:
        return await self.world.store.read(all_fees)

    async def pay_out(self, key: str | None = None, **body: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        async with self.http() as http:
            return await http.post("/v1/operator-billing/payouts/manual", json=body, headers=headers)


async def with_account(world: World, account: str, tier: Tier = Tier.ENTERPRISE) -> Credentials:
    """A new organisation that has this account, which the simulated processor need not know."""
    who, now = await world.caller(tier), world.clock.now()
    named = {"organisation": who.organisation, "account": account, "kind": "express", "status": "active"}
    await world.store.write(attach_connect_account, **named, as_of=now - 3600, now=now)
    return who


@asynccontextmanager
async def open_money_stage(folder: Path, *, url: str | None = None, connected: bool = False) -> AsyncGenerator[MoneyStage]:
    """The stage; `connected`: its account is one that the simulated processor knows."""
    async with open_world(folder, BILLING, url=url, limits=Limits(burst_enabled=False)) as world:
        if connected:
            who = await world.caller(Tier.ENTERPRISE)
            stage = MoneyStage(world, who, await world.connect_payments(who))
        else:
            stage = MoneyStage(world, await with_account(world, PAYEE))
        yield stage
        assert world.faults == [], [repr(fault[2]) + str(fault[:2]) for fault in world.faults]
