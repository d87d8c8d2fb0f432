"""The composites over a whole fleet behind both doors, on the simulated network: one caller of account 8101, one of all its siblings."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from operations.intelligence import fleet_health, marketing_intelligence
from registry.catalogue import Catalogue, Toolset
from registry.limits import Tier
from simulators.network.faults import NetworkFault
from tests.mcp.house import House, open_house
from tests.world import Credentials

CATALOGUE = Catalogue(
    [Toolset("intelligence", "Fleets.", (fleet_health, marketing_intelligence))], core=("fleet_health", "marketing_intelligence")
)
HEALTH, MARKET = "/v1/intelligence/fleet-health", "/v1/intelligence/marketing-intelligence"
ACCOUNT, SIBLING, FOREIGN = 8101, 8102, 8201
TOKEN = "sandbox-7001-token"


@dataclass
class Stage:
    """The service, and its callers."""

    house: House
    managed: Credentials
    own: Credentials
    http: httpx.AsyncClient
    """Of the caller of account 8101."""
    all: httpx.AsyncClient
    """Of the caller with a token of its own."""

    def trouble(self, method: str, **kind: object) -> None:
        """What calls of a method meet."""
        self.house.world.sandbox.faults.add(NetworkFault(method, **kind))  # pyright: ignore[reportArgumentType]  # the kinds are checked by the fault

    def calls(self, *methods: str) -> int:
        """How often the network was asked so."""
        return sum(call.method in methods for call in self.house.world.sandbox.calls)

    def forget(self) -> None:
        """So much time passes that nothing is believed any more which a minute ago was."""
        self.house.world.clock.advance(61)


@asynccontextmanager
async def open_stage(folder: Path) -> AsyncGenerator[Stage]:
    """A faultless service."""
    async with open_house(folder, catalogue=CATALOGUE) as house:
        await house.world.network()
        managed = await house.world.caller(Tier.FREE, mode="managed", account=ACCOUNT)
        own = await house.world.caller(Tier.FREE, token=TOKEN)
        async with house.world.client(managed.secret) as http, house.world.client(own.secret) as everything:
            yield Stage(house, managed, own, http, everything)
        assert house.world.faults == []


async def found(http: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    """An answer."""
    said = await http.post(path, json=body)
    assert said.status_code == 200, said.text
    return said.json()


def total(rows: Iterable[dict[str, Any]], name: str) -> Any:
    """A sum over rows."""
    return sum(row[name] for row in rows)
