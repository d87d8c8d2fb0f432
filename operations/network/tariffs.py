"""What roaming traffic costs the reseller by network, and what the price plans for calls over IP charge."""

from typing import Annotated, cast

from pydantic import Field

from clients.ocs.tariffs import TariffRule, VoipRule, VoipTariff
from clients.ocs.times import parse_wire_time
from operations.deps import Ctx
from operations.times import utc_text
from operations.upstream.connection import connect_upstream
from operations.upstream.paging import Data, FieldsQuery, PageQuery, member_number, paged_data, raw_data, select_fields
from operations.upstream.resellers import (
    VOIP_PLAN_LIST,
    ResellerPage,
    not_listed,
    read_of_reseller,
    read_reseller_list,
    require_voip_plan,
    resolve_reseller,
)
from operations.upstream.tariffs import ALL_TARIFF_PRICES, TARIFF_PRICES, TariffRow, TrafficKind, read_tariff_rules, render_tariff_row
from operations.vocabulary import UpstreamId
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.operation import Example, StreamedAnswer, operation


class TariffQuery(FieldsQuery):
    """Which prices of which reseller."""

    reseller_id: Annotated[UpstreamId, Field(description="Your reseller's id; get_reseller_info names it.")]
    country: Annotated[str | None, Field(min_length=2, max_length=60, description="ISO code or name, such as NO or Norway.")] = None
    traffic_type: Annotated[TrafficKind | None, Field(description="Only these prices.")] = None
    verbose: Annotated[bool, Field(description="The upstream's full rules.")] = False

    @property
    def everything(self) -> bool:
        """Whether all rules are asked for as they are, so that they need not be decoded."""
        return self.verbose and self.is_unrestricted and self.country is None and self.traffic_type is None


TARIFF_EXAMPLE: TariffRow = {
    "country": "Norway",
    "countryIso2": "NO",
    "operator": "Telco A",
    "networkId": 88,
    "mccMnc": ["242-01"],
    "tadigs": ["NORAA"],
    "currency": "EUR",
    "dataPerMb": 0.002,
    "active": True,
}


@operation(
    "GET",
    "/v1/tariffs/{resellerId}",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example("What does data in Norway cost?", {"resellerId": 7001, "country": "NO", "trafficType": "data"}, {"data": [TARIFF_EXAMPLE]}),
    ],
    tool_defaults={"limit": 20},
)
async def get_tariff(ctx: Ctx, params: TariffQuery) -> Data[list[TariffRow]] | Data[list[TariffRule]] | StreamedAnswer:
    """List what roaming costs your reseller by network: per MiB, minute, SMS.

    plan_network_default finds the cheapest networks of countries.

    With `verbose` rows are the charging system's own rules, country codes in lower case. Where a network has a rule for one
    sponsor and one for any, the sponsor's own counts.
    """
    upstream = await connect_upstream(ctx)
    reseller = await resolve_reseller(upstream, params.reseller_id)
    named = None if reseller == await upstream.reseller_id() else reseller  # the own one exists, even without a tariff
    if params.everything:
        return raw_data(await read_of_reseller(named, upstream.ocs.tariffs.stream_customer_tariff(reseller)))
    rules = [rule for rule in await read_of_reseller(named, read_tariff_rules(upstream, reseller)) if rule_matches(rule, params)]
    page = paged_data(ctx, rules, params.model_copy(update={"fields": None}), member_number("roamingplanruleid"))["data"]
    if params.verbose:
        return {"data": select_fields(ctx, page, params.fields)}
    prices = ALL_TARIFF_PRICES if params.traffic_type is None else TARIFF_PRICES[params.traffic_type]
    return {"data": select_fields(ctx, [render_tariff_row(rule, prices) for rule in page], params.fields)}


def rule_matches(rule: TariffRule, params: TariffQuery) -> bool:
    """Whether the rule is of the country, and has a price for the traffic."""
    if params.country is not None and not rule_in_country(rule, params.country.strip()):
        return False
    return params.traffic_type is None or any(rule.get(name) is not None for name in TARIFF_PRICES[params.traffic_type])


def rule_in_country(rule: TariffRule, country: str) -> bool:
    """Whether `country` is its code or its name, in any case."""
    operator, sought = rule.get("operator", {}), country.casefold()
    return sought in ((operator.get("countryIso2") or "").casefold(), (operator.get("countryName") or "").casefold())


VOIP_TARIFF_EXAMPLE: VoipTariff = {
    "id": 92,
    "planName": "Std",
    "reseller": {"resellerId": 7001, "resellerName": "Fjord Mobile"},
    "deleted": False,
    "costPlan": False,
    "maxAllowRate": 1.5,
}


class VoipRuleQuery(PageQuery):
    """Which plan, and which part of its rules."""

    voip_plan_id: Annotated[UpstreamId, Field(description="Id of list_subscriber_voip_tariff.")]


@operation(
    "GET",
    "/v1/voip-tariffs",
    upstream=True,
    operator=True,
    title="List VoIP plans",
    raises=[NotFound, OcsError],
    examples=[Example("Which plans can a line's calls over IP be charged by?", {}, {"data": [VOIP_TARIFF_EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_subscriber_voip_tariff(ctx: Ctx, params: ResellerPage) -> Data[list[VoipTariff]]:
    """List the price plans for calls over IP.

    list_voip_tariff_rule shows a plan's prices; modify_subscriber_voip_plan assigns one. Deleted plans are left out.
    """
    upstream = await connect_upstream(ctx)
    rows = await read_reseller_list(upstream, VOIP_PLAN_LIST, params.reseller_id)
    return paged_data(ctx, [row for row in rows if not row.get("deleted")], params, member_number("id"))


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
async def list_voip_tariff_rule(ctx: Ctx, params: VoipRuleQuery) -> Data[list[VoipRule]]:
    """List what calls over IP cost by called prefix, per minute.

    The longest prefix wins.
    """
    upstream, plan = await connect_upstream(ctx), params.voip_plan_id
    if upstream.managed:
        await require_voip_plan(upstream, plan, "voipPlanId")
    try:
        rows = await upstream.reads.get((upstream.identity, "voip_rules", plan), lambda: upstream.ocs.tariffs.list_voip_rules(plan))
    except OcsNotFound:
        raise not_listed(VOIP_PLAN_LIST.hint, "voipPlanId") from None
    return paged_data(ctx, [render_voip_rule(row) for row in rows], params)


def render_voip_rule(row: VoipRule) -> VoipRule:
    """The rule with its day as RFC 3339; a day that cannot be read stays as it is."""
    try:
        return cast(VoipRule, {**row, "fromdate": utc_text(parse_wire_time(row.get("fromdate", "")))})
    except (ValueError, TypeError):
        return row
