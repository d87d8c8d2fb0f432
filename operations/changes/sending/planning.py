"""Reading the lines of a plan, and the rows that come of it: at once for a few lines, in the background for many."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import anyio
import orjson

from operations.changes.plans.changes import LineValue, RequestedChange, change_for_line
from operations.changes.plans.facts import ChangeableLine, LineRefused, read_changeable_line
from operations.changes.plans.rows import PlanFacts, RowPlan, SkippedRow, plan_line
from operations.changes.plans.undo import plan_undo, row_record
from operations.changes.sending.costs import ASSIGNING_ACTIONS, assignment_costs
from operations.deps import Deps
from operations.upstream.connection import upstream_of_organisation
from registry.caller import Caller
from registry.errors import QuotaExceeded, Refusal
from registry.policy import require_connection
from storage.change_rows import PARTLY_DONE, ChangeRow, known_cost, rows_of_lines
from storage.change_sets import ReadLines
from storage.directory import StoreDirectory
from storage.line_changes import changes_of_line

PARALLEL_READS = 4
READ_TRIES = 3
READ_PAUSE_SECONDS = 1.0


class PlanTask(NamedTuple):
    """What is planned for whom: a change, or, with `undo_of`, the way back from another set."""

    change: RequestedChange
    undo_of: str
    undoes_undo: bool
    caller: Caller
    known: PlanFacts


class PlannedLine(NamedTuple):
    """The rows of one line, and what the line was when they were made; `facts` is None where it could not be read."""

    iccid: str
    facts: ChangeableLine | None
    rows: Sequence[RowPlan]


class PlanRefused(Exception):
    """A refusal that all further lines would meet: the plan cannot go on now."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


async def read_plan_facts(deps: Deps, caller: Caller, change: RequestedChange, *, now: float, undoes: bool) -> PlanFacts:
    """What a plan has to know beside its lines. Raises Refusal. Waits for the network.

    `now`: when the set was made, Unix seconds: from then on days count, however long the reading takes.
    """
    if undoes or change.action not in (*ASSIGNING_ACTIONS, "move_account"):
        return PlanFacts(now, {})
    await require_connection(caller, StoreDirectory(deps.store), deps.site)
    upstream = await upstream_of_organisation(deps, caller.organisation)
    if change.action == "move_account":
        return PlanFacts(now, {}, await upstream.account_resellers())
    return PlanFacts(now, await assignment_costs(upstream, change.action))


async def plan_lines(deps: Deps, task: PlanTask, lines: Sequence[LineValue], seconds: float) -> list[PlannedLine]:
    """The plans of the first of `lines`, in their order: of as many as can be read in `seconds`. Waits for the network.

    Raises PlanRefused where a refusal would meet every further line as well.
    """
    found: dict[int, PlannedLine] = {}
    waiting = iter(enumerate(lines))
    ends = deps.clock.monotonic() + seconds
    refused: list[PlanRefused] = []

    async def lane() -> None:
        for place, line in waiting:
            if refused or deps.clock.monotonic() >= ends:
                return
            try:
                found[place] = await plan_one(deps, task, line)
            except PlanRefused as problem:
                refused.append(problem)

    async with anyio.create_task_group() as group:
        for _ in range(min(PARALLEL_READS, len(lines))):
            group.start_soon(lane)
    read = next((place for place in range(len(lines)) if place not in found), len(lines))
    if refused and not read:
        raise refused[0]
    return [found[place] for place in range(read)]


async def plan_one(deps: Deps, task: PlanTask, line: LineValue) -> PlannedLine:
    """The rows of one line. Raises PlanRefused where the quota is used up, or the line could not be read now."""
    try:
        change = change_for_line(task.change, line.value)
    except ValueError as problem:
        return PlannedLine(line.iccid, None, [SkippedRow("invalid_value", str(problem))])
    facts = await read_patiently(deps, task, line.iccid)
    if isinstance(facts, LineRefused):
        refusal = facts.refusal
        if facts.passing or isinstance(refusal, QuotaExceeded):
            raise PlanRefused(refusal)
        return PlannedLine(line.iccid, None, [SkippedRow(refusal.error_code, refusal.message)])
    rows = await undo_rows(deps, task, facts) if task.undo_of else plan_line(change, facts, task.known)
    return PlannedLine(line.iccid, facts, rows)


async def read_patiently(deps: Deps, task: PlanTask, iccid: str) -> ChangeableLine | LineRefused:
    """What the line is now; what passes in a moment is waited for."""
    for _ in range(READ_TRIES - 1):
        facts = await read_changeable_line(deps, task.caller, iccid, task.change.action, prepaid=False)
        if isinstance(facts, ChangeableLine) or not facts.passing:
            return facts
        await anyio.sleep(READ_PAUSE_SECONDS)
    return await read_changeable_line(deps, task.caller, iccid, task.change.action, prepaid=False)


async def undo_rows(deps: Deps, task: PlanTask, facts: ChangeableLine) -> Sequence[RowPlan]:
    """The rows that take back what a set did to a line, the last one first."""
    rows = await deps.store.read(rows_of_lines, change_set=task.undo_of, iccid=facts.iccid)
    changes = await deps.store.read(changes_of_line, organisation=task.caller.organisation, iccid=facts.iccid)
    action = task.change.action
    if task.undoes_undo and action in ASSIGNING_ACTIONS:
        return [SkippedRow("irreversible", "A package that was deleted does not come back.")]
    done = [row for row in reversed(rows) if row.state == "done" or row.code == PARTLY_DONE]
    return [
        plan_undo(row_record(action, row), facts, changes, row.settled_at)
        if row.subscriber_id == facts.subscriber_id
        else SkippedRow("changed_since", "The ICCID belongs to another line since.")
        for row in done
    ]


def change_rows(plans: Sequence[PlannedLine], first: int) -> list[ChangeRow]:
    """The rows as they are stored, numbered from `first`."""
    pairs = [(plan, row) for plan in plans for row in plan.rows]
    return [change_row(first + place, plan, row) for place, (plan, row) in enumerate(pairs)]


def change_row(number: int, plan: PlannedLine, row: RowPlan) -> ChangeRow:
    skipped = isinstance(row, SkippedRow)
    return ChangeRow(
        number=number,
        iccid=plan.iccid,
        subscriber_id=0 if plan.facts is None else plan.facts.subscriber_id,
        account_id=0 if plan.facts is None else plan.facts.account_id,
        state="skipped" if skipped else "planned",
        before="{}" if skipped else json_text(row.before),
        after="{}" if skipped else json_text(row.after),
        steps="[]" if skipped else json_text([list(step) for step in row.steps]),
        step=0,
        irreversible=0 if skipped else int(row.irreversible),
        cost=0 if skipped else row.cost,
        result="{}" if skipped or row.lost is None else json_text({"lost": row.lost}),
        code=row.code if skipped else "",
        reason=row.reason if skipped else "",
        sent_at=0.0,
        settled_at=0.0,
    )


def json_text(value: object) -> str:
    """Canonical JSON: the same value has one text."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


DIGESTED_FIELDS = ("number", "iccid", "subscriber_id", "account_id", "state", "before", "after", "steps", "irreversible", "cost", "result")


def digest_after(digest: str, rows: Sequence[ChangeRow]) -> str:
    """The digest of a plan whose first rows had `digest`, after `rows`; it is the same however the rows were read."""
    for row in rows:
        text = json_text([getattr(row, name) for name in DIGESTED_FIELDS])
        digest = hashlib.sha256(f"{digest}|{text}".encode()).hexdigest()
    return digest


def first_digest(task: PlanTask, organisation: str, id: str) -> str:
    """The digest of a plan before its first row."""
    return hashlib.sha256(f"{organisation}|{id}|{task.change.action}|{task.undo_of}".encode()).hexdigest()


def lines_read(plans: Sequence[PlannedLine], rows: Sequence[ChangeRow], digest: str, position: int) -> ReadLines:
    """The counts of a part of a plan."""
    planned = [row for row in rows if row.state == "planned"]
    return ReadLines(
        position=position + len(plans),
        digest=digest_after(digest, rows),
        planned=len(planned),
        skipped=len(rows) - len(planned),
        irreversible=sum(row.irreversible for row in planned),
        cost=sum(known_cost(row.cost) for row in planned),
        largest_cost=max((row.cost for row in planned), default=0),
    )
