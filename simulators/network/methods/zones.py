"""Location zones, network profiles and destination lists, and how the wire shows them and their networks."""

from collections.abc import Iterable
from functools import lru_cache

import orjson

from simulators.network.entities import ALREADY_EXISTS, NOT_POSSIBLE, NetworkRefusal, NetworkToken, Reseller
from simulators.network.named_records import find_reseller, find_visible, visible_resellers
from simulators.network.wire import (
    NULL_PAYLOAD,
    RequestFields,
    TruncatedPayload,
    WireMembers,
    bare_method,
    drop_empty,
    network_method,
    read_integer,
    read_text,
    read_texts,
)
from simulators.network.world import Country, DestinationList, Network, NetworkProfile, World, Zone

UNKNOWN_TADIG = 10001
SAME_OPERATORS = 10002
NOT_IN_TARIFF = 10003
NOT_OFFERED = 10004

# Choice: the ceiling is unpublished; micro-euro per MiB.
DATA_CEILING = 50_000
OPERATOR_TEXTS_LIMIT = 4096


@bare_method("listLocationZoneElement")
def list_location_zone_element(world: World, caller: NetworkToken, number: int) -> object:
    """The networks of a zone; for some zones the JSON ends too early."""
    zone = _find_zone(world, caller, number)
    answer = {"operator": _zone_operators(world, zone)}
    return TruncatedPayload(answer) if zone.malformed else answer


def _find_zone(world: World, caller: NetworkToken, number: int) -> Zone:
    return find_visible(world, caller, world.zones, number, "location zone")


@bare_method("listDetailedLocationZone")
def list_detailed_location_zone(world: World, caller: NetworkToken, number: int) -> object:
    """A reseller's zones with their networks; null when there are none."""
    reseller = find_reseller(world, caller, number)
    return [zone_view(world, zone) for zone in world.zones.values() if zone.reseller_id == reseller.id] or NULL_PAYLOAD


@bare_method("listDestinationListPrefix")
def list_destination_list_prefix(world: World, caller: NetworkToken, number: int) -> object:
    row = find_visible(world, caller, world.destinations, number, "destination list")
    return {"prefixes": list(row.prefixes), "resellerId": row.reseller_id, "listId": row.id, "listName": row.name}


@bare_method("listDetailedDestinationList")
def list_detailed_destination_list(world: World, caller: NetworkToken, number: int) -> object:
    """A reseller's destination lists; null when there are none."""
    reseller = find_reseller(world, caller, number)
    return [destination_list_view(world, row) for row in world.destinations.values() if row.reseller_id == reseller.id] or NULL_PAYLOAD


@network_method("listNetworkProfile")
def list_network_profile(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    reseller_id, sponsor_id = fields.maybe("resellerId", read_integer), fields.maybe("sponsorId", read_integer)
    fields.done()
    owners = {reseller.id for reseller in visible_resellers(world, caller, reseller_id)}
    rows = [profile for profile in world.profiles.values() if profile.reseller_id in owners]
    return [
        {
            "id": profile.id,
            "name": profile.name,
            "sponsorId": profile.sponsor_id,
            "sponsorName": world.sponsors[profile.sponsor_id].name,
            "resellerId": profile.reseller_id,
            "resellerName": world.resellers[profile.reseller_id].name,
            "allowedListId": profile.allowed_list_id,
        }
        for profile in rows
        if sponsor_id in (None, profile.sponsor_id)
    ] or None


def _find_network_profile(world: World, caller: NetworkToken, number: int) -> NetworkProfile:
    return find_visible(world, caller, world.profiles, number, "network profile")


@network_method("createLocationZone")
def create_location_zone(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """A new zone; the order of the checks is part of the contract, and refusals carry a payload."""
    profile_id, name = fields.need("networkProfileId", read_integer), fields.need("locationZoneName", read_text)
    tadigs = fields.need("tadigList", read_texts)
    fields.done()
    profile = _find_network_profile(world, caller, profile_id)
    siblings = [zone for zone in world.zones.values() if zone.reseller_id == profile.reseller_id]
    if any(zone.name == name for zone in siblings):
        raise NetworkRefusal(ALREADY_EXISTS, "a location zone with this name exists")
    networks = networks_by_tadig(world, tadigs)
    ids = tuple(dict.fromkeys(network.network_id for network in networks.values()))
    check_new_operators(siblings, ids)
    check_zone_tariff(world, profile, networks)
    zone = Zone(world.next_id("zone"), name, profile.reseller_id, profile.id, ids)
    world.zones[zone.id] = zone
    return {"newLZ": {"Id": zone.id, "name": zone.name}}


def networks_by_tadig(world: World, tadigs: list[str]) -> dict[str, Network]:
    """The networks that codes name; one network may own several."""
    owners = {tadig: network for network in world.networks.values() for tadig in network.tadigs}
    invalid = [tadig for tadig in tadigs if tadig not in owners]
    if invalid:
        raise NetworkRefusal(UNKNOWN_TADIG, "unknown TADIG codes", {"invalidTadigs": invalid})
    return {tadig: owners[tadig] for tadig in tadigs}


def check_new_operators(siblings: Iterable[Zone], ids: tuple[int, ...]) -> None:
    """Refuse a second zone of the same networks, and name the first."""
    same = next((zone for zone in siblings if set(zone.network_ids) == set(ids)), None)
    if same:
        raise NetworkRefusal(SAME_OPERATORS, "a zone of the same operators exists", {"existingLZ": {"Id": same.id, "name": same.name}})


def check_zone_tariff(world: World, profile: NetworkProfile, networks: dict[str, Network]) -> None:
    """Refuse networks that the reseller's tariff lacks, then those that the sponsor does not offer at a bearable price."""
    tariff = world.tariffs[world.resellers[profile.reseller_id].buy_tariff_id]
    rules = [rule for rule in tariff.rules if rule.active and rule.sponsor_id in (None, profile.sponsor_id)]
    priced = {rule.network_id for rule in rules}
    cheap = {rule.network_id for rule in rules if rule.data_rate is not None and rule.data_rate <= DATA_CEILING}
    missing = [tadig for tadig, network in networks.items() if network.network_id not in priced]
    if missing:
        raise NetworkRefusal(NOT_IN_TARIFF, "operators are not in the tariff of the reseller", {"invalidTadigs": missing})
    offered = profile.network_ids & cheap
    dear = [tadig for tadig, network in networks.items() if network.network_id not in offered]
    if dear:
        raise NetworkRefusal(NOT_OFFERED, "operators are not available from the sponsor", {"invalidTadigs": dear})


@network_method("changeNetworkProfileOfLocationZone")
def change_network_profile_of_location_zone(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Undocumented upstream. Choice: the profile must offer all networks of the zone; the zone's templates get its sponsor."""
    zone_id, profile_id = fields.need("locationZoneId", read_integer), fields.need("networkProfileId", read_integer)
    fields.done()
    zone, profile = _find_zone(world, caller, zone_id), _find_network_profile(world, caller, profile_id)
    if profile.reseller_id != zone.reseller_id:
        raise NetworkRefusal(NOT_POSSIBLE, "the network profile belongs to another reseller than the zone")
    if not profile.network_ids.issuperset(zone.network_ids):
        raise NetworkRefusal(NOT_POSSIBLE, "the network profile lacks networks of the zone")
    zone.profile_id = profile.id
    for template in world.templates.values():
        if template.zone_id == zone.id:
            template.sponsor_id = profile.sponsor_id


def operator_view(world: World, network: Network) -> WireMembers:
    """A network; ISO codes are lower case here, and some names end in a blank (quirk 15)."""
    return _operator_members(network, world.countries[network.iso2])


def _operator_members(network: Network, country: Country) -> WireMembers:
    return {
        "networkId": network.network_id,
        "continent": country.continent,
        "countryCode": country.dial_code,
        "countryName": country.name,
        "countryIso2": country.iso2.lower(),
        "utcOffset": country.utc_offset,
        "operatorName": network.name,
        "mccMncs": [{"mcc": mcc, "mnc": mnc} for mcc, mnc in network.codes],
        "tadigs": list(network.tadigs),
    }


@lru_cache(maxsize=OPERATOR_TEXTS_LIMIT)
def _operator_text(network: Network, country: Country) -> orjson.Fragment:
    """A network as it is written: the zones of a reseller name hundreds, most of them in many zones."""
    return orjson.Fragment(orjson.dumps(drop_empty(_operator_members(network, country))))


def _zone_operators(world: World, zone: Zone) -> list[orjson.Fragment]:
    networks = [world.networks[number] for number in zone.network_ids]
    return [_operator_text(network, world.countries[network.iso2]) for network in networks]


def zone_reference(world: World, zone_id: int) -> WireMembers:
    return {"locationzoneid": zone_id, "locationzonename": world.zones[zone_id].name}


def destination_list_reference(world: World, list_id: int | None) -> WireMembers | None:
    return None if list_id is None else {"destinationzoneid": list_id, "destinationzonename": world.destinations[list_id].name}


def zone_view(world: World, zone: Zone) -> WireMembers:
    """A row of listDetailedLocationZone."""
    owner = world.resellers[zone.reseller_id]
    return {"zoneId": zone.id, "zoneName": zone.name, "reseller": _reseller_reference(owner), "operators": _zone_operators(world, zone)}


def destination_list_view(world: World, row: DestinationList) -> WireMembers:
    owner = world.resellers[row.reseller_id]
    return {"listId": row.id, "listName": row.name, "reseller": _reseller_reference(owner), "prefixes": list(row.prefixes)}


def _reseller_reference(reseller: Reseller) -> WireMembers:
    return {"id": reseller.id, "name": reseller.name}


def template_zone_view(world: World, zone: Zone) -> WireMembers:
    """The zone inside a template's answer, with countries and operators apart and names of its own."""
    networks = [world.networks[number] for number in zone.network_ids]
    countries = {network.iso2: world.countries[network.iso2] for network in networks}
    return {
        "locationZoneId": zone.id,
        "locationZoneName": zone.name,
        "countryList": [
            {
                "continent": country.continent,
                "countryId": country.country_id,
                "countryName": country.name,
                "countryIso2": country.iso2.lower(),
                "countryCode": country.dial_code,
            }
            for country in countries.values()
        ],
        "operatorList": [
            {
                "operId": network.network_id,
                "operatorName": network.name,
                "tadigList": list(network.tadigs),
                "mccMncList": [f"{mcc}-{mnc}" for mcc, mnc in network.codes],
                "countryId": world.countries[network.iso2].country_id,
            }
            for network in networks
        ],
    }
