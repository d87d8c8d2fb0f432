"""How this process reaches the charging system: the one in the settings, or a simulated network in this process."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from clients.http import MEBIBYTE, HttpReply, Outbound, OutboundFailed, OutboundLimits, load_httpx
from clients.ocs.client import OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from clients.outside_system import WAITING_LIMIT
from registry.clock import Clock, seconds_left
from registry.limit_lease import LimitLease
from storage.issuance import IssuanceRow
from transports.http.asgi import App
from transports.settings import Settings

if TYPE_CHECKING:  # the simulated network is imported when it is first asked
    import httpx

    from simulators.network.simulated_network import SimulatedNetwork
    from simulators.network.world import World
    from simulators.transport import SimulatedSystem

SIMULATED_OCS_URL = "http://ocs.sandbox.invalid/ocs-custo/main/v1"
SIMULATED_OCS_TOKEN = "sandbox-7001-token"
DEMO_ACCOUNT = 8101
SPARE_ACCOUNTS = (8102, 8103, 8104)
"""Of the same reseller: the first newcomers of a simulated network get these."""
SIMULATED_RECEIVER_HOST = "receiver.sandbox.invalid"
"""Where webhooks of a demo may go that has no receiver: https://receiver.sandbox.invalid/status/500 answers 500."""
JSON_HEADERS = {"content-type": "application/json"}
NETWORK_DAY = 86_400
NETWORK_STEP_SECONDS = 5


class LateSimulation:
    """A simulated network, made when it is first asked: it is many modules."""

    def __init__(self, make: Callable[[], SimulatedNetwork]) -> None:
        self._make = make
        self.begun: SimulatedNetwork | None = None

    def sandbox(self) -> SimulatedNetwork:
        self.begun = self.begun or self._make()
        return self.begun


@dataclass(slots=True)
class UpstreamConnection:
    """How this process reaches the charging system."""

    pool: OcsPool
    token: str = field(repr=False)
    simulation: LateSimulation | None
    issued: list[IssuanceRow] = field(default_factory=list[IssuanceRow], repr=False)
    """eSIMs that a simulated network issued before it began anew: it gets them before its first call."""

    async def aclose(self) -> None:
        await self.pool.aclose()


def open_upstream(settings: Settings, clock: Clock, push_url: str, lease: LimitLease) -> UpstreamConnection:
    """`lease`: through it the places of a token are shared by all processes; a simulated network is this process's own.

    Nothing is connected or simulated before the first call. A simulated network sends its notifications to `push_url`."""
    if settings.ocs_url:
        wire, most = ocs_settings(settings), settings.most_waiting
        pool = OcsPool(Outbound(ocs_limits(wire), ca_file=settings.ca_file), wire, clock, most_waiting=most, lease=lease)
        return UpstreamConnection(pool, settings.ocs_token.get_secret_value(), None)
    issued: list[IssuanceRow] = []
    simulation = simulated_network(settings, clock, push_url, issued)
    pool = simulated_pool(simulation.sandbox, clock, settings.ocs_concurrency, settings.most_waiting)
    return UpstreamConnection(pool, SIMULATED_OCS_TOKEN, simulation, issued)


def ocs_settings(settings: Settings) -> OcsSettings:
    return OcsSettings(
        url=settings.ocs_url,
        statistics_url=settings.ocs_statistics_url,
        auth=settings.ocs_auth,
        concurrency=settings.ocs_concurrency,
        zone_method=settings.ocs_zone_method,
        zone_key=settings.ocs_zone_key,
        profile_key=settings.ocs_profile_key,
        legacy_expiry=settings.ocs_legacy_expiry,
        ca_file=settings.ca_file,
    )


def simulated_network(settings: Settings, clock: Clock, push_url: str, issued: Sequence[IssuanceRow]) -> LateSimulation:
    """A simulated network whose history ends today. Its clock follows `clock` in steps of 5 seconds, since each step costs time."""
    start = int(clock.now()) // NETWORK_DAY * NETWORK_DAY

    def network() -> SimulatedNetwork:
        from simulators.network.entities import PushTarget  # many modules, which the start does not wait for
        from simulators.network.restored_esims import IssuedEsim, restore_esims
        from simulators.network.seed.build import build_world
        from simulators.network.simulated_network import SimulatedNetwork

        def world() -> World:
            made = build_world(settings.sandbox_seed, start)
            given = [
                IssuedEsim(row.iccid or "", int(row.dispatched), row.template_id, row.package_id, row.validity_days, row.period)
                for row in issued
            ]
            restore_esims(made, given)
            for reseller in made.resellers.values():
                reseller.push = PushTarget(usage_url=push_url, esim_url=push_url, location_url=push_url)
            return made

        return SimulatedNetwork(world, wall=clock.now, following=True, offset=0.0, step=NETWORK_STEP_SECONDS)

    return LateSimulation(network)


async def run_simulated_network(simulation: LateSimulation, app: App) -> None:
    """Let the simulated time pass between calls, and hand the notifications to our own door, until cancelled."""
    for many in ("simulators.network.simulated_network", "simulators.network.seed.build"):
        # After the first answer, so that the start does not wait for it, and before the first call of the network.
        await anyio.to_thread.run_sync(import_module, many)
    while True:
        await anyio.sleep(NETWORK_STEP_SECONDS)
        sandbox = simulation.begun
        if sandbox is None or sandbox.world is None:  # no call yet: nothing has happened there
            continue
        await sandbox.handle("GET", "/control/state")
        if sandbox.world.pushes:
            await sandbox.deliver(partial(deliver_in_process, app))


async def deliver_in_process(app: App, url: str, body: bytes, headers: Mapping[str, str] = JSON_HEADERS) -> int:
    """Post `body` to our own door as if it had come over the network; returns the status of the answer."""
    library = await anyio.to_thread.run_sync(load_httpx)
    transport = library.ASGITransport(app=app, raise_app_exceptions=False)
    async with library.AsyncClient(transport=transport) as http:
        return (await http.post(url, content=body, headers=headers)).status_code


def simulator_transport(system: Callable[[], SimulatedSystem]) -> httpx.AsyncBaseTransport:
    """What hands requests to `system`, a simulated one in this process."""
    from simulators.transport import SimulatorTransport  # brings httpx

    return SimulatorTransport(system())


def simulated_receivers() -> Mapping[str, Outbound]:
    """The hosts of webhook receivers that are in this process, and how they are reached."""

    def receiver() -> httpx.AsyncBaseTransport:
        from simulators.webhook_receiver import SimulatedReceiver  # only where something is sent to it

        return simulator_transport(SimulatedReceiver)

    return {SIMULATED_RECEIVER_HOST: Outbound(transport=receiver)}


def simulated_pool(
    network: Callable[[], SimulatedNetwork], clock: Clock, concurrency: int = 8, most_waiting: int = WAITING_LIMIT
) -> OcsPool:
    """A pool whose calls never leave the process."""
    wire = OcsSettings(url=SIMULATED_OCS_URL, concurrency=concurrency)
    return OcsPool(SimulatedOutbound(ocs_limits(wire), network), wire, clock, most_waiting=most_waiting)


class SimulatedOutbound(Outbound):
    """The way to a simulated network in this process. A whole exchange is handed over as it is: requests and answers of httpx around it,
    which a stream has, take longer than most answers of the network.
    """

    def __init__(self, limits: OutboundLimits, network: Callable[[], SimulatedNetwork]) -> None:
        super().__init__(limits, transport=partial(simulator_transport, network))
        self._network_of = network

    async def exchange(self, method: str, url: str, *, headers: Mapping[str, str], content: bytes = b"", keep: int = MEBIBYTE) -> HttpReply:
        """One exchange within the total time limit and that of the active request; OutboundFailed where no answer comes."""
        from simulators.server import AnswerLost  # the simulated network is imported when it is first asked

        parts = urlsplit(url)
        given = {name.lower(): value for name, value in headers.items()}
        try:
            async with timeout(seconds_left(self.limits.total_seconds)):
                answer = await self._network_of().handle(method, parts.path, parts.query, given, content)
        except TimeoutError:
            raise OutboundFailed("timeout") from None
        except AnswerLost as lost:
            raise OutboundFailed("timeout" if lost.slow else "network") from None
        return HttpReply(answer.status, answer.headers, answer.body[:keep], len(answer.body) > keep)
