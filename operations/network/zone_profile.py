"""Which network profile a location zone uses."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.network.references import ZONES, require_profile, require_zone
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.templates import TEMPLATES
from operations.services.network.upstream import reach, require_creator
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.model import CamelInput
from registry.operation import Example, operation

UNKNOWN_METHOD, IMPOSSIBLE = 1, 14

NO_FIT = "The network profile does not fit the zone: it is of another reseller, or lacks one of the zone's networks; nothing was changed"


class ZoneProfile(CamelInput):
    """Which profile for which zone."""

    location_zone_id: Annotated[UpstreamId, Field(description="Zone id.")]
    network_profile_id: Annotated[UpstreamId, Field(description="Id of list_network_profiles.")]


class ZoneProfileChanged(TypedDict):
    """What applies now."""

    locationZoneId: int
    networkProfileId: int


async def own_zone(ctx: Ctx, params: ZoneProfile) -> Upstream:
    """A zone that the caller made, and a profile that its reseller has."""
    upstream = await reach(ctx)
    await require_zone(upstream, params.location_zone_id, "locationZoneId")
    await require_creator(ctx, upstream, "zone", params.location_zone_id, "locationZoneId")
    await require_profile(upstream, params.network_profile_id)
    return upstream


@operation(
    "PUT",
    "/v1/location-zones/{locationZoneId}/network-profile",
    scope=Scope.ADMIN,
    upstream=True,
    confirm=True,
    title="Change a zone's profile",
    access=own_zone,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Use another profile",
            {"locationZoneId": 2327, "networkProfileId": 414},
            {"data": {"locationZoneId": 2327, "networkProfileId": 414}},
        )
    ],
)
async def change_network_profile_of_location_zone(ctx: Ctx, params: ZoneProfile, upstream: Upstream) -> Data[ZoneProfileChanged]:
    """Give a location zone another network profile.

    The sponsor of the zone's templates follows. Only zones that your organisation made.

    The charging system does not document this method: its wire name is the setting SERVICE_OCS_ZONE_METHOD.
    """
    zone, profile = params.location_zone_id, params.network_profile_id
    try:
        await upstream.ocs.zones.change_network_profile(zone, profile)
    except OcsError as error:
        if error.ocs_code == UNKNOWN_METHOD:
            raise unknown_method() from None
        if error.ocs_code == IMPOSSIBLE:
            raise error.retold(NO_FIT, hint="list_network_profiles names the profiles, list_location_zones the zone's networks") from None
        raise
    upstream.reads.forget(upstream.identity, ZONES)
    upstream.reads.forget(upstream.identity, TEMPLATES)
    return {"data": {"locationZoneId": zone, "networkProfileId": profile}}


def unknown_method() -> OcsError:
    """The one method whose name may be wrong; a call of an unknown one changes nothing."""
    return OcsError(
        "The charging system does not know the method that changes a zone's profile; nothing was changed. Its name is undocumented "
        "and therefore a setting, SERVICE_OCS_ZONE_METHOD",
        ocs_code=UNKNOWN_METHOD,
        hint="Whoever runs the service asks the provider for the method's name and sets SERVICE_OCS_ZONE_METHOD to it",
        before_execution=True,
    )
