"""An organisation that sets itself up, in a small network of its own."""

from dataclasses import dataclass, replace
from typing import Any

import httpx

from operations.catalogue import CATALOGUE
from registry.caller import Role, Tier
from simulators.network.simulated_network import SimulatedNetwork
from storage.organisations import Organisation, list_organisations
from tests.contract.fleet import new_network, writes
from tests.contract.stage import Answered, ServiceHouse
from tests.world import Credentials

SERVICE_TOKEN, OTHER_TOKEN = "sandbox-7001-token", "sandbox-7002-token"


@dataclass(slots=True)
class Newcomer:
    """Somebody of the organisation, at the door."""

    house: ServiceHouse
    who: Credentials
    sandbox: SimulatedNetwork

    async def state(self) -> dict[str, Any]:
        async with self.house.world.client(self.who.secret) as http:
            answer = await http.get("/v1/onboarding")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ask(self, step: str, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        async with self.house.world.client(self.who.secret) as http:
            return await http.post(f"/v1/onboarding/{step}", json=body or {}, headers=headers)

    async def agree(self, step: str, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        """The same, confirmed where it replaces a live connection."""
        said = await self.ask(step, body, **headers)
        if said.status_code != 202:
            return said
        return await self.ask(step, body, **headers, **{"X-Confirm-Token": said.json()["confirm_token"]})

    async def done(self, step: str, **body: Any) -> dict[str, Any]:
        """The state after a step that succeeds and is confirmed where that is asked, which is what the next GET says, too."""
        answer = await self.agree(step, body)
        assert answer.status_code == 200, answer.text
        assert await self.state() == answer.json()
        return answer.json()

    async def tool(self, operation: str, given: dict[str, Any] | None = None, key: str | None = None) -> Answered:
        return await self.house.mcp(CATALOGUE.operations[operation], self.who.secret, given or {}, key=key)

    async def organisation(self) -> Organisation:
        rows = await self.house.world.store.read(list_organisations)
        return next(row for row in rows if row.id == self.who.organisation)

    async def connection(self) -> tuple[str | None, int | None]:
        row = await self.organisation()
        return row.mode, row.account_id

    def rename(self, account: int, name: str) -> None:
        """Whoever runs the network calls an account something else."""
        assert self.sandbox.world is not None
        self.sandbox.world.accounts[account].name = name

    def asked(self) -> list[str]:
        """The methods that were called upstream, none of which may change anything."""
        methods = [call.method for call in self.sandbox.calls]
        assert writes(methods) == []
        return methods

    async def another(self, tier: Tier = Tier.PRO, **connection: Any) -> "Newcomer":
        """Another organisation in the same network."""
        return Newcomer(self.house, await self.house.world.caller(tier, **connection), self.sandbox)


async def newcomer(house: ServiceHouse, tier: Tier = Tier.PRO, role: Role = Role.ADMIN, **connection: Any) -> Newcomer:
    network, _ = new_network(int(house.world.clock.now()), house.places)
    house.places += 1
    sandbox = await house.enter(network)
    return Newcomer(house, await house.world.caller(tier, role, **connection), sandbox)


def settle_in(house: ServiceHouse, **deps: Any) -> None:
    """The service is set up in another way."""
    house.world.pipeline.deps = replace(house.world.pipeline.deps, **deps)


def pending(state: dict[str, Any]) -> tuple[bool, str | None, bool]:
    """What a state says of a managed account that was asked for."""
    return state["pending"], state["pending_reason"], state["managed_path_chosen"]


def steps_with(**statuses: str) -> list[dict[str, str]]:
    """The steps of an onboarding, to do unless said otherwise."""
    return [{"step": step, "status": statuses.get(step, "todo")} for step in ("org", "ocs", "plan", "test_esim", "complete")]


BEGINNING = {
    "object": "onboarding",
    "organization": {},
    "steps": steps_with(),
    "current_step": "org",
    "connection": {"connected": False, "mode": None, "account_id": None, "former_token_until": None},
    "managed_path_chosen": False,
    "pending": False,
    "pending_reason": None,
    "plan": None,
    "test_esim": None,
    "completed": False,
}
"""The state of an organisation that has done nothing yet, but for what it says of the organisation."""
