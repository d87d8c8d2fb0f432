"""Package templates, and the zones and lists they refer to."""

from clients.ocs.link import OcsLink
from clients.ocs.params import Params, given
from clients.ocs.raw_array import RawArray
from clients.ocs.shape import Shape, member_rows, record, rows
from clients.ocs.wire.network import DestinationPrefixes, DetailedDestinationList, DetailedLocationZone, Operator
from clients.ocs.wire.template import Template, TemplateFields

TEMPLATE = Shape(ids=("prepaidpackagetemplateid", "resellerid", "locationzoneid"), required=("prepaidpackagetemplateid",))
OPERATOR = Shape(ids=("networkId",), words=("tadigs",), lists={"mccMncs": Shape()})
PREFIXES = Shape(ids=("listId", "resellerId"), words=("prefixes",))
ZONE = Shape(ids=("zoneId",), lists={"operators": OPERATOR}, objects={"reseller": Shape()})
DESTINATIONS = Shape(ids=("listId",), words=("prefixes",), objects={"reseller": Shape()})
MODIFIED = "modifyPrepaidPackageTemplate"


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
        params = given(
            templateId=template_id,
            resellerId=reseller_id,
            sponsorId=sponsor_id,
            locationZoneId=location_zone_id,
            destinationListId=destination_list_id,
        )
        return await self._link.read("listPrepaidPackageTemplate", params, member_rows(Template, "template", TEMPLATE))

    async def location_zone_elements(self, zone_id: int) -> "list[Operator]":
        """The networks of one zone. Some zones come malformed: `detailed_location_zones` is the safer way."""
        return await self._link.read("listLocationZoneElement", zone_id, member_rows(Operator, "operator", OPERATOR))

    async def destination_list_prefixes(self, list_id: int) -> DestinationPrefixes:
        """The prefixes of one destination list."""
        return await self._link.read("listDestinationListPrefix", list_id, record(DestinationPrefixes, PREFIXES, absent=True))

    async def detailed_location_zones(self, reseller_id: int) -> "list[DetailedLocationZone]":
        """All zones of a reseller with their networks."""
        return await self._link.read("listDetailedLocationZone", reseller_id, rows(DetailedLocationZone, ZONE))

    async def stream_detailed_location_zones(self, reseller_id: int) -> RawArray:
        """The same as the raw JSON array, which passes without being decoded; of no zones it is empty."""
        return await self._link.stream("listDetailedLocationZone", reseller_id, key=("listDetailedLocationZone",))

    async def detailed_destination_lists(self, reseller_id: int) -> "list[DetailedDestinationList]":
        """All destination lists of a reseller with their prefixes."""
        return await self._link.read("listDetailedDestinationList", reseller_id, rows(DetailedDestinationList, DESTINATIONS))

    async def create(self, fields: TemplateFields) -> Template:
        """Make a template: name, reseller, zone, days, `throttlingActive` and `recurring` are needed. Never repeat it blindly."""
        return await self._link.write("createPrepaidPackageTemplate", _sent(fields), record(Template, TEMPLATE))

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
        return await self._link.write(method, _sent(fields), record(Template, TEMPLATE), key=MODIFIED)


def _sent(fields: TemplateFields) -> Params:
    return {name: value for name, value in fields.items() if value is not None}
