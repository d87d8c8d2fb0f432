"""An operator, a simulated network whose clock is the test's, and its notifications at our own webhook."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from registry.ports import SharedSecrets
from simulators.network.entities import DAY_SECONDS
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from tests.network_facts import ACCOUNT
from tests.world import HOST, NOON, SettableClock, World, no_sleep, open_world

RESELLER = 7001
DATA = 33
CALL = 1
SMS = 21
SECRET = "whsec_YnJpZGdlLXNlY3JldC1mb3ItdGVzdHMtMDEyMw=="
WEBHOOK = f"http://{HOST}/v1/webhooks/bridge4ip?token={quote(SECRET, safe='')}"


@dataclass(slots=True)
class Month:
    """The service, a client of the operator whose account is 8101, and every notification that our webhook answered."""

    world: World
    http: httpx.AsyncClient
    pushed: list[tuple[int, dict[str, Any]]] = field(default_factory=list[tuple[int, dict[str, Any]]])

    async def get(self, path: str, **query: Any) -> Any:
        return data(await self.http.get(f"/v1/{path}", params=query))

    async def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """What a write, or a read with a body, answers."""
        return data(await self.http.post(f"/v1/{path}", json=body or {}))

    async def put(self, path: str, body: dict[str, Any]) -> Any:
        """What a change answers, once it is confirmed where that is asked for."""
        said = await self.http.put(f"/v1/{path}", json=body)
        if said.status_code == 202:
            said = await self.http.put(f"/v1/{path}", json=body, headers={"X-Confirm-Token": said.json()["confirm_token"]})
        return data(said)

    async def control(self, name: str, body: dict[str, Any] | None = None, query: str = "") -> tuple[int, Any]:
        """What a phone does, or a look at the network from outside."""
        method = "GET" if body is None else "POST"
        said = await self.world.sandbox.handle(method, f"/control/{name}", query, body=orjson.dumps(body or {}))
        return said.status, orjson.loads(said.body)

    async def days(self, count: float) -> None:
        """Time passes outside and on the network; then what it had to say is delivered."""
        self.world.clock.advance(count * DAY_SECONDS)
        await self.deliver()

    async def deliver(self) -> None:
        """Notifications come to our webhook as over the network: with an address, and no credential of their own."""
        await self.control("state")
        async with self.world.client() as upstream:

            async def post(url: str, body: bytes) -> int:
                said = await upstream.post(url, content=body, headers={"content-type": "application/json"})
                assert said.json() == {"result": {"code": 0, "msg": "OK"}}, said.text
                self.pushed.append((said.status_code, orjson.loads(body)))
                return said.status_code

            await self.world.sandbox.deliver(post)

    async def template(self, name: str) -> int:
        network = await self.world.network()
        return next(found.id for found in network.templates.values() if (found.name, found.reseller_id) == (name, RESELLER))

    async def network(self, iso2: str, mnc: str) -> int:
        _, found = await self.control("networks", query=f"iso2={iso2}")
        return next(row["networkId"] for row in found["networks"] if mnc in {code["mnc"] for code in row["mccMncs"]})

    async def new_line(self) -> "Phone":
        """A line from the drawer: nobody else uses it."""
        rows = await self.get("subscribers")
        return Phone(self, next(row for row in rows if row["sim"]["status"] == "FREE")["iccid"])

    def thresholds(self, package: int | None = None) -> list[tuple[int, str, str]]:
        """Package, kind and percentage of the usage notifications that were taken."""
        told = [body["subscriberPrepaidPackage"] for _, body in self.pushed if "subscriberPrepaidPackage" in body]
        found = [(row["subscriberPackageId"], row["usageType"], row["thresholdPercentage"]) for row in told]
        return [row for row in found if package in (None, row[0])]


@dataclass(frozen=True, slots=True)
class Phone:
    """A phone with one of the operator's lines."""

    month: Month
    iccid: str

    @property
    def path(self) -> str:
        return f"subscribers/{self.iccid}"

    async def buy(self, template: str, **body: Any) -> int:
        made = await self.month.post(f"{self.path}/packages", {"packageTemplateId": await self.month.template(template), **body})
        return made["packageId"]

    async def packages(self) -> list[dict[str, Any]]:
        return await self.month.get(f"{self.path}/packages")

    async def package(self, id: int) -> dict[str, Any]:
        return next(row for row in await self.packages() if row["packageId"] == id)

    async def state(self, id: int) -> str:
        return (await self.package(id))["state"]

    async def go(self, iso2: str, mnc: str) -> int:
        """Come to a network; the location is told to our webhook."""
        network = await self.month.network(iso2, mnc)
        assert (await self.month.control("attach", {"iccid": self.iccid, "networkId": network}))[0] == 200
        await self.month.deliver()
        return network

    async def use(self, network: int, quantity: int, kind: int = DATA, other: str | None = None) -> list[dict[str, Any]]:
        """Use something; the network's call records."""
        status, said = await self.try_to_use(network, quantity, kind, other)
        assert status == 200, said
        await self.month.deliver()
        return said["records"]

    async def try_to_use(self, network: int, quantity: int, kind: int = DATA, other: str | None = None) -> tuple[int, Any]:
        body = {"iccid": self.iccid, "networkId": network, "usageType": kind, "quantity": quantity}
        return await self.month.control("usage", body if other is None else {**body, "otherParty": other})

    async def usage(self, **window: Any) -> dict[str, Any]:
        return await self.month.post(f"{self.path}/usage", window)


def data(said: httpx.Response) -> Any:
    assert said.status_code in (200, 201), said.text
    return said.json()["data"]


def records(usage: dict[str, Any]) -> list[dict[str, Any]]:
    return [record for day in days_of(usage) for record in day["subsDailyUsages"]]


def days_of(usage: dict[str, Any]) -> list[dict[str, Any]]:
    return [day for line in usage.get("usages", []) for day in line["subsPeriodUsages"]]


def micro(*costs: float) -> int:
    """Costs as whole micro-euro, which is how the network counts."""
    return sum(round(cost * 1_000_000) for cost in costs)


def micro_sum(rows: Iterable[dict[str, Any]], member: str) -> int:
    return sum(micro(row.get(member, 0.0)) for row in rows)


@asynccontextmanager
async def open_month(folder: Path, *, lines: int = 400, locations: bool = True) -> AsyncGenerator[Month]:
    """It begins at noon on 15 January 2027. Without locations our webhook hears of packages and profiles alone."""
    walls: list[SettableClock] = []  # the world makes the clock that its network follows
    sandbox = SimulatedNetwork(
        lambda: build_world(1, int(NOON), history_days=3, lines=lines),
        wall=lambda: walls[0].now() if walls else NOON,
        following=True,
        sleep=no_sleep,
    )
    secrets, limits = SharedSecrets(bridge=SECRET), Limits(burst_enabled=False)
    async with open_world(folder, CATALOGUE, limits=limits, secrets=secrets, sandbox=sandbox) as world:
        walls.append(world.clock)
        caller = await world.caller(Tier.ENTERPRISE, mode="managed", account=ACCOUNT)
        async with world.client(caller.secret) as http:
            month = Month(world, http)
            place = WEBHOOK if locations else ""
            for reseller in (RESELLER, 7002):
                targets = {"resellerId": reseller, "usageUrl": WEBHOOK, "esimUrl": WEBHOOK, "locationUrl": place}
                status, said = await month.control("push-targets", targets)
                assert status == 200, said
            yield month
        assert world.faults == []
