"""What traffic costs by network: the reseller's rules, and which networks of a country they offer, cheapest data first."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.tariffs import TariffRule
from clients.ocs.times import wire_time
from operations.upstream.connection import Upstream
from registry.free_text import FreeText

TrafficKind = Literal["data", "voice", "sms"]


# What the wire calls a price, and what we call it.
TARIFF_PRICES: dict[TrafficKind, dict[str, str]] = {
    "data": {"datarate": "dataPerMb"},
    "voice": {"mocallrate": "mocPerMin", "mtcallrate": "mtcPerMin"},
    "sms": {"mosmsrate": "moSms", "mtsmsrate": "mtSms"},
}


ALL_TARIFF_PRICES = {wire: name for prices in TARIFF_PRICES.values() for wire, name in prices.items()}


class TariffRow(TypedDict, total=False):
    """What one network costs; a price that is missing is not sold."""

    country: str
    countryIso2: Annotated[str, Field(description="Upper case")]
    operator: FreeText
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


async def read_tariff_rules(upstream: Upstream, reseller: int) -> list[TariffRule]:
    """All prices of a reseller, by rule id, a minute old at most. Waits for the network."""

    async def load() -> list[TariffRule]:
        return sorted(await upstream.ocs.tariffs.customer_tariff(reseller), key=lambda rule: rule.get("roamingplanruleid", 0))

    return await upstream.reads.get((upstream.identity, "customer_tariff", reseller), load)


def render_tariff_row(rule: TariffRule, prices: dict[str, str] = ALL_TARIFF_PRICES) -> TariffRow:
    """The network of `rule` and its `prices`, which are our names by the wire's, on one level."""
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


RulePlace = tuple[int | None, int | None]


class OfferedNetwork(TypedDict):
    """A network and what its data costs; without a price where the tariff names none."""

    networkId: int
    operator: FreeText
    tadigs: list[str]
    dataPerMb: NotRequired[Annotated[float, Field(description="Per MiB; the lowest of all sponsors")]]
    currency: NotRequired[str]
    sponsorId: NotRequired[Annotated[int, Field(description="Whose price it is; absent: any sponsor's")]]


NetworkOffer = dict[str, list[OfferedNetwork]]


def tariff_offer(rules: Iterable[TariffRule], now: float) -> NetworkOffer:
    """The networks with a rule in force at `now`, Unix seconds, by country; cheapest data first, without a price last."""
    networks: dict[tuple[str, int], OfferedNetwork] = {}
    for rule in rules_in_force(rules, now):
        row = render_tariff_row(rule)
        network: OfferedNetwork = {
            "networkId": row.get("networkId", 0),
            "operator": row.get("operator", ""),
            "tadigs": row.get("tadigs", []),
        }
        if "dataPerMb" in row:
            network["dataPerMb"], network["currency"] = row["dataPerMb"], row.get("currency", "")
        if "sponsorId" in row:
            network["sponsorId"] = row["sponsorId"]
        key = (row.get("countryIso2", ""), network["networkId"])
        if key not in networks or price_order(network) < price_order(networks[key]):
            networks[key] = network
    return networks_by_country(networks)


def rules_in_force(rules: Iterable[TariffRule], now: float) -> Iterable[TariffRule]:
    """Of the active rules of each network and sponsor, the newest that has begun by `now`, Unix seconds."""
    today = wire_time(datetime.fromtimestamp(now, UTC))
    begun = [rule for rule in rules if rule.get("active") and rule.get("startdate", "") <= today]
    newest: dict[RulePlace, TariffRule] = {
        (rule.get("networkid"), rule.get("sponsorid")): rule for rule in sorted(begun, key=lambda rule: rule.get("startdate", ""))
    }
    return newest.values()


def networks_by_country(networks: dict[tuple[str, int], OfferedNetwork]) -> NetworkOffer:
    """Cheapest first; what has no price comes last."""
    offer: NetworkOffer = {}
    for (country, _), network in networks.items():
        offer.setdefault(country, []).append(network)
    return {country: sorted(rows, key=price_order) for country, rows in offer.items()}


def price_order(network: OfferedNetwork) -> tuple[float, str, int]:
    return network.get("dataPerMb", float("inf")), network["operator"], network["networkId"]
