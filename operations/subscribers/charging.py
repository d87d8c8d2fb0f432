"""What a line's usage outside packages is charged to: its prepaid balance and its price lists."""

from typing import Annotated

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.upstream.balances import BalanceChange, BalanceChanged, ManagedBalance, balance_write, due_of_balance, refuse_managed_raise
from operations.upstream.lines import Line, LineRef, note_line, own_line
from operations.upstream.paging import Data
from operations.upstream.resellers import MOBILE_PLAN_LIST, require_listed, require_voip_plan
from operations.upstream.usage import micro_euros
from registry.errors import EndOfLife, NotFound, OcsError
from registry.operation import Due, Example, Once, Scope, SpendKind, operation


class LineBalanceChange(BalanceChange, LineRef):
    """Which line, and how its balance changes."""


async def due_of_line_balance(_ctx: Ctx, params: LineBalanceChange, line: Line) -> Due:
    """How much the balance changes, at most.

    Raises ManagedBalance: what is refused anyway takes nothing from a limit.
    """
    seen = line.row.get("balance", 0.0)
    refuse_managed_raise(line.upstream, params, seen)
    return due_of_balance(params, seen)


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/balance",
    spends=due_of_line_balance,
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    operator=True,
    moves=True,
    access=own_line,
    raises=[NotFound, EndOfLife, ManagedBalance, OcsError],
    examples=[
        Example("Add five euro", {"iccid": "8988303700000100286", "amount": 5.0}, {"data": {"mode": "adapt", "amount": 5.0}}),
        Example("Empty it", {"iccid": "8988303700000100286", "amount": 0.0, "mode": "set"}, {"data": {"mode": "set", "amount": 0.0}}),
    ],
)
async def modify_subscriber_balance(ctx: Ctx, params: LineBalanceChange, line: Line) -> Data[BalanceChanged]:
    """Add to a line's prepaid balance, lower it, or set it.

    Spent on usage outside packages. `adapt` without a key adds again when it is repeated.

    A balance never goes below 0. In managed mode it can be lowered only: raising it answers 409 `managed_balance`. The service's own
    organisation is the exception.
    """
    seen = line.row.get("balance", 0.0)
    refuse_managed_raise(line.upstream, params, seen)
    amount, put = balance_write(line.upstream, params, seen)
    await line.upstream.ocs.subscriber.modify_balance(line.subscriber_id, amount, set_balance=put, description=params.description)
    note_line(ctx, line, balance=max(0, micro_euros(amount) + (0 if put else micro_euros(seen))))
    return {"data": {"mode": params.mode, "amount": params.amount}}


PricePlanId = Annotated[int | None, Field(ge=1, le=2**53 - 1)]


class MobilePlanChange(LineRef):
    """Which plan; null removes it."""

    plan_id: Annotated[
        PricePlanId,
        Field(validation_alias=AliasChoices("planId", "mobilePlanId", "mobile_plan_id"), description="Tariff id; null removes the plan."),
    ]


class VoipPlanChange(LineRef):
    """Which plan; null removes it."""

    plan_id: Annotated[
        PricePlanId,
        Field(
            validation_alias=AliasChoices("planId", "voipPlanId", "voip_plan_id"),
            description="Id of list_subscriber_voip_tariff; null removes.",
        ),
    ]


class PlanChanged(TypedDict):
    """What applies now."""

    planId: int | None


async def own_line_and_mobile_plan(ctx: Ctx, params: MobilePlanChange) -> Line:
    """The caller's own line. Raises NotFound unless its reseller has the plan."""
    line = await own_line(ctx, params)
    if params.plan_id is not None:
        await require_listed(line.upstream, MOBILE_PLAN_LIST, params.plan_id, "planId")
    return line


async def own_line_and_voip_plan(ctx: Ctx, params: VoipPlanChange) -> Line:
    """The caller's own line. Raises NotFound unless its reseller has the plan and did not delete it."""
    line = await own_line(ctx, params)
    if params.plan_id is not None:
        await require_voip_plan(line.upstream, params.plan_id, "planId")
    return line


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/mobile-plan",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    access=own_line_and_mobile_plan,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Charge by another price list", {"iccid": "8988303700000100286", "planId": 530}, {"data": {"planId": 530}})],
)
async def modify_subscriber_mobile_plan(ctx: Ctx, params: MobilePlanChange, line: Line) -> Data[PlanChanged]:
    """Choose the price list for a line's usage outside packages, or remove it."""
    await line.upstream.ocs.packages.modify_mobile_plan(line.subscriber_id, params.plan_id)
    return {"data": {"planId": params.plan_id}}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/voip-plan",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    access=own_line_and_voip_plan,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Charge calls over IP by a plan", {"iccid": "8988303700000100286", "planId": 92}, {"data": {"planId": 92}})],
)
async def modify_subscriber_voip_plan(ctx: Ctx, params: VoipPlanChange, line: Line) -> Data[PlanChanged]:
    """Choose the price list for a line's calls over IP, or remove it."""
    await line.upstream.ocs.packages.modify_voip_plan(line.subscriber_id, params.plan_id)
    return {"data": {"planId": params.plan_id}}
