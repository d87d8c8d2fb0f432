"""Packages on lines: assigning, listing, changing, removing, and how the wire shows them."""

from collections.abc import Iterable

from simulators.network import packages
from simulators.network.entities import Line, NetworkToken, Package, PackageSeries
from simulators.network.methods.zones import destination_list_reference, zone_reference
from simulators.network.named_records import (
    find_account,
    find_flat_line,
    find_line,
    find_nested_line,
    find_package,
    find_record,
    find_visible,
    require_living_line,
    require_visible,
)
from simulators.network.wire import (
    RequestFields,
    WireMembers,
    bare_method,
    invalid_request,
    network_method,
    read_days,
    read_flag,
    read_integer,
    read_moment,
    read_text,
    read_window,
    require_exactly_one,
    wire_euro,
    wire_moment,
    wire_moment_or_none,
)
from simulators.network.world import World

PACKAGE_LIMIT_KEYS = ("dataByte", "mocSecond", "mtcSecond", "moSms", "mtSms")
SERIES_OWNER_KEYS = ("recurringId", "subscriberId", "templateId")


@network_method("affectPackageToSubscriber")
def affect_package_to_subscriber(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Give a package to a line, or to the free eSIM with the lowest id of an account."""
    template_id = fields.need("packageTemplateId", read_integer)
    period, validity = read_package_period(fields), fields.maybe("validityPeriod", read_days)
    if period and validity:
        raise invalid_request("give activePeriod or validityPeriod, not both")
    if require_exactly_one(fields, ("subscriber", "accountForSubs")) == "subscriber":
        line = require_living_line(find_nested_line(world, caller, fields))
    else:
        number = fields.need("accountForSubs", read_integer)
        fields.done()
        line = packages.draw_free_line(world, find_account(world, caller, number))
    template = packages.find_usable_template(world, template_id, world.family(caller.reseller_id))
    package = packages.assign_package(world, line, template, period=period, validity_days=validity)
    return esim_view(world, line, package)


def read_package_period(fields: RequestFields) -> tuple[int, int] | None:
    """The exact dates in Unix seconds, where they are given."""
    period = fields.maybe("activePeriod", RequestFields)
    if period is None:
        return None
    found = read_window(period, "start", "end")
    period.done()
    return found


@network_method("affectRecurringPackageToSubscriber")
def affect_recurring_package_to_subscriber(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Start a series of packages; the first one is made now unless it begins more than twelve hours ahead."""
    template_id = fields.need("packageTemplateId", read_integer)
    start, at_first_use = fields.maybe("startTimeUTC", read_moment), fields.maybe("activationAtFirstUse", read_flag) or False
    if start is not None and at_first_use:
        raise invalid_request("params.startTimeUTC cannot be given with activationAtFirstUse true")
    line = require_living_line(find_nested_line(world, caller, fields))
    template = packages.find_usable_template(world, template_id, world.family(caller.reseller_id))
    _, package = packages.assign_package_series(world, line, template, start=start, at_first_use=at_first_use)
    parent = line.reseller_id != caller.reseller_id
    info = package_view(world, line, package, recurring=True, parent=parent) if package else None
    return {"packageInfo": info, "simInfo": esim_view(world, line, package)}


@network_method("listSubscriberPrepaidPackages")
def list_subscriber_prepaid_packages(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    return _package_list_view(world, caller, fields, recurring=False)


@network_method("listSubscriberPrepaidPackages", version="v2")
def list_subscriber_prepaid_packages_v2(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """As v1, with the series and each package's link to its own."""
    return _package_list_view(world, caller, fields, recurring=True)


def _package_list_view(world: World, caller: NetworkToken, fields: RequestFields, *, recurring: bool) -> WireMembers:
    line = find_flat_line(world, caller, fields)
    parent = line.reseller_id != caller.reseller_id
    return {
        "packages": [package_view(world, line, package, recurring=recurring, parent=parent) for package in line.packages],
        "recurring": [series_view(series) for series in line.series] if recurring else None,
        "callUseSingleCounter": world.resellers[line.reseller_id].single_counter,
    }


@network_method("cleanSubscriberAllPackages")
def clean_subscriber_all_packages(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    packages.remove_all_packages(world, find_flat_line(world, caller, fields))


@bare_method("deleteSubscriberPackage")
def delete_subscriber_package(world: World, caller: NetworkToken, number: int) -> None:
    packages.remove_package(world, find_package(world, caller, number))


@network_method("modifySubscriberPrepaidPackageLimits")
def modify_subscriber_prepaid_package_limits(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """New limits; all five keys must stand there, null leaves one as it is. Calls are in seconds, whatever the table says."""
    number, comment = fields.need("packageId", read_integer), fields.maybe("comment", read_text) or ""
    limits = fields.nested("newLimits")
    missing = [name for name in PACKAGE_LIMIT_KEYS if not limits.has_key(name)]
    if missing:
        raise invalid_request(f"params.newLimits lacks {', '.join(missing)}; null means unchanged")
    wanted = [limits.maybe(name, read_integer) for name in PACKAGE_LIMIT_KEYS]
    limits.done()
    fields.done()
    packages.set_package_limits(world, find_package(world, caller, number), wanted, comment)


@network_method("modifySubscriberPrepaidPackageExpDate")
def modify_subscriber_prepaid_package_exp_date(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Sets the end of a package that has one, or its length in days."""
    number = fields.need("packageId", read_integer)
    name = require_exactly_one(fields, ("newExpirationDate", "newValidityDuration"))
    if name == "newExpirationDate":
        at = fields.need(name, read_moment)
        fields.done()
        packages.set_package_expiry(world, find_package(world, caller, number), at)
    else:
        length = fields.need(name, read_days)
        fields.done()
        packages.set_package_validity(world, find_package(world, caller, number), length)


@network_method("modifySubscriberPrepaidPackageStatus")
def modify_subscriber_prepaid_package_status(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Block a package or let it be used again; the id has a name of its own here."""
    number, active = fields.need("subsPrepaidPackageId", read_integer), fields.need("active", read_flag)
    fields.done()
    packages.set_package_active(world, find_package(world, caller, number), active)


@network_method("modifySubscriberPrepaidPackageActivePeriod")
def modify_subscriber_prepaid_package_active_period(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    """Dates for a package that waits for its first use; the comment is mandatory."""
    number, comment = fields.need("packageId", read_integer), fields.need("comment", read_text)
    start, end = read_window(fields, "newActivationDateUtc", "newExpirationDateUtc")
    fields.done()
    packages.set_package_period(world, find_package(world, caller, number), start, end, comment)


@network_method("stopResumeSubsRecurringPackage")
def stop_resume_subs_recurring_package(world: World, caller: NetworkToken, fields: RequestFields) -> None:
    active = fields.need("active", read_flag)
    name = require_exactly_one(fields, SERIES_OWNER_KEYS)
    packages.set_series_active(world, list(_requested_series(world, caller, fields, name)), active)


def _requested_series(world: World, caller: NetworkToken, fields: RequestFields, name: str) -> Iterable[PackageSeries]:
    number = fields.need(name, read_integer)
    fields.done()
    if name == "subscriberId":
        return find_line(world, caller, name, number).series
    if name == "recurringId":
        series = find_record(world.series, number, "recurring package")
        require_visible(world, caller, world.lines[series.line_id].reseller_id, "recurring package")
        return [series]
    find_visible(world, caller, world.templates, number, "template")
    family = world.family(caller.reseller_id)
    return [one for one in world.series.values() if one.template_id == number and world.lines[one.line_id].reseller_id in family]


def package_view(world: World, line: Line, package: Package, *, recurring: bool = False, parent: bool = False) -> WireMembers:
    """One package; `recurring` adds the series (v2), `parent` what a parent reseller's own cost is."""
    return {
        "subscriberprepaidpackageid": package.id,
        "subscriberid": line.id,
        "priority": package.priority,
        "locationzoneid": package.zone_id,
        "destinationzoneid": package.destination_id,
        "rdbLocationZones": zone_reference(world, package.zone_id),
        "rdbDestinationZones": destination_list_reference(world, package.destination_id),
        "packageTemplate": {"prepaidpackagetemplateid": package.template_id, "prepaidpackagetemplatename": package.template_name},
        "templateId": package.template_id,
        "esimId": line.sim.id,
        "pckdatabyte": package.data_limit,
        "useddatabyte": package.data_used,
        "pckmocsecond": package.moc_limit,
        "usedmocsecond": package.moc_used,
        "pckmtcsecond": package.mtc_limit,
        "usedmtcsecond": package.mtc_used,
        "usedmocvoipsecond": package.voip_used,
        "pckmosmsnumber": package.mo_sms_limit,
        "usedmosmsnumber": package.mo_sms_used,
        "pckmtsmsnumber": package.mt_sms_limit,
        "usedmtsmsnumber": package.mt_sms_used,
        "tsassigned": wire_moment(package.assigned),
        "tsactivationutc": wire_moment_or_none(package.activated),
        "tsexpirationutc": wire_moment_or_none(package.expires),
        "perioddays": package.period_days,
        "cost": wire_euro(package.cost),
        "active": package.active,
        "recurringPackage": package.series_id if recurring else None,
        "resellerCost": wire_euro(package.reseller_cost),
        "parentResellerCost": wire_euro(package.parent_cost) if parent else None,
    }


def series_view(series: PackageSeries) -> WireMembers:
    """A recurring package; one that waits for the first use has no start."""
    return {
        "id": series.id,
        "startTimeUTC": wire_moment_or_none(series.start),
        "lastPackageCreationTimeUTC": wire_moment_or_none(series.last_created),
        "template": series.template_id,
        "templateName": series.template_name,
        "subscriber": series.line_id,
        "nbOccurrence": series.occurrences,
        "nbCreated": series.created,
        "recurringPeriodicityType": series.periodicity,
        "recurringPeriodicityFrequency": series.frequency,
        "reportUnitsPreviousPackage": series.carry_over,
        "active": series.active,
    }


def esim_view(world: World, line: Line, package: Package | None) -> WireMembers:
    """What a buyer needs to install the profile."""
    sim = line.sim
    code = f"LPA:1${sim.smdp}${sim.activation_code}" if sim.activation_code else None
    return {
        "iccid": line.iccid,
        "smdpServer": sim.smdp or None,
        "activationCode": sim.activation_code or None,
        "urlQrCode": code,
        "subscriberId": line.id,
        "esimId": sim.id,
        "subsPackageId": package.id if package else None,
        "userSimName": f"{world.resellers[line.reseller_id].name}_{line.id}",
    }
