"""Package templates as the wire shows them: one shape in lists, another after create and modify (ocs.md 2.4)."""

from clients.sandbox.ocs.entities import Template
from clients.sandbox.ocs.moments import stamp_or_none
from clients.sandbox.ocs.places import Sponsor
from clients.sandbox.ocs.render_network import destination_name, zone_name, zone_of_template
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import Members, euro, lean


def listed(world: World, template: Template) -> Members:
    """A row of listPrepaidPackageTemplate: no throttling, no recurrence."""
    owner = world.resellers[template.reseller_id]
    return lean(
        {
            "sponsors": sponsor_name(world.sponsors[template.sponsor_id]),
            "reseller": {"resellerid": owner.id, "resellername": owner.name},
            "rdbLocationZones": zone_name(world, template.zone_id),
            "rdbDestinationZones": destination_name(world, template.destination_id),
            **core(template),
            "uiStartAvailablePeriod": stamp_or_none(template.ui_start),
            "uiEndAvailibilityPeriod": stamp_or_none(template.ui_end),
            "uiVisible": template.ui_visible,
        }
    )


def changed(world: World, template: Template) -> Members:
    """The answer of createPrepaidPackageTemplate and of modifyPPT*."""
    return lean(
        {
            **core(template),
            "uiVisible": template.ui_visible,
            **throttling(template),
            **recurrence(template),
            "resellerName": world.resellers[template.reseller_id].name,
            "sponsorName": world.sponsors[template.sponsor_id].name,
            "useSingleCounterForCall": template.single_counter,
            "zone": zone_of_template(world, world.zones[template.zone_id]),
        }
    )


def sponsor_name(sponsor: Sponsor) -> Members:
    """A sponsor inside a template's row."""
    return {"sponsorid": sponsor.id, "sponsorname": sponsor.name, "displayname": sponsor.display_name}


def core(template: Template) -> Members:
    """What both shapes share."""
    return {
        "prepaidpackagetemplateid": template.id,
        "prepaidpackagetemplatename": template.name,
        "resellerid": template.reseller_id,
        "priority": template.priority,
        "locationzoneid": template.zone_id,
        "destinationzoneid": template.destination_id,
        "databyte": template.data_bytes,
        "mocsecond": template.moc_seconds,
        "mtcsecond": template.mtc_seconds,
        "mosmsnumber": template.mo_sms,
        "mtsmsnumber": template.mt_sms,
        "perioddays": template.period_days,
        "deleted": template.deleted,
        "esimSponsor": template.esim_sponsor,
        "cost": euro(template.cost),
    }


def throttling(template: Template) -> Members:
    """At which share of the volume which speed."""
    members: Members = {"throttlingActive": template.throttling}
    for number, throttle in enumerate(template.throttles, start=1):
        if throttle:
            members[f"throttlingThreshold{number}Perc"] = throttle.percent
            members[f"throttlingThreshold{number}Limit"] = throttle.kbps
    return {**members, "throttlingErrorAction": template.throttling_error_action}


def recurrence(template: Template) -> Members:
    """How often it comes again."""
    if not template.recurring:
        return {"recurring": False}
    return {
        "recurring": True,
        "recurringPeriodicityType": template.periodicity,
        "recurringPeriodicityFrequency": template.frequency,
        "nbOccurrence": template.occurrences,
        "reportUnitsPreviousPackage": template.carry_over,
    }
