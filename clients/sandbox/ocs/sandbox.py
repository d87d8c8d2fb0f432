"""The simulated network as one object: requests in, answers out, notifications delivered."""

import pickle
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, cast

import anyio
import anyio.to_thread
import orjson

from clients.sandbox.ocs.agenda import Agenda
from clients.sandbox.ocs.control import control
from clients.sandbox.ocs.credentials import caller_of
from clients.sandbox.ocs.desk import Answer, Call, Delivery, Desk
from clients.sandbox.ocs.dispatch import Outcome, Request, cut, encode, failed, methods_at, perform, read_request
from clients.sandbox.ocs.entities import Refused, Token
from clients.sandbox.ocs.faults import Fault, Faults
from clients.sandbox.ocs.index import Method
from clients.sandbox.ocs.lookup import Lookup
from clients.sandbox.ocs.pace import Pace
from clients.sandbox.ocs.state import World

Factory: TypeAlias = Callable[[], World]
Post: TypeAlias = Callable[[str, bytes], Awaitable[int]]
NO_FAULT = Fault("*")


class Dropped(Exception):
    """The network closes the connection without an answer."""


class Sandbox:
    """One simulated network. A factory is called in a worker thread when the first request comes."""

    def __init__(
        self,
        world: World | Factory,
        *,
        wall: Callable[[], float],
        following: bool = False,
        offset: float | None = None,
        step: int = 1,
        refuse_status: int = 200,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`wall` is the time outside; `refuse_status` is the HTTP status of a bad token, 200 as the real one or 401."""
        self.faults = Faults(wall)
        self._source, self._wall = world, wall
        self._pace = Pace(wall, following, offset, step)
        self._refuse_status, self._sleep = refuse_status, sleep
        self._turn = anyio.Lock()
        self._desk = Desk(world, self.faults, self._pace) if isinstance(world, World) else None
        self._shared = False

    @property
    def world(self) -> World | None:
        """The world, once it is built. Who has it may change it by hand: from now on no look-up is kept between requests."""
        self._shared = True
        if self._desk is None:
            return None
        self._desk.world.forget()
        return self._desk.world

    @property
    def calls(self) -> list[Call]:
        """The newest calls, oldest first."""
        return list(self._desk.calls) if self._desk else []

    @property
    def deliveries(self) -> list[Delivery]:
        """The newest notifications that were sent, oldest first."""
        return list(self._desk.deliveries) if self._desk else []

    def fork(self) -> "Sandbox":
        """Another network that begins as this one is now, without its faults and its log."""
        source = self._source if self._desk is None else copied(self._desk.world)
        pace = self._pace
        return Sandbox(
            source,
            wall=self._wall,
            following=pace.following,
            offset=pace.offset,
            step=pace.step,
            refuse_status=self._refuse_status,
            sleep=self._sleep,
        )

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b"", client: str = ""
    ) -> Answer:
        """One request; header names are in lower case. Raises Dropped when there is no answer."""
        async with self._turn:
            desk = await self._ready()
            if self._shared:
                desk.world.forget()
            await desk.catch_up()
            if path == "/control" or path.startswith("/control/"):
                return await control(desk, method, path, query, body)
            answer, fault = self._serve(desk, method, path, query, headers or {}, body, client)
        if fault.delay:
            await self._sleep(fault.delay)
        if fault.dropped:
            raise Dropped
        return answer

    async def deliver(self, post: Post) -> int:
        """Send what waits, oldest first, once each; `post` says the status, 0 for no answer. Returns how many there were."""
        async with self._turn:
            desk = self._desk
            waiting = list(desk.world.pushes) if desk else []
            if desk:
                desk.world.pushes.clear()
                desk.underway.extend(waiting)
        for push in waiting:
            status = await post(push.url, orjson.dumps(push.body))
            if desk:
                desk.underway.popleft()
                desk.deliveries.append(Delivery(push.at, push.url, status, push.body))
        return len(waiting)

    async def _ready(self) -> Desk:
        if self._desk is None:
            await anyio.to_thread.run_sync(self._build)
        assert self._desk is not None
        return self._desk

    def _build(self) -> None:
        """In a thread; what it made is kept even when the request that asked for it has gone."""
        assert not isinstance(self._source, World)
        self._desk = Desk(self._source(), self.faults, self._pace)

    def _serve(
        self, desk: Desk, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes, client: str
    ) -> tuple[Answer, Fault]:
        methods = methods_at(path)
        if methods is None:
            return Answer(404, b'{"error":"the network answers under /v1 and /v2, its control API under /control"}'), NO_FAULT
        if method != "POST":
            return Answer(405, b'{"error":"the network takes POST only"}'), NO_FAULT
        try:
            caller = caller_of(desk.world, query, headers, client)
        except Refused as refused:
            return Answer(self._refuse_status if refused.code == 8 else 200, encode("", failed(refused))), NO_FAULT
        try:
            request = read_request(body)
        except Refused as refused:
            return Answer(200, encode("", failed(refused))), NO_FAULT
        fault = self.faults.take(request.method) or NO_FAULT
        outcome = met(desk.world, caller, methods, request, fault)
        version = path.rstrip("/")[-2:]
        desk.note(lambda number, now: Call(number, now, request.method, version, request.params, outcome.code, fault.kinds))
        return answered(request, outcome, fault), fault


def copied(world: World) -> World:
    """The same world once more. What it keeps to look things up is left behind, and made again when it is asked for."""
    kept = replace(world, agenda=Agenda(), lookup=Lookup())
    return cast(World, pickle.loads(pickle.dumps(kept)))


def met(world: World, caller: Token, methods: Mapping[str, Method], request: Request, fault: Fault) -> Outcome:
    """What the call does and says under a fault."""
    if fault.before:
        return fault.of(Outcome(0, "OK"))
    return fault.of(perform(world, caller, methods, request))


def answered(request: Request, outcome: Outcome, fault: Fault) -> Answer:
    """The bytes of an answer under a fault."""
    if fault.status is not None:
        return Answer(fault.status, b"<html><body>upstream trouble</body></html>", "text/html")
    if fault.empty:
        return Answer(200, b"")
    body = encode(request.method, outcome)
    return Answer(200, cut(body) if fault.malformed else body)
