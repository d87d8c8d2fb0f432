"""The way to the processor: its library's client, the time limit, repeats, and what a failure means."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

import anyio

from clients.http import Outbound
from clients.outside_system import NOT_ANSWERED, PROBE_SECONDS, CallOutcome, OutsideSystem
from clients.payments import outcome
from clients.payments.fields import Json, Unreadable, rows
from clients.payments.outcome import Asked, Done, Fault
from clients.payments.records import Listed
from clients.payments.settings import ProcessorSettings
from clients.payments.shares import Shares
from registry.active_request import ACTIVE, ActiveRequest
from registry.clock import SystemClock
from registry.payments_errors import PaymentsError

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first asked
    import stripe

    from clients.payments.transport import Transport

    Call = Callable[[stripe.StripeClient], Awaitable[stripe.StripeObject]]

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
READS, WRITES, NEVER = 1, 2, 0
"""How often a call is repeated. A write has a key under which the processor does it once."""
PLATFORM = ""
"""The account of what is asked in no connected account: the service's own."""
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What the library dies of when a body is JSON of another shape than it expects."""
LEAST_FOR_WRITES = 5.0
"""Seconds that a request must have left for a write to be sent: one that is cut short leaves its outcome unknown."""
LOG = logging.getLogger(__name__)


class Progress:
    """When a call had a place (monotonic seconds), whether it was sent, whether some attempt of it may have changed something, and
    whether the last one was answered."""

    placed: float | None = None
    sent = unsure = False
    failed: bool | None = None


class ProcessorLink:
    """Makes calls with the library; each call has a client of its own over the shared connections."""

    def __init__(
        self, settings: ProcessorSettings, outbound: Outbound, sleep: Sleep = anyio.sleep, system: OutsideSystem | None = None
    ) -> None:
        self.settings = settings
        self.system = system or OutsideSystem("payment_processor", SystemClock())
        self._outbound, self._sleep = outbound, sleep
        self._shares = Shares(settings.calls_of_one, settings.place_seconds)

    def __repr__(self) -> str:
        return "ProcessorLink(key hidden)"

    async def read(self, account: str, noun: str, call: Call, parse: Callable[[Json], T], *, words: frozenset[str] = frozenset()) -> T:
        """Ask for something, or for something that leaves no trace. `words`: parameters whose names are ours too.

        `account`: whose share of the calls under way it is of, as in all that follow.
        """
        return await self._settled(account, Asked(noun, False, READS, words), call, parse)

    async def write(
        self,
        account: str,
        noun: str,
        call: Call,
        parse: Callable[[Json], T],
        *,
        repeats: int = WRITES,
        words: frozenset[str] = frozenset(),
    ) -> T:
        """Change something."""
        return await self._settled(account, Asked(noun, True, repeats, words), call, parse)

    async def page(self, account: str, noun: str, call: Call, parse: Callable[[Json], T]) -> Listed[T]:
        """A page of a list."""

        def listed(found: Json) -> Listed[T]:
            return Listed([parse(row) for row in rows(found, "data")], found.get("has_more") is True)

        return await self.read(account, noun, call, listed, words=frozenset({"starting_after", "limit"}))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._outbound.aclose()

    async def _settled(self, account: str, asked: Asked, call: Call, parse: Callable[[Json], T]) -> T:
        request, system = ACTIVE.get(), self.system
        refused = system.enter(request, account)
        if refused is not None:
            raise outcome.unavailable(refused, system.retry_after(account)).error
        try:
            found = await self._in_time(account, asked, call, parse, request)
        finally:
            system.leave(request, account)
        if isinstance(found, Done):
            return found.value
        LOG.debug("%s: %s", asked.noun, found.error.error_code)
        raise found.error

    async def _in_time(
        self, account: str, asked: Asked, call: Call, parse: Callable[[Json], T], request: ActiveRequest | None
    ) -> Done[T] | Fault:
        """Within the time of a call, and of the request that it is made for."""
        seconds = total = self.settings.total_seconds
        if request is not None:
            seconds = min(total, request.left())
            if seconds <= 0 or (asked.write and seconds < min(LEAST_FOR_WRITES, total)):
                return outcome.too_late()
        progress, began = Progress(), self.system.clock.monotonic()
        found: Done[T] | Fault | None = None
        with anyio.move_on_after(seconds):
            async with self._shares.place(account) as free:  # before anything of it can have been sent
                progress.placed = self.system.clock.monotonic() if free else None
                found = await self._placed(account, asked, call, parse, progress) if free else outcome.crowded()
        overdue = found is None
        if found is None:
            found = outcome.overdue(asked, unsure=progress.unsure)
            progress.failed = True if progress.sent and seconds >= min(total, PROBE_SECONDS) else progress.failed
        if progress.failed is not None:
            self.system.ended(account, failed=progress.failed)
        kind = "ok" if isinstance(found, Done) else outcome_of(progress, overdue=overdue)
        self.system.observe(f"{'write' if asked.write else 'read'} {asked.noun}", kind, began=began, placed=progress.placed)
        return found

    async def _placed(self, account: str, asked: Asked, call: Call, parse: Callable[[Json], T], progress: Progress) -> Done[T] | Fault:
        """All attempts; before the first of them it may have to be found out whether the processor is there."""
        system = self.system
        if system.breaker.is_open and not await system.may_send(account, self._is_answered):
            return outcome.unavailable("open", system.retry_after(account))
        return await self._attempts(asked, call, parse, progress)

    async def _is_answered(self) -> bool:
        """A question that changes nothing; whatever comes back is an answer."""
        from clients.payments.transport import Transport, opened, stripe  # start-up budget

        transport = Transport(self._outbound)
        try:
            await opened(self.settings, transport).v1.balance.retrieve_async()
        except (stripe.StripeError, *MALFORMED):
            return transport.failed not in NOT_ANSWERED
        return True

    async def _attempts(self, asked: Asked, call: Call, parse: Callable[[Json], T], progress: Progress) -> Done[T] | Fault:
        found = await self._once(asked, call, parse, progress)
        for seconds in self.settings.pauses[: asked.repeats]:
            if isinstance(found, Done) or not found.again:
                break
            await self._sleep(seconds)
            found = await self._once(asked, call, parse, progress)
        if isinstance(found, Fault) and asked.write and progress.unsure and before_execution(found):
            return outcome.unknown("The payment processor failed during the call.")  # an attempt before this one was heard
        return found

    async def _once(self, asked: Asked, call: Call, parse: Callable[[Json], T], progress: Progress) -> Done[T] | Fault:
        from clients.payments.transport import Transport  # start-up budget

        unsure_before, progress.sent, progress.unsure = progress.unsure, True, True
        transport = Transport(self._outbound)
        found = await self._exchange(asked, call, parse, transport)
        progress.failed = transport.failed in NOT_ANSWERED
        if isinstance(found, Fault) and found.settled:
            progress.unsure = unsure_before
        return found

    async def _exchange(self, asked: Asked, call: Call, parse: Callable[[Json], T], transport: Transport) -> Done[T] | Fault:
        from clients.payments.transport import opened, stripe  # start-up budget

        try:
            answer = (await call(opened(self.settings, transport))).to_dict()
        except stripe.StripeError as error:
            if transport.failed is not None:
                return outcome.not_reached(asked, transport.failed)
            request_id = error.request_id if re.fullmatch(r"req_[A-Za-z0-9]{1,64}", error.request_id or "") else "not told"
            LOG.info("The payment processor answered HTTP %s about a %s, its request %s", error.http_status, asked.noun, request_id)
            return outcome.answered(asked, error.http_status or 0, error.json_body, error.headers or {})
        except MALFORMED as error:
            return shapeless(asked, type(error).__name__)
        try:
            return Done(parse(answer))
        except Unreadable as why:
            return shapeless(asked, str(why))


def outcome_of(progress: Progress, *, overdue: bool) -> CallOutcome:
    """How a call ended that was not done."""
    if not progress.sent:
        return "not_sent"
    return "failed" if overdue or progress.failed is not False else "refused"


def before_execution(fault: Fault) -> bool:
    """Whether it says that nothing was done, which holds for its own attempt only."""
    return isinstance(fault.error, PaymentsError) and fault.error.before_execution


def shapeless(asked: Asked, why: str) -> Fault:
    """An answer that cannot be read; `why` holds nothing of it."""
    LOG.warning("The payment processor's answer about a %s is unreadable: %s", asked.noun, why)
    return outcome.unreadable(asked)


class Calls:
    """Calls of one kind; all kinds share a link."""

    def __init__(self, link: ProcessorLink) -> None:
        self._link = link


def inside(account: str, key: str | None = None) -> stripe.RequestOptions:
    """In a connected account; under an idempotency key where something changes."""
    options: stripe.RequestOptions = {"stripe_account": known(account, "account")}
    if key is not None:
        options["idempotency_key"] = sent_key(key)
    return options


def known(found: str, noun: str) -> str:
    """An id that can be one: what cannot would reach another address, or all of a list."""
    if re.fullmatch(r"[A-Za-z0-9_]{1,255}", found) is None:
        raise outcome.no_such(noun)
    return found


def sent_key(key: str) -> str:
    """As it is where a header can carry it and the processor takes it, which is up to 255 characters."""
    fits = re.fullmatch(r"[!-~]{1,255}", key) is not None
    return key if fits else "sha256-" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
