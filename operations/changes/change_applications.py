"""Applying a plan: from here on the worker sends its rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from string import Formatter
from typing import Annotated, cast

import orjson
from pydantic import Field

from operations.changes.change_plans import (
    DIGEST_EXAMPLE,
    SET_ID_EXAMPLE,
    UPSTREAM_ROWS_A_SECOND,
    own_change_set,
    require_own_set,
    require_row_rights,
)
from operations.changes.change_sets import FINISHED_EXAMPLE
from operations.changes.plans.changes import RequestedChange, read_change, shown_name
from operations.changes.plans.undo import values_of
from operations.changes.plans.views import CONFIRMED_UNDOS, NETWORK_CURRENCY, ChangeSetView, asks_for_confirmation, render_set, set_state
from operations.changes.sending.costs import ASSIGNING_ACTIONS, template_cost_now
from operations.changes.sending.set_limits import ROWS_READ_AT_ONCE, due_of_set, money_charges, stored_charges, times_charges
from operations.deps import Ctx
from operations.times import utc_text
from registry.caller import Money
from registry.challenge import LOSSES_LIMIT, Challenge, Loss, describe_loss
from registry.context import Replacement
from registry.errors import BadRequest, Conflict, NotFound
from registry.operation import CamelInput, Due, Example, Scope, SpendKind, operation
from registry.spending import shown_money
from storage.approvals import find_approval
from storage.change_rows import UNBOUNDED_COST, ChangeRow, list_rows
from storage.change_sets import ChangeSet, begin_applying, find_change_set
from storage.engine.sql import Connection
from storage.spending import reserve_spending

LOSS_ROWS_READ = 200
LINES_NAMED = 3
CHANGE_WORDS: Mapping[str, str] = {
    "set_status": "set the status {status}",
    "set_steering_list": "set the steering list {list_id}",
    "set_traffic": "switch traffic",
    "set_bitrate": "set the speed {speed_limit}",
    "assign_package": "assign a package of the template {package_template_id}",
    "assign_series": "start a series of the template {package_template_id}",
    "stop_series": "stop series of packages",
    "set_package_status": "set packages {status}",
    "set_package_expiry": "set when packages end",
    "set_package_limits": "set limits of packages",
    "delete_packages": "delete packages",
    "move_account": "move lines to the account {account_id}",
    "set_tags": "change tags",
    "end_of_life": "end lines for good",
}
"""What an action does, with the fields that it needs."""
APPLYING_EXAMPLE: ChangeSetView = {**FINISHED_EXAMPLE, "state": "applying"}


class PlanToApply(CamelInput):
    """Which plan, as it was read."""

    id: Annotated[str, Field(max_length=64, description="The set, chg_...")]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="`digest` of the plan.")]


async def plan_to_apply(ctx: Ctx, params: PlanToApply) -> ChangeSet:
    """The set. Raises NotFound, and what its rows would be refused with; asks for a confirmation where a row's operation does."""
    found = await own_change_set(ctx, params.id)
    require_own_set(ctx, found, "apply")
    require_row_rights(ctx, ctx.caller, read_change(found.change), undoes=bool(found.undo_of))
    if asks_for_confirmation(found) and set_state(found, ctx.now) == "planned":
        ctx.confirm_replacement(Replacement(confirm_sentence_of(found), params.digest, for_admins=False))
    return found


def confirm_sentence_of(row: ChangeSet) -> str:
    """What the set will do, in one sentence."""
    if row.undo_of:
        undone = dict.fromkeys(CONFIRMED_UNDOS, "delete the packages that were assigned")
        what = undone.get(row.action, f"take back {row.action} of the change set {row.undo_of}")
    else:
        what = change_in_words(read_change(row.change))
    rows = "1 row" if row.planned == 1 else f"{row.planned} rows"
    final = f", {row.irreversible} of which cannot be undone" if row.irreversible else ""
    costs = f" It makes {shown_money(Money(row.cost, NETWORK_CURRENCY))} due at the network." if row.cost else ""
    if row.largest_cost >= UNBOUNDED_COST:
        costs = " Nobody can say what it makes due at the network."
    return f"This will {what}: {rows} of the change set {row.id}{final}.{costs}"


def change_in_words(change: RequestedChange) -> str:
    """What a change does to each line, as the end of a sentence that begins with "This will"."""
    text, given = CHANGE_WORDS[change.action], set(change.given()) - {"irreversible"}
    named = {field for _, field, _, _ in Formatter().parse(text) if field}
    found = text.format_map({name: told_value(getattr(change, name)) if name in given else "as the table says" for name in named})
    if change.no_list:
        found, given = "take the line's own steering list away", given - {"no_list"}
    more = ", ".join(f"{shown_name(name)} {told_value(getattr(change, name))}" for name in change.given() if name in given - named)
    return f"{found} ({more})" if more else found


def told_value(value: object) -> str:
    """A value of a change as people read it."""
    if isinstance(value, list):
        return " ".join(str(each) for each in cast("list[object]", value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return utc_text(value) if isinstance(value, datetime) else str(value)


def lines_in_words(rows: Sequence[ChangeRow], planned: int) -> str:
    """The first lines that rows are about, as a sentence."""
    found = list(dict.fromkeys(row.iccid for row in rows))[:LINES_NAMED]
    if not found:
        return ""
    more = ", and more" if planned > len(found) else ""
    return f" Lines: {', '.join(found)}{more}."


async def set_challenge(ctx: Ctx, params: PlanToApply, found: ChangeSet) -> Challenge:
    """What the set does, and the first things that are lost by it."""
    del params
    rows = await ctx.deps.store.read(list_rows, change_set=found.id, which="planned", after=0, most=LOSS_ROWS_READ)
    losses = [loss for loss in map(row_loss, rows) if loss is not None]
    return Challenge(confirm_sentence_of(found) + lines_in_words(rows, found.planned), tuple(losses[:LOSSES_LIMIT]))


def row_loss(row: ChangeRow) -> Loss | None:
    """What a row takes away for good, if anything."""
    lost = cast("Mapping[str, object] | None", values_of(row.result).get("lost"))
    if lost is None:
        return None
    if "line" in lost:
        return describe_loss("line", row.iccid)
    unused = lost.get("unused_bytes")
    return describe_loss(
        "package",
        str(lost.get("name") or lost.get("package")),
        line=row.iccid,
        unused=None if unused is None else f"{cast(int, unused) // 1_000_000} MB",
        ends=cast("str | None", lost.get("ends")),
    )


async def set_due(ctx: Ctx, params: PlanToApply, found: ChangeSet) -> Due | SpendKind:
    """What the rows make due together; where nobody can say of a row, a key with a limit of money needs an approval.

    Raises Conflict where they would cost more than was planned.
    """
    del params
    if found.action in ASSIGNING_ACTIONS and not found.undo_of and set_state(found, ctx.now) == "planned":
        ctx.reached_upstream = True
        for template, planned in (await planned_costs(ctx, found)).items():
            now = await template_cost_now(ctx.deps, ctx.organisation, found.action, template)
            if now is not None and now > planned:
                raise price_changed(now)
    return due_of_set(ctx.deps, found)


async def planned_costs(ctx: Ctx, found: ChangeSet) -> dict[int, int]:
    """By template: what a row that assigns it costs at most, as it was planned. Lines of a table have templates of their own."""
    costs, after = dict[int, int](), 0
    while rows := await ctx.deps.store.read(list_rows, change_set=found.id, which="planned", after=after, most=ROWS_READ_AT_ONCE):
        for row in rows:
            ((_, arguments), *_) = cast("list[tuple[str, dict[str, int]]]", orjson.loads(row.steps))
            template = arguments["packageTemplateId"]
            costs[template] = max(row.cost, costs.get(template, 0))
        after = rows[-1].number
    return costs


def price_changed(now: int) -> Conflict:
    """The refusal of a set whose packages cost more at the network than when it was planned. `now`: euro cents for each line."""
    told = "nobody can say what a line costs" if now >= UNBOUNDED_COST else f"a line costs {shown_money(Money(now, NETWORK_CURRENCY))}"
    return Conflict(
        f"The price of the packages has risen at the network since the plan: {told} now; nothing was sent",
        code="price_changed",
        param="id",
        hint="Plan it again with plan_changes, which counts the price of now",
    )


@operation(
    "POST",
    "/v1/changes/{id}/apply",
    scope=Scope.WRITE,
    bounded=True,
    moves=True,
    reaches_out=True,
    confirms_some=True,
    spends=set_due,
    challenge=set_challenge,
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

    charges, approver = await times_charges(ctx, found), await approver_of(ctx)
    taken = (*charges, *money_charges(ctx))
    charged = stored_charges(taken) if taken else ""

    def apply(connection: Connection, *, now: float) -> ChangeSetView:
        if begin_applying(connection, change_set=found.id, digest=params.digest, approver=approver, charged=charged, now=now):
            reserve_spending(connection, charges=charges, now=now)
            row = find_change_set(connection, change_set=found.id, organisation=found.organisation)
            return render_set(row or found, now, UPSTREAM_ROWS_A_SECOND)
        row = find_change_set(connection, change_set=found.id, organisation=found.organisation) or found
        raise why_not_applied(row, params.digest, now)

    answer = await ctx.settle_result(apply, now=ctx.now)
    ctx.deps.wake_worker()
    return answer


async def approver_of(ctx: Ctx) -> str:
    """The person who has approved this call; '' where nobody had to."""
    mandate = ctx.call.mandate
    if mandate is None:
        return ""
    found = await ctx.deps.store.read(find_approval, approval=mandate.id)
    return "" if found is None else found.decided_by or ""


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
