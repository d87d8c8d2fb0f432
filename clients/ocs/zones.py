"""Networks, location zones, destination lists, network profiles."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.json_array import JsonArrayStream
from clients.ocs.link import OcsCalls, given_members
from clients.ocs.wire_schema import (
    AnswerShape,
    Named,
    WireId,
    keeps_unknown,
    parse_member,
    parse_member_rows,
    parse_nothing,
    parse_record,
    parse_rows,
)
from registry.free_text import FreeText


@keeps_unknown
class MccMnc(TypedDict, total=False):
    """One network code."""

    mcc: str
    mnc: str


@keeps_unknown
class Operator(TypedDict, total=False):
    """A mobile network."""

    networkId: WireId
    continent: str
    countryCode: Annotated[str, Field(description="Dial code")]
    countryName: str
    countryIso2: Annotated[str, Field(description="Lower case")]
    utcOffset: Annotated[str, Field(description="Such as +01:00")]
    operatorName: FreeText
    mccMncs: list[MccMnc]
    tadigs: list[str]


@keeps_unknown
class DetailedLocationZone(TypedDict, total=False):
    """A location zone with its networks."""

    zoneId: WireId
    zoneName: FreeText
    reseller: Named
    operators: list[Operator]


@keeps_unknown
class DetailedDestinationList(TypedDict, total=False):
    """Called numbers by prefix."""

    listId: WireId
    listName: FreeText
    reseller: Named
    prefixes: list[str]


@keeps_unknown
class DestinationPrefixes(TypedDict, total=False):
    """The prefixes of one destination list."""

    listId: WireId
    listName: FreeText
    resellerId: WireId
    prefixes: list[str]


@keeps_unknown
class NetworkProfile(TypedDict, total=False):
    """The networks a reseller may put into zones of one sponsor."""

    id: WireId
    name: FreeText
    sponsorId: WireId
    sponsorName: FreeText
    resellerId: WireId
    resellerName: FreeText
    allowedListId: int


@keeps_unknown
class NewLocationZone(TypedDict, total=False):
    """A location zone just made; `Id` is spelled so."""

    Id: WireId
    name: str


OPERATOR_SHAPE = AnswerShape(Operator, filled=("mccMncs", "tadigs"))
PREFIXES_SHAPE = AnswerShape(DestinationPrefixes, filled=("prefixes",))
ZONE_SHAPE = AnswerShape(DetailedLocationZone, filled=("operators",), inside={"operators": OPERATOR_SHAPE})
DESTINATIONS_SHAPE = AnswerShape(DetailedDestinationList, filled=("prefixes",))
NETWORK_PROFILE_SHAPE = AnswerShape(NetworkProfile)
NEW_ZONE_SHAPE = AnswerShape(NewLocationZone, required=("Id",))


class ZoneCalls(OcsCalls):
    """What concerns networks, location zones, destination lists and network profiles."""

    async def list_network_profile(self, *, reseller_id: int | None = None, sponsor_id: int | None = None) -> list[NetworkProfile]:
        """The network profiles of a reseller, of a sponsor, or the one of both."""
        params = given_members(resellerId=reseller_id, sponsorId=sponsor_id)
        return await self._link.read("listNetworkProfile", params, parse_rows(NETWORK_PROFILE_SHAPE))

    async def create_location_zone(self, network_profile_id: int, name: str, tadigs: list[str]) -> NewLocationZone:
        """Make a zone of these networks. The refusals 10001 to 10004 carry `details`."""
        params = {"networkProfileId": network_profile_id, "locationZoneName": name, "tadigList": tadigs}
        return await self._link.write("createLocationZone", params, parse_member("newLZ", NEW_ZONE_SHAPE))

    async def change_network_profile(self, location_zone_id: int, network_profile_id: int) -> None:
        """Give a zone another network profile. Its wire name is undocumented, hence a setting."""
        settings = self._link.settings
        params = {settings.zone_key: location_zone_id, settings.profile_key: network_profile_id}
        await self._link.write(settings.zone_method, params, parse_nothing)

    async def location_zone_elements(self, zone_id: int) -> list[Operator]:
        """The networks of one zone. Some zones come malformed: `detailed_location_zones` is the safer way."""
        return await self._link.read("listLocationZoneElement", zone_id, parse_member_rows("operator", OPERATOR_SHAPE))

    async def destination_list_prefixes(self, list_id: int) -> DestinationPrefixes:
        """The prefixes of one destination list."""
        return await self._link.read("listDestinationListPrefix", list_id, parse_record(PREFIXES_SHAPE, absent=True))

    async def detailed_location_zones(self, reseller_id: int) -> list[DetailedLocationZone]:
        """All zones of a reseller with their networks."""
        return await self._link.read("listDetailedLocationZone", reseller_id, parse_rows(ZONE_SHAPE))

    async def stream_detailed_location_zones(self, reseller_id: int) -> JsonArrayStream:
        """The same as the raw JSON array, which passes without being decoded; of no zones it is empty."""
        return await self._link.stream("listDetailedLocationZone", reseller_id, key=("listDetailedLocationZone",))

    async def detailed_destination_lists(self, reseller_id: int) -> list[DetailedDestinationList]:
        """All destination lists of a reseller with their prefixes."""
        return await self._link.read("listDetailedDestinationList", reseller_id, parse_rows(DESTINATIONS_SHAPE))
