"""Applying a plan: from here on the worker sends its rows."""

from typing import Annotated

from pydantic import Field

from operations.changes.change_plans import DIGEST_EXAMPLE, SET_ID_EXAMPLE, UPSTREAM_ROWS_A_SECOND, own_change_set, require_row_rights
from operations.changes.change_sets import FINISHED_EXAMPLE
from operations.changes.plans.views import ChangeSetView, asks_for_confirmation, render_set, set_state
from operations.changes.sending.set_limits import due_of_set, money_charges, stored_charges, times_charges
from operations.deps import Ctx
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, NotFound
from registry.operation import CamelInput, Due, Example, Scope, SpendKind, operation
from storage.change_sets import ChangeSet, begin_applying, find_change_set
from storage.engine.sql import Connection
from storage.spending import reserve_spending

APPLYING_EXAMPLE: ChangeSetView = {**FINISHED_EXAMPLE, "state": "applying"}


class PlanToApply(CamelInput):
    """Which plan, as it was read."""

    id: Annotated[str, Field(max_length=64, description="The set, chg_...")]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="`digest` of the plan.")]


async def plan_to_apply(ctx: Ctx, params: PlanToApply) -> ChangeSet:
    """The set. Raises NotFound, and what its rows would be refused with; asks for a confirmation where a row's operation does."""
    found = await own_change_set(ctx, params.id)
    require_row_rights(ctx, ctx.caller, found.action, undoes=bool(found.undo_of))
    if asks_for_confirmation(found) and set_state(found, ctx.now) == "planned":
        ctx.confirm_replacement(Replacement(confirm_sentence_of(found), params.digest, for_admins=False))
    return found


def confirm_sentence_of(row: ChangeSet) -> str:
    """What the set will do for good, in one sentence."""
    what = {"delete_packages": "delete packages", "end_of_life": "end lines for good"}.get(
        row.action, "delete the packages that were assigned"
    )
    return f"This will {what}: {row.planned} rows of the change set {row.id}, {row.irreversible} of which cannot be undone."


async def set_due(ctx: Ctx, params: PlanToApply, found: ChangeSet) -> Due | SpendKind:
    """What the rows make due together; OPEN where nobody can say of a row."""
    del params
    return due_of_set(ctx.deps, found)


@operation(
    "POST",
    "/v1/changes/{id}/apply",
    scope=Scope.WRITE,
    bounded=True,
    moves=True,
    reaches_out=True,
    replaces="what a change set takes away for good",
    spends=set_due,
    title="Apply changes",
    access=plan_to_apply,
    raises=[NotFound, Conflict, BadRequest],
    examples=[Example("Make the change", {"id": SET_ID_EXAMPLE, "digest": DIGEST_EXAMPLE}, APPLYING_EXAMPLE)],
)
async def apply_changes(ctx: Ctx, params: PlanToApply, found: ChangeSet) -> ChangeSetView:
    """Make the changes of a plan: exactly what was planned, line by line.

    Answers at once with `applying`; get_change_set with waitSeconds tells what came of it. undo_changes takes it back.

    Each row is sent once, as fast as the charging system takes it, after another look at its line: a line that was changed since the plan
    is skipped and named. Rows are calls of yours: what they may do is looked at when each is sent, and they count in your quota. Plans
    that delete packages or end lines ask for a confirmation first.
    """

    charges = await times_charges(ctx, found)
    taken = (*charges, *money_charges(ctx))
    charged = stored_charges(taken) if taken else ""

    def apply(connection: Connection, *, now: float) -> ChangeSetView:
        if begin_applying(connection, change_set=found.id, digest=params.digest, approver="", charged=charged, now=now):
            reserve_spending(connection, charges=charges, now=now)
            row = find_change_set(connection, change_set=found.id, organisation=found.organisation)
            return render_set(row or found, now, UPSTREAM_ROWS_A_SECOND)
        row = find_change_set(connection, change_set=found.id, organisation=found.organisation) or found
        raise why_not_applied(row, params.digest, now)

    answer = await ctx.settle_result(apply, now=ctx.now)
    ctx.deps.wake_worker()
    return answer


def why_not_applied(row: ChangeSet, digest: str, now: float) -> BadRequest | Conflict:
    """The refusal of a set that cannot be applied now."""
    state = set_state(row, now)
    if state == "planning":
        return Conflict(
            "The lines of this set are still being read", param="id", hint="get_change_set with waitSeconds tells when it is planned"
        )
    if state == "planned" and row.digest != digest:
        return BadRequest(
            "digest: it is not that of this plan; nothing was changed", param="digest", hint="get_change_set shows the plan with its digest"
        )
    if state == "expired":
        return Conflict(
            "This plan is older than 24 hours, and lines have changed since", param="id", hint="Plan it again with plan_changes"
        )
    return Conflict(f"This set is {state}: it is applied once", param="id", hint="get_change_set shows what came of it")
