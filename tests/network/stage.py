"""An operator of the simulated network's first reseller, and another organisation on the same reseller."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from operations.network import destinations, network_defaults, tariffs, template_changes, templates, zones
from registry.catalogue import Catalogue, Toolset
from tests.network_facts import FOREIGN_TOKEN
from tests.stage import OperatorStage, open_operator

NETWORK_OPERATIONS = Catalogue(
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


@dataclass(slots=True)
class NetworkStage(OperatorStage):
    neighbour: httpx.AsyncClient = field(init=False)
    own: httpx.AsyncClient = field(init=False)

    async def data(self, path: str, **query: Any) -> Any:
        said = await self.http.get(path, params=query)
        assert said.status_code == 200, said.text
        return said.json()["data"]

    async def new_template(self, **body: Any) -> int:
        said = await self.http.post(
            "/v1/package-templates",
            json={"name": "Mine", "locationZoneId": 2301, "validityDays": 30, "dataLimit": 1 << 30, "cost": 4.5, **body},
        )
        assert said.status_code == 201, said.text
        return said.json()["data"]["templateId"]


@asynccontextmanager
async def open_network_stage(folder: Path) -> AsyncGenerator[NetworkStage]:
    async with open_operator(folder, NETWORK_OPERATIONS, NetworkStage) as stage:
        stage.neighbour, stage.own = await stage.beside(account=8102), await stage.beside(token=FOREIGN_TOKEN)
        yield stage
