"""An operator of account 8101 who draws live eSIMs from a simulated network, and everything that reports what these do."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from operations.catalogue import CATALOGUE
from operations.ledger.reconciliation import Reconciliation
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.world_runtime import NetworkCall
from storage.issuance import IssuanceRow, find_issuance
from storage.replicas import renew_replica
from tests.bridge.pushing import OK, PUSH_SECRET, PUSHES
from tests.issuance.road import Road
from tests.network_facts import ACCOUNT, INTERNAL
from tests.world import HOST, Credentials, World, open_world

PLAN = "nordic-1gb-30d"
GIB = 1 << 30
WEBHOOK = f"http://{HOST}{PUSHES}?token={quote(PUSH_SECRET, safe='')}"
PUSHED = {"unitsBefore": 0, "thresholdPercentage": "80", "thresholdUnits": "1", "subscriberId": 7, "subscriberIMSI": "001010123456789"}


def used_of(package: object, used: object, *, total: object = GIB, kind: str = "DATA", **more: object) -> dict[str, object]:
    """A usage push as the charging system sends it."""
    told = {**PUSHED, "subscriberPackageId": package, "unitsAfter": used, "totalUnits": total, "usageType": kind, **more}
    return {"subscriberPrepaidPackage": told}


@dataclass(slots=True)
class Operator:
    """The operator's own client, and the sender that has the internal key."""

    world: World
    road: Road
    me: Credentials
    http: httpx.AsyncClient
    bridge: httpx.AsyncClient

    async def draw(self, key: str = "k", http: httpx.AsyncClient | None = None) -> dict[str, Any]:
        """A live intent, whatever became of its eSIM."""
        said = await (http or self.http).post("/v1/connectivity/intents", json={"plan": PLAN}, headers={"Idempotency-Key": key})
        assert said.status_code == 201, said.text
        return said.json()

    async def row(self, intent: str, organisation: str | None = None) -> IssuanceRow:
        found = await self.world.store.read(find_issuance, organisation=organisation or self.me.organisation, key=intent)
        assert found is not None
        return found

    async def give_back(self, intent: str) -> None:
        path = f"/v1/subscribers/issue-from-inventory/{intent}"
        token = (await self.http.delete(path)).json()["confirm_token"]
        said = await self.http.delete(path, headers={"X-Confirm-Token": token})
        assert said.status_code == 200, said.text

    async def push(self, body: object) -> None:
        said = await self.bridge.post(PUSHES, json=body)
        assert (said.status_code, said.json()) == (200, OK), said.text

    async def observe(self, kind: str, iccid: str, at: float | None = None, **data: object) -> dict[str, Any]:
        when = {} if at is None else {"occurred_at": at}
        body = {"bridge_type": kind, "iccid": iccid, "data": data, **when}
        said = await self.bridge.post("/v1/connectivity/events/observe", json=body)
        assert said.status_code == 200, said.text
        return said.json()

    async def ingest(self, ref: str, iccid: str, used: int, at: float | None = None, kind: str = "data") -> None:
        when = self.world.clock.now() if at is None else at
        line = {"ref": ref, "iccid": iccid, "bytes": used, "usage_type": kind, "occurred_at": when}
        assert (await self.bridge.post("/v1/connectivity/usage_records/ingest", json=line)).status_code == 200

    async def told(self, intent: str, http: httpx.AsyncClient | None = None) -> list[object]:
        """What an intent's events said, oldest first: thresholds as numbers, first attachments as countries."""
        said = await (http or self.http).get("/v1/connectivity/events", params={"intent": intent})
        return [short(event) for event in reversed(said.json()["data"])]

    async def settle(self) -> int:
        await self.world.store.write(renew_replica, replica=self.world.journal.replica, now=self.world.clock.now())
        return await Reconciliation(self.world.pipeline.deps, print).step()

    async def control(self, name: str, body: dict[str, object]) -> Any:
        """Something that happens at the network."""
        said = await self.world.sandbox.handle("POST", f"/control/{name}", body=orjson.dumps(body))
        assert said.status == 200, said.body
        return orjson.loads(said.body)

    def calls(self) -> list[NetworkCall]:
        return self.world.sandbox.calls


def short(event: dict[str, Any]) -> object:
    data = event["data"]
    return data["threshold_percent"] if "threshold_percent" in data else data.get("country", event["type"])


@asynccontextmanager
async def open_bridge_operator(folder: Path, url: str | None = None) -> AsyncGenerator[Operator]:
    secrets, limits = SharedSecrets(internal=INTERNAL, bridge=PUSH_SECRET), Limits(burst_enabled=False)
    async with open_world(folder, CATALOGUE, url=url, limits=limits, secrets=secrets) as world:
        former = world.pipeline.deps
        road = Road(world.sandbox)
        world.pipeline.deps = replace(former, ocs=road.pool(world.clock))
        me = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        await world.network()
        async with world.client(me.secret) as http, world.client(INTERNAL) as bridge:
            yield Operator(world, road, me, http, bridge)
        await former.ocs.aclose()
        await world.pipeline.deps.ocs.aclose()
        assert world.faults == []
