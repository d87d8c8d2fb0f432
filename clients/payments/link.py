"""Calls of the processor: the client of its library, the time limit, repeats, and what a failure means.

Each connected account has its share of the calls under way: one whose calls hang takes nothing from the others.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.to_thread

from clients.http import Outbound
from clients.outside_system import PROBE_SECONDS, UNANSWERED_KINDS, CallProgress, OutsideSystem, seconds_for_call
from clients.payments import outcome
from clients.payments.fields import ProcessorJson, UnreadableRecord, object_rows, record_parser
from clients.payments.outcome import ProcessorAnswer, ProcessorCall, ProcessorFault, ProcessorResult
from clients.payments.port import ProcessorSettings
from clients.payments.records import ProcessorPage
from registry.clock import ACTIVE_REQUEST, ActiveRequest, SystemClock
from registry.errors import PaymentsError

if TYPE_CHECKING:  # the vendor's library is imported when the processor is first processor_call
    import stripe

    from clients.payments.vendor import OutboundTransport

    LibraryCall = Callable[[stripe.StripeClient], Awaitable[stripe.StripeObject]]
    FindCall = Callable[[stripe.StripeClient, str, stripe.RequestOptions], Awaitable[stripe.StripeObject]]
    ListCall = Callable[[stripe.StripeClient, stripe.RequestOptions], Awaitable[stripe.StripeObject]]


class AccountShare:
    """The places of one account, and how many calls hold one or wait for one."""

    def __init__(self, places: int) -> None:
        self.places = anyio.Semaphore(places)
        self.calls = 0


class AccountShares:
    """So many places for each account; an account that has no call under way and none waiting is forgotten."""

    def __init__(self, places: int, seconds: float) -> None:
        """`seconds`: how long one more call waits for a place."""
        self._places, self._seconds = places, seconds
        self._of: dict[str, AccountShare] = {}

    def __len__(self) -> int:
        return len(self._of)

    @asynccontextmanager
    async def place(self, account: str) -> AsyncGenerator[bool]:
        """A place as long as the block runs; False where none became free in time."""
        with self._remembered(account) as share:
            if not await self._taken(share.places):
                yield False
                return
            try:
                yield True
            finally:
                share.places.release()

    @contextmanager
    def _remembered(self, account: str) -> Generator[AccountShare]:
        share = self._of.get(account) or self._of.setdefault(account, AccountShare(self._places))
        share.calls += 1
        try:
            yield share
        finally:
            share.calls -= 1
            if share.calls == 0:
                del self._of[account]

    async def _taken(self, places: anyio.Semaphore) -> bool:
        try:
            places.acquire_nowait()  # at no cost, and before time can be up
        except anyio.WouldBlock:
            pass
        else:
            return True
        with anyio.move_on_after(self._seconds):
            await places.acquire()
            return True
        return False


ProcessorT = TypeVar("ProcessorT")
SleepFunction = Callable[[float], Awaitable[None]]
READ_REPEATS, WRITE_REPEATS, NO_REPEATS = 1, 2, 0
"""How often a call is repeated. A write has a key under which the processor does it once."""
PLATFORM_ACCOUNT = ""
"""The account of what is processor_call in no connected account: the service's own."""
MALFORMED_BODY_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What the library raises when a body is JSON of another shape than it expects."""
PROCESSOR_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorRequest(ProcessorCall, Generic[ProcessorT]):
    """A call: `call` makes it, `parse` reads its answer. It counts against the calls under way of `account`."""

    account: str
    call: LibraryCall
    parse: Callable[[ProcessorJson], ProcessorT]


@cache
def load_vendor():  # noqa: ANN201  # the type checker infers the module
    """The vendor's library behind our seam: it takes half a second to import, so the first call or event does it."""
    from clients.payments import vendor

    return vendor


class ProcessorLink:
    """Makes calls with the library; each call has a client of its own over the shared connections."""

    def __init__(
        self, settings: ProcessorSettings, outbound: Outbound, sleep: SleepFunction = anyio.sleep, system: OutsideSystem | None = None
    ) -> None:
        self.settings = settings
        self.system = system or OutsideSystem("payment_processor", SystemClock())
        self._outbound, self._sleep = outbound, sleep
        self._shares = AccountShares(settings.calls_of_one, settings.place_seconds)

    def __repr__(self) -> str:
        return "ProcessorLink(key hidden)"

    async def read(
        self,
        account: str,
        noun: str,
        call: LibraryCall,
        parse: Callable[[ProcessorJson], ProcessorT],
        *,
        words: frozenset[str] = frozenset(),
    ) -> ProcessorT:
        """Make a `call` that changes nothing, and return what `parse` makes of its answer. `noun`: what it is about, for errors.

        `words`: parameters that have the same name with us, so that an error may name them.

        `account`: whose share of the calls under way it is of, as in all that follow.
        """
        return await self._complete(ProcessorRequest(noun, False, READ_REPEATS, words, account=account, call=call, parse=parse))

    async def write(
        self,
        account: str,
        noun: str,
        call: LibraryCall,
        parse: Callable[[ProcessorJson], ProcessorT],
        *,
        repeats: int = WRITE_REPEATS,
        words: frozenset[str] = frozenset(),
    ) -> ProcessorT:
        """As `read`, for a call that changes something: `repeats` times at most again, under its idempotency key."""
        return await self._complete(ProcessorRequest(noun, True, repeats, words, account=account, call=call, parse=parse))

    async def page(
        self, account: str, noun: str, call: LibraryCall, parse: Callable[[ProcessorJson], ProcessorT]
    ) -> ProcessorPage[ProcessorT]:
        def listed(found: ProcessorJson) -> ProcessorPage[ProcessorT]:
            return ProcessorPage([parse(row) for row in object_rows(found, "data")], found.get("has_more") is True)

        return await self.read(account, noun, call, listed, words=frozenset({"starting_after", "limit"}))

    async def load(self) -> None:
        """Imports the library in a thread, before anything of it is used."""
        if not load_vendor.cache_info().currsize:
            await anyio.to_thread.run_sync(load_vendor)

    async def aclose(self) -> None:
        await self._outbound.aclose()

    async def _complete(self, processor_call: ProcessorRequest[ProcessorT]) -> ProcessorT:
        request, system, account = ACTIVE_REQUEST.get(), self.system, processor_call.account
        refused = system.enter(request, account)
        if refused is not None:
            raise outcome.processor_unavailable(refused, system.retry_after(account)).error
        try:
            found = await self._in_time(processor_call, request)
        finally:
            system.leave(request, account)
        if isinstance(found, ProcessorAnswer):
            return found.value
        PROCESSOR_LOG.debug("%s: %s", processor_call.noun, found.error.error_code)
        raise found.error

    async def _in_time(self, processor_call: ProcessorRequest[ProcessorT], request: ActiveRequest | None) -> ProcessorResult[ProcessorT]:
        """Within the time of a call, and of the request that it is made for."""
        total = self.settings.total_seconds
        seconds = seconds_for_call(request, total, write=processor_call.write)
        if seconds is None:
            return outcome.processor_too_late()
        progress, began = CallProgress(), self.system.clock.monotonic()
        found: ProcessorResult[ProcessorT] | None = None
        with anyio.move_on_after(seconds):
            async with self._shares.place(processor_call.account) as free:  # before anything of it can have been sent
                progress.placed = self.system.clock.monotonic() if free else None
                found = await self._placed(processor_call, progress) if free else outcome.account_crowded()
        overdue = found is None
        if found is None:
            found = outcome.processor_overdue(processor_call, unsure=progress.unsure)
            progress.failed = True if progress.sent is not None and seconds >= min(total, PROBE_SECONDS) else progress.failed
        if progress.failed is not None:
            self.system.ended(processor_call.account, failed=progress.failed)
        kind = "ok" if isinstance(found, ProcessorAnswer) else progress.outcome(overdue=overdue)
        self.system.observe(
            f"{'write' if processor_call.write else 'read'} {processor_call.noun}", kind, began=began, placed=progress.placed
        )
        return found

    async def _placed(self, processor_call: ProcessorRequest[ProcessorT], progress: CallProgress) -> ProcessorResult[ProcessorT]:
        """All attempts; before the first of them it may have to be found out whether the processor is there."""
        await self.load()
        system = self.system
        if system.breaker.is_open and not await system.may_send(processor_call.account, self._is_answered):
            return outcome.processor_unavailable("open", system.retry_after(processor_call.account))
        return await self._attempts(processor_call, progress)

    async def _is_answered(self) -> bool:
        """A question that changes nothing; whatever comes back is an answer."""
        vendor = load_vendor()
        transport = vendor.OutboundTransport(self._outbound)
        try:
            await vendor.open_library(self.settings, transport).v1.balance.retrieve_async()
        except (vendor.stripe.StripeError, *MALFORMED_BODY_ERRORS):
            return transport.failed not in UNANSWERED_KINDS
        return True

    async def _attempts(self, processor_call: ProcessorRequest[ProcessorT], progress: CallProgress) -> ProcessorResult[ProcessorT]:
        found = await self._once(processor_call, progress)
        for seconds in self.settings.pauses[: processor_call.repeats]:
            if isinstance(found, ProcessorAnswer) or not found.again:
                break
            await self._sleep(seconds)
            found = await self._once(processor_call, progress)
        if isinstance(found, ProcessorFault) and processor_call.write and progress.unsure and is_before_execution(found):
            return outcome.processor_outcome_unknown(
                "The payment processor failed during the call."
            )  # an earlier attempt may have been executed
        return found

    async def _once(self, processor_call: ProcessorRequest[ProcessorT], progress: CallProgress) -> ProcessorResult[ProcessorT]:
        unsure_before, progress.sent, progress.unsure = progress.unsure, self.system.clock.monotonic(), True
        transport = load_vendor().OutboundTransport(self._outbound)
        found = await self._exchange(processor_call, transport)
        progress.failed = transport.failed in UNANSWERED_KINDS
        if isinstance(found, ProcessorFault) and found.unchanged:
            progress.unsure = unsure_before
        return found

    async def _exchange(self, processor_call: ProcessorRequest[ProcessorT], transport: OutboundTransport) -> ProcessorResult[ProcessorT]:
        vendor = load_vendor()
        try:
            answer = (await processor_call.call(vendor.open_library(self.settings, transport))).to_dict()
        except vendor.stripe.StripeError as error:
            if transport.failed is not None:
                return outcome.processor_not_reached(processor_call, transport.failed)
            request_id = error.request_id if re.fullmatch(r"req_[A-Za-z0-9]{1,64}", error.request_id or "") else "not told"
            PROCESSOR_LOG.info(
                "The payment processor answered HTTP %s about a %s, its request %s", error.http_status, processor_call.noun, request_id
            )
            return outcome.processor_answered_error(processor_call, error.http_status or 0, error.json_body, error.headers or {})
        except MALFORMED_BODY_ERRORS as error:
            return unreadable_answer(processor_call, type(error).__name__)
        try:
            return ProcessorAnswer(processor_call.parse(answer))
        except UnreadableRecord as why:
            return unreadable_answer(processor_call, str(why))


def is_before_execution(fault: ProcessorFault) -> bool:
    """Whether it says that nothing was done, which holds for its own attempt only."""
    return isinstance(fault.error, PaymentsError) and fault.error.before_execution


def unreadable_answer(processor_call: ProcessorCall, why: str) -> ProcessorFault:
    """An answer that cannot be read; `why` holds nothing of it."""
    PROCESSOR_LOG.warning("The payment processor's answer about a %s is unreadable: %s", processor_call.noun, why)
    return outcome.processor_unreadable(processor_call)


class ProcessorCalls:
    """Calls of one kind; all kinds share a link."""

    def __init__(self, link: ProcessorLink) -> None:
        self._link = link

    async def _find(self, account: str, noun: str, id: str, kind: type[ProcessorT], call: FindCall) -> ProcessorT:
        """The object `id` as it stands."""
        which, options = require_processor_id(id, noun), request_options(account)
        return await self._link.read(account, noun, lambda to: call(to, which, options), record_parser(kind, id=which))

    async def _list(self, account: str, noun: str, kind: type[ProcessorT], call: ListCall) -> ProcessorPage[ProcessorT]:
        """A page of objects, newest first."""
        options = request_options(account)
        return await self._link.page(account, noun, lambda to: call(to, options), record_parser(kind))


def request_options(account: str, key: str | None = None) -> stripe.RequestOptions:
    """Options of a call in the connected `account`; `key`: the idempotency key of one that changes something."""
    options: stripe.RequestOptions = {"stripe_account": require_processor_id(account, "account")}
    if key is not None:
        options["idempotency_key"] = processor_idempotency_key(key)
    return options


def require_processor_id(found: str, noun: str) -> str:
    """`found` where it can be an id, else NotFound: in an address it could name something else, or a whole list."""
    if re.fullmatch(r"[A-Za-z0-9_]{1,255}", found) is None:
        raise outcome.no_such_object(noun)
    return found


def processor_idempotency_key(key: str) -> str:
    """`key` where a header can carry it and the processor takes it (up to 255 characters), else its hash."""
    fits = re.fullmatch(r"[!-~]{1,255}", key) is not None
    return key if fits else "sha256-" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
