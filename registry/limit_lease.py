"""A process's lease on the limits that all processes share: it reports what it uses, and learns how it may count.

Nothing is reported while nothing is limited, so that a process without work holds nothing and costs nothing. A process that is alone
reports once a second, whatever it does, and counts in memory.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

from registry.clock import Clock
from registry.errors import StoreUnavailable
from registry.shared_limits import (
    LEASE_SECONDS,
    BucketLevel,
    BucketUse,
    CountingMode,
    LimitAnswer,
    LimitLedger,
    LimitReport,
    PlaceUse,
    SharedBuckets,
    SharedPlaces,
)

ALONE_REPORT_SECONDS = 1.0
SHARED_REPORT_SECONDS = 0.5
SHORT_REPORT_SECONDS = 0.1
"""Between two reports: of a process that is alone, of one that is not, and of one that waits for places or for another to take note."""
LEASE_IDLE_SECONDS = 10.0
"""A process that has counted nothing for so long gives up its lease."""
LEASE_SWEEP_SECONDS = 60.0
REPORT_BUCKETS_LIMIT = 500
"""Buckets in one report."""
COUNT_TRIES = 60
"""How often a call that needs a count asks, while another process counts alone: longer than a lease lasts."""


class PreparedReport(NamedTuple):
    """A report, and what it is about: buckets by key, places by name. `began`: monotonic seconds."""

    report: LimitReport
    began: float
    buckets: dict[str, BucketUse]
    places: dict[str, PlaceUse]


@dataclass(slots=True)
class ReportTasks:
    current: asyncio.Task[None] | None = None
    following: asyncio.Task[None] | None = None


class LimitLease:
    """The lease of one process. Times are monotonic seconds; -inf: never."""

    def __init__(self, ledger: LimitLedger, process: str, clock: Clock) -> None:
        self._ledger, self._process, self._clock = ledger, process, clock
        self.counting = CountingMode.NONE
        self.is_cut_off = False
        """The database did not take the last report."""
        self.alone_until = self.lease_end = self.used_at = float("-inf")
        self.buckets = SharedBuckets(self)
        self._places: WeakValueDictionary[str, SharedPlaces] = WeakValueDictionary()
        self._levels_due = False
        self._levels: list[BucketLevel] | None = None
        """Of buckets that are counted alone no more, until the database has them."""
        self._swept = float("-inf")
        self._turn = ReportTasks()
        self._keeper: asyncio.Task[None] | None = None
        self._hurried: asyncio.Event | None = None

    def places(self, name: str, limit: int) -> SharedPlaces:
        """This process's part of a limit of concurrent calls. `name` is the same in all processes, and no secret."""
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = SharedPlaces(name, limit, self, self._clock.monotonic)
        return found

    def touch(self, now: float) -> None:
        """Something is counted that other processes have to know of: report, now and regularly."""
        self.used_at = now
        if self._keeper is None or self._keeper.done():
            self._hurried = asyncio.Event()
            # Of no request: its time, and what it waits for, are not this task's.
            self._keeper = asyncio.create_task(self._keep(), context=Context())

    def hurry(self) -> None:
        if self._hurried is not None:
            self._hurried.set()

    async def counted(self) -> None:
        """Report, and come back when what was spent before is counted, as far as there is any left. Raises StoreUnavailable."""
        for _ in range(COUNT_TRIES):
            await self._report_next()
            if self.counting is not CountingMode.WAITING:
                return
            await asyncio.sleep(SHORT_REPORT_SECONDS)

    async def aclose(self) -> None:
        """Give up the lease. Raises StoreUnavailable; then it ends by itself."""
        if self._keeper is not None and not self._keeper.done():
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        for task in (self._turn.current, self._turn.following):
            if task is not None and not task.done():
                await asyncio.wait([task])
        if self.counting is not CountingMode.NONE:
            await self._leave()

    def prepare(self, *, leaving: bool = False) -> PreparedReport:
        """The report of this moment. A process that ends counting alone does so here, before anybody hears of it."""
        now, wall = self._clock.monotonic(), self._clock.now()
        alone = self.counting is CountingMode.ALONE
        levels = None
        if alone and (leaving or self._levels_due):
            self.alone_until = float("-inf")
            levels = self._levels = self.buckets.levels(now, wall) if self._levels is None else self._levels
        buckets = {} if alone and levels is None else self.buckets.uses(REPORT_BUCKETS_LIMIT)
        fresh = alone or now >= self.lease_end
        uses = ((places, places.use(wall, fresh=fresh)) for places in list(self._places.values()))
        places = {each.name: use for each, use in uses if use is not None}
        sweeping = not alone and now - self._swept > LEASE_SWEEP_SECONDS
        self._swept = now if sweeping else self._swept
        report = LimitReport(
            self._process, wall, alone, levels, tuple(buckets.values()), tuple(places.values()), leaving=leaving, sweeping=sweeping
        )
        return PreparedReport(report, now, buckets, places)

    def apply(self, prepared: PreparedReport, answer: LimitAnswer) -> None:
        """What was answered holds from the moment of the report."""
        now = self._clock.monotonic()
        self._levels_due = answer.others
        self.lease_end = prepared.began + LEASE_SECONDS
        self._count_buckets(prepared, answer, now)
        if answer.others:
            return
        self._levels = None
        before, self.counting = self.counting, answer.counting
        if answer.counting is CountingMode.ALONE:
            self.alone_until = self.lease_end
            if before is CountingMode.ALONE:
                self.buckets.charge_uncounted(now)
            else:
                self.buckets.begin_alone(answer.levels, now, self._clock.now())
        elif before is CountingMode.ALONE:
            self.alone_until = float("-inf")
            self.buckets.forget()
        self._grant(prepared, answer)

    def _count_buckets(self, prepared: PreparedReport, answer: LimitAnswer, now: float) -> None:
        for key, use in prepared.buckets.items():
            if use.name in answer.buckets:
                self.buckets.count(key, answer.buckets[use.name], now)

    def _grant(self, prepared: PreparedReport, answer: LimitAnswer) -> None:
        for name, use in prepared.places.items():
            places = self._places.get(name)
            if places is not None and name in answer.places:
                places.grant(answer.places[name], use)
        self._hand_on()

    def _hand_on(self) -> None:
        for places in list(self._places.values()):
            if places.has_waiting:
                places.more()

    @property
    def seconds_to_next(self) -> float:
        if self.counting is CountingMode.ALONE:
            return ALONE_REPORT_SECONDS
        short = self.counting is CountingMode.WAITING or any(places.is_short for places in self._places.values())
        return SHORT_REPORT_SECONDS if short else SHARED_REPORT_SECONDS

    @property
    def is_idle(self) -> bool:
        """Nothing was counted for long, and nothing is left to be."""
        if self._clock.monotonic() - self.used_at < LEASE_IDLE_SECONDS or self.buckets.owes:
            return False
        return all(places.is_idle for places in self._places.values())

    async def _keep(self) -> None:
        while True:
            hurried = self._hurried = asyncio.Event()
            with suppress(StoreUnavailable):  # whoever needs a count is told; here the next report is made in its time
                await self._report_next()
                if self.is_idle:
                    await self._leave()
                    if self.is_idle:
                        return
            with suppress(TimeoutError):
                async with asyncio.timeout(self.seconds_to_next):
                    await hurried.wait()

    async def _leave(self) -> None:
        prepared = self.prepare(leaving=True)
        self.counting, self.lease_end = CountingMode.NONE, float("-inf")
        self._levels, self._levels_due = None, False
        answer = await self._ledger.report(prepared.report)
        self._count_buckets(prepared, answer, self._clock.monotonic())

    def _report_next(self) -> Awaitable[None]:
        """Makes a report after this moment; callers that come before it begins share it. It goes on where one of them is cancelled."""
        turn = self._turn
        if turn.following is None or turn.following.done():
            turn.following = asyncio.create_task(self._report_after(turn.current), context=Context())
            turn.following.add_done_callback(consume_task_error)
        return asyncio.shield(turn.following)

    async def _report_after(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        turn = self._turn
        turn.current, turn.following = turn.following, None
        for _ in range(2):  # once more where it has to end counting alone
            prepared = self.prepare()
            try:
                answer = await self._ledger.report(prepared.report)
            except StoreUnavailable:
                self.is_cut_off = True
                self._hand_on()
                raise
            self.is_cut_off = False
            self.apply(prepared, answer)
            if not self._levels_due:
                return


def consume_task_error(task: asyncio.Task[None]) -> None:
    """Marks the error of `task` as seen: whoever waited for it got it, and asyncio need not warn where nobody waited."""
    if not task.cancelled():
        task.exception()
