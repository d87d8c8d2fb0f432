"""The simulated network as one object: requests in, answers out, notifications delivered."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, cast

import anyio
import anyio.to_thread
import orjson

from simulators.network.control import control_network
from simulators.network.dispatch import (
    CallOutcome,
    MethodCall,
    authenticate_caller,
    encode_answer,
    methods_at_path,
    perform_method,
    read_method_call,
    refused_outcome,
    truncate_json,
)
from simulators.network.entities import NetworkRefusal, NetworkToken
from simulators.network.faults import NetworkFault, NetworkFaults
from simulators.network.line_behaviour import Agenda
from simulators.network.wire import NetworkMethod
from simulators.network.world import LineIndex, World
from simulators.network.world_runtime import NetworkCall, PushDelivery, WorldClock, WorldRuntime
from simulators.server import JSON_CONTENT, AnswerLost, PostBody, SimulatorApp, WireAnswer, asgi_handler

WorldFactory: TypeAlias = Callable[[], World]
PostPush: TypeAlias = Callable[[str, bytes], Awaitable[int]]
PUSH_INTERVAL_SECONDS = 0.2
NO_NETWORK_FAULT = NetworkFault("*")


class SimulatedNetwork:
    """One simulated network. A factory is called in a worker thread when the first request comes."""

    def __init__(
        self,
        world: World | WorldFactory,
        *,
        wall: Callable[[], float],
        following: bool = False,
        offset: float | None = None,
        step: int = 1,
        refuse_status: int = 200,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`wall` is the time outside; `refuse_status` is the HTTP status of a bad token, 200 as the real one or 401."""
        self.faults = NetworkFaults(wall)
        self._source, self._wall = world, wall
        self._clock = WorldClock(wall, following, offset, step)
        self._refuse_status, self._sleep = refuse_status, sleep
        self._turn = anyio.Lock()
        self._runtime = WorldRuntime(world, self.faults, self._clock) if isinstance(world, World) else None
        self._building: asyncio.Future[None] | None = None
        self._shared = False

    @property
    def world(self) -> World | None:
        """The world, once it is built. The caller may change it by hand: from now on no look-up is kept between requests."""
        self._shared = True
        if self._runtime is None:
            return None
        self._runtime.world.forget()
        return self._runtime.world

    @property
    def calls(self) -> list[NetworkCall]:
        """The newest calls, oldest first."""
        return list(self._runtime.calls) if self._runtime else []

    @property
    def deliveries(self) -> list[PushDelivery]:
        """The newest notifications that were sent, oldest first."""
        return list(self._runtime.deliveries) if self._runtime else []

    def fork(self) -> "SimulatedNetwork":
        """Another network that begins as this one is now, without its faults and its log."""
        source = self._source if self._runtime is None else copy_world(self._runtime.world)
        clock = self._clock
        return SimulatedNetwork(
            source,
            wall=self._wall,
            following=clock.following,
            offset=clock.offset,
            step=clock.step,
            refuse_status=self._refuse_status,
            sleep=self._sleep,
        )

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b"", client: str = ""
    ) -> WireAnswer:
        """One request; header names are in lower case. Raises AnswerLost when there is no answer."""
        async with self._turn:
            runtime = await self._ready()
            if self._shared:
                runtime.world.forget()
            await runtime.catch_up()
            if path == "/control" or path.startswith("/control/"):
                return await control_network(runtime, method, path, query, body)
            answer, fault = self._serve(runtime, method, path, query, headers or {}, body, client)
        if fault.delay:
            await self._sleep(fault.delay)
        if fault.dropped:
            raise AnswerLost
        return answer

    async def deliver(self, post: PostPush) -> int:
        """Send what waits, oldest first, once each; `post` says the status, 0 for no answer. Returns how many there were."""
        async with self._turn:
            runtime = self._runtime
            waiting = list(runtime.world.pushes) if runtime else []
            if runtime:
                runtime.world.pushes.clear()
                runtime.underway.extend(waiting)
        for push in waiting:
            status = await post(push.url, orjson.dumps(push.body))
            if runtime:
                runtime.underway.popleft()
                runtime.deliveries.append(PushDelivery(push.at, push.url, status, push.body))
        return len(waiting)

    async def _ready(self) -> WorldRuntime:
        """The world, built once: by a request whose time is over meanwhile for those that come after it."""
        if self._runtime is None:
            if self._building is None or self._building.done():
                self._building = asyncio.ensure_future(anyio.to_thread.run_sync(self._build))
            await asyncio.shield(self._building)
        assert self._runtime is not None
        return self._runtime

    def _build(self) -> None:
        """In a thread."""
        assert not isinstance(self._source, World)
        self._runtime = WorldRuntime(self._source(), self.faults, self._clock)

    def _serve(
        self, runtime: WorldRuntime, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes, client: str
    ) -> tuple[WireAnswer, NetworkFault]:
        methods = methods_at_path(path)
        if methods is None:
            return WireAnswer(404, b'{"error":"the network answers under /v1 and /v2, its control API under /control"}'), NO_NETWORK_FAULT
        if method != "POST":
            return WireAnswer(405, b'{"error":"the network takes POST only"}'), NO_NETWORK_FAULT
        try:
            caller = authenticate_caller(runtime.world, query, headers, client)
        except NetworkRefusal as refused:
            return WireAnswer(
                self._refuse_status if refused.code == 8 else 200, encode_answer("", refused_outcome(refused))
            ), NO_NETWORK_FAULT
        try:
            request = read_method_call(body)
        except NetworkRefusal as refused:
            return WireAnswer(200, encode_answer("", refused_outcome(refused))), NO_NETWORK_FAULT
        fault = self.faults.take(request.method) or NO_NETWORK_FAULT
        outcome = _fault_outcome(runtime.world, caller, methods, request, fault)
        version = path.rstrip("/")[-2:]
        runtime.note(lambda number, now: NetworkCall(number, now, request.method, version, request.params, outcome.code, fault.kinds))
        return _fault_answer(request, outcome, fault), fault


def copy_world(world: World) -> World:
    """The same world once more. What it keeps to look things up is left behind, and made again when it is asked for."""
    kept = replace(world, agenda=Agenda(), lookup=LineIndex())
    return cast(World, pickle.loads(pickle.dumps(kept)))


def _fault_outcome(
    world: World, caller: NetworkToken, methods: Mapping[str, NetworkMethod], request: MethodCall, fault: NetworkFault
) -> CallOutcome:
    if fault.before:
        return fault.of(CallOutcome(0, "OK"))
    return fault.of(perform_method(world, caller, methods, request))


def _fault_answer(request: MethodCall, outcome: CallOutcome, fault: NetworkFault) -> WireAnswer:
    if fault.status is not None:
        return WireAnswer(fault.status, b"<html><body>upstream trouble</body></html>", {"content-type": "text/html"})
    if fault.empty:
        return WireAnswer(200, b"")
    body = encode_answer(request.method, outcome)
    return WireAnswer(200, truncate_json(body) if fault.malformed else body)


def make_network_app(sandbox: SimulatedNetwork) -> SimulatorApp:
    """The network as an ASGI application: its wire and its control API; notifications are delivered while it runs."""

    async def deliver(post: PostBody) -> None:
        await sandbox.deliver(lambda url, body: post(url, body, JSON_CONTENT))

    handler = asgi_handler(lambda request: sandbox.handle(*request), b'{"error":"the body is longer than 1 MiB"}')
    return SimulatorApp(handler, deliver, PUSH_INTERVAL_SECONDS)
