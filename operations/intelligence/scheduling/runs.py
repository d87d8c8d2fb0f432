"""Running schedules: what is due begins once, whatever the replicas; a report is made by whoever takes it, through the pipeline."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import anyio
import orjson
from pydantic import JsonValue
from typing_extensions import TypedDict

from operations.deps import Deps
from operations.intelligence.scheduling.boundaries import newest_boundary, next_boundary
from operations.intelligence.scheduling.input import completed
from operations.intelligence.scheduling.notice import event_for, notice
from operations.intelligence.sheet import Sheet
from registry.call import Reply
from registry.errors import Internal, KeyUnknown, ProviderError, QuotaExceeded, Refusal, StoreUnavailable
from storage.people.directory import reader_for
from storage.reports.schedule_reports import Ended, Taken, any_due, finish_report, put_back, take_report
from storage.reports.schedules import EVER, DueSchedule, Fire, due_schedules, fire_schedules
from storage.reports.schedules import next_boundary as next_of_all

# A finding's lines are read for 100 s, after the lists; then its row is written.
RUN_SECONDS = 170.0
LEASE_SECONDS = 180.0
MOST_TRIES = 3
# Choice: the upstream's short troubles pass in a minute, its longer ones in five.
PAUSES = (60.0, 300.0)
RESTING = "schedule_resting"
RESTS = "The schedule rests: the key or login that it was made with has ended, or whoever made it has left the organisation"
Sheets = Mapping[str, Callable[..., Sheet]]


class Failure(TypedDict):
    """Why a report was not made."""

    error: str
    code: str


class Outcome(NamedTuple):
    """What one try came to: the report's body and its sheet, or why not, and whether the next try may do better."""

    body: str | None = None
    sheet: Sheet | None = None
    failure: Failure | None = None
    passing: bool = False


class ScheduleRuns:
    """The schedules of all organisations, as one process works on them."""

    def __init__(self, deps: Deps, sheets: Sheets) -> None:
        self._deps, self._sheets = deps, sheets

    async def fire(self) -> int:
        """Begin the reports whose boundary has come; how many began here.

        Choice: of boundaries that came while nobody worked only the newest is made up for: a report tells of now, not of then.
        """
        deps, now = self._deps, self._deps.clock.now()
        first = await deps.store.read(next_of_all)
        if first is None or first > now * 1000:
            return 0
        due = await deps.store.read(due_schedules, now_ms=int(now * 1000))
        fires = [self._fire_of(schedule, int(now * 1000)) for schedule in due]
        return await deps.store.write(fire_schedules, fires=fires, now=now)

    def _fire_of(self, due: DueSchedule, now_ms: int) -> Fire:
        fire_ms = newest_boundary(due.cron, due.timezone, due.next_ms, now_ms)
        next_ms = next_boundary(due.cron, due.timezone, max(fire_ms, now_ms)) or EVER
        return Fire(due.id, due.next_ms, fire_ms, next_ms, self._deps.ids.new("rep_"))

    async def step(self) -> bool:
        """Make one report that is due; False when none is."""
        token, taken = self._deps.ids.new("lse_"), None
        with anyio.CancelScope(shield=True):  # cancelled here, the lease would be taken and never given back
            taken = await self.take(token)
        if taken is not None:
            await self._make(taken, token)
        return taken is not None

    async def take(self, token: str) -> Taken | None:
        """A report that is due, under a lease."""
        store, now_ms = self._deps.store, int(self._deps.clock.now() * 1000)
        if not await store.read(any_due, now_ms=now_ms):
            return None
        return await store.write(take_report, token=token, now_ms=now_ms, lease_ms=int(LEASE_SECONDS * 1000))

    async def _make(self, taken: Taken, token: str) -> None:
        """One try. A process that ends in the middle of it gives the report to another at once."""
        try:
            outcome = await self._try(taken)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._put_back(taken, token, 0.0, counted=False)
            raise
        if outcome.passing and taken.tries < MOST_TRIES:
            await self._put_back(taken, token, PAUSES[taken.tries - 1], counted=True)
        else:
            await self._finish(taken, token, outcome)

    async def _try(self, taken: Taken) -> Outcome:
        if taken.tries > MOST_TRIES:
            return failed("The service ended in the middle of this report three times; the next boundary tries anew", "report_given_up")
        deps = self._deps
        caller = await deps.store.read(
            reader_for,
            principal=taken.schedule,
            organisation=taken.organisation,
            person=taken.created_by,
            made_with=taken.made_with,
            now=deps.clock.now(),
        )
        if caller is None:
            return failed(RESTS, RESTING)
        given = completed(taken.composite, cast("Mapping[str, JsonValue]", orjson.loads(taken.input)), deps.clock.now())
        with anyio.move_on_after(RUN_SECONDS):
            return self._judged(taken, await deps.inside.call(taken.composite, given, caller=caller, surface="schedule"))
        return failed("The report took longer than it may", "timeout", passing=True)

    def _judged(self, taken: Taken, reply: Reply) -> Outcome:
        """The body of a report, or why there is none."""
        if reply.refusal is not None:
            return failed(reply.refusal.message, reply.refusal.error_code, passing=may_pass(reply.refusal))
        found = orjson.loads(reply.body)
        sheet = self._sheets[taken.composite](found)
        return Outcome(orjson.dumps({"finding": found, "sheet": sheet}).decode(), sheet)

    async def _put_back(self, taken: Taken, token: str, pause: float, *, counted: bool) -> None:
        again_ms = int((self._deps.clock.now() + pause) * 1000)
        await self._deps.store.write(put_back, report=taken.id, token=token, again_ms=again_ms, counted=counted)

    async def _finish(self, taken: Taken, token: str, outcome: Outcome) -> None:
        """Keep the outcome and tell the webhook, unless the lease was lost or the schedule is gone: then nothing changes."""
        deps, now = self._deps, self._deps.clock.now()
        state = "failed" if outcome.body is None else "done"
        why = None if outcome.failure is None else orjson.dumps(outcome.failure).decode()
        ended = Ended(taken.id, taken.schedule, token, state, outcome.body, why, now)
        event = event_for(deps.ids.new("evt_"), taken, notice(taken, deps.site.base_url, state, outcome.sheet), now)
        if await deps.store.write(finish_report, ended=ended, event=event, ids=deps.ids):
            deps.wake_worker()


def failed(error: str, code: str, *, passing: bool = False) -> Outcome:
    """No report."""
    return Outcome(failure={"error": error, "code": code}, passing=passing)


def may_pass(refusal: Refusal) -> bool:
    """Whether it is worth another try in a minute: troubles of the upstream, of the store and of ours, and the burst limit."""
    if isinstance(refusal, QuotaExceeded):
        return refusal.error_code == "rate_limited"
    return isinstance(refusal, (ProviderError, StoreUnavailable, KeyUnknown, Internal))
