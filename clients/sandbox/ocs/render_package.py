"""Packages and recurring series as the wire shows them (ocs.md 2.2, 3.3)."""

from clients.sandbox.ocs.entities import Line, Package, Series
from clients.sandbox.ocs.moments import stamp, stamp_or_none
from clients.sandbox.ocs.render_network import destination_name, zone_name
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, euro, lean


def package_of(world: World, line: Line, package: Package, *, recurring: bool = False, parent: bool = False) -> Members:
    """One package; `recurring` adds the series (v2), `parent` what a parent reseller's own cost is."""
    return lean(
        {
            "subscriberprepaidpackageid": package.id,
            "subscriberid": line.id,
            "priority": package.priority,
            "locationzoneid": package.zone_id,
            "destinationzoneid": package.destination_id,
            "rdbLocationZones": zone_name(world, package.zone_id),
            "rdbDestinationZones": destination_name(world, package.destination_id),
            "packageTemplate": {"prepaidpackagetemplateid": package.template_id, "prepaidpackagetemplatename": package.template_name},
            "templateId": package.template_id,
            "esimId": line.sim.id,
            **counters(package),
            "tsassigned": stamp(package.assigned),
            "tsactivationutc": stamp_or_none(package.activated),
            "tsexpirationutc": stamp_or_none(package.expires),
            "perioddays": package.period_days,
            "cost": euro(package.cost),
            "active": package.active,
            "recurringPackage": package.series_id if recurring else None,
            "resellerCost": euro(package.reseller_cost),
            "parentResellerCost": euro(package.parent_cost) if parent else None,
        }
    )


def counters(package: Package) -> Members:
    """Limits and what was used of them: bytes, seconds and messages."""
    return {
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
    }


def series_of(series: Series) -> Members:
    """A recurring package; one that waits for the first use has no start."""
    return lean(
        {
            "id": series.id,
            "startTimeUTC": stamp_or_none(series.start),
            "lastPackageCreationTimeUTC": stamp_or_none(series.last_created),
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
    )


def esim_of(world: World, line: Line, package: Package | None) -> Members:
    """What a buyer needs to install the profile."""
    sim = line.sim
    code = f"LPA:1${sim.smdp}${sim.activation_code}" if sim.activation_code else None
    return lean(
        {
            "iccid": line.iccid,
            "smdpServer": sim.smdp or None,
            "activationCode": sim.activation_code or None,
            "urlQrCode": code,
            "subscriberId": line.id,
            "esimId": sim.id,
            "subsPackageId": package.id if package else None,
            "userSimName": f"{world.resellers[line.reseller_id].name}_{line.id}",
        }
    )
