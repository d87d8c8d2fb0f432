"""Prepaid packages of a line, their series, and its plans."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.link import OcsCalls, WireParams, flat_subscriber, given_members, nested_subscriber
from clients.ocs.times import wire_time
from clients.ocs.wire_schema import AnswerShape, DestinationName, Utc, WireId, ZoneName, keeps_unknown, parse_nothing, parse_record
from registry.free_text import FreeText


@keeps_unknown
class TemplateName(TypedDict, total=False):
    """A package template by id and name."""

    prepaidpackagetemplateid: WireId
    prepaidpackagetemplatename: FreeText


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
    templateName: FreeText
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
    userSimName: FreeText


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


AFFECTED_SHAPE = AnswerShape(Affected, required=("iccid", "subsPackageId"))
STARTED_SERIES_SHAPE = AnswerShape(AffectedRecurring)
LISTED_PACKAGE = {"packages": AnswerShape(Package, required=("subscriberprepaidpackageid",))}
PACKAGES_SHAPE = AnswerShape(PackageList, filled=("packages",), inside=LISTED_PACKAGE)
PACKAGES_AND_SERIES_SHAPE = AnswerShape(PackageList, filled=("packages", "recurring"), inside=LISTED_PACKAGE)
PACKAGE_LIMIT_MEMBERS = ("dataByte", "mocSecond", "mtcSecond", "moSms", "mtSms")


class PackageCalls(OcsCalls):
    """What concerns packages that lines have."""

    async def affect_to_subscriber(
        self, template_id: int, subscriber_id: int, *, active_period: Period | None = None, validity_days: int | None = None
    ) -> Affected:
        """Put a package on a line. Never repeat it blindly: a second call puts a second package.

        With a period: those very dates. With days: from now. With neither: from the first use.
        """
        window = given_members(activePeriod=active_period, validityPeriod=validity_days)
        params = {"packageTemplateId": template_id, **nested_subscriber(subscriber_id), **window}
        return await self._link.write("affectPackageToSubscriber", params, parse_record(AFFECTED_SHAPE))

    async def affect_from_account(
        self, template_id: int, account_id: int, *, active_period: Period | None = None, validity_days: int | None = None
    ) -> Affected:
        """Put a package on a free eSIM of an account, which the network picks. Never repeat it blindly."""
        params = given_members(
            packageTemplateId=template_id, accountForSubs=account_id, activePeriod=active_period, validityPeriod=validity_days
        )
        return await self._link.write("affectPackageToSubscriber", params, parse_record(AFFECTED_SHAPE))

    async def affect_recurring(
        self, template_id: int, subscriber_id: int, *, start: datetime | None = None, at_first_use: bool = False
    ) -> AffectedRecurring:
        """Start a series on a line: now, at a time, or at its first use. Never repeat it blindly."""
        moment = None if start is None else wire_time(start)
        window = given_members(startTimeUTC=moment, activationAtFirstUse=at_first_use or None)
        params = {"packageTemplateId": template_id, **nested_subscriber(subscriber_id), **window}
        return await self._link.write("affectRecurringPackageToSubscriber", params, parse_record(STARTED_SERIES_SHAPE))

    async def list_packages(self, subscriber_id: int, *, version: Literal["v1", "v2"] = "v2") -> PackageList:
        """All packages of a line, expired and blocked ones too; version 2 knows the series."""
        parse = parse_record(PACKAGES_AND_SERIES_SHAPE if version == "v2" else PACKAGES_SHAPE, absent=True)
        return await self._link.read("listSubscriberPrepaidPackages", flat_subscriber(subscriber_id), parse, version=version)

    async def modify_limits(self, package_id: int, limits: PackageLimits, *, comment: str | None = None) -> None:
        """Change what a package holds: bytes, seconds, messages. All five keys are sent, null for what stays."""
        members = {name: limits.get(name) for name in PACKAGE_LIMIT_MEMBERS}
        params = {"packageId": package_id, "newLimits": members, **given_members(comment=comment)}
        await self._link.write("modifySubscriberPrepaidPackageLimits", params, parse_nothing)

    async def modify_exp_date(self, package_id: int, *, new_expiration: datetime | None = None, validity_days: int | None = None) -> None:
        """Change the expiry: to a date, which needs an expiry already, or to so many days after the start."""
        legacy = self._link.settings.legacy_expiry
        date_key, days_key = ("newDateUtc", "newPeriod") if legacy else ("newExpirationDate", "newValidityDuration")
        moment = None if new_expiration is None else wire_time(new_expiration)
        params = {"packageId": package_id, **given_members(**{date_key: moment, days_key: validity_days})}
        await self._link.write("modifySubscriberPrepaidPackageExpDate", params, parse_nothing)

    async def modify_status(self, package_id: int, *, active: bool) -> None:
        """Block a package, or release it."""
        params = {"subsPrepaidPackageId": package_id, "active": active}
        await self._link.write("modifySubscriberPrepaidPackageStatus", params, parse_nothing)

    async def stop_resume_recurring(
        self,
        *,
        active: bool,
        recurring_id: int | None = None,
        subscriber_id: int | None = None,
        template_id: int | None = None,
    ) -> None:
        """Stop or resume one series, all of a line, or all of a template; existing packages stay."""
        params = given_members(recurringId=recurring_id, subscriberId=subscriber_id, templateId=template_id, active=active)
        await self._link.write("stopResumeSubsRecurringPackage", params, parse_nothing)

    async def delete(self, package_id: int) -> None:
        """Remove a package for good."""
        await self._link.write("deleteSubscriberPackage", package_id, parse_nothing)

    async def modify_active_period(self, package_id: int, *, start: datetime, end: datetime, comment: str) -> None:
        """Date a package that waits for its first use; one that has a date is refused."""
        params = {
            "packageId": package_id,
            "newActivationDateUtc": wire_time(start),
            "newExpirationDateUtc": wire_time(end),
            "comment": comment,
        }
        await self._link.write("modifySubscriberPrepaidPackageActivePeriod", params, parse_nothing)

    async def modify_mobile_plan(self, subscriber_id: int, mobile_plan_id: int | None) -> None:
        """Set the price list of a line, or remove it."""
        await self._link.write("modifySubscriberMobilePlan", subscriber_under_id(subscriber_id, mobilePlanId=mobile_plan_id), parse_nothing)

    async def modify_voip_plan(self, subscriber_id: int, voip_plan_id: int | None) -> None:
        """Set the price list for calls over IP of a line, or remove it."""
        await self._link.write("modifySubscriberVoipPlan", subscriber_under_id(subscriber_id, voipPlanId=voip_plan_id), parse_nothing)


def subscriber_under_id(subscriber_id: int, **members: object) -> WireParams:
    """The identifier in an object under the key `subscriberId`, as the two plan changes want it."""
    return {"subscriberId": {"subscriberId": subscriber_id}, **given_members(**members)}
