"""Sending one row: another look at its line, its calls in their order, each at most once, and what came of them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, cast

import anyio
import orjson

from operations.changes.plans.facts import ChangeableLine, LineRefused, is_passing, read_changeable_line, whole
from operations.changes.plans.rows import ENDED_STATUS, Values, template_of
from operations.changes.plans.undo import is_unchanged, values_of
from operations.changes.sending.costs import cost_has_risen
from operations.changes.sending.planning import json_text
from operations.deps import Deps
from operations.ledger.send_once import UNKNOWN, SendOutcome
from registry.call import Mandate
from registry.caller import Caller
from registry.errors import ProviderError, QuotaExceeded, Refusal, Restricted, RoleRequired, Unauthorized, UpgradeRequired
from registry.ports import Conclusion
from registry.rate_limits import RateLimiter
from storage.change_rows import PARTLY_DONE, ChangeRow, RowOutcome, begin_row, note_call_made, put_row_back, row_is_ours, settle_row
from storage.change_sets import ChangeSet
from storage.claims import find_claim
from storage.engine.sql import Connection

STOP_OPERATION = "stop_resume_recurring_package"
TAG_OPERATIONS = ("tag_lines", "untag_lines")
PACE_SHARE = 0.95
"""Of the writes that the charging system takes: what goes out evenly does not arrive evenly."""
RIGHTS_REFUSALS = (Restricted, RoleRequired, Unauthorized, UpgradeRequired)
PRICE_REASON = "The package costs more at the network now than when it was planned, so it was not assigned; plan it again."
NO_ANSWER_REASON = "It was sent, and no answer came; the line is looked at until it is known whether it was done."


class RowPostponed(ProviderError):
    """A row that surely was not sent now, and that waits. `seconds`: for how long, at least."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message, before_execution=True)
        self.refusal = refusal

    @property
    def seconds(self) -> float:
        """For how long the refusal wants to be left alone."""
        return float(self.refusal.headers.get("Retry-After", 0))


class SetStopped(ProviderError):
    """The set was stopped, or another process works on it: the row was not begun."""

    def __init__(self) -> None:
        super().__init__("The set sends no more rows", before_execution=True)


class RowPace:
    """The pace of an organisation's rows: as fast as the charging system takes writes, one set at a time, after calls of people."""

    def __init__(self, limiter: RateLimiter, owner: str) -> None:
        self._limiter, self._owner = limiter, owner
        self._next = 0.0

    async def wait(self) -> None:
        """Waits until the next call may be made, and counts it as a write of the organisation."""
        clock, limits = self._limiter.clock, self._limiter.limits
        if not limits.burst_enabled:
            return
        now = clock.monotonic()
        start = max(now, self._next)
        self._next = start + 1 / (PACE_SHARE * limits.upstream_writes_per_second)
        if start > now:
            await anyio.sleep(start - now)
        wait = await self._limiter.take_upstream(self._owner)
        while wait is not None:
            await anyio.sleep(wait)
            wait = await self._limiter.take_upstream(self._owner)


class RowTask(NamedTuple):
    """A row to send. `resumed`: a process that is gone may have begun it."""

    deps: Deps
    change_set: ChangeSet
    token: str
    caller: Caller
    pace: RowPace
    resumed: bool = False


class RowSending:
    """A row as something that is sent once, between two commits."""

    lost_answer: tuple[int, object] = (502, {})

    def __init__(self, task: RowTask, row: ChangeRow) -> None:
        self._task, self._row = task, row
        self._result = values_of(row.result)
        self.lost_rights: Refusal | None = None

    def begin(self, connection: Connection, *, now: float) -> object:
        """Marks the row as being sent. Raises SetStopped."""
        task = self._task
        if task.resumed:
            if not row_is_ours(connection, change_set=task.change_set.id, token=task.token, number=self._row.number):
                raise SetStopped
            return None
        begun = begin_row(connection, change_set=task.change_set.id, token=task.token, number=self._row.number, now=now)
        if begun is None:
            raise SetStopped
        return None

    async def send(self, waited: float) -> SendOutcome[RowOutcome]:
        """Looks at the line and makes the calls. Raises RowPostponed where nothing was sent and the row should wait."""
        del waited
        step, steps = self._row.step, cast("list[tuple[str, Values]]", orjson.loads(self._row.steps))
        if step == 0 and not await self._was_begun():
            changed = self._stopped() or await self._look()
            if changed is not None and not (self._task.resumed and await self._was_begun()):
                return changed
        while step < len(steps):
            outcome = await self._call(step, *steps[step])
            if outcome is not None:
                return outcome
            step += 1
            if step < len(steps):
                await self._task.deps.store.write(
                    note_call_made, change_set=self._task.change_set.id, number=self._row.number, made=step, result=json_text(self._result)
                )
        return RowOutcome("done", json_text(self._result))

    def _stopped(self) -> RowOutcome | None:
        """Why a row is not sent that a process had begun before it died: its set was stopped since."""
        return stopped_outcome(self._task.change_set, self._row) if self._task.resumed and self._task.change_set.stop else None

    async def _was_begun(self) -> bool:
        """Whether the first call was opened before, by a process that is gone: its outcome is asked for, and the line not looked at."""
        deps, first = self._task.deps, cast("list[tuple[str, Values]]", orjson.loads(self._row.steps))[0]
        claim = await deps.store.read(
            find_claim,
            organisation=self._task.change_set.organisation,
            operation=first[0],
            key=row_key(self._task.change_set.id, self._row.number, 0),
            now=int(deps.clock.now()),
        )
        return claim is not None

    async def _look(self) -> RowOutcome | None:
        """Why the row is not sent: its line is another one, or was changed since the plan. None: it is as it was planned."""
        facts = await read_changeable_line(self._task.deps, self._task.caller, self._row.iccid, self._task.change_set.action, prepaid=True)
        if isinstance(facts, LineRefused):
            if facts.passing or starts_again(facts.refusal):
                raise RowPostponed(facts.refusal)
            return self._refused(facts.refusal)
        if (facts.subscriber_id, facts.account_id) != (self._row.subscriber_id, self._row.account_id):
            return RowOutcome("skipped", self._row.result, "changed_since", "The ICCID belongs to another line or account since the plan.")
        if facts.status == ENDED_STATUS and self._task.change_set.action != "set_tags":
            return RowOutcome("skipped", self._row.result, "subscriber_end_of_life", "The line has reached its end of life since the plan.")
        if not is_unchanged(values_of(self._row.before), facts):
            return RowOutcome("skipped", self._row.result, "changed_since", "The line was changed since the plan, so it was left as it is.")
        return await self._look_at_cost()

    async def _look_at_cost(self) -> RowOutcome | None:
        """Why the row is not sent: it would cost more than was planned, and than limits and people were asked for."""
        first = cast("list[tuple[str, Values]]", orjson.loads(self._row.steps))[0]
        try:
            risen = await cost_has_risen(self._task.deps, self._task.change_set.organisation, first, self._row.cost)
        except Refusal as refusal:
            raise RowPostponed(refusal) from None
        return RowOutcome("skipped", self._row.result, "price_changed", PRICE_REASON) if risen else None

    async def _call(self, step: int, operation: str, arguments: Values) -> SendOutcome[RowOutcome] | None:
        """One call; None when it was done."""
        task = self._task
        key = row_key(task.change_set.id, self._row.number, step)
        mandate = Mandate(task.change_set.id, reserved=True)
        await task.pace.wait()
        reply = await task.deps.internal_calls.write(operation, arguments, caller=task.caller, idempotency_key=key, mandate=mandate)
        refusal = reply.refusal
        if refusal is None and reply.status < 400:
            answer = cast("Mapping[str, object]", orjson.loads(reply.body))
            refused = refused_tag(operation, answer)
            if refused is not None:
                return self._failed(PARTLY_DONE if step else refused, f"{operation} did not take the line: {refused}.")
            self._result |= made_by(operation, answer)
            return None
        if refusal is None:  # the stored answer of a call that was made before
            told = cast("Mapping[str, object]", orjson.loads(reply.body))
            if told.get("outcome_unknown"):
                return UNKNOWN
            return self._failed(PARTLY_DONE if step else str(told.get("code", "failed")), str(told.get("error", "")))
        if isinstance(refusal, ProviderError) and refusal.outcome_unknown:
            return UNKNOWN
        passing = is_passing(refusal) or isinstance(refusal, QuotaExceeded)
        if refusal.error_code == "idempotency_in_progress" or (step == 0 and passing):
            raise RowPostponed(refusal)
        return self._refused(refusal) if step == 0 else self._refused_later(operation, refusal)

    def _refused_later(self, operation: str, refusal: Refusal) -> RowOutcome:
        """What came of a row of whose calls the first was made, and this one is refused."""
        if isinstance(refusal, RIGHTS_REFUSALS):
            self.lost_rights = refusal
        return self._failed(PARTLY_DONE, f"What comes before was done, and {operation} was not: {refusal.message}")

    def _refused(self, refusal: Refusal) -> RowOutcome:
        if isinstance(refusal, RIGHTS_REFUSALS):
            self.lost_rights = refusal
            return RowOutcome("not_sent", self._row.result, refusal.error_code, refusal.message)
        return self._failed(refusal.error_code, refusal.message)

    def _failed(self, code: str, reason: str) -> RowOutcome:
        return RowOutcome("failed", json_text(self._result), code, reason[:300])

    def settle(self, connection: Connection, *, outcome: SendOutcome[RowOutcome], now: float) -> Conclusion:
        """Writes what came of the row. A call that was made stands, whatever another process has believed of the row meanwhile."""
        if not isinstance(outcome, RowOutcome):
            outcome = RowOutcome("unknown", json_text(self._result), "outcome_unknown", NO_ANSWER_REASON)
        for before in SETTLED_FROM.get(outcome.state, ("sending",)):
            if settle_row(
                connection, change_set=self._task.change_set.id, number=self._row.number, before=before, outcome=outcome, now=now
            ):
                break
        return Conclusion(200, {}, outcome.state == "unknown", outcome.state)

    def unsend(self, connection: Connection, *, now: float) -> object:
        """The row waits again: it was not sent."""
        del now
        return put_row_back(connection, change_set=self._task.change_set.id, number=self._row.number)


def starts_again(refusal: Refusal) -> bool:
    """Whether a count of the day is used up, of the quota or of the credential: no right is gone, and the row waits for the next day."""
    return isinstance(refusal, QuotaExceeded) or (isinstance(refusal, Restricted) and "Retry-After" in refusal.headers)


SETTLED_FROM = {
    "done": ("sending", "unknown", "planned", "skipped", "not_sent"),
    "unknown": ("sending", "planned", "skipped", "not_sent"),
    "failed": ("sending", "unknown", "planned"),
}
"""In which states a row is found by a process that has made its call, after its lease was lost."""


def stopped_outcome(change_set: ChangeSet, row: ChangeRow) -> RowOutcome:
    """A row that is not sent, since its set was stopped."""
    stop = cast("Mapping[str, str]", orjson.loads(change_set.stop))
    return RowOutcome("not_sent", row.result, stop["code"], stop["error"])


def row_key(change_set: str, number: int, step: int) -> str:
    """The idempotency key of a call of a row: the same call is never made twice."""
    return f"{change_set}.{number}.{step}"


def refused_tag(operation: str, answer: Mapping[str, object]) -> str | None:
    """Why the line was not tagged, where an answer about many lines says so of it."""
    refused = cast("list[Mapping[str, object]]", answer.get("refused", [])) if operation in TAG_OPERATIONS else []
    return str(refused[0]["reason"]) if refused else None


def made_by(operation: str, answer: Mapping[str, object]) -> Values:
    """What undoing a call has to know of its answer."""
    data = answer.get("data")
    if not isinstance(data, dict):
        return {}
    found = cast("Mapping[str, object]", data)
    if operation == "assign_package":
        return {"package": whole(found.get("packageId"))}
    info = found.get("packageInfo")
    if operation == "assign_recurring_package" and isinstance(info, dict):
        package = cast("Mapping[str, object]", info)
        return {"package": whole(package.get("packageId")), "series": whole(package.get("recurringPackage"))}
    return {}


def row_evidence(row: ChangeRow, facts: ChangeableLine, placed: Collection[int]) -> RowOutcome | None:
    """What the line says of a row whose answer was lost: it was done, or nothing was; None where it says neither.

    `placed`: packages of the line that other calls of ours have put there.
    """
    before, after = values_of(row.before), values_of(row.after)
    added = after.get("added_template", after.get("added_series_of_template"))
    if added is not None:
        return assignment_evidence(row, before, whole(added), facts, placed)
    if is_unchanged(after, facts) or (after.get("package", 0) is None and facts.package(before["package"]) is None):
        unmade = [operation for operation, _ in cast("list[tuple[str, object]]", orjson.loads(row.steps))[row.step + 1 :]]
        if "push_steering_to_subscriber" in unmade:
            return RowOutcome("failed", row.result, PARTLY_DONE, "The line has the list, and push_steering_to_subscriber was not called.")
        return RowOutcome("done", row.result)
    steps = cast("list[tuple[str, Values]]", orjson.loads(row.steps))
    if steps[row.step][0] == STOP_OPERATION and len(steps) > 1 and is_stopped(steps[row.step][1]["packageId"], facts):
        return RowOutcome("failed", row.result, PARTLY_DONE, "The series is stopped, and the calls behind it were not made.")
    if is_unchanged(before, facts) and row.step == 0:
        return RowOutcome("failed", row.result, "not_done", "No answer came, and the line is as it was: it was not done.")
    if len(steps) > 1:
        return RowOutcome("failed", row.result, PARTLY_DONE, "No answer came, and the line is neither as it was nor as it was to be.")
    return None


def is_stopped(series: object, facts: ChangeableLine) -> bool:
    """Whether a series of the line goes on no more."""
    found = facts.series.get(whole(series))
    return found is not None and not found.get("active", True)


def assignment_evidence(row: ChangeRow, before: Values, template: int, facts: ChangeableLine, placed: Collection[int]) -> RowOutcome | None:
    """A package of the template that the line did not have, and no other call of ours made, was assigned; two, and nobody can say."""
    known = {*cast("list[int]", before["packages"]), *placed}
    new = [
        package
        for package in facts.packages
        if package.get("packageId") is not None and package.get("packageId") not in known and template_of(package) == template
    ]
    if not new:
        return RowOutcome("failed", row.result, "not_done", "No answer came, and the line has no new package: it was not done.")
    if len(new) > 1:
        return None
    made: Values = {**values_of(row.result), "package": new[0].get("packageId")}
    series = new[0].get("recurringPackage")
    return RowOutcome("done", json_text(made if series is None else {**made, "series": series}))
