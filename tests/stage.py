"""What most tests stand on: an operator of the simulated network behind the service's doors, opened step by step.

    async with open_operator(tmp_path, CATALOGUE, MyStage) as stage:
        stage.own = await stage.beside(token=OWN_TOKEN)

A folder's own stage is a subclass of `OperatorStage` that says what else there is and what its tests ask for.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson
import pytest

from operations.fleet.sync import FAILED_LINE_SECONDS
from registry.caller import Tier
from registry.catalogue import Catalogue
from registry.limits import Limits
from simulators.network.entities import Line
from simulators.network.faults import NetworkFault
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World as Network
from tests.mcp.house import House, open_house, request
from tests.network_facts import ACCOUNT
from tests.world import Credentials, World

Made = TypeVar("Made")
Opener = Callable[..., AbstractAsyncContextManager[Made]]


def opened(opener: Opener[Made], *given: object, faultless: bool = False, **named: object) -> Any:
    """A fixture that opens something in the folder of the test, and closes it afterwards. `faultless`: no call has met a fault of ours."""

    @pytest.fixture
    async def made(tmp_path: Path) -> AsyncGenerator[Made]:
        async with opener(tmp_path, *given, **named) as something:
            yield something
            if faultless:
                assert getattr(something, "world", something).faults == []  # pyright: ignore[reportAttributeAccessIssue]  # a World, or has one

    return made


def opened_on_both(opener: Opener[Made], *given: object, faultless: bool = False, **named: object) -> Any:
    """The same on each database, whose address is given as `url`."""

    @pytest.fixture
    async def made(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Made]:
        async with opener(tmp_path, *given, url=database_url, **named) as something:
            yield something
            if faultless:
                assert getattr(something, "world", something).faults == []  # pyright: ignore[reportAttributeAccessIssue]  # a World, or has one

    return made


def without_request_id(answer: httpx.Response | Mapping[str, Any]) -> dict[str, Any]:
    """An answer, or its body, but for the number of its request, which is another each time."""
    body: Mapping[str, Any] = answer.json() if isinstance(answer, httpx.Response) else answer
    return {name: value for name, value in body.items() if name != "request_id"}


def caller_client(tier: Tier = Tier.PRO, **organisation: Any) -> Any:
    """A fixture: an HTTP client of `world` whose organisation is a new one, of this tier and connected as `organisation` says."""

    @pytest.fixture
    async def made(world: World) -> AsyncGenerator[httpx.AsyncClient]:
        async with world.client((await world.caller(tier, **organisation)).secret) as client:
            yield client

    return made


def credential_client(secret: str | None) -> Any:
    """A fixture: an HTTP client of `world` with this credential, or with none."""

    @pytest.fixture
    async def made(world: World) -> AsyncGenerator[httpx.AsyncClient]:
        async with world.client(secret) as client:
            yield client

    return made


@dataclass(slots=True)
class OperatorStage:
    """The service behind both doors, its network, and a client of an operator whose account is 8101."""

    house: House
    network: Network
    who: Credentials
    http: httpx.AsyncClient
    clients: AsyncExitStack = field(repr=False)

    @property
    def world(self) -> World:
        return self.house.world

    async def beside(self, tier: Tier = Tier.ENTERPRISE, **organisation: Any) -> httpx.AsyncClient:
        """A client of one more organisation: `account` of the same reseller, or with a `token` of its own."""
        mode = None if "token" in organisation else "managed"
        caller = await self.world.caller(tier, mode=mode, **organisation)
        return await self.clients.enter_async_context(self.world.client(caller.secret))

    def calls(self, *methods: str) -> list[Any]:
        """What was sent to the network under these names; without names, everything."""
        return [call.payload for call in self.world.sandbox.calls if not methods or call.method in methods]

    def asked(self, *methods: str) -> int:
        """How often the network was asked so."""
        return len(self.calls(*methods))

    def sent(self, since: int = 0) -> list[str]:
        """The methods of the wire that were called, the first `since` left out."""
        return [call.method for call in self.world.sandbox.calls[since:]]

    def trouble(self, method: str, **kind: Any) -> None:
        self.world.sandbox.faults.add(NetworkFault(method, **kind))

    def wait_after_failures(self) -> None:
        """So much time passes that lines are read again which could not be read."""
        self.world.clock.advance(FAILED_LINE_SECONDS + 1)

    def lines(self, account: int = ACCOUNT) -> list[Line]:
        return list(self.network.lines_of(account))

    def template(self, name: str, reseller: int = 7001) -> int:
        return next(id for id, row in self.network.templates.items() if (row.name, row.reseller_id) == (name, reseller))

    async def answer(self, path: str, status: int = 200, **body: Any) -> Any:
        said = await self.http.post(path, json=body)
        assert said.status_code == status, said.text
        return said.json()

    async def confirmed(self, path: str, body: dict[str, Any] | None = None, method: str = "PUT", **headers: str) -> httpx.Response:
        """A change whose confirm token is sent back; a refusal is given as it is."""
        asked = await self.http.request(method, path, json=body, headers=headers)
        if asked.status_code != 202:
            return asked
        return await self.http.request(method, path, json=body, headers={**headers, "X-Confirm-Token": asked.json()["confirm_token"]})

    async def tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        said = await self.house.post(request("tools/call", name=name, arguments=arguments), secret=self.who.secret)
        events = said.headers["content-type"].startswith("text/event-stream")  # it took long
        told = [line.removeprefix("data: ") for line in said.text.splitlines() if line.startswith("data: {")][-1] if events else said.text
        return orjson.loads(told)["result"]


S = TypeVar("S", bound=OperatorStage)


@asynccontextmanager
async def open_operator(
    folder: Path,
    catalogue: Catalogue,
    kind: type[S],
    *,
    tier: Tier = Tier.ENTERPRISE,
    sandbox: SimulatedNetwork | None = None,
    limits: Limits | None = None,
) -> AsyncGenerator[S]:
    """A service without faults, and its first operator; without `limits` nobody calls too fast."""
    async with (
        open_house(folder, catalogue=catalogue, limits=limits or Limits(burst_enabled=False), sandbox=sandbox) as house,
        AsyncExitStack() as clients,
    ):
        network, who = await house.world.network(), await house.world.caller(tier, mode="managed", account=ACCOUNT)
        http = await clients.enter_async_context(house.world.client(who.secret))
        yield kind(house, network, who, http, clients)
        assert house.world.faults == []
