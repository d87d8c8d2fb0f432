"""Network profiles and the making of location zones."""

from clients.ocs.link import OcsLink
from clients.ocs.params import given
from clients.ocs.settings import OcsSettings
from clients.ocs.shape import Shape, member, nothing, rows
from clients.ocs.wire.network import NetworkProfile, NewLocationZone

PROFILE = Shape(ids=("id", "sponsorId", "resellerId"))
NEW_ZONE = Shape(ids=("Id",), required=("Id",))


class ZoneCalls:
    """Where packages work."""

    def __init__(self, link: OcsLink, settings: OcsSettings) -> None:
        self._link = link
        self._settings = settings

    async def list_network_profile(self, *, reseller_id: int | None = None, sponsor_id: int | None = None) -> list[NetworkProfile]:
        """The network profiles of a reseller, of a sponsor, or the one of both."""
        params = given(resellerId=reseller_id, sponsorId=sponsor_id)
        return await self._link.read("listNetworkProfile", params, rows(NetworkProfile, PROFILE))

    async def create_location_zone(self, network_profile_id: int, name: str, tadigs: list[str]) -> NewLocationZone:
        """Make a zone of these networks. The refusals 10001 to 10004 carry `details`."""
        params = {"networkProfileId": network_profile_id, "locationZoneName": name, "tadigList": tadigs}
        return await self._link.write("createLocationZone", params, member(NewLocationZone, "newLZ", NEW_ZONE))

    async def change_network_profile(self, location_zone_id: int, network_profile_id: int) -> None:
        """Give a zone another network profile. Its wire name is undocumented, hence a setting."""
        settings = self._settings
        params = {settings.zone_key: location_zone_id, settings.profile_key: network_profile_id}
        await self._link.write(settings.zone_method, params, nothing)
