"""What an input may refer to: zones, profiles, lists and plans of the reseller. A foreign one is not found, as an unknown one is."""

from typing import cast

from clients.ocs.wire.network import DetailedLocationZone
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import kept_name
from operations.services.network.visible import require_visible

ZONES, DESTINATIONS, PROFILES, STEERING, SPONSORS = ("zones", "destinations", "profiles", "steering", "sponsors")


async def require_zone(upstream: Upstream, zone_id: int, param: str, reseller: int | None = None) -> DetailedLocationZone:
    """A location zone of the reseller that is named, or of the own one."""
    owner = reseller or await upstream.reseller_id()
    found = await require_visible(
        upstream,
        await kept_name(upstream, ZONES, owner),
        lambda: upstream.ocs.templates.detailed_location_zones(owner),
        zone_id,
        id="zoneId",
        param=param,
        hint="list_location_zones names yours",
    )
    return cast(DetailedLocationZone, found)


async def require_destination_list(upstream: Upstream, list_id: int, param: str = "destinationListId") -> None:
    """A destination list by its number."""
    reseller = await upstream.reseller_id()
    await require_visible(
        upstream,
        DESTINATIONS,
        lambda: upstream.ocs.templates.detailed_destination_lists(reseller),
        list_id,
        id="listId",
        param=param,
        hint="list_destination_lists names yours",
    )


async def require_profile(upstream: Upstream, profile_id: int) -> None:
    """A network profile by its number."""
    reseller = await upstream.reseller_id()
    await require_visible(
        upstream,
        PROFILES,
        lambda: upstream.ocs.zones.list_network_profile(reseller_id=reseller),
        profile_id,
        id="id",
        param="networkProfileId",
        hint="list_network_profiles names yours",
    )


async def require_sponsor(upstream: Upstream, sponsor_id: int, param: str = "sponsorId") -> None:
    """A sponsor by its number."""
    reseller = await upstream.reseller_id()
    await require_visible(
        upstream,
        SPONSORS,
        lambda: upstream.ocs.reseller.list_sponsor(reseller),
        sponsor_id,
        id="id",
        param=param,
        hint="list_sponsors names yours",
    )
