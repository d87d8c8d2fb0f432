"""Prepaid packages of a line and the series that create them."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.values import Utc, WireId, keeps_unknown


@keeps_unknown
class ZoneName(TypedDict, total=False):
    """A location zone by id and name."""

    locationzoneid: int
    locationzonename: str


@keeps_unknown
class DestinationName(TypedDict, total=False):
    """A destination list by id and name."""

    destinationzoneid: int
    destinationzonename: str


@keeps_unknown
class TemplateName(TypedDict, total=False):
    """A package template by id and name."""

    prepaidpackagetemplateid: WireId
    prepaidpackagetemplatename: str


@keeps_unknown
class Package(TypedDict, total=False):
    """A prepaid package of a line: limits, use, dates."""

    subscriberprepaidpackageid: WireId
    subscriberid: WireId
    priority: Annotated[int, Field(description="The lowest number is consumed first")]
    locationzoneid: int
    destinationzoneid: int
    rdbLocationZones: ZoneName
    rdbDestinationZones: DestinationName
    packageTemplate: TemplateName
    templateId: WireId
    esimId: WireId
    pckdatabyte: Annotated[int, Field(description="Data limit, bytes")]
    useddatabyte: Annotated[int, Field(description="Bytes")]
    pckmocsecond: Annotated[int, Field(description="Limit of calls made, seconds")]
    usedmocsecond: Annotated[int, Field(description="Seconds")]
    pckmtcsecond: Annotated[int, Field(description="Limit of calls received, seconds")]
    usedmtcsecond: Annotated[int, Field(description="Seconds")]
    usedmocvoipsecond: Annotated[int, Field(description="Seconds")]
    pckmosmsnumber: Annotated[int, Field(description="Limit of SMS sent")]
    usedmosmsnumber: int
    pckmtsmsnumber: Annotated[int, Field(description="Limit of SMS received")]
    usedmtsmsnumber: int
    tsassigned: Utc
    tsactivationutc: Annotated[str, Field(description="UTC; absent until activated or scheduled")]
    tsexpirationutc: Annotated[str, Field(description="UTC; absent until activated or scheduled")]
    perioddays: Annotated[int, Field(description="Days from activation to expiry")]
    cost: Annotated[float, Field(description="EUR, copied from the template, informative")]
    active: Annotated[bool, Field(description="False when blocked")]
    recurringPackage: Annotated[WireId, Field(description="Id of the series that made it")]
    resellerCost: Annotated[float, Field(description="EUR")]
    parentResellerCost: Annotated[float, Field(description="EUR")]


@keeps_unknown
class RecurringSeries(TypedDict, total=False):
    """A series that creates one package per period."""

    id: WireId
    startTimeUTC: Utc
    lastPackageCreationTimeUTC: Utc
    template: WireId
    templateName: str
    subscriber: WireId
    nbOccurrence: Annotated[int, Field(description="Packages in all; absent when endless")]
    nbCreated: int
    recurringPeriodicityType: Annotated[int, Field(description="0 daily, 1 weekly, 2 monthly")]
    recurringPeriodicityFrequency: Annotated[int, Field(description="Every so many periods")]
    reportUnitsPreviousPackage: Annotated[bool, Field(description="Whether unused units are carried over")]
    active: bool


@keeps_unknown
class PackageList(TypedDict, total=False):
    """The packages of a line, expired and blocked ones too."""

    packages: list[Package]
    recurring: list[RecurringSeries]
    callUseSingleCounter: Annotated[bool, Field(description="Made and received calls both count as calls made")]


@keeps_unknown
class Affected(TypedDict, total=False):
    """The eSIM a package was put on, with what its user needs to install it."""

    iccid: str
    smdpServer: str
    activationCode: str
    urlQrCode: Annotated[str, Field(description="LPA:1$server$code")]
    subscriberId: WireId
    esimId: WireId
    subsPackageId: WireId
    userSimName: str


@keeps_unknown
class AffectedRecurring(TypedDict, total=False):
    """A started series; `packageInfo` is absent when its first package lies more than 12 hours ahead."""

    packageInfo: Package
    simInfo: Affected


class Period(TypedDict):
    """From start to end, UTC, YYYY-MM-DDTHH:MM:SS."""

    start: str
    end: str


class PackageLimits(TypedDict, total=False):
    """New limits of a package; what is missing or None stays as it is."""

    dataByte: int | None
    mocSecond: int | None
    mtcSecond: int | None
    moSms: int | None
    mtSms: int | None
