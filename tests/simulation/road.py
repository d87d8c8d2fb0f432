"""The way from a replica to the charging system, with its faults, in virtual time. The real client runs over it."""

from asyncio import AbstractEventLoop, Future
from contextvars import Context, ContextVar

import httpx

from tests.simulation.crash_points import CrashPoints
from tests.simulation.process import Process
from tests.simulation.provider import WRITE_METHODS, ModelNetwork
from tests.simulation.upstream_faults import CODES, LATEST_EFFECT, LATEST_REPLY, WITHOUT_EFFECT, UpstreamFault, UpstreamFaults

BARE = 60
"""Bytes of an answer that is a status and nothing else."""
CALLER: ContextVar[int] = ContextVar("simulated_call", default=0)
"""The client's call that a task works for. It goes beside the wire, so that the upstream's log tells who sent what."""
OUTSIDE = Context()
"""What the charging system does is nobody's task: it goes on when whoever asked has died."""


class SimRoad(httpx.AsyncBaseTransport):
    def __init__(
        self, loop: AbstractEventLoop, provider: ModelNetwork, process: Process, faults: UpstreamFaults, points: CrashPoints | None = None
    ) -> None:
        self._loop, self._provider, self._process, self._faults = loop, provider, process, faults
        self._points = points or CrashPoints({})
        self._former: bytes | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange: the call arrives after a while, the answer after another, unless a fault says otherwise."""
        self._process.check()
        content = request.content
        name = content[2 : content.index(b'"', 2)].decode()
        write = name in WRITE_METHODS
        if write:
            self._points.reach("before_send", self._process)
        fault = self._faults.draw(write, self._loop.time())
        if fault == "refused":
            raise ConnectionRefusedError
        answer: Future[httpx.Response] = self._loop.create_future()
        draw = self._faults.rng.random
        delay = draw() * 0.1 if fault != "late_effect" else 1 + draw() * (LATEST_EFFECT - 1)
        version = "v2" if "/v2" in str(request.url)[-80:] else "v1"
        self._loop.call_later(delay, self._arrive, answer, content, version, fault, CALLER.get(), context=OUTSIDE)
        if write:
            self._points.reach("after_send", self._process)
        arrived = await answer
        self._process.check()
        if write:
            self._points.reach("after_reply", self._process)
        return arrived

    async def aclose(self) -> None:
        """Nothing is held."""

    def _arrive(self, answer: Future[httpx.Response], content: bytes, version: str, fault: UpstreamFault | None, by: int) -> None:
        """The call is there: it takes effect, or does not, and the answer sets out."""
        body = b""
        if fault is None or fault not in WITHOUT_EFFECT or fault in CODES:
            code = CODES.get(fault) if fault in WITHOUT_EFFECT else None
            body = self._provider.perform(content, version, fault=fault, code=code, by=by)
        if fault == "code18_after":
            body = b'{"status":{"code":18,"msg":"timeout"}}'
        delay = self._faults.rng.random() * (0.1 if fault != "late_reply" else LATEST_REPLY)
        self._loop.call_later(delay, self._return, answer, body, fault, context=OUTSIDE)

    def _return(self, answer: Future[httpx.Response], body: bytes, fault: UpstreamFault | None) -> None:
        """The answer is there; whoever waited may have gone.

        A duplicate is of an answer that has arrived before and tells something: were those of two like calls exchanged, or a bare
        refusal told twice, nobody could see it.
        """
        if answer.done() or fault in ("lost", "hanging") or not self._process.alive:
            return
        if fault in ("reset_before", "reset_after"):
            answer.set_exception(ConnectionResetError())
        else:
            status, arrived = shown(body, self._former, fault)
            answer.set_result(httpx.Response(status, stream=httpx.ByteStream(arrived)))
            if fault is None and len(arrived) > BARE:
                self._former = arrived


def shown(body: bytes, former: bytes | None, fault: UpstreamFault | None) -> tuple[int, bytes]:
    """Status and bytes of an answer under a fault."""
    match fault:
        case "http_before" | "http_after":
            return 502, b"<html><body>upstream trouble</body></html>"
        case "garbage_before" | "garbage_after":
            return 200, b"\x00\xff]}not json{["
        case "empty_before" | "empty_after":
            return 200, b""
        case "truncated":
            return 200, body[: len(body) * 2 // 3]
        case "duplicate":
            return 200, body if former is None else former
        case _:
            return 200, body
