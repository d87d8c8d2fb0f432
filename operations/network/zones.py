"""Location zones: the networks in which packages work."""

from typing import Annotated

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from clients.ocs.wire.members import Named
from clients.ocs.wire.network import DetailedLocationZone, Operator
from operations.deps import Ctx
from operations.network.references import ZONES, require_zone
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data, PartOf, listed, passed_data
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.resellers import ResellerId, of_reseller
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.model import Passed
from registry.operation import Example, operation


class ZonesQuery(PartOf):
    """All zones, or the networks of one."""

    zone_id: Annotated[
        UpstreamId | None,
        Field(validation_alias=AliasChoices("zoneId", "locationZoneId", "location_zone_id"), description="List this zone's networks."),
    ] = None
    reseller_id: ResellerId = None


class DetailedQuery(PartOf):
    """Which zones, and how much of their networks."""

    reseller_id: ResellerId = None
    verbose: Annotated[bool, Field(description="Networks with all members.")] = False


class ZoneRow(TypedDict):
    """A zone without its networks."""

    zoneId: int
    zoneName: str
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, upper case")]
    operatorCount: int


class ZoneNetwork(TypedDict):
    """A network of a zone."""

    networkId: int
    operatorName: str
    countryIso2: Annotated[str, Field(description="Upper case")]
    tadigs: list[str]


class ZoneWithNetworks(TypedDict, total=False):
    """A zone with its networks."""

    zoneId: int
    zoneName: str
    reseller: Named
    operators: list[ZoneNetwork]


async def zones_of(upstream: Upstream, requested: int | None) -> list[DetailedLocationZone]:
    """All zones of a reseller with their networks, lowest id first."""
    rows = await reseller_rows(upstream, ZONES, requested, upstream.ocs.templates.detailed_location_zones)
    return sorted(rows, key=zone_id)


def zone_id(row: DetailedLocationZone | ZoneRow | ZoneWithNetworks) -> int:
    """The number of a zone."""
    return row.get("zoneId", 0)


def network_id(row: Operator) -> int:
    """The number of a network."""
    return row.get("networkId", 0)


def country_of(row: Operator) -> str:
    """ISO 3166-1 alpha-2, upper case; the wire writes it in lower case."""
    return (row.get("countryIso2") or "").upper()


@operation(
    "GET",
    "/v1/location-zones",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which zones are there, and which countries do they cover?",
            {"limit": 1},
            {"data": [{"zoneId": 2301, "zoneName": "Nordics", "countries": ["DK", "FI", "IS", "NO", "SE"], "operatorCount": 16}]},
        )
    ],
    tool_defaults={"limit": 20},
)
async def list_location_zones(ctx: Ctx, params: ZonesQuery) -> Data[list[ZoneRow]] | Data[list[Operator]]:
    """List the zones with their countries, or the networks of one zone.

    A template's packages work in one zone. With zoneId the rows are networks.
    """
    upstream = await reach(ctx)
    if params.zone_id is None:
        rows = [summary(row) for row in await zones_of(upstream, params.reseller_id)]
        return listed(ctx, rows, params, zone_id)
    networks = await of_reseller(params.reseller_id, networks_of(upstream, params.zone_id, params.reseller_id))
    return listed(ctx, sorted(networks, key=network_id), params, network_id)


def summary(zone: DetailedLocationZone) -> ZoneRow:
    """The zone at a glance."""
    networks = zone.get("operators", [])
    countries = sorted({country_of(network) for network in networks} - {""})
    return {"zoneId": zone_id(zone), "zoneName": zone.get("zoneName", ""), "countries": countries, "operatorCount": len(networks)}


async def networks_of(upstream: Upstream, wanted: int, requested: int | None) -> list[Operator]:
    """The networks of a zone that is the caller's to see. Answers about some zones are unreadable: the list of all zones has them too."""
    zone = await require_zone(upstream, wanted, "zoneId", await reseller_for(upstream, requested))
    try:
        return await upstream.ocs.templates.location_zone_elements(wanted)
    except OcsError as error:
        if error.ocs_code is not None:
            raise
    return zone.get("operators", [])


@operation(
    "GET",
    "/v1/location-zones/detailed",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which networks does each zone hold?",
            {"limit": 1},
            {
                "data": [
                    {
                        "zoneId": 2301,
                        "zoneName": "Nordics",
                        "reseller": {"id": 7001, "name": "Fjord Mobile"},
                        "operators": [{"networkId": 88, "operatorName": "Telco A", "countryIso2": "NO", "tadigs": ["NORAA"]}],
                    }
                ]
            },
        )
    ],
    # Choice: a world zone has hundreds of networks, so a tool call that names no limit gets few zones.
    tool_defaults={"limit": 1},
)
async def list_detailed_location_zones(
    ctx: Ctx, params: DetailedQuery
) -> Data[list[ZoneWithNetworks]] | Data[list[DetailedLocationZone]] | Passed:
    """List the zones with all their networks.

    Long: list_location_zones gives an overview, or one zone's networks.

    With `verbose` networks carry dial code, UTC offset and MCC/MNC, and country codes are as the network writes them (lower case).
    """
    upstream = await reach(ctx)
    if params.verbose and params.whole:
        reseller = await reseller_for(upstream, params.reseller_id)
        return passed_data(await of_reseller(params.reseller_id, upstream.ocs.templates.stream_detailed_location_zones(reseller)))
    rows = await zones_of(upstream, params.reseller_id)
    if params.verbose:
        return listed(ctx, rows, params, zone_id)
    return listed(ctx, [compact(row) for row in rows], params, zone_id)


def compact(zone: DetailedLocationZone) -> ZoneWithNetworks:
    """The zone with what identifies its networks."""
    return {
        "zoneId": zone_id(zone),
        "zoneName": zone.get("zoneName", ""),
        "reseller": zone.get("reseller", {}),
        "operators": [zone_network(row) for row in zone.get("operators", [])],
    }


def zone_network(row: Operator) -> ZoneNetwork:
    """A network's identity."""
    return {
        "networkId": network_id(row),
        "operatorName": (row.get("operatorName") or "").strip(),
        "countryIso2": country_of(row),
        "tadigs": row.get("tadigs", []),
    }
