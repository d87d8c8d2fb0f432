"""What traffic costs the reseller, by network."""

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.tariff import TariffRule
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data, PartOf, chosen, listed, passed_data
from operations.services.network.reached import Upstream
from operations.services.network.resellers import of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.model import Passed
from registry.operation import Example, operation

Traffic = Literal["data", "voice", "sms"]

# What the wire calls a price, and what we call it.
PRICES: dict[Traffic, dict[str, str]] = {
    "data": {"datarate": "dataPerMb"},
    "voice": {"mocallrate": "mocPerMin", "mtcallrate": "mtcPerMin"},
    "sms": {"mosmsrate": "moSms", "mtsmsrate": "mtSms"},
}
ALL_PRICES = {wire: name for prices in PRICES.values() for wire, name in prices.items()}


class TariffQuery(PartOf):
    """Which prices of which reseller."""

    reseller_id: Annotated[UpstreamId, Field(description="Your reseller's id; get_reseller_info names it.")]
    country: Annotated[str | None, Field(min_length=2, max_length=60, description="ISO code or name, such as NO or Norway.")] = None
    traffic_type: Annotated[Traffic | None, Field(description="Only these prices.")] = None
    verbose: Annotated[bool, Field(description="The upstream's full rules.")] = False

    @property
    def everything(self) -> bool:
        """All rules as they are: they need not be decoded."""
        return self.verbose and self.whole and self.country is None and self.traffic_type is None


class TariffRow(TypedDict, total=False):
    """What one network costs; a price that is missing is not sold."""

    country: str
    countryIso2: Annotated[str, Field(description="Upper case")]
    operator: str
    networkId: int
    mccMnc: Annotated[list[str], Field(description="MCC-MNC")]
    tadigs: list[str]
    sponsorId: Annotated[int, Field(description="Absent: any sponsor")]
    currency: str
    dataPerMb: Annotated[float, Field(description="Per MiB (1,048,576 bytes)")]
    mocPerMin: Annotated[float, Field(description="Per minute of a call made")]
    mtcPerMin: Annotated[float, Field(description="Per minute of a call received")]
    moSms: Annotated[float, Field(description="Per SMS sent")]
    mtSms: Annotated[float, Field(description="Per SMS received")]
    active: bool


EXAMPLE: TariffRow = {
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


async def rules_of(upstream: Upstream, reseller: int) -> list[TariffRule]:
    """All prices of a reseller, by rule id, a minute old at most."""

    async def load() -> list[TariffRule]:
        return sorted(await upstream.ocs.tariffs.customer_tariff(reseller), key=rule_id)

    return await upstream.reads.get((upstream.identity, "customer_tariff", reseller), load)


def rule_id(rule: TariffRule) -> int:
    """The number of a rule."""
    return rule.get("roamingplanruleid", 0)


@operation(
    "GET",
    "/v1/tariffs/{resellerId}",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example("What does data in Norway cost?", {"resellerId": 7001, "country": "NO", "trafficType": "data"}, {"data": [EXAMPLE]}),
    ],
    tool_defaults={"limit": 20},
)
async def get_tariff(ctx: Ctx, params: TariffQuery) -> Data[list[TariffRow]] | Data[list[TariffRule]] | Passed:
    """List what roaming costs your reseller by network: per MiB, minute, SMS.

    plan_network_default finds the cheapest networks of countries.

    With `verbose` rows are the charging system's own rules, country codes in lower case. Where a network has a rule for one
    sponsor and one for any, the sponsor's own counts.
    """
    upstream = await reach(ctx)
    reseller = await reseller_for(upstream, params.reseller_id)
    named = None if reseller == await upstream.reseller_id() else reseller  # the own one exists, even without a tariff
    if params.everything:
        return passed_data(await of_reseller(named, upstream.ocs.tariffs.stream_customer_tariff(reseller)))
    rules = [rule for rule in await of_reseller(named, rules_of(upstream, reseller)) if wanted(rule, params)]
    page = listed(ctx, rules, params.model_copy(update={"fields": None}), rule_id)["data"]
    if params.verbose:
        return {"data": chosen(ctx, page, params.fields)}
    prices = ALL_PRICES if params.traffic_type is None else PRICES[params.traffic_type]
    return {"data": chosen(ctx, [compact(rule, prices) for rule in page], params.fields)}


def wanted(rule: TariffRule, params: TariffQuery) -> bool:
    """Of the country, and with a price for the traffic."""
    if params.country is not None and not in_country(rule, params.country.strip()):
        return False
    return params.traffic_type is None or any(rule.get(name) is not None for name in PRICES[params.traffic_type])


def in_country(rule: TariffRule, country: str) -> bool:
    """By code or by name, in any case."""
    operator, sought = rule.get("operator", {}), country.casefold()
    return sought in ((operator.get("countryIso2") or "").casefold(), (operator.get("countryName") or "").casefold())


def compact(rule: TariffRule, prices: dict[str, str] = ALL_PRICES) -> TariffRow:
    """The network and its prices on one level."""
    operator = rule.get("operator", {})
    row: dict[str, object] = {
        "country": operator.get("countryName", ""),
        "countryIso2": (operator.get("countryIso2") or "").upper(),
        "operator": (operator.get("operatorName") or "").strip(),
        "networkId": rule.get("networkid", operator.get("networkId", 0)),
        "mccMnc": [f"{code.get('mcc', '')}-{code.get('mnc', '')}" for code in operator.get("mccMncs", [])],
        "tadigs": operator.get("tadigs", []),
    }
    sponsor = rule.get("sponsorid")
    if sponsor is not None:
        row["sponsorId"] = sponsor
    row["currency"] = rule.get("currency", {}).get("currencycode", "")
    row |= {name: rule[wire] for wire, name in prices.items() if rule.get(wire) is not None}
    row["active"] = rule.get("active", False)
    return cast(TariffRow, row)
