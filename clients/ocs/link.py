"""One token's way to the charging system: time limit, places, retries of reads, and what a failure means."""

import logging
from asyncio import timeout
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from typing import TypeVar

import anyio
import orjson

from clients.failure import OutboundFailed
from clients.http import Outbound, Reply
from clients.ocs import outcome
from clients.ocs.address import Version, address, can_travel, headers
from clients.ocs.envelope import opened, status_code
from clients.ocs.failure import Unreadable
from clients.ocs.mask import Mask
from clients.ocs.outcome import Asked, Done, Fault
from clients.ocs.params import Payload
from clients.ocs.places import Places
from clients.ocs.raw_array import MOST_BUFFERED, RawArray, begin
from clients.ocs.settings import OcsSettings
from clients.ocs.shape import Parse
from clients.ocs.token_places import TokenPlaces, WaitTooLong
from clients.ocs.wire.members import Json
from clients.outside_system import NOT_ANSWERED, PROBE_SECONDS, CallOutcome, OutsideSystem
from registry.active_request import ACTIVE, ActiveRequest
from registry.clock import Clock
from registry.errors import BadRequest, OcsError

T = TypeVar("T")
Attempt = Callable[["Progress"], Awaitable[Done[T] | Fault]]
LOG = logging.getLogger(__name__)
PROBE = Asked("getResellerInfo", b'{"getResellerInfo":{}}', False, "getResellerInfo", "v1", False)
LEAST_FOR_WRITES = 5.0
"""Seconds that a request must have left for a write to be sent: one that is cut short leaves its outcome unknown."""


class Progress:
    """Since when a call has a place, and since when it is sent (monotonic seconds; None: it has none, it has not left), and whether its
    last attempt was answered."""

    placed: float | None = None
    sent: float | None = None
    failed: bool | None = None


class OcsLink:
    """Calls the wire with one token. Reads are asked once more when an answer fails; writes never."""

    def __init__(
        self,
        outbound: Outbound,
        settings: OcsSettings,
        token: str,
        clock: Clock,
        *,
        places: TokenPlaces | None = None,
        owner: str = "",
        system: OutsideSystem | None = None,
    ) -> None:
        """`places` are the token's, shared with other owners of it, `system` is shared by all; without them it has its own."""
        self._outbound = outbound
        self._settings = settings
        self._clock = clock
        self._usable = can_travel(settings, token)
        self._headers = headers(settings, token)
        self._token = token
        self._mask = Mask(token)
        self._urls: dict[tuple[Version, bool], str] = {}
        self._places, self._owner = places or TokenPlaces(Places(settings.concurrency), clock), owner
        self._system = system or OutsideSystem("charging_system", clock)

    def __repr__(self) -> str:
        return "OcsLink(token hidden)"

    async def call(
        self, method: str, payload: Payload, *, write: bool, key: str | None = None, version: Version = "v1", stats: bool = False
    ) -> Json:
        """Send one method and return what stands under its answer key, None when nothing does."""
        asked = self._asked(method, payload, write=write, key=key, version=version, stats=stats)
        return await self._exchange(asked, _as_it_is)

    async def read(
        self, method: str, payload: Payload, parse: Parse[T], *, key: str | None = None, version: Version = "v1", stats: bool = False
    ) -> T:
        """Ask for something; an answer that `parse` cannot read counts as a failed one."""
        return await self._exchange(self._asked(method, payload, write=False, key=key, version=version, stats=stats), parse)

    async def write(self, method: str, payload: Payload, parse: Parse[T], *, key: str | None = None, version: Version = "v1") -> T:
        """Change something, once. An answer that `parse` cannot read leaves the outcome unknown."""
        return await self._exchange(self._asked(method, payload, write=True, key=key, version=version, stats=False), parse)

    async def stream(
        self, method: str, payload: Payload, *, key: tuple[str, ...], version: Version = "v1", stats: bool = False
    ) -> RawArray:
        """Read a big array at this path of members. Failures before its first byte are raised here."""
        asked = self._asked(method, payload, write=False, key=key[0], version=version, stats=stats)

        async def attempt(progress: Progress) -> Done[RawArray] | Fault:
            return await self._begin(asked, key, progress)

        return await self._settled(asked, attempt)

    def _asked(self, method: str, payload: Payload, *, write: bool, key: str | None, version: Version, stats: bool) -> Asked:
        body = _encoded(method, payload)
        if body is None:
            raise BadRequest("A number has more than 64 bits, or a text holds half a surrogate pair: the charging system takes neither.")
        return Asked(method, body, write, key or method, version, stats)

    async def _exchange(self, asked: Asked, parse: Parse[T]) -> T:
        async def attempt(progress: Progress) -> Done[T] | Fault:
            return await self._once(asked, parse, progress)

        return await self._settled(asked, attempt)

    async def _settled(self, asked: Asked, attempt: Attempt[T]) -> T:
        """All attempts within the time limit; the wait for a place counts."""
        if not self._usable:
            raise OcsError("The token holds characters that no request can carry. Connect the account again.", before_execution=True)
        request, system = ACTIVE.get(), self._system
        refused = system.enter(request, self._owner)
        if refused is not None:
            raise outcome.unavailable(refused, system.retry_after(self._owner))
        try:
            found = await self._in_time(asked, attempt, request)
        finally:
            system.leave(request, self._owner)
        if isinstance(found, Fault):
            error, found = found.error, None
            try:
                raise error
            finally:
                del error  # its traceback holds this frame: each would keep the other until the collector comes
        return found.value

    async def _in_time(self, asked: Asked, attempt: Attempt[T], request: ActiveRequest | None) -> Done[T] | Fault:
        """Within the time of a call, and of the request that it is made for."""
        seconds = total = self._settings.total_seconds
        if request is not None:
            seconds = min(total, request.left())
            if seconds <= 0 or (asked.write and seconds < min(LEAST_FOR_WRITES, total)):
                return Fault(outcome.too_late())
        progress, started = Progress(), self._clock.monotonic()
        found: Done[T] | Fault | None = None
        with suppress(TimeoutError):
            async with timeout(seconds):  # a third of the cost of a cancel scope, once per call
                found = await self._placed(asked, attempt, progress, seconds)
        now = self._clock.monotonic()
        overdue = found is None
        if found is None:
            found = outcome.overdue(asked) if progress.sent is not None else self._never_sent(asked, cut=seconds < total)
            if progress.sent is not None and (seconds == total or now - progress.sent >= PROBE_SECONDS):
                progress.failed = True
        if progress.failed is not None:
            self._system.ended(self._owner, failed=progress.failed)
        kind = "ok" if isinstance(found, Done) else outcome_of(progress, overdue=overdue)
        self._system.observe(asked.method, kind, began=started, placed=progress.placed)
        said = "done" if isinstance(found, Done) else found.error.error_code
        LOG.debug("%s: %s after %.3f s", asked.method, said, now - started)
        return found

    def _never_sent(self, asked: Asked, *, cut: bool) -> Fault:
        """Its time was over before a place was free; `cut`: because its request had less time than a call has."""
        return Fault(outcome.too_late()) if cut else outcome.never_started(self._settings, asked)

    async def _placed(self, asked: Asked, attempt: Attempt[T], progress: Progress, seconds: float) -> Done[T] | Fault:
        """The place is given back when an answer has begun: whoever reads slowly must not keep others from asking."""
        try:
            give_back = await self._places.take(self._owner, seconds)
        except WaitTooLong as wait:
            return Fault(outcome.unavailable(self._system.refuse("crowded"), wait.retry_after))
        progress.placed = self._clock.monotonic()
        try:
            system = self._system
            if system.breaker.is_open and not await system.may_send(self._owner, self._is_answered):
                return Fault(outcome.unavailable("open", system.retry_after(self._owner)))
            return await self._attempts(asked, attempt, progress)
        finally:
            give_back()

    async def _is_answered(self) -> bool:
        """The cheapest question there is, which changes nothing; whatever comes back is an answer."""
        try:
            await self._outbound.exchange("POST", self._url(PROBE), headers=self._headers, content=PROBE.body, keep=MOST_BUFFERED)
        except OutboundFailed as failed:
            return failed.kind not in NOT_ANSWERED
        return True

    async def _attempts(self, asked: Asked, attempt: Attempt[T], progress: Progress) -> Done[T] | Fault:
        found = await attempt(progress)
        if asked.write or isinstance(found, Done) or not found.again:
            return found
        if found.pause:
            await anyio.sleep(self._settings.backoff_seconds)
        return await attempt(progress)

    async def _once(self, asked: Asked, parse: Parse[T], progress: Progress) -> Done[T] | Fault:
        progress.sent = self._clock.monotonic()
        try:
            url = self._url(asked)
            reply = await self._outbound.exchange("POST", url, headers=self._headers, content=asked.body, keep=MOST_BUFFERED)
        except OutboundFailed as failed:
            progress.failed = failed.kind in NOT_ANSWERED
            return outcome.not_reached(asked, failed.kind)
        progress.failed = False
        return self._understood(asked, parse, reply)

    def _understood(self, asked: Asked, parse: Parse[T], reply: Reply) -> Done[T] | Fault:
        if reply.status != 200:
            return outcome.wrong_status(asked, reply.status)
        try:
            document = opened(self._mask.whole(reply.body))
            code, payload = status_code(document), document.get(asked.key)
            return outcome.refused(self._settings, asked, code, payload) if code else Done(parse(payload))
        except Unreadable as why:
            LOG.warning("The answer to %s is unreadable: %s", asked.method, why)
            return outcome.unreadable(asked)

    async def _begin(self, asked: Asked, key: tuple[str, ...], progress: Progress) -> Done[RawArray] | Fault:
        progress.sent = self._clock.monotonic()
        try:
            async with AsyncExitStack() as held:
                streamed = self._outbound.stream("POST", self._url(asked), headers=self._headers, content=asked.body)
                reply = await held.enter_async_context(streamed)
                progress.failed = False
                if reply.status != 200:
                    return outcome.wrong_status(asked, reply.status)
                chunks = await held.enter_async_context(aclosing(self._mask.parts(reply.chunks)))
                code, passed = await begin(chunks, key)
                if code:
                    return outcome.refused(self._settings, asked, code, None)
                passed.hold(held.pop_all())
                return Done(passed)
        except OutboundFailed as failed:
            progress.failed = failed.kind in NOT_ANSWERED
            return outcome.not_reached(asked, failed.kind)
        except Unreadable as why:
            LOG.warning("The answer to %s is unreadable: %s", asked.method, why)
            return outcome.unreadable(asked)

    def _url(self, asked: Asked) -> str:
        key = asked.version, asked.stats
        found = self._urls.get(key)
        if found is None:
            found = self._urls[key] = address(self._settings, self._token, version=asked.version, stats=asked.stats)
        return found


def outcome_of(progress: Progress, *, overdue: bool) -> CallOutcome:
    """How a call ended that was not done."""
    if progress.sent is None:
        return "not_sent"
    return "failed" if overdue or progress.failed is not False else "refused"


def _as_it_is(value: Json) -> Json:
    return value


def _encoded(method: str, payload: Payload) -> bytes | None:
    try:
        return orjson.dumps({method: payload})
    except orjson.JSONEncodeError:
        return None
