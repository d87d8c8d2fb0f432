"""Package templates."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.link import OcsCalls, given_members
from clients.ocs.wire_schema import (
    AnswerShape,
    DestinationName,
    ResellerName,
    WireId,
    ZoneName,
    keeps_unknown,
    parse_member_rows,
    parse_record,
)
from registry.free_text import FreeText


@keeps_unknown
class SponsorName(TypedDict, total=False):
    """A sponsor by id and name."""

    sponsorid: int
    sponsorname: FreeText
    displayname: FreeText


@keeps_unknown
class Country(TypedDict, total=False):
    """A country of a template's zone."""

    continent: str
    countryId: int
    countryName: str
    countryIso2: str
    countryCode: str


@keeps_unknown
class ZoneOperator(TypedDict, total=False):
    """A network of a template's zone."""

    operId: int
    operatorName: FreeText
    tadigList: list[str]
    mccMncList: Annotated[list[str], Field(description='"mcc-mnc"')]
    countryId: int


@keeps_unknown
class TemplateZone(TypedDict, total=False):
    """Where a template's packages work."""

    locationZoneId: int
    locationZoneName: FreeText
    countryList: list[Country]
    operatorList: list[ZoneOperator]


class TemplateFields(TypedDict, total=False):
    """What can be written on a template; None counts as absent."""

    prepaidpackagetemplateid: int
    prepaidpackagetemplatename: str
    resellerid: int
    locationzoneid: int
    perioddays: int
    destinationzoneid: int | None
    databyte: int | None
    mocsecond: int | None
    mtcsecond: int | None
    mosmsnumber: int | None
    mtsmsnumber: int | None
    cost: float | None
    esimSponsor: int | None
    changeSponsor: bool | None
    throttlingActive: bool
    throttlingThreshold1Perc: int | None
    throttlingThreshold1Limit: int | None
    throttlingThreshold2Perc: int | None
    throttlingThreshold2Limit: int | None
    throttlingThreshold3Perc: int | None
    throttlingThreshold3Limit: int | None
    throttlingThreshold4Perc: int | None
    throttlingThreshold4Limit: int | None
    throttlingErrorAction: int | None
    recurring: bool
    nbOccurrence: int | None
    recurringPeriodicityType: int | None
    recurringPeriodicityFrequency: int | None
    reportUnitsPreviousPackage: bool | None


THROTTLE_SPEEDS = (128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
"""The speeds that a template's thresholds can set, kbit/s; a limit set by hand has three more."""


@keeps_unknown
class Template(TypedDict, total=False):
    """A package template: what its packages hold, where they work, how long."""

    prepaidpackagetemplateid: WireId
    prepaidpackagetemplatename: FreeText
    resellerid: WireId
    resellerName: FreeText
    reseller: ResellerName
    sponsors: SponsorName
    sponsorName: FreeText
    rdbLocationZones: ZoneName
    rdbDestinationZones: DestinationName
    zone: TemplateZone
    priority: int
    locationzoneid: WireId
    destinationzoneid: int
    databyte: Annotated[int, Field(description="Bytes")]
    mocsecond: Annotated[int, Field(description="Calls made, seconds")]
    mtcsecond: Annotated[int, Field(description="Calls received, seconds")]
    mosmsnumber: Annotated[int, Field(description="SMS sent")]
    mtsmsnumber: Annotated[int, Field(description="SMS received")]
    perioddays: Annotated[int, Field(description="Days")]
    cost: Annotated[float, Field(description="EUR, informative")]
    deleted: bool
    esimSponsor: int
    useSingleCounterForCall: bool
    uiStartAvailablePeriod: str
    uiEndAvailibilityPeriod: str
    uiVisible: bool
    userUiName: FreeText
    throttlingActive: bool
    throttlingThreshold1Perc: Annotated[int, Field(description="Percent of the data limit")]
    throttlingThreshold1Limit: Annotated[int, Field(description="kbit/s")]
    throttlingThreshold2Perc: Annotated[int, Field(description="Percent of the data limit")]
    throttlingThreshold2Limit: Annotated[int, Field(description="kbit/s")]
    throttlingThreshold3Perc: Annotated[int, Field(description="Percent of the data limit")]
    throttlingThreshold3Limit: Annotated[int, Field(description="kbit/s")]
    throttlingThreshold4Perc: Annotated[int, Field(description="Percent of the data limit")]
    throttlingThreshold4Limit: Annotated[int, Field(description="kbit/s")]
    throttlingErrorAction: Annotated[int, Field(description="When throttling fails: 0 keep full speed, 1 block the package")]
    recurring: bool
    nbOccurrence: Annotated[int, Field(description="Packages in all; absent when endless")]
    recurringPeriodicityType: Annotated[int, Field(description="0 daily, 1 weekly, 2 monthly")]
    recurringPeriodicityFrequency: Annotated[int, Field(description="Every so many periods")]
    reportUnitsPreviousPackage: Annotated[bool, Field(description="Whether unused units are carried over")]


TEMPLATE_SHAPE = AnswerShape(Template, required=("prepaidpackagetemplateid",))
MODIFIED_TEMPLATE_KEY = "modifyPrepaidPackageTemplate"


class TemplateCalls(OcsCalls):
    """What packages are made from."""

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

    async def create(self, fields: TemplateFields) -> Template:
        """Make a template: name, reseller, zone, days, `throttlingActive` and `recurring` are needed. Never repeat it blindly."""
        return await self._link.write("createPrepaidPackageTemplate", given_members(**fields), parse_record(TEMPLATE_SHAPE))

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
        return await self._link.write(method, given_members(**fields), parse_record(TEMPLATE_SHAPE), key=MODIFIED_TEMPLATE_KEY)
