"""Package templates."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.package import DestinationName, ZoneName
from clients.ocs.wire.values import WireId, keeps_unknown


@keeps_unknown
class SponsorName(TypedDict, total=False):
    """A sponsor by id and name."""

    sponsorid: int
    sponsorname: str
    displayname: str


@keeps_unknown
class ResellerName(TypedDict, total=False):
    """A reseller by id and name."""

    resellerid: int
    resellername: str


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
    operatorName: str
    tadigList: list[str]
    mccMncList: Annotated[list[str], Field(description='"mcc-mnc"')]
    countryId: int


@keeps_unknown
class TemplateZone(TypedDict, total=False):
    """Where a template's packages work."""

    locationZoneId: int
    locationZoneName: str
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


@keeps_unknown
class Template(TypedDict, total=False):
    """A package template: what its packages hold, where they work, how long."""

    prepaidpackagetemplateid: WireId
    prepaidpackagetemplatename: str
    resellerid: WireId
    resellerName: str
    reseller: ResellerName
    sponsors: SponsorName
    sponsorName: str
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
    userUiName: str
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
