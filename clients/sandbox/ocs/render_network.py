"""Networks, zones and destination lists as the wire shows them (ocs.md 2.5)."""

from clients.sandbox.ocs.entities import Reseller
from clients.sandbox.ocs.places import Country, DestinationList, Network, NetworkProfile, Zone
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, lean


def operator(world: World, network: Network) -> Members:
    """A network; ISO codes are lower case here, and some names end in a blank (quirk 15)."""
    country = world.countries[network.iso2]
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


def operators(world: World, zone: Zone) -> list[Members]:
    """All networks of a zone."""
    return [operator(world, world.networks[number]) for number in zone.network_ids]


def zone_name(world: World, zone_id: int) -> Members:
    """A zone's id and name, as packages and templates carry it."""
    return {"locationzoneid": zone_id, "locationzonename": world.zones[zone_id].name}


def destination_name(world: World, list_id: int | None) -> Members | None:
    """A destination list's id and name."""
    return None if list_id is None else {"destinationzoneid": list_id, "destinationzonename": world.destinations[list_id].name}


def detailed_zone(world: World, zone: Zone) -> Members:
    """A row of listDetailedLocationZone."""
    owner = world.resellers[zone.reseller_id]
    return lean({"zoneId": zone.id, "zoneName": zone.name, "reseller": reseller_name(owner), "operators": operators(world, zone)})


def detailed_list(world: World, row: DestinationList) -> Members:
    """A row of listDetailedDestinationList."""
    owner = world.resellers[row.reseller_id]
    return lean({"listId": row.id, "listName": row.name, "reseller": reseller_name(owner), "prefixes": list(row.prefixes)})


def reseller_name(reseller: Reseller) -> Members:
    """A reseller's id and name."""
    return {"id": reseller.id, "name": reseller.name}


def zone_of_template(world: World, zone: Zone) -> Members:
    """The zone inside a template's answer, with countries and operators apart and names of its own."""
    networks = [world.networks[number] for number in zone.network_ids]
    countries = {network.iso2: world.countries[network.iso2] for network in networks}
    return lean(
        {
            "locationZoneId": zone.id,
            "locationZoneName": zone.name,
            "countryList": [country_row(country) for country in countries.values()],
            "operatorList": [operator_row(world, network) for network in networks],
        }
    )


def country_row(country: Country) -> Members:
    """A country of a template's zone."""
    return {
        "continent": country.continent,
        "countryId": country.country_id,
        "countryName": country.name,
        "countryIso2": country.iso2.lower(),
        "countryCode": country.dial_code,
    }


def operator_row(world: World, network: Network) -> Members:
    """An operator of a template's zone."""
    return {
        "operId": network.network_id,
        "operatorName": network.name,
        "tadigList": list(network.tadigs),
        "mccMncList": [f"{mcc}-{mnc}" for mcc, mnc in network.codes],
        "countryId": world.countries[network.iso2].country_id,
    }


def profile_of(world: World, profile: NetworkProfile) -> Members:
    """A network profile."""
    return {
        "id": profile.id,
        "name": profile.name,
        "sponsorId": profile.sponsor_id,
        "sponsorName": world.sponsors[profile.sponsor_id].name,
        "resellerId": profile.reseller_id,
        "resellerName": world.resellers[profile.reseller_id].name,
        "allowedListId": profile.allowed_list_id,
    }
