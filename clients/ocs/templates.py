"""Package templates, the zones and lists they refer to, network profiles, and the making of location zones."""

from clients.ocs.json_array import JsonArrayStream
from clients.ocs.link import OcsLink, WireParams, given_members
from clients.ocs.settings import OcsSettings
from clients.ocs.wire.network import (
    DestinationPrefixes,
    DetailedDestinationList,
    DetailedLocationZone,
    NetworkProfile,
    NewLocationZone,
    Operator,
)
from clients.ocs.wire.template import Template, TemplateFields
from clients.ocs.wire_schema import AnswerShape, parse_member, parse_member_rows, parse_nothing, parse_record, parse_rows

TEMPLATE_SHAPE = AnswerShape(Template, required=("prepaidpackagetemplateid",))
OPERATOR_SHAPE = AnswerShape(Operator, filled=("mccMncs", "tadigs"))
PREFIXES_SHAPE = AnswerShape(DestinationPrefixes, filled=("prefixes",))
ZONE_SHAPE = AnswerShape(DetailedLocationZone, filled=("operators",), inside={"operators": OPERATOR_SHAPE})
DESTINATIONS_SHAPE = AnswerShape(DetailedDestinationList, filled=("prefixes",))
MODIFIED_TEMPLATE_KEY = "modifyPrepaidPackageTemplate"


class TemplateCalls:
    """What packages are made from."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def list(
        self,
        *,
        template_id: int | None = None,
        reseller_id: int | None = None,
        sponsor_id: int | None = None,
        location_zone_id: int | None = None,
        destination_list_id: int | None = None,
    ) -> "list[Template]":
        """All templates, or those of one filter (at most one); deleted ones may be among them."""
        params = given_members(
            templateId=template_id,
            resellerId=reseller_id,
            sponsorId=sponsor_id,
            locationZoneId=location_zone_id,
            destinationListId=destination_list_id,
        )
        return await self._link.read("listPrepaidPackageTemplate", params, parse_member_rows("template", TEMPLATE_SHAPE))

    async def location_zone_elements(self, zone_id: int) -> "list[Operator]":
        """The networks of one zone. Some zones come malformed: `detailed_location_zones` is the safer way."""
        return await self._link.read("listLocationZoneElement", zone_id, parse_member_rows("operator", OPERATOR_SHAPE))

    async def destination_list_prefixes(self, list_id: int) -> DestinationPrefixes:
        """The prefixes of one destination list."""
        return await self._link.read("listDestinationListPrefix", list_id, parse_record(PREFIXES_SHAPE, absent=True))

    async def detailed_location_zones(self, reseller_id: int) -> "list[DetailedLocationZone]":
        """All zones of a reseller with their networks."""
        return await self._link.read("listDetailedLocationZone", reseller_id, parse_rows(ZONE_SHAPE))

    async def stream_detailed_location_zones(self, reseller_id: int) -> JsonArrayStream:
        """The same as the raw JSON array, which passes without being decoded; of no zones it is empty."""
        return await self._link.stream("listDetailedLocationZone", reseller_id, key=("listDetailedLocationZone",))

    async def detailed_destination_lists(self, reseller_id: int) -> "list[DetailedDestinationList]":
        """All destination lists of a reseller with their prefixes."""
        return await self._link.read("listDetailedDestinationList", reseller_id, parse_rows(DESTINATIONS_SHAPE))

    async def create(self, fields: TemplateFields) -> Template:
        """Make a template: name, reseller, zone, days, `throttlingActive` and `recurring` are needed. Never repeat it blindly."""
        return await self._link.write("createPrepaidPackageTemplate", _template_params(fields), parse_record(TEMPLATE_SHAPE))

    async def modify_core(self, fields: TemplateFields) -> Template:
        """Replace all core fields of a template: read it first."""
        return await self._modify("modifyPPTCore", fields)

    async def modify_recurring(self, fields: TemplateFields) -> Template:
        """Replace the recurring group; existing series keep their rhythm."""
        return await self._modify("modifyPPTRecurring", fields)

    async def modify_throttling(self, fields: TemplateFields) -> Template:
        """Replace the throttling group, for existing packages too."""
        return await self._modify("modifyPPTThrottling", fields)

    async def _modify(self, method: str, fields: TemplateFields) -> Template:
        return await self._link.write(method, _template_params(fields), parse_record(TEMPLATE_SHAPE), key=MODIFIED_TEMPLATE_KEY)


def _template_params(fields: TemplateFields) -> WireParams:
    return {name: value for name, value in fields.items() if value is not None}


NETWORK_PROFILE_SHAPE = AnswerShape(NetworkProfile)
NEW_ZONE_SHAPE = AnswerShape(NewLocationZone, required=("Id",))


class ZoneCalls:
    """Where packages work."""

    def __init__(self, link: OcsLink, settings: OcsSettings) -> None:
        self._link = link
        self._settings = settings

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
        settings = self._settings
        params = {settings.zone_key: location_zone_id, settings.profile_key: network_profile_id}
        await self._link.write(settings.zone_method, params, parse_nothing)
