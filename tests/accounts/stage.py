"""Two operators on the simulated network: one whose account is 8101 of a shared reseller, one with a reseller token of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from operations.accounts import accounts, line_moves, resellers
from operations.subscribers import line_status, locations, network_access, subscribers, usage
from registry.catalogue import Catalogue, Toolset
from simulators.network.entities import Line
from simulators.network.simulated_network import SimulatedNetwork
from tests.network_facts import OWN_TOKEN
from tests.stage import OperatorStage, open_operator

ACCOUNTS = Toolset("accounts", "Accounts.", (accounts, accounts, accounts, line_moves, resellers, resellers, resellers))
LINES = Toolset("subscribers", "Lines.", (network_access, locations, locations, usage, subscribers, line_status, usage, subscribers))
CATALOGUE = Catalogue([ACCOUNTS, LINES])


@dataclass(slots=True)
class AccountsStage(OperatorStage):
    own: httpx.AsyncClient = field(init=False)

    @property
    def managed(self) -> httpx.AsyncClient:
        return self.http

    @property
    def operator(self) -> str:
        return self.who.organisation

    def used(self) -> Line:
        """A line of 8101 that was seen and used."""
        return next(line for line in self.lines(8101) if line.sighting and line.cdrs)

    def fresh(self) -> Line:
        """A line of 8101 that waits in the drawer."""
        return next(line for line in self.lines(8101) if line.sim.status == "FREE")


@asynccontextmanager
async def open_accounts_stage(folder: Path, sandbox: SimulatedNetwork | None = None) -> AsyncGenerator[AccountsStage]:
    async with open_operator(folder, CATALOGUE, AccountsStage, sandbox=sandbox) as stage:
        stage.own = await stage.beside(token=OWN_TOKEN)
        yield stage


async def confirmed(http: httpx.AsyncClient, path: str, body: dict[str, object]) -> httpx.Response:
    asked = await http.put(path, json=body)
    assert asked.status_code == 202, asked.text
    return await http.put(path, json=body, headers={"X-Confirm-Token": asked.json()["confirm_token"]})
