"""Which price lists a line's usage outside packages is charged by."""

from typing import Annotated

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from operations.services.network.visible import require_visible, require_voip_plan
from registry.errors import EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

PlanId = Annotated[int | None, Field(ge=1, le=2**53 - 1)]


class MobilePlan(LineRef):
    """Which plan; null removes it."""

    plan_id: Annotated[
        PlanId,
        Field(validation_alias=AliasChoices("planId", "mobilePlanId", "mobile_plan_id"), description="Tariff id; null removes the plan."),
    ]


class VoipPlan(LineRef):
    """Which plan; null removes it."""

    plan_id: Annotated[
        PlanId,
        Field(
            validation_alias=AliasChoices("planId", "voipPlanId", "voip_plan_id"),
            description="Id of list_subscriber_voip_tariff; null removes.",
        ),
    ]


class PlanChanged(TypedDict):
    """What applies now."""

    planId: int | None


async def mobile_plan_there(ctx: Ctx, params: MobilePlan) -> Line:
    """The caller's own line, and a plan that its reseller has."""
    line = await own_line(ctx, params)
    if params.plan_id is not None:
        upstream = line.upstream
        reseller = await upstream.reseller_id()
        await require_visible(
            upstream,
            "subscriber_tariffs",
            lambda: upstream.ocs.tariffs.list_subscriber_tariff(reseller_id=reseller),
            params.plan_id,
            id="roamingplanid",
            param="planId",
            hint="Ask whoever runs the service which price lists your reseller sells by",
        )
    return line


async def voip_plan_there(ctx: Ctx, params: VoipPlan) -> Line:
    """The caller's own line, and a plan that its reseller has and did not delete."""
    line = await own_line(ctx, params)
    if params.plan_id is not None:
        await require_voip_plan(line.upstream, params.plan_id, "planId")
    return line


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/mobile-plan",
    scope=Scope.WRITE,
    upstream=True,
    access=mobile_plan_there,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Charge by another price list", {"iccid": "8988303700000100286", "planId": 530}, {"data": {"planId": 530}})],
)
async def modify_subscriber_mobile_plan(ctx: Ctx, params: MobilePlan, line: Line) -> Data[PlanChanged]:
    """Choose the price list for a line's usage outside packages, or remove it."""
    await line.upstream.ocs.packages.modify_mobile_plan(line.subscriber_id, params.plan_id)
    return {"data": {"planId": params.plan_id}}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/voip-plan",
    scope=Scope.WRITE,
    upstream=True,
    access=voip_plan_there,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Charge calls over IP by a plan", {"iccid": "8988303700000100286", "planId": 92}, {"data": {"planId": 92}})],
)
async def modify_subscriber_voip_plan(ctx: Ctx, params: VoipPlan, line: Line) -> Data[PlanChanged]:
    """Choose the price list for a line's calls over IP, or remove it."""
    await line.upstream.ocs.packages.modify_voip_plan(line.subscriber_id, params.plan_id)
    return {"data": {"planId": params.plan_id}}
