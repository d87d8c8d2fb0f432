"""Plans for calls over IP and what they charge."""

from typing import Annotated, cast

from pydantic import Field

from clients.ocs.failure import OcsNotFound
from clients.ocs.moment import read_time
from clients.ocs.wire.tariff import VoipRule, VoipTariff
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data, PageOf, listed
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.resellers import ResellerPage
from operations.services.network.upstream import reach
from operations.services.network.utc_moment import shown
from operations.services.network.visible import VOIP_PLANS, no_such_voip_plan, require_voip_plan
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

EXAMPLE: VoipTariff = {
    "id": 92,
    "planName": "Std",
    "reseller": {"resellerId": 7001, "resellerName": "Fjord Mobile"},
    "deleted": False,
    "costPlan": False,
    "maxAllowRate": 1.5,
}


class PlanRules(PageOf):
    """Which plan, and which part of its rules."""

    voip_plan_id: Annotated[UpstreamId, Field(description="Id of list_subscriber_voip_tariff.")]


@operation(
    "GET",
    "/v1/voip-tariffs",
    upstream=True,
    operator=True,
    title="List VoIP plans",
    raises=[NotFound, OcsError],
    examples=[Example("Which plans can a line's calls over IP be charged by?", {}, {"data": [EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_subscriber_voip_tariff(ctx: Ctx, params: ResellerPage) -> Data[list[VoipTariff]]:
    """List the price plans for calls over IP.

    list_voip_tariff_rule shows a plan's prices; modify_subscriber_voip_plan assigns one. Deleted plans are left out.
    """
    upstream = await reach(ctx)
    tariffs = upstream.ocs.tariffs
    rows = await reseller_rows(upstream, VOIP_PLANS, params.reseller_id, lambda reseller: tariffs.list_voip_tariffs(reseller_id=reseller))
    return listed(ctx, sorted((row for row in rows if not row.get("deleted")), key=plan_id), params, plan_id)


def plan_id(row: VoipTariff) -> int:
    """The number of a plan."""
    return row.get("id", 0)


@operation(
    "GET",
    "/v1/voip-tariffs/{voipPlanId}/rules",
    upstream=True,
    operator=True,
    title="List VoIP prices",
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "What do calls to Norway cost?",
            {"voipPlanId": 92},
            {"data": [{"prefix": "47", "country": "NORWAY", "price": 0.02, "fromdate": "2026-01-01T00:00:00Z"}]},
        )
    ],
    tool_defaults={"limit": 20},
)
async def list_voip_tariff_rule(ctx: Ctx, params: PlanRules) -> Data[list[VoipRule]]:
    """List what calls over IP cost by called prefix, per minute.

    The longest prefix wins.
    """
    upstream, plan = await reach(ctx), params.voip_plan_id
    if upstream.managed:
        await require_voip_plan(upstream, plan, "voipPlanId")
    try:
        rows = await upstream.reads.get((upstream.identity, "voip_rules", plan), lambda: upstream.ocs.tariffs.list_voip_rules(plan))
    except OcsNotFound:
        raise no_such_voip_plan("voipPlanId") from None
    return listed(ctx, [dated(row) for row in rows], params)


def dated(row: VoipRule) -> VoipRule:
    """The rule with its day as RFC 3339; one that cannot be read stays as it came."""
    try:
        return cast(VoipRule, {**row, "fromdate": shown(read_time(row.get("fromdate", "")))})
    except (ValueError, TypeError):
        return row
