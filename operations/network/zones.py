"""Location zones, the networks in which packages work: listing and making them, and the network profile that each one uses."""

from typing import Annotated

from pydantic import AfterValidator, AliasChoices, FailFast, Field
from typing_extensions import TypedDict

from clients.ocs.wire_schema import Named
from clients.ocs.zones import DetailedLocationZone, NetworkProfile, Operator
from operations.deps import Ctx
from operations.upstream.connection import Upstream, connect_upstream, name_refused_field
from operations.upstream.paging import Data, FieldsQuery, member_number, paged_data, raw_data
from operations.upstream.resellers import (
    NETWORK_PROFILE_LIST,
    TEMPLATE_CACHE_KEY,
    ZONE_LIST,
    ResellerId,
    ResellerPage,
    read_of_reseller,
    read_reseller_list,
    record_creator,
    require_creator,
    require_listed,
    resolve_reseller,
)
from operations.vocabulary import UpstreamId
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import NotFound, OcsError
from registry.free_text import FreeText
from registry.operation import CamelInput, Example, Scope, SpendKind, StreamedAnswer, operation


class ZoneQuery(FieldsQuery):
    """All zones, or the networks of one."""

    zone_id: Annotated[
        UpstreamId | None,
        Field(validation_alias=AliasChoices("zoneId", "locationZoneId", "location_zone_id"), description="List this zone's networks."),
    ] = None
    reseller_id: ResellerId = None


class DetailedZoneQuery(FieldsQuery):
    """Which zones, and how much of their networks."""

    reseller_id: ResellerId = None
    verbose: Annotated[bool, Field(description="Networks with all members.")] = False


class ZoneRow(TypedDict):
    """A zone without its networks."""

    zoneId: int
    zoneName: FreeText
    countries: Annotated[list[str], Field(description="ISO 3166-1 alpha-2, upper case")]
    operatorCount: int


class ZoneNetwork(TypedDict):
    """A network of a zone."""

    networkId: int
    operatorName: FreeText
    countryIso2: Annotated[str, Field(description="Upper case")]
    tadigs: list[str]


class ZoneWithNetworks(TypedDict, total=False):
    """A zone with its networks."""

    zoneId: int
    zoneName: FreeText
    reseller: Named
    operators: list[ZoneNetwork]


ZONE_NUMBER = member_number("zoneId")


async def read_zones(upstream: Upstream, requested: int | None) -> list[DetailedLocationZone]:
    """All zones of a reseller with their networks, lowest id first. Waits for the network."""
    rows = await read_reseller_list(upstream, ZONE_LIST, requested)
    return sorted(rows, key=ZONE_NUMBER)


def operator_country(row: Operator) -> str:
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
async def list_location_zones(ctx: Ctx, params: ZoneQuery) -> Data[list[ZoneRow]] | Data[list[Operator]]:
    """List the zones with their countries, or the networks of one zone.

    A template's packages work in one zone. With zoneId the rows are networks.
    """
    upstream = await connect_upstream(ctx)
    if params.zone_id is None:
        rows = [zone_summary(row) for row in await read_zones(upstream, params.reseller_id)]
        return paged_data(ctx, rows, params, ZONE_NUMBER)
    networks = await read_of_reseller(params.reseller_id, read_zone_networks(upstream, params.zone_id, params.reseller_id))
    return paged_data(ctx, networks, params, member_number("networkId"))


def zone_summary(zone: DetailedLocationZone) -> ZoneRow:
    networks = zone.get("operators", [])
    countries = sorted({operator_country(network) for network in networks} - {""})
    return {"zoneId": ZONE_NUMBER(zone), "zoneName": zone.get("zoneName", ""), "countries": countries, "operatorCount": len(networks)}


async def read_zone_networks(upstream: Upstream, zone_id: int, requested: int | None) -> list[Operator]:
    """The networks of a zone that the caller may see. Where the answer about it cannot be read, those in the list of all zones."""
    zone = await require_listed(upstream, ZONE_LIST, zone_id, "zoneId", await resolve_reseller(upstream, requested))
    try:
        return await upstream.ocs.zones.location_zone_elements(zone_id)
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
    ctx: Ctx, params: DetailedZoneQuery
) -> Data[list[ZoneWithNetworks]] | Data[list[DetailedLocationZone]] | StreamedAnswer:
    """List the zones with all their networks.

    Long: list_location_zones gives an overview, or one zone's networks.

    With `verbose` networks carry dial code, UTC offset and MCC/MNC, and country codes are as the network writes them (lower case).
    """
    upstream = await connect_upstream(ctx)
    if params.verbose and params.is_unrestricted:
        reseller = await resolve_reseller(upstream, params.reseller_id)
        return raw_data(await read_of_reseller(params.reseller_id, upstream.ocs.zones.stream_detailed_location_zones(reseller)))
    rows = await read_zones(upstream, params.reseller_id)
    if params.verbose:
        return paged_data(ctx, rows, params, ZONE_NUMBER)
    return paged_data(ctx, [render_zone(row) for row in rows], params, ZONE_NUMBER)


def render_zone(zone: DetailedLocationZone) -> ZoneWithNetworks:
    """The zone, its networks reduced to what identifies them."""
    return {
        "zoneId": ZONE_NUMBER(zone),
        "zoneName": zone.get("zoneName", ""),
        "reseller": zone.get("reseller", {}),
        "operators": [render_zone_network(row) for row in zone.get("operators", [])],
    }


def render_zone_network(row: Operator) -> ZoneNetwork:
    return {
        "networkId": row.get("networkId", 0),
        "operatorName": (row.get("operatorName") or "").strip(),
        "countryIso2": operator_country(row),
        "tadigs": row.get("tadigs", []),
    }


SAME_NETWORKS_CODE = 10002
ZONE_FAULT_FIELDS = {4: "locationZoneName", 10001: "tadigList", SAME_NETWORKS_CODE: "tadigList", 10003: "tadigList", 10004: "tadigList"}
ZONE_REUSE_HINT = "Use the zone in details.existingLZ (its Id is the locationZoneId), or name other networks"

TadigCode = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{3,12}$")]


def canonical_codes(codes: list[str]) -> list[str]:
    """Upper case, each once, in the order given."""
    return list(dict.fromkeys(code.upper() for code in codes))


class NewZone(CamelInput):
    """The zone to make."""

    location_zone_name: Annotated[
        str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$", description="Unique; 1-120 characters.")
    ]
    tadig_list: Annotated[
        list[TadigCode],
        FailFast(),
        Field(min_length=1, max_length=2000, description="Networks by TADIG code, such as NORAA."),
        AfterValidator(canonical_codes),
    ]
    network_profile_id: Annotated[UpstreamId, Field(description="Id of list_network_profiles.")]


class ZoneMade(TypedDict):
    """The new zone."""

    id: int
    name: FreeText


async def require_new_zone_profile(ctx: Ctx, params: NewZone) -> Upstream:
    """The connection. Raises NotFound unless the caller's reseller has the profile."""
    upstream = await connect_upstream(ctx)
    await require_listed(upstream, NETWORK_PROFILE_LIST, params.network_profile_id, "networkProfileId")
    return upstream


@operation(
    "POST",
    "/v1/location-zones",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    status=201,
    access=require_new_zone_profile,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "A zone of two networks",
            {"locationZoneName": "Norway and Sweden", "tadigList": ["NORAA", "SWEAA"], "networkProfileId": 412},
            {"data": {"id": 2327, "name": "Norway and Sweden"}},
        )
    ],
)
async def create_location_zone(ctx: Ctx, params: NewZone, upstream: Upstream) -> Data[ZoneMade]:
    """Make a location zone of some networks of a network profile.

    Names and sets of networks are unique: on code 10002 use the zone in `details.existingLZ`.

    Refusals with 10001, 10003 and 10004 list the codes at fault in `details.invalidTadigs`.
    """
    try:
        making = upstream.ocs.zones.create_location_zone(params.network_profile_id, params.location_zone_name, params.tadig_list)
        made = await name_refused_field(making, ZONE_FAULT_FIELDS)
    except OcsError as error:
        if error.ocs_code == SAME_NETWORKS_CODE:
            error.hint = ZONE_REUSE_HINT
        raise
    upstream.reads.forget(upstream.identity, ZONE_LIST.name)
    id = made.get("Id", 0)  # the client refuses an answer without it
    record_creator(ctx, "zone", id)
    return {"data": {"id": id, "name": made.get("name") or params.location_zone_name}}


UNKNOWN_METHOD_CODE, PROFILE_IMPOSSIBLE_CODE = 1, 14

PROFILE_MISMATCH = (
    "The network profile does not fit the zone: it is of another reseller, or lacks one of the zone's networks; nothing was changed"
)


class ZoneProfileChange(CamelInput):
    """Which profile for which zone."""

    location_zone_id: Annotated[UpstreamId, Field(description="Zone id.")]
    network_profile_id: Annotated[UpstreamId, Field(description="Id of list_network_profiles.")]


class ZoneProfileChanged(TypedDict):
    """What applies now."""

    locationZoneId: int
    networkProfileId: int


async def own_zone(ctx: Ctx, params: ZoneProfileChange) -> Upstream:
    """The connection. Raises NotFound unless the caller made the zone and its reseller has the profile."""
    upstream = await connect_upstream(ctx)
    await require_listed(upstream, ZONE_LIST, params.location_zone_id, "locationZoneId")
    await require_creator(ctx, upstream, "zone", params.location_zone_id, "locationZoneId")
    await require_listed(upstream, NETWORK_PROFILE_LIST, params.network_profile_id, "networkProfileId")
    return upstream


async def name_zone(_ctx: Ctx, params: ZoneProfileChange, upstream: Upstream) -> Challenge:
    """The zone and its new profile by name; access has read both lists a moment ago."""
    zone = await require_listed(upstream, ZONE_LIST, params.location_zone_id, "locationZoneId")
    profile = await require_listed(upstream, NETWORK_PROFILE_LIST, params.network_profile_id, "networkProfileId")
    name = f"{profile.get('name') or 'without a name'} ({params.network_profile_id})"
    loss = describe_loss("zone", zone.get("zoneName") or str(params.location_zone_id), new_profile=name)
    return Challenge(
        f"This will give the location zone {params.location_zone_id} another network profile: {name_losses((loss,))}. The sponsor of the "
        "zone's templates follows.",
        (loss,),
    )


@operation(
    "PUT",
    "/v1/location-zones/{locationZoneId}/network-profile",
    spends=SpendKind.OPEN,
    scope=Scope.ADMIN,
    upstream=True,
    confirm=True,
    title="Change a zone's profile",
    access=own_zone,
    challenge=name_zone,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Use another profile",
            {"locationZoneId": 2327, "networkProfileId": 414},
            {"data": {"locationZoneId": 2327, "networkProfileId": 414}},
        )
    ],
)
async def change_network_profile_of_location_zone(ctx: Ctx, params: ZoneProfileChange, upstream: Upstream) -> Data[ZoneProfileChanged]:
    """Give a location zone another network profile.

    The sponsor of the zone's templates follows. Only zones that your organisation made.

    The charging system does not document this method: its wire name is the setting SERVICE_OCS_ZONE_METHOD.
    """
    zone, profile = params.location_zone_id, params.network_profile_id
    try:
        await upstream.ocs.zones.change_network_profile(zone, profile)
    except OcsError as error:
        if error.ocs_code == UNKNOWN_METHOD_CODE:
            raise OcsError(
                "The charging system does not know the method that changes a zone's profile; nothing was changed. Its name is undocumented "
                "and therefore a setting, SERVICE_OCS_ZONE_METHOD",
                ocs_code=UNKNOWN_METHOD_CODE,
                hint="Whoever runs the service asks the provider for the method's name and sets SERVICE_OCS_ZONE_METHOD to it",
                before_execution=True,
            ) from None
        if error.ocs_code == PROFILE_IMPOSSIBLE_CODE:
            raise error.retold(
                PROFILE_MISMATCH, hint="list_network_profiles names the profiles, list_location_zones the zone's networks"
            ) from None
        raise
    upstream.reads.forget(upstream.identity, ZONE_LIST.name)
    upstream.reads.forget(upstream.identity, TEMPLATE_CACHE_KEY)
    return {"data": {"locationZoneId": zone, "networkProfileId": profile}}


NETWORK_PROFILE_EXAMPLE: NetworkProfile = {
    "id": 412,
    "name": "Fjord SPX",
    "sponsorId": 31,
    "sponsorName": "SPX",
    "resellerId": 7001,
    "resellerName": "Fjord Mobile",
    "allowedListId": 77,
}


class NetworkProfileQuery(ResellerPage):
    """Which profiles."""

    sponsor_id: Annotated[UpstreamId | None, Field(description="Only this sponsor's.")] = None


@operation(
    "GET",
    "/v1/network-profiles",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which profiles can a zone use?", {}, {"data": [NETWORK_PROFILE_EXAMPLE]})],
    tool_defaults={"limit": 20},
)
async def list_network_profiles(ctx: Ctx, params: NetworkProfileQuery) -> Data[list[NetworkProfile]]:
    """List the network profiles; each belongs to one sponsor.

    create_location_zone needs one.
    """
    upstream = await connect_upstream(ctx)
    rows = await read_reseller_list(upstream, NETWORK_PROFILE_LIST, params.reseller_id)
    selected = [row for row in rows if params.sponsor_id in (None, row.get("sponsorId"))]
    return paged_data(ctx, selected, params, member_number("id"))
