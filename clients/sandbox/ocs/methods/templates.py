"""Package templates."""

from collections.abc import Callable
from dataclasses import replace

from clients.sandbox.ocs.entities import Refused, Template, Token
from clients.sandbox.ocs.methods.template_groups import read_recurrence, read_throttling
from clients.sandbox.ocs.params import Fields, days, flag, integer, price, refuse, text
from clients.sandbox.ocs.places import NetworkProfile, Zone
from clients.sandbox.ocs.render_template import changed, listed
from clients.sandbox.ocs.resolve import NOT_FOUND, NOT_VISIBLE, find_reseller, known, visible
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import lean

DUPLICATE, IMPOSSIBLE = 4, 14
FILTERS: dict[str, Callable[[Template], int | None]] = {
    "templateId": lambda template: template.id,
    "resellerId": lambda template: template.reseller_id,
    "sponsorId": lambda template: template.sponsor_id,
    "locationZoneId": lambda template: template.zone_id,
    "destinationListId": lambda template: template.destination_id,
}


def list_prepaid_package_template(world: World, caller: Token, params: object) -> object:
    """Templates, deleted ones too; at most one filter."""
    fields = Fields(params)
    names = fields.given(tuple(FILTERS))
    if len(names) > 1:
        raise refuse(f"give at most one of {', '.join(FILTERS)}")
    values = {name: fields.maybe(name, integer) for name in FILTERS}
    fields.done()
    if values["resellerId"] is not None:
        find_reseller(world, caller, values["resellerId"])
    if values["templateId"] is not None:
        find_template(world, caller, values["templateId"])
    family = world.family(caller.reseller_id)
    seen = [template for template in world.templates.values() if template.reseller_id in family]
    kept = [template for template in seen if all(FILTERS[name](template) == values[name] for name in names)]
    return lean({"template": [listed(world, template) for template in kept]})


def find_template(world: World, caller: Token, number: int) -> Template:
    """A template by id, deleted or not."""
    template = known(world.templates, number, "template")
    visible(world, caller, template.reseller_id, "template")
    return template


def create_prepaid_package_template(world: World, caller: Token, params: object) -> object:
    """A new template; its sponsor is that of the zone's network profile."""
    fields = Fields(params)
    template = read_recurrence(fields, read_throttling(fields, read_core(fields)))
    fields.done()
    placed = place(world, caller, template)
    check_name(world, placed)
    made = replace(placed, id=world.next_id("template"))
    world.templates[made.id] = made
    return changed(world, made)


def modify_ppt_core(world: World, caller: Token, params: object) -> object:
    """Replace the whole core: what is left out is gone. Packages on lines stay as they are."""
    fields = Fields(params)
    number = fields.need("prepaidpackagetemplateid", integer)
    asked = read_core(fields)
    sponsor, change = fields.maybe("esimSponsor", integer), fields.maybe("changeSponsor", flag) or False
    fields.done()
    before, core = usable(world, caller, number), place(world, caller, asked)
    if core.reseller_id != before.reseller_id:
        raise Refused(IMPOSSIBLE, "a template keeps its reseller")
    if core.sponsor_id != before.sponsor_id and not change:
        raise Refused(IMPOSSIBLE, "the zone has another sponsor: changeSponsor must be true")
    after = replace(with_core(before, core), esim_sponsor=sponsor)
    check_name(world, after)
    world.templates[number] = after
    world.agenda.close()  # its series may have more or less to come
    return changed(world, after)


def modify_ppt_recurring(world: World, caller: Token, params: object) -> object:
    """Replace the recurrence; false ends the series that exist."""
    fields = Fields(params)
    number = fields.need("prepaidpackagetemplateid", integer)
    return change_group(world, caller, fields, number, read_recurrence)


def modify_ppt_throttling(world: World, caller: Token, params: object) -> object:
    """Replace the throttling; packages on lines follow."""
    fields = Fields(params)
    number = fields.need("prepaidpackagetemplateid", integer)
    return change_group(world, caller, fields, number, read_throttling)


def change_group(world: World, caller: Token, fields: Fields, number: int, read: Callable[[Fields, Template], Template]) -> object:
    """Read the group before the template is looked up, then put both together."""
    read(fields, BLANK)
    fields.done()
    after = read(fields, usable(world, caller, number))
    world.templates[number] = after
    world.agenda.close()  # its series may have more or less to come
    return changed(world, after)


BLANK = Template(id=0, name="", reseller_id=0, zone_id=0, sponsor_id=0, period_days=1)


def usable(world: World, caller: Token, number: int) -> Template:
    """A template that is not deleted."""
    template = find_template(world, caller, number)
    if template.deleted:
        raise Refused(NOT_FOUND, f"template {number} is deleted")
    return template


def read_core(fields: Fields) -> Template:
    """The core of a template that has neither id nor sponsor yet; null limits are absent."""
    return Template(
        id=0,
        name=fields.need("prepaidpackagetemplatename", text),
        reseller_id=fields.need("resellerid", integer),
        zone_id=fields.need("locationzoneid", integer),
        sponsor_id=0,
        period_days=fields.need("perioddays", days),
        data_bytes=fields.maybe("databyte", integer),
        moc_seconds=fields.maybe("mocsecond", integer),
        mtc_seconds=fields.maybe("mtcsecond", integer),
        mo_sms=fields.maybe("mosmsnumber", integer),
        mt_sms=fields.maybe("mtsmsnumber", integer),
        destination_id=fields.maybe("destinationzoneid", integer),
        cost=fields.maybe("cost", price) or 0,
    )


def place(world: World, caller: Token, template: Template) -> Template:
    """Check what the template refers to, and give it the sponsor of its zone."""
    reseller = find_reseller(world, caller, template.reseller_id)
    _, profile = zone_of(world, caller, template.zone_id, reseller.id)
    number = template.destination_id
    if number is not None and known(world.destinations, number, "destination list").reseller_id != reseller.id:
        raise Refused(NOT_VISIBLE, "the destination list belongs to another reseller")
    return replace(template, sponsor_id=profile.sponsor_id, single_counter=reseller.single_counter)


def zone_of(world: World, caller: Token, number: int, reseller_id: int) -> tuple[Zone, NetworkProfile]:
    """A zone of the reseller's, and its network profile."""
    zone = known(world.zones, number, "location zone")
    visible(world, caller, zone.reseller_id, "location zone")
    if zone.reseller_id != reseller_id:
        raise Refused(NOT_VISIBLE, "the location zone belongs to another reseller than the template")
    return zone, world.profiles[zone.profile_id]


def with_core(before: Template, core: Template) -> Template:
    """The template with another core; its id, flags and groups stay."""
    return replace(
        before,
        name=core.name,
        zone_id=core.zone_id,
        sponsor_id=core.sponsor_id,
        period_days=core.period_days,
        data_bytes=core.data_bytes,
        moc_seconds=core.moc_seconds,
        mtc_seconds=core.mtc_seconds,
        mo_sms=core.mo_sms,
        mt_sms=core.mt_sms,
        destination_id=core.destination_id,
        cost=core.cost,
    )


def check_name(world: World, template: Template) -> None:
    """A name is unique among a reseller's templates, deleted ones included."""
    for other in world.templates.values():
        if other.id != template.id and other.reseller_id == template.reseller_id and other.name == template.name:
            raise Refused(DUPLICATE, 'duplicate key value violates unique constraint "prepaidpackagetemplate_name_key"')
