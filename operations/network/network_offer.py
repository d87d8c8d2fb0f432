"""Which networks a reseller can use in each country, cheapest data first."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.moment import wire_time
from clients.ocs.wire.network import DetailedLocationZone
from clients.ocs.wire.tariff import TariffRule
from operations.network.tariffs import compact
from operations.network.zones import country_of, zone_network

Place = tuple[int | None, int | None]


class OfferedNetwork(TypedDict):
    """A network and what its data costs; without a price where the tariff names none."""

    networkId: int
    operator: str
    tadigs: list[str]
    dataPerMb: NotRequired[Annotated[float, Field(description="Per MiB; the lowest of all sponsors")]]
    currency: NotRequired[str]
    sponsorId: NotRequired[Annotated[int, Field(description="Whose price it is; absent: any sponsor's")]]


Offer = dict[str, list[OfferedNetwork]]


def offer_of_tariff(rules: Iterable[TariffRule], now: float) -> Offer:
    """The networks with an active rule, by country."""
    networks: dict[tuple[str, int], OfferedNetwork] = {}
    for rule in in_force(rules, now):
        row = compact(rule)
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
        if key not in networks or by_price(network) < by_price(networks[key]):
            networks[key] = network
    return by_country(networks)


def in_force(rules: Iterable[TariffRule], now: float) -> Iterable[TariffRule]:
    """Of the active rules of a network and sponsor, the newest that has begun."""
    today = wire_time(datetime.fromtimestamp(now, UTC))
    begun = [rule for rule in rules if rule.get("active") and rule.get("startdate", "") <= today]
    newest: dict[Place, TariffRule] = {
        (rule.get("networkid"), rule.get("sponsorid")): rule for rule in sorted(begun, key=lambda rule: rule.get("startdate", ""))
    }
    return newest.values()


def offer_of_zones(zones: Iterable[DetailedLocationZone]) -> Offer:
    """The networks of the zones, by country: what is known without a tariff."""
    networks: dict[tuple[str, int], OfferedNetwork] = {}
    for operator in (row for zone in zones for row in zone.get("operators", [])):
        found = zone_network(operator)
        networks[country_of(operator), found["networkId"]] = {
            "networkId": found["networkId"],
            "operator": found["operatorName"],
            "tadigs": found["tadigs"],
        }
    return by_country(networks)


def by_country(networks: dict[tuple[str, int], OfferedNetwork]) -> Offer:
    """Cheapest first; what has no price comes last."""
    offer: Offer = {}
    for (country, _), network in networks.items():
        offer.setdefault(country, []).append(network)
    return {country: sorted(rows, key=by_price) for country, rows in offer.items()}


def by_price(network: OfferedNetwork) -> tuple[float, str, int]:
    """The order of an offer."""
    return network.get("dataPerMb", float("inf")), network["operator"], network["networkId"]


def cheapest(networks: list[OfferedNetwork]) -> list[OfferedNetwork]:
    """Those with the lowest price, which may be several; none without a price."""
    lowest = min((network["dataPerMb"] for network in networks if "dataPerMb" in network), default=None)
    return [] if lowest is None else [network for network in networks if network.get("dataPerMb") == lowest]
