"""The whole service over a planted network, in this process: real pipeline, real database, HTTP door, and a clock that stands still."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World
from storage.sealing import OWN_TOKEN_FIELD
from storage.upstream_connections import set_connection
from transports.http.door import HttpDoor
from transports.http.request import HttpRules
from transports.logs import RequestLine
from transports.service import Service, build_service
from transports.settings import Settings
from transports.upstream import SIMULATED_OCS_TOKEN, simulated_pool

HOST = "127.0.0.1"
BASE_URL = f"http://{HOST}"
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class StandingClock:
    """Always the same moment."""

    wall: float

    def now(self) -> float:
        """Unix seconds."""
        return self.wall

    def monotonic(self) -> float:
        """Seconds."""
        return self.wall


class Faulty(Exception):
    """The service broke; a measurement of that is none."""


@asynccontextmanager
async def serving(world: World, folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A client with the key of an organisation that has all lines of the first reseller."""
    clock = StandingClock(float(world.now))
    settings = Settings.model_validate({"data": folder, "burst_limit": False})
    service = build_service(settings, BASE_URL, clock=clock, report=lambda _: None, apart=True)
    try:
        demo = await service.start(seed=True)
        assert demo is not None
        assert demo.api_key is not None
        await connect(service, demo.organisation)
        pool = simulated_pool(lambda: SimulatedNetwork(world, wall=clock.now), clock)
        service.pipeline.deps = replace(service.pipeline.deps, ocs=pool)
        rules = HttpRules(hosts=frozenset((HOST,)), origins=frozenset((BASE_URL,)))
        door = HttpDoor(service.pipeline, rules=rules, log=unlogged, fault=broken)
        headers = {"Authorization": f"Bearer {demo.api_key}"}
        transport = httpx.ASGITransport(door)
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers, timeout=PATIENCE) as http:
            yield http
        await pool.aclose()
    finally:
        await service.stop()


async def connect(service: Service, organisation: str) -> None:
    """A token of its own sees all accounts of its reseller."""
    sealed = service.pipeline.deps.keyring.seal(SIMULATED_OCS_TOKEN, org_id=organisation, field=OWN_TOKEN_FIELD)
    await service.store.write(set_connection, organisation=organisation, mode="own", account_id=None, own_token=sealed)


def unlogged(line: RequestLine) -> None:
    """Nobody reads it."""
    del line


def broken(request_id: str, operation: str, error: BaseException) -> None:
    """A fault of ours ends the measurement."""
    del request_id
    raise Faulty(operation) from error
