"""Planning a change of many lines, and the way back from one: every line is read as it is now, and nothing is changed."""

from typing import Annotated, NamedTuple

from pydantic import FailFast, Field

from operations.changes.plans.changes import LineValue, RequestedChange, lines_as_json, read_change, require_whole, stored_change
from operations.changes.plans.rows import row_operations
from operations.changes.plans.selection import PlanLines, find_plan_lines
from operations.changes.plans.views import ChangeRowView, ChangeSetPage, render_page
from operations.changes.sending.planning import PlanRefused, PlanTask, change_rows, first_digest, lines_read, plan_lines, read_plan_facts
from operations.changes.sending.set_limits import require_plan_fits
from operations.deps import Ctx
from operations.vocabulary import Iccid
from registry.caller import Caller
from registry.clock import seconds_left
from registry.errors import Conflict, NotFound, OcsError, Restricted
from registry.operation import CamelInput, Example, Once, Scope, SpendKind, operation
from registry.restrictions import check_restricted_operation
from storage.change_rows import ChangeRow, done_iccids, insert_planned_set
from storage.change_sets import OPEN_SETS_LIMIT, PLAN_SECONDS, RESTRICTED_SETS_LIMIT, ChangeSet, find_change_set
from storage.engine.sql import Connection

LINES_PLANNED_AT_ONCE = 200
READ_SECONDS = 12.0
SHOWN_ROWS = 20
UPSTREAM_ROWS_A_SECOND = 10.0


class ChangePlan(CamelInput):
    """One change, and the lines that it is made to."""

    change: Annotated[RequestedChange, Field(description="What happens to each line.")]
    lines: Annotated[PlanLines, Field(description="Which lines.")]


class PlannedLines(NamedTuple):
    """What access found: the lines of a new plan, the change of each, and the set that it takes back, if any."""

    change: RequestedChange
    lines: list[LineValue]
    own_values: bool = False
    undo_of: str = ""
    undoes_undo: bool = False


SET_ID_EXAMPLE = "chg_01k0a8w7zv6q4k3m2n1p0r9s8t"
DIGEST_EXAMPLE = "3b8f5a1c0d9e7b624f8a1c3d5e7f90b2a4c6d8e0f1a3b5c7d9e1f3a5b7c9d1e3"
ROW_EXAMPLE: ChangeRowView = {
    "iccid": "8988303700000100286",
    "state": "planned",
    "before": {"status": "ACTIVE"},
    "after": {"status": "SUSPENDED"},
    "calls": ["modify_subscriber_status"],
    "undoable": True,
}
TRAFFIC_ROW_EXAMPLE: ChangeRowView = {
    "iccid": "8988303700000100286",
    "state": "planned",
    "before": {"data": True, "moc": True, "mtc": True, "sms": True},
    "after": {"data": False, "moc": True, "mtc": True, "sms": True},
    "calls": ["set_subscriber_traffic_restrictions"],
    "undoable": True,
}
PLAN_EXAMPLE: ChangeSetPage = {
    "id": SET_ID_EXAMPLE,
    "object": "change_set",
    "state": "planned",
    "action": "set_status",
    "change": {"action": "set_status", "status": "SUSPENDED"},
    "planned_by": {"person": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t", "credential": "key_01k0a8w7zv6q4k3m2n1p0r9s8t"},
    "created": "2027-01-15T09:41:07Z",
    "expires": "2027-01-16T09:41:07Z",
    "digest": DIGEST_EXAMPLE,
    "counts": {"lines": 1, "lines_read": 1, "planned": 1, "skipped": 0, "done": 0, "failed": 0, "unknown": 0, "not_sent": 0},
    "money": {"network": {"amount": 0, "currency": "EUR"}, "income": {"amount": 0, "currency": "EUR"}},
    "cannot_be_undone": 0,
    "seconds": 1,
    "asks_for_confirmation": False,
    "rows": [ROW_EXAMPLE],
}


async def lines_to_plan(ctx: Ctx, params: ChangePlan) -> PlannedLines:
    """The lines that are asked for. Raises what the row's operation would raise for this caller, BadRequest, NotFound."""
    found = await find_plan_lines(ctx, params.lines)
    require_whole(params.change, own_values=found.own_values)
    require_row_rights(ctx, ctx.caller, params.change, undoes=False)
    return PlannedLines(params.change, found.lines, found.own_values)


def require_row_rights(ctx: Ctx, caller: Caller, change: RequestedChange, *, undoes: bool) -> None:
    """Raises what the caller would be refused with who called the operations of the rows: a row is a call of its operation."""
    catalogue, held = ctx.deps.internal_calls.pipeline.catalogue, caller.restrictions
    for name in row_operations(change, undoes=undoes):
        declared = catalogue.operations[name]
        ctx.need(Scope(declared.scope), ctx.deps.site)
        check_restricted_operation(declared, held, catalogue.operations_in(held.toolsets or ()))


@operation(
    "POST",
    "/v1/changes",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    waits=False,
    status=201,
    bounded=True,
    reaches_out=True,
    once=Once(shown=True),
    title="Plan changes",
    access=lines_to_plan,
    raises=[NotFound, Conflict, OcsError],
    examples=[
        Example(
            "Suspend a line",
            {"change": {"action": "set_status", "status": "SUSPENDED"}, "lines": {"iccids": ["8988303700000100286"]}},
            PLAN_EXAMPLE,
        ),
        Example(
            "Every active line, found in the fleet",
            {"change": {"action": "set_traffic", "data": False}, "lines": {"query": {"status": "ACTIVE"}}},
            {
                **PLAN_EXAMPLE,
                "action": "set_traffic",
                "change": {"action": "set_traffic", "data": False},
                "rows": [TRAFFIC_ROW_EXAMPLE],
            },
        ),
    ],
)
async def plan_changes(ctx: Ctx, params: ChangePlan, planned: PlannedLines) -> ChangeSetPage:
    """Plan one change of many lines: status, networks, packages, tags and more.

    Changes nothing: every line is read now, and the answer says what each would become, what is skipped and why, what it costs and what
    cannot be undone. apply_changes makes the change, with `digest`; undo_changes takes it back.

    Up to 200 lines the answer is the plan. More are read in the background: `state` is `planning`, get_change_set tells how far it is, and
    `digest` is there when it is `planned`. A line that is read counts as one call. A plan can be applied for 24 hours; an organisation has
    at most 10 open ones, a credential with restrictions 5. Each row is a call of its operation, as you: what you may not do is skipped.
    """
    del params
    return await make_plan(ctx, planned)


async def make_plan(ctx: Ctx, planned: PlannedLines) -> ChangeSetPage:
    """Reads what can be read at once, and keeps the set; whatever is left is read in the background."""
    deps, undoes = ctx.deps, bool(planned.undo_of)
    known = await read_plan_facts(deps, ctx.caller, planned.change, now=ctx.now, undoes=undoes)
    task = PlanTask(planned.change, planned.undo_of, planned.undoes_undo, ctx.caller, known)
    id = deps.ids.new("chg_")
    whole = len(planned.lines) <= LINES_PLANNED_AT_ONCE
    try:
        plans = await plan_lines(deps, task, planned.lines, seconds_left(READ_SECONDS)) if whole else []
    except PlanRefused as problem:
        raise problem.refusal from None
    rows = change_rows(plans, 1)
    await require_plan_fits(ctx, rows)
    row = new_set(ctx, id, planned, task, rows, len(plans))
    answer = render_page(row, rows[:SHOWN_ROWS], ctx.now, UPSTREAM_ROWS_A_SECOND)
    if len(rows) > SHOWN_ROWS:
        ctx.note = f"The first {SHOWN_ROWS} of {len(rows)} rows; get_change_set shows all."
    await ctx.settle(answer, keep_plan, row=row, rows=rows, restricted=ctx.caller.restricted)
    deps.wake_worker()
    return answer


def new_set(ctx: Ctx, id: str, planned: PlannedLines, task: PlanTask, rows: list[ChangeRow], read: int) -> ChangeSet:
    """The set's row; planned when every line was read."""
    caller, complete = ctx.caller, read == len(planned.lines)
    found = lines_read([], rows, first_digest(task, ctx.organisation, id), read)
    return ChangeSet(
        id=id,
        organisation=ctx.organisation,
        state="planned" if complete else "planning",
        action=planned.change.action,
        change=stored_change(planned.change),
        lines="" if complete else lines_as_json(planned.lines),
        line_count=len(planned.lines),
        undo_of=planned.undo_of,
        actor_kind=caller.kind,
        principal=caller.principal,
        credential=caller.key_id,
        approver="",
        created=ctx.now,
        position=read,
        digest=found.digest,
        planned_at=ctx.now if complete else 0.0,
        expires_at=ctx.now + PLAN_SECONDS if complete else 0.0,
        applied_at=0.0,
        finished_at=0.0,
        planned=found.planned,
        skipped=found.skipped,
        sent=0,
        done=0,
        failed=0,
        unknown=0,
        not_sent=0,
        irreversible=found.irreversible,
        cost=found.cost,
        largest_cost=found.largest_cost,
        stop="",
        charged="",
        lease="",
        lease_until=0.0,
        served=0.0,
        due=0.0,
    )


def keep_plan(connection: Connection, *, row: ChangeSet, rows: list[ChangeRow], restricted: bool) -> None:
    """Keeps the set. Raises Conflict where the organisation, or a `restricted` credential, has too many open ones."""
    found = insert_planned_set(connection, row=row, rows=rows)
    if found.all > OPEN_SETS_LIMIT:
        raise too_many_sets("Your organisation", OPEN_SETS_LIMIT)
    if restricted and found.own > RESTRICTED_SETS_LIMIT:
        raise too_many_sets("This credential, which may do less than its person,", RESTRICTED_SETS_LIMIT)


def too_many_sets(whose: str, most: int) -> Conflict:
    """The refusal of another open set."""
    return Conflict(
        f"{whose} has {most} open change sets, and no more are kept at once; nothing was planned",
        code="too_many_change_sets",
        hint="list_change_sets shows them: apply_changes or cancel_change_set ends one",
    )


class ChangesToUndo(CamelInput):
    """Which set, and which of its lines."""

    id: Annotated[str, Field(max_length=64, description="The set, chg_...")]
    iccids: Annotated[
        list[Iccid] | None, FailFast(), Field(min_length=1, max_length=1000, description="Only these lines of it; absent: all.")
    ] = None


async def lines_to_undo(ctx: Ctx, params: ChangesToUndo) -> PlannedLines:
    """The lines of the set that were changed. Raises NotFound, Conflict, and what the way back would be refused with."""
    found = await own_change_set(ctx, params.id)
    change = read_change(found.change)
    require_row_rights(ctx, ctx.caller, change, undoes=True)
    done = await ctx.deps.store.read(done_iccids, change_set=params.id)
    wanted = None if params.iccids is None else set(params.iccids)
    lines = [LineValue(iccid, None) for iccid in done if wanted is None or iccid in wanted]
    if not lines:
        raise Conflict(
            "The set has changed none of these lines, so there is nothing to undo",
            code="nothing_to_undo",
            param="id" if wanted is None else "iccids",
            hint="get_change_set with rows done shows what it has changed",
        )
    return PlannedLines(change, lines, undo_of=params.id, undoes_undo=bool(found.undo_of))


async def own_change_set(ctx: Ctx, id: str) -> ChangeSet:
    """The set of the caller's organisation; of a credential that may see some lines alone, its own. Raises NotFound."""
    found = await ctx.deps.store.read(find_change_set, change_set=id, organisation=ctx.organisation)
    if found is None or (sees_own_alone(ctx) and found.credential != ctx.caller.key_id):
        raise change_set_not_found()
    return found


def sees_own_alone(ctx: Ctx) -> bool:
    """Whether the credential may see some lines alone, and so no sets but its own. Marks the call as one that looked."""
    held = ctx.row_bounds()
    return (held.iccids, held.account_ids, held.tags) != (None, None, None)


def require_own_set(ctx: Ctx, found: ChangeSet, word: str) -> None:
    """Raises Restricted where a credential that may do less than its person would apply or cancel (`word`) what another has planned.

    Choice: whatever it is that it may not do, since rows are sent with the rights, limits and calls of who planned them.
    """
    if found.credential != ctx.caller.key_id and ctx.caller.restricted:
        raise Restricted(
            f"Another credential has planned {found.id}, and this one may {word} its own change sets alone; nothing was done",
            hint=f"Have the set handled by the credential that planned it, or by one without restrictions, which may {word} any",
        )


def change_set_not_found() -> NotFound:
    """The same answer for unknown sets and those of others."""
    return NotFound("You have no change set with this id", param="id", hint="list_change_sets shows them")


UNDO_EXAMPLE: ChangeSetPage = {
    **PLAN_EXAMPLE,
    "undo_of": SET_ID_EXAMPLE,
    "id": "chg_01k0a8w7zv6q4k3m2n1p0r9s9v",
    "rows": [{**ROW_EXAMPLE, "before": {"status": "SUSPENDED"}, "after": {"status": "ACTIVE"}}],
}


@operation(
    "POST",
    "/v1/changes/{id}/undo",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    waits=False,
    status=201,
    bounded=True,
    reaches_out=True,
    once=Once(shown=True),
    title="Plan the undoing of changes",
    access=lines_to_undo,
    raises=[NotFound, Conflict, OcsError],
    examples=[Example("It was a mistake", {"id": SET_ID_EXAMPLE}, UNDO_EXAMPLE)],
)
async def undo_changes(ctx: Ctx, params: ChangesToUndo, planned: PlannedLines) -> ChangeSetPage:
    """Plan the way back from a change set, for all its lines or some.

    Changes nothing yet: the answer is a plan like that of plan_changes, which apply_changes carries out.

    Only rows that took effect are taken back. A line that was changed since is skipped and named, and so is what cannot be undone: ended
    lines, deleted packages, packages that were used since. The action and `change` named are those of the set that is undone.
    """
    del params
    return await make_plan(ctx, planned)
