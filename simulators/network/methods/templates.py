"""Package templates: one shape in lists, another after create and modify."""

from collections.abc import Callable
from dataclasses import replace

from simulators.network.entities import (
    ALREADY_EXISTS,
    NOT_FOUND,
    NOT_POSSIBLE,
    NOT_VISIBLE,
    NetworkRefusal,
    NetworkToken,
    PackageTemplate,
    ThrottleThreshold,
)
from simulators.network.methods.zones import destination_list_reference, template_zone_view, zone_reference
from simulators.network.named_records import find_record, find_reseller, find_visible
from simulators.network.wire import (
    RequestFields,
    WireMembers,
    invalid_request,
    network_method,
    read_days,
    read_flag,
    read_integer,
    read_one_of,
    read_positive,
    read_price,
    read_text,
    wire_euro,
    wire_moment_or_none,
)
from simulators.network.world import World

TEMPLATE_FILTERS: dict[str, Callable[[PackageTemplate], int | None]] = {
    "templateId": lambda template: template.id,
    "resellerId": lambda template: template.reseller_id,
    "sponsorId": lambda template: template.sponsor_id,
    "locationZoneId": lambda template: template.zone_id,
    "destinationListId": lambda template: template.destination_id,
}
BLANK_TEMPLATE = PackageTemplate(id=0, name="", reseller_id=0, zone_id=0, sponsor_id=0, period_days=1)
# The speeds of hlrSetBitrate without 32, 64 and 2048 (quirk 12).
THROTTLE_SPEEDS = (128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
MONTHLY_PERIODICITY = 2


@network_method("listPrepaidPackageTemplate")
def list_prepaid_package_template(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Templates, deleted ones too; at most one filter."""
    names = fields.given(tuple(TEMPLATE_FILTERS))
    if len(names) > 1:
        raise invalid_request(f"give at most one of {', '.join(TEMPLATE_FILTERS)}")
    values = {name: fields.maybe(name, read_integer) for name in TEMPLATE_FILTERS}
    fields.done()
    if values["resellerId"] is not None:
        find_reseller(world, caller, values["resellerId"])
    if values["templateId"] is not None:
        find_template(world, caller, values["templateId"])
    family = world.family(caller.reseller_id)
    seen = [template for template in world.templates.values() if template.reseller_id in family]
    kept = [template for template in seen if all(TEMPLATE_FILTERS[name](template) == values[name] for name in names)]
    return {"template": [listed_template_view(world, template) for template in kept]}


def find_template(world: World, caller: NetworkToken, number: int) -> PackageTemplate:
    return find_visible(world, caller, world.templates, number, "template")


@network_method("createPrepaidPackageTemplate")
def create_prepaid_package_template(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """A new template; its sponsor is that of the zone's network profile."""
    template = _read_template_recurrence(fields, _read_template_throttling(fields, read_template_core(fields, BLANK_TEMPLATE)))
    fields.done()
    placed = place_template(world, caller, template)
    check_template_name(world, placed)
    made = replace(placed, id=world.next_id("template"))
    world.templates[made.id] = made
    return changed_template_view(world, made)


@network_method("modifyPPTCore", key="modifyPrepaidPackageTemplate")
def modify_ppt_core(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Replace the whole core: what is left out is gone. Packages on lines stay as they are."""
    number = fields.need("prepaidpackagetemplateid", read_integer)
    asked = read_template_core(fields, BLANK_TEMPLATE)
    sponsor, change = fields.maybe("esimSponsor", read_integer), fields.maybe("changeSponsor", read_flag) or False
    fields.done()
    before, core = require_template(world, caller, number), place_template(world, caller, asked)
    if core.reseller_id != before.reseller_id:
        raise NetworkRefusal(NOT_POSSIBLE, "a template keeps its reseller")
    if core.sponsor_id != before.sponsor_id and not change:
        raise NetworkRefusal(NOT_POSSIBLE, "the zone has another sponsor: changeSponsor must be true")
    after = replace(read_template_core(fields, before), sponsor_id=core.sponsor_id, esim_sponsor=sponsor)
    check_template_name(world, after)
    world.templates[number] = after
    world.agenda.close()  # its series may have more or less to come
    return changed_template_view(world, after)


@network_method("modifyPPTRecurring", key="modifyPrepaidPackageTemplate")
def modify_ppt_recurring(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Replace the recurrence; false ends the series that exist."""
    number = fields.need("prepaidpackagetemplateid", read_integer)
    return change_template_group(world, caller, fields, number, _read_template_recurrence)


@network_method("modifyPPTThrottling", key="modifyPrepaidPackageTemplate")
def modify_ppt_throttling(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    """Replace the throttling; packages on lines follow."""
    number = fields.need("prepaidpackagetemplateid", read_integer)
    return change_template_group(world, caller, fields, number, _read_template_throttling)


def change_template_group(
    world: World,
    caller: NetworkToken,
    fields: RequestFields,
    number: int,
    read: Callable[[RequestFields, PackageTemplate], PackageTemplate],
) -> object:
    """Read the group before the template is looked up, then put both together."""
    read(fields, BLANK_TEMPLATE)
    fields.done()
    after = read(fields, require_template(world, caller, number))
    world.templates[number] = after
    world.agenda.close()  # its series may have more or less to come
    return changed_template_view(world, after)


def require_template(world: World, caller: NetworkToken, number: int) -> PackageTemplate:
    """A template that is not deleted."""
    template = find_template(world, caller, number)
    if template.deleted:
        raise NetworkRefusal(NOT_FOUND, f"template {number} is deleted")
    return template


def read_template_core(fields: RequestFields, template: PackageTemplate) -> PackageTemplate:
    """`template` with another core; its id, sponsor, flags and groups stay. Null limits are absent."""
    return replace(
        template,
        name=fields.need("prepaidpackagetemplatename", read_text),
        reseller_id=fields.need("resellerid", read_integer),
        zone_id=fields.need("locationzoneid", read_integer),
        period_days=fields.need("perioddays", read_days),
        data_bytes=fields.maybe("databyte", read_integer),
        moc_seconds=fields.maybe("mocsecond", read_integer),
        mtc_seconds=fields.maybe("mtcsecond", read_integer),
        mo_sms=fields.maybe("mosmsnumber", read_integer),
        mt_sms=fields.maybe("mtsmsnumber", read_integer),
        destination_id=fields.maybe("destinationzoneid", read_integer),
        cost=fields.maybe("cost", read_price) or 0,
    )


def place_template(world: World, caller: NetworkToken, template: PackageTemplate) -> PackageTemplate:
    """Check what the template refers to, and give it the sponsor of its zone."""
    reseller = find_reseller(world, caller, template.reseller_id)
    zone = find_visible(world, caller, world.zones, template.zone_id, "location zone")
    if zone.reseller_id != reseller.id:
        raise NetworkRefusal(NOT_VISIBLE, "the location zone belongs to another reseller than the template")
    profile = world.profiles[zone.profile_id]
    number = template.destination_id
    if number is not None and find_record(world.destinations, number, "destination list").reseller_id != reseller.id:
        raise NetworkRefusal(NOT_VISIBLE, "the destination list belongs to another reseller")
    return replace(template, sponsor_id=profile.sponsor_id, single_counter=reseller.single_counter)


def check_template_name(world: World, template: PackageTemplate) -> None:
    """A name is unique among a reseller's templates, deleted ones included."""
    for other in world.templates.values():
        if other.id != template.id and other.reseller_id == template.reseller_id and other.name == template.name:
            raise NetworkRefusal(ALREADY_EXISTS, 'duplicate key value violates unique constraint "prepaidpackagetemplate_name_key"')


def _read_template_throttling(fields: RequestFields, template: PackageTemplate) -> PackageTemplate:
    active = fields.need("throttlingActive", read_flag)
    throttles = tuple(read_throttle_threshold(fields, number) for number in range(1, 5))
    action = fields.maybe("throttlingErrorAction", read_one_of((0, 1)))
    if active and action is None:
        raise invalid_request("params.throttlingErrorAction is missing: it is mandatory when throttlingActive is true")
    return replace(template, throttling=active, throttles=throttles, throttling_error_action=action)


def read_throttle_threshold(fields: RequestFields, number: int) -> ThrottleThreshold | None:
    """A threshold: both of its members or none."""
    percent = fields.maybe(f"throttlingThreshold{number}Perc", _read_percentage)
    limit = fields.maybe(f"throttlingThreshold{number}Limit", read_one_of(THROTTLE_SPEEDS))
    if (percent is None) != (limit is None):
        raise invalid_request(f"throttlingThreshold{number}Perc and throttlingThreshold{number}Limit go together")
    return None if percent is None or limit is None else ThrottleThreshold(percent, limit)


def _read_percentage(value: object, path: str) -> int:
    found = read_positive(value, path)
    if found > 100:
        raise invalid_request(f"{path} must be at most 100 percent")
    return found


def _read_template_recurrence(fields: RequestFields, template: PackageTemplate) -> PackageTemplate:
    recurring = fields.need("recurring", read_flag)
    periodicity = fields.maybe("recurringPeriodicityType", read_one_of((0, 1, 2)))
    frequency = fields.maybe("recurringPeriodicityFrequency", read_positive)
    carry_over, occurrences = fields.maybe("reportUnitsPreviousPackage", read_flag), fields.maybe("nbOccurrence", read_positive)
    if not recurring:
        return replace(template, recurring=False, periodicity=None, frequency=None, occurrences=None, carry_over=False)
    if periodicity is None or frequency is None or carry_over is None:
        raise invalid_request("recurringPeriodicityType, recurringPeriodicityFrequency and reportUnitsPreviousPackage are mandatory")
    if occurrences is None and periodicity != MONTHLY_PERIODICITY:
        raise invalid_request("params.nbOccurrence is missing: only a monthly package may be endless")
    return replace(template, recurring=True, periodicity=periodicity, frequency=frequency, occurrences=occurrences, carry_over=carry_over)


def listed_template_view(world: World, template: PackageTemplate) -> WireMembers:
    """A row of listPrepaidPackageTemplate: no throttling unless the world tells more, no recurrence."""
    owner = world.resellers[template.reseller_id]
    return {
        "sponsors": {
            "sponsorid": world.sponsors[template.sponsor_id].id,
            "sponsorname": world.sponsors[template.sponsor_id].name,
            "displayname": world.sponsors[template.sponsor_id].display_name,
        },
        "reseller": {"resellerid": owner.id, "resellername": owner.name},
        "rdbLocationZones": zone_reference(world, template.zone_id),
        "rdbDestinationZones": destination_list_reference(world, template.destination_id),
        **_template_core_view(template),
        "uiStartAvailablePeriod": wire_moment_or_none(template.ui_start),
        "uiEndAvailibilityPeriod": wire_moment_or_none(template.ui_end),
        "uiVisible": template.ui_visible,
        **(template_throttling_view(template) if world.tells_more else {}),
    }


def changed_template_view(world: World, template: PackageTemplate) -> WireMembers:
    """The answer of createPrepaidPackageTemplate and of modifyPPT*."""
    return {
        **_template_core_view(template),
        "uiVisible": template.ui_visible,
        **template_throttling_view(template),
        **template_recurrence_view(template),
        "resellerName": world.resellers[template.reseller_id].name,
        "sponsorName": world.sponsors[template.sponsor_id].name,
        "useSingleCounterForCall": template.single_counter,
        "zone": template_zone_view(world, world.zones[template.zone_id]),
    }


def _template_core_view(template: PackageTemplate) -> WireMembers:
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
        "cost": wire_euro(template.cost),
    }


def template_throttling_view(template: PackageTemplate) -> WireMembers:
    members: WireMembers = {"throttlingActive": template.throttling}
    for number, throttle in enumerate(template.throttles, start=1):
        if throttle:
            members[f"throttlingThreshold{number}Perc"] = throttle.percent
            members[f"throttlingThreshold{number}Limit"] = throttle.kbps
    return {**members, "throttlingErrorAction": template.throttling_error_action}


def template_recurrence_view(template: PackageTemplate) -> WireMembers:
    if not template.recurring:
        return {"recurring": False}
    return {
        "recurring": True,
        "recurringPeriodicityType": template.periodicity,
        "recurringPeriodicityFrequency": template.frequency,
        "nbOccurrence": template.occurrences,
        "reportUnitsPreviousPackage": template.carry_over,
    }
