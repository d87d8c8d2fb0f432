"""The worker's part of change sets: reading the lines of large plans, sending the rows of applied ones, looking for lost outcomes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, cast

import anyio
import orjson

from clients.ocs.places import in_background
from operations.changes.plans.changes import parse_plan_lines, read_change
from operations.changes.plans.facts import ChangeableLine, read_changeable_line, whole
from operations.changes.plans.rows import package_ids, row_operations
from operations.changes.sending.planning import PlanRefused, PlanTask, change_rows, first_digest, lines_read, plan_lines, read_plan_facts
from operations.changes.sending.row_sending import RowPace, RowPostponed, RowSending, RowTask, SetStopped, made_by, row_evidence, row_key
from operations.changes.sending.set_limits import give_back_unsent
from operations.deps import Deps
from operations.event_types.declaration import new_event
from operations.event_types.work import WORK_CHANGE_SET_DONE, DoneChangeSet
from operations.ledger.send_once import BackgroundDispatch, DeferredWrites, answer_unknown_key, send_once
from registry.caller import Caller, CallerKind
from registry.errors import Refusal, StoreUnavailable, Unauthorized
from registry.ids import Ids
from storage.change_rows import (
    ChangeRow,
    RowOutcome,
    count_state,
    find_row,
    keep_lines_read,
    list_rows,
    newest_unknown_row,
    refuse_planned_rows,
    settle_row,
    stop_rows,
)
from storage.change_sets import (
    ChangeSet,
    any_old_plan,
    any_set_due,
    claim_next_set,
    expire_plans,
    find_change_set,
    finish_plan,
    finish_set,
    give_set_back,
    give_up_plan,
    renew_set_lease,
)
from storage.claims import find_claim
from storage.directory import CallerRecord, acting_caller, find_approver
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.placed_packages import placed_packages_among
from storage.sealing import claim_field

SETS_STEP_SECONDS = 60.0
SET_TURN_SECONDS = 10.0
SET_LEASE_SECONDS = 60.0
RENEW_SECONDS = 15.0
PLANNED_LINES_A_WRITE = 40
ROWS_A_LOOK = 40
PARALLEL_ROWS = 4
POSTPONED_SECONDS = 2.0
LOST_LOOK_SECONDS = 30.0
"""No call lasts as long: what a lost call did is there by then."""
LOST_GIVEN_UP_SECONDS = 600.0
APPROVER_LOST_RIGHTS = "Whoever approved the set may not do this themselves any more, or has left the organisation."
ASKER_GONE = "The key or login that the set was made with has ended, or its person has left the organisation."


class ChangeWork:
    """The change sets of all organisations, as one process works on them: one set of an organisation at a time, in turns."""

    def __init__(self, deps: Deps, report: Callable[[str], None], begun: Callable[[], bool] = lambda: True) -> None:
        """`begun`: whether the charging system is to be asked at all; a simulated one in this process is not begun for it alone."""
        self._deps, self._report, self._begun = deps, report, begun
        self._deferred = DeferredWrites()
        self._paces = dict[str, RowPace]()

    async def step(self) -> None:
        """Works on due sets until none is due, or the time is over."""
        deps = self._deps
        ends = deps.clock.monotonic() + SETS_STEP_SECONDS
        await self._deferred.write_all(deps)
        if await deps.store.read(any_old_plan, now=deps.clock.now()):
            await deps.store.write(expire_plans, now=deps.clock.now())
        while deps.clock.monotonic() < ends and await self._turn():
            pass

    async def _turn(self) -> bool:
        """One turn of the set that was served longest ago; False where none is due."""
        deps, now = self._deps, self._deps.clock.now()
        if not self._begun() or not await deps.store.read(any_set_due, now=now):
            return False
        token, claimed = deps.ids.new("lse_"), None
        with anyio.CancelScope(shield=True):  # cancelled here, the lease would be taken and never given back
            claimed = await deps.store.write(claim_next_set, token=token, now=now, until=now + SET_LEASE_SECONDS)
        if claimed is None:
            return False
        pace = self._paces.setdefault(claimed.organisation, RowPace(deps.rate_limiter, claimed.organisation))
        turn = SetTurn(deps, self._deferred, claimed, token, pace)
        try:
            with in_background():
                await turn.run()
        finally:
            with anyio.CancelScope(shield=True):
                await deps.store.write(give_set_back, change_set=claimed.id, token=token, due=deps.clock.now() + turn.pause)
        return True


class SetTurn:
    """One turn of a set under its lease. `pause`: for how many seconds the set is left alone after it."""

    def __init__(self, deps: Deps, deferred: DeferredWrites, row: ChangeSet, token: str, pace: RowPace) -> None:
        self._deps, self._deferred, self._set, self._token = deps, deferred, row, token
        self._ends = deps.clock.monotonic() + SET_TURN_SECONDS
        self._renewed = deps.clock.monotonic()
        self._pace = pace
        self.pause = 0.0

    @property
    def _over(self) -> bool:
        return self.pause > 0 or self._deps.clock.monotonic() >= self._ends

    async def run(self) -> None:
        """Reads lines of a plan, or sends rows."""
        caller = await self._asker()
        if caller is None:
            await self._give_up("asker_gone", ASKER_GONE)
            await self._end_without_asker()
        elif self._set.state == "planning":
            await self._plan(caller)
        else:
            await self._send(caller)

    async def _asker(self) -> Caller | None:
        """Who asked for the set, as they are now."""
        row = self._set
        record = CallerRecord(cast(CallerKind, row.actor_kind), row.principal, row.organisation, row.credential)
        return await self._deps.store.read(acting_caller, record=record, now=self._deps.clock.now())

    async def _approver_may(self) -> bool:
        """Whether who approved the set, if anybody had to, may do all that its rows do, as they are now."""
        row = self._set
        if not row.approver:
            return True
        approver = await self._deps.store.read(find_approver, person=row.approver, owner=row.organisation)
        operations = self._deps.internal_calls.pipeline.catalogue.operations
        names = row_operations(read_change(row.change), undoes=bool(row.undo_of))
        return approver.organisation == row.organisation and all(approver.has(operations[name].scope) for name in names)

    async def _give_up(self, code: str, reason: str) -> None:
        """Stops the set, and ends it where nothing of it is under way."""
        await self._deps.store.write(stop_set_work, change_set=self._set.id, token=self._token, code=code, reason=reason, now=self._now())

    def _now(self) -> float:
        return self._deps.clock.now()

    async def _renew(self) -> bool:
        """Holds the lease; False where it was lost."""
        monotonic = self._deps.clock.monotonic()
        if monotonic - self._renewed < RENEW_SECONDS:
            return True
        self._renewed = monotonic
        return await self._deps.store.write(
            renew_set_lease, change_set=self._set.id, token=self._token, until=self._now() + SET_LEASE_SECONDS
        )

    async def _plan(self, caller: Caller) -> None:
        """Reads lines, some at a time, each part kept with the place where the next one begins."""
        row, deps = self._set, self._deps
        change, lines = read_change(row.change), parse_plan_lines(row.lines)
        undone = await deps.store.read(find_change_set, change_set=row.undo_of, organisation=row.organisation) if row.undo_of else None
        try:
            known = await read_plan_facts(deps, caller, change, now=row.created, undoes=bool(row.undo_of))
        except Refusal as refusal:
            self._postpone(refusal)
            return
        task = PlanTask(change, row.undo_of, undone is not None and bool(undone.undo_of), caller, known)
        digest, position, made = row.digest or first_digest(task, row.organisation, row.id), row.position, row.planned + row.skipped
        while position < len(lines) and not self._over and await self._renew():
            part = lines[position : position + PLANNED_LINES_A_WRITE]
            try:
                plans = await plan_lines(deps, task, part, SET_TURN_SECONDS)
            except PlanRefused as problem:
                self._postpone(problem.refusal)
                return
            rows = change_rows(plans, made + 1)
            read = lines_read(plans, rows, digest, position)
            if not await deps.store.write(keep_lines_read, change_set=row.id, token=self._token, seen=position, read=read, rows=rows):
                return
            digest, position, made = read.digest, read.position, made + len(rows)
        if position >= len(lines):
            await deps.store.write(finish_plan, change_set=row.id, token=self._token, now=self._now())

    def _postpone(self, refusal: Refusal) -> None:
        """The set is left alone for as long as the refusal says."""
        asked = float(refusal.headers.get("Retry-After", 0))
        self.pause = max(self.pause, POSTPONED_SECONDS, asked)

    async def _send(self, caller: Caller) -> None:
        """What a process that is gone had begun first, then lost outcomes, then rows that wait, then the end."""
        row, deps = self._set, self._deps
        if row.stop:
            await deps.store.write(refuse_waiting_rows, row=row)
        begun = await deps.store.read(list_rows, change_set=row.id, which="sending", after=0, most=ROWS_A_LOOK)
        await self._send_rows(begun, resumed=True)
        await self._look_for_lost(caller)
        while not self._over and await self._renew():
            waiting = await deps.store.read(list_rows, change_set=row.id, which="planned", after=0, most=ROWS_A_LOOK)
            if not waiting:
                break
            await self._send_rows(waiting, resumed=False)
        if not self._over:
            await self._end()

    async def _send_rows(self, rows: Sequence[ChangeRow], *, resumed: bool) -> None:
        waiting = iter(rows)
        async with anyio.create_task_group() as group:
            for _ in range(min(PARALLEL_ROWS, len(rows))):
                group.start_soon(self._lane, waiting, resumed)

    async def _lane(self, waiting: Iterator[ChangeRow], resumed: bool) -> None:
        for row in waiting:
            if self._over or not await self._renew():
                return
            current = await self._asker()
            if current is None:
                await self._give_up("asker_gone", ASKER_GONE)
                return
            if not await self._approver_may():
                await self._give_up("approver_lost_rights", APPROVER_LOST_RIGHTS)
                return
            await self._send_row(RowTask(self._deps, self._set, self._token, current, self._pace, resumed), row)

    async def _send_row(self, task: RowTask, row: ChangeRow) -> None:
        sending = RowSending(task, row)
        dispatch = BackgroundDispatch(self._deps, self._deferred, organisation=self._set.organisation, operation_id="apply_changes")
        try:
            await dispatch.run(lambda: send_once(dispatch, sending))
        except RowPostponed as problem:
            self.pause = max(self.pause, problem.seconds, POSTPONED_SECONDS)
        except SetStopped:
            self._ends = self._deps.clock.monotonic()
        except StoreUnavailable:
            self.pause = max(self.pause, POSTPONED_SECONDS)
        if sending.lost_rights is not None:
            gone = isinstance(sending.lost_rights, Unauthorized)
            await self._give_up(*(("asker_gone", ASKER_GONE) if gone else (sending.lost_rights.error_code, sending.lost_rights.message)))
            self._ends = self._deps.clock.monotonic()

    async def _look_for_lost(self, caller: Caller) -> None:
        """Looks at the lines of rows whose answer was lost: when the calls are surely over, and until it is no use any more."""
        deps, after = self._deps, 0
        while not self._over and await self._renew():
            found = await deps.store.read(list_rows, change_set=self._set.id, which="unknown", after=after, most=ROWS_A_LOOK)
            for row in found:
                if LOST_LOOK_SECONDS <= self._now() - row.sent_at < LOST_GIVEN_UP_SECONDS:
                    await self._settle_lost(caller, row)
            if len(found) < ROWS_A_LOOK:
                return
            after = found[-1].number

    async def _settle_lost(self, caller: Caller, row: ChangeRow) -> bool:
        """Whether it is known now what became of a row."""
        facts = await read_changeable_line(self._deps, caller, row.iccid, self._set.action, prepaid=True)
        if not isinstance(facts, ChangeableLine):
            return False
        placed = await self._deps.store.read(placed_packages_among, packages=package_ids(facts))
        outcome = row_evidence(row, facts, placed - {await self._own_package(row)})
        if outcome is None:
            return False
        return await self._deps.store.write(
            settle_lost_row, deps=self._deps, row=self._set, number=row.number, outcome=outcome, now=self._now()
        )

    async def _own_package(self, row: ChangeRow) -> int:
        """The package that the row's call has placed, where its answer came after nobody knew of the row any more; 0: none is known."""
        deps, organisation = self._deps, self._set.organisation
        operation, _ = cast("list[tuple[str, object]]", orjson.loads(row.steps))[row.step]
        key = row_key(self._set.id, row.number, row.step)
        claim = await deps.store.read(find_claim, organisation=organisation, operation=operation, key=key, now=int(self._now()))
        if claim is None or claim.body is None or (claim.status or 500) >= 400:
            return 0
        answer = orjson.loads(deps.keyring.open(claim.body, org_id=organisation, field=claim_field(operation, key)))
        return whole(made_by(operation, answer).get("package"))

    async def _end(self) -> None:
        """Ends the set where no row is left; looks again later where the outcome of one may still be found out."""
        deps, row = self._deps, self._set
        newest = await deps.store.read(newest_unknown_row, change_set=row.id)
        age = self._now() - newest
        if newest and age < LOST_GIVEN_UP_SECONDS:
            self.pause = LOST_LOOK_SECONDS if age >= LOST_LOOK_SECONDS else LOST_LOOK_SECONDS - age
            return
        await deps.store.write(end_set, change_set=row.id, organisation=row.organisation, token=self._token, ids=deps.ids, now=self._now())

    async def _end_without_asker(self) -> None:
        """Ends a set whose asker is gone: nobody may look at its lines any more, so what was under way stays unknown."""
        deps, row = self._deps, self._set
        for begun in await deps.store.read(list_rows, change_set=row.id, which="sending", after=0, most=ROWS_A_LOOK):
            await deps.store.write(leave_row, row=row, begun=begun, now=self._now())
        # Rows that were under way when the set was stopped, and were put back since, wait again; no later turn would send or refuse them.
        await deps.store.write(refuse_planned_rows, change_set=row.id, code="asker_gone", reason=ASKER_GONE)
        await deps.store.write(end_set, change_set=row.id, organisation=row.organisation, token=self._token, ids=deps.ids, now=self._now())


def stop_set_work(connection: Connection, *, change_set: str, token: str, code: str, reason: str, now: float) -> None:
    """Stops a set that cannot go on. A plan is given up; of an applied set the rows that wait are not sent."""
    stop = orjson.dumps({"code": code, "error": reason}).decode()
    give_up_plan(connection, change_set=change_set, token=token, stop=stop, now=now)
    stop_rows(connection, change_set=change_set, stop=stop, code=code, reason=reason)


def refuse_waiting_rows(connection: Connection, *, row: ChangeSet) -> int:
    """Rows of a stopped set that wait again, since they were under way when it was stopped, are not sent; how many there are."""
    stop = cast("dict[str, str]", orjson.loads(row.stop))
    return refuse_planned_rows(connection, change_set=row.id, code=stop["code"], reason=stop["error"])


def leave_row(connection: Connection, *, row: ChangeSet, begun: ChangeRow, now: float) -> None:
    """A row that a process had begun before it died, and whose asker is gone: not sent, unless its first call was opened."""
    first = cast("list[tuple[str, object]]", orjson.loads(begun.steps))[0][0]
    key = row_key(row.id, begun.number, 0)
    opened = find_claim(connection, organisation=row.organisation, operation=first, key=key, now=int(now)) is not None
    outcome = RowOutcome("not_sent", begun.result, "asker_gone", ASKER_GONE)
    if opened or begun.step:
        outcome = RowOutcome(
            "unknown", begun.result, "outcome_unknown", "It was sent, no answer came, and nobody may look at the line now."
        )
    settle_row(connection, change_set=row.id, number=begun.number, before="sending", outcome=outcome, now=now)


def settle_lost_row(connection: Connection, *, deps: Deps, row: ChangeSet, number: int, outcome: RowOutcome, now: float) -> bool:
    """Writes what evidence says of a row, and gives the keys of its calls their answer."""
    if not settle_row(connection, change_set=row.id, number=number, before="unknown", outcome=outcome, now=now):
        return False
    found = find_row(connection, change_set=row.id, number=number)
    steps = cast("list[tuple[str, object]]", orjson.loads(found.steps)) if found is not None else []
    for step, (operation, _) in enumerate(steps):
        body = {"data": {"change_set": row.id, "row": number, "state": outcome.state}}
        answer_unknown_key(connection, deps, row.organisation, operation, row_key(row.id, number, step), 200, body)
    return True


def end_set(connection: Connection, *, change_set: str, organisation: str, token: str, ids: Ids, now: float) -> bool:
    """Ends a set of which no row waits or is under way."""
    if any(count_state(connection, change_set=change_set, state=state) for state in ("planned", "sending")):
        return False
    row = find_change_set(connection, change_set=change_set, organisation=organisation)
    if row is None:
        return False
    state: Literal["applied", "partly_applied", "cancelled"] = "applied"
    if row.failed or row.unknown or row.not_sent:
        state = "cancelled" if row.stop and not (row.done or row.unknown) else "partly_applied"
    if not finish_set(connection, change_set=change_set, token=token, state=state, now=now):
        return False
    give_back_unsent(connection, row=row)
    counts: DoneChangeSet = {
        "change_set": change_set,
        "action": row.action,
        "state": state,
        "done": row.done,
        "skipped": row.skipped,
        "failed": row.failed,
        "unknown": row.unknown,
        "not_sent": row.not_sent,
    }
    log_event(connection, event=new_event(WORK_CHANGE_SET_DONE, counts, organisation=organisation, ids=ids, now=now))
    return True
