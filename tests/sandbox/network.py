"""The seeded network without history, and a way to speak its wire."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import orjson

from simulators.network.entities import Line
from simulators.network.seed.build import build_world
from simulators.network.simulated_network import SimulatedNetwork
from simulators.network.world import World
from simulators.server import WireAnswer

NETWORK_NOON = 1_789_992_000
"""2026-09-21T12:00:00 UTC."""
FJORD, ALPINE = "sandbox-7001-token", "sandbox-7002-token"
TELENOR = 1
NETWORK_LINES = 120
"""As few as still have every kind among them: a world is unpacked for nearly every test."""


@cache
def seeded() -> bytes:
    """The world, packed: each test unpacks its own."""
    return pickle.dumps(build_world(1, NETWORK_NOON, history_days=0, lines=NETWORK_LINES))


class Wall:
    """The time outside, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


class Network:
    """A sandbox of its own, and what a test asks it."""

    def __init__(self, *, following: bool = False, refuse_status: int = 200) -> None:
        world = cast(World, pickle.loads(seeded()))
        self.wall = Wall()
        self.slept: list[float] = []
        self.sandbox = SimulatedNetwork(world, wall=self.wall, following=following, refuse_status=refuse_status, sleep=self.sleep)
        assert self.sandbox.world is world
        self.world = world

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def send(self, body: bytes, *, version: str = "v1", query: str = f"token={FJORD}", **more: Any) -> WireAnswer:
        return await self.sandbox.handle("POST", f"/ocs-custo/main/{version}", query, more.get("headers"), body, more.get("client", ""))

    async def ask(self, method: str, params: object, *, version: str = "v1", token: str = FJORD) -> dict[str, Any]:
        answer = await self.send(orjson.dumps({method: params}), version=version, query=f"token={token}")
        assert answer.status == 200
        return orjson.loads(answer.body)

    async def get(self, method: str, params: object, *, version: str = "v1", token: str = FJORD) -> Any:
        answer = await self.ask(method, params, version=version, token=token)
        assert answer["status"] == {"code": 0, "msg": "OK"}, answer
        return next((value for key, value in answer.items() if key != "status"), None)

    async def code(self, method: str, params: object, *, version: str = "v1", token: str = FJORD) -> int:
        return (await self.ask(method, params, version=version, token=token))["status"]["code"]

    async def control(self, verb: str, name: str, value: object = None, *, query: str = "", status: int = 200) -> Any:
        answer = await self.sandbox.handle(verb, f"/control/{name}", query, {}, b"" if value is None else orjson.dumps(value))
        assert answer.status == status, answer.body
        return orjson.loads(answer.body)

    def line(self, fits: Callable[[Line], bool] = lambda line: True, *, account: int = 8101) -> Line:
        return next(line for line in self.world.lines_of(account) if fits(line))

    def active(self) -> Line:
        return self.line(lambda line: line.status == "ACTIVE" and line.sim.esim and not line.series)

    def ended(self) -> Line:
        """A line at its end of life."""
        return next(line for line in self.world.lines.values() if line.status == "END_OF_LIFE" and line.reseller_id == 7001)

    def foreign(self) -> Line:
        return self.line(account=8201)
