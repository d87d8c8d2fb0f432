"""An operator of the simulated network's first reseller, and another organisation on the same reseller."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from operations.network import destinations, network_defaults, tariffs, template_changes, templates, zones
from registry.catalogue import Catalogue, Toolset
from registry.limits import Limits, Tier
from simulators.network.world import World as Network
from tests.world import World, open_world

CATALOGUE = Catalogue(
    [
        Toolset(
            "network",
            "Networks, zones, templates, tariffs.",
            (
                network_defaults,
                destinations,
                zones,
                zones,
                zones,
                zones,
                network_defaults,
                network_defaults,
                templates,
                templates,
                template_changes,
                template_changes,
                template_changes,
                tariffs,
                tariffs,
            ),
        )
    ]
)
FOREIGN_TOKEN = "sandbox-7002-token"


@dataclass(slots=True)
class Stage:
    """The service, its network, and the clients of two organisations that share a reseller and of one that has its own."""

    world: World
    network: Network
    http: httpx.AsyncClient
    beside: httpx.AsyncClient
    own: httpx.AsyncClient

    def calls(self, method: str) -> list[Any]:
        """What was asked of the network by one method."""
        return [call.payload for call in self.world.sandbox.calls if call.method == method]

    async def data(self, path: str, **query: Any) -> Any:
        """A read that succeeds."""
        said = await self.http.get(path, params=query)
        assert said.status_code == 200, said.text
        return said.json()["data"]

    async def confirmed(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """A change whose confirm token is sent back; a refusal is given as it is."""
        asked = await self.http.put(path, json=body)
        if asked.status_code != 202:
            return asked
        return await self.http.put(path, json=body, headers={"X-Confirm-Token": asked.json()["confirm_token"]})

    async def template(self, **body: Any) -> int:
        """A template of the operator's own."""
        said = await self.http.post(
            "/v1/package-templates",
            json={"name": "Mine", "locationZoneId": 2301, "validityDays": 30, "dataLimit": 1 << 30, "cost": 4.5, **body},
        )
        assert said.status_code == 201, said.text
        return said.json()["data"]["templateId"]


@asynccontextmanager
async def open_stage(folder: Path) -> AsyncGenerator[Stage]:
    """Everything connected, nothing asked yet."""
    async with open_world(folder, CATALOGUE, limits=Limits(burst_enabled=False)) as world:
        network = await world.network()
        caller = await world.caller(Tier.ENTERPRISE, mode="managed", account=8101)
        other = await world.caller(Tier.ENTERPRISE, mode="managed", account=8102)
        alone = await world.caller(Tier.ENTERPRISE, token=FOREIGN_TOKEN)
        async with world.client(caller.secret) as http, world.client(other.secret) as beside, world.client(alone.secret) as own:
            yield Stage(world, network, http, beside, own)
        assert world.faults == []
