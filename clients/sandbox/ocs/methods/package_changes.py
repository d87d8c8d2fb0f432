"""Changing a package or a series that is on a line."""

from collections.abc import Iterable

from clients.sandbox.ocs import packages
from clients.sandbox.ocs.entities import Series, Token
from clients.sandbox.ocs.params import Fields, days, exactly_one, flag, integer, moment, refuse, text, window
from clients.sandbox.ocs.resolve import find_line, find_package, known, visible
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING

LIMITS = ("dataByte", "mocSecond", "mtcSecond", "moSms", "mtSms")
OWNERS = ("recurringId", "subscriberId", "templateId")


def modify_subscriber_prepaid_package_limits(world: World, caller: Token, params: object) -> object:
    """New limits; all five keys must stand there, null leaves one as it is. Calls are in seconds, whatever the table says."""
    fields = Fields(params)
    number, comment = fields.need("packageId", integer), fields.maybe("comment", text) or ""
    limits = fields.nested("newLimits")
    missing = [name for name in LIMITS if not limits.has_key(name)]
    if missing:
        raise refuse(f"params.newLimits lacks {', '.join(missing)}; null means unchanged")
    data, moc, mtc, mo_sms, mt_sms = (limits.maybe(name, integer) for name in LIMITS)
    limits.done()
    fields.done()
    package = find_package(world, caller, number)
    packages.set_limits(world, package, data=data, moc=moc, mtc=mtc, mo_sms=mo_sms, mt_sms=mt_sms, comment=comment)
    return NOTHING


def modify_subscriber_prepaid_package_exp_date(world: World, caller: Token, params: object) -> object:
    """Another end: a date for a package that has one, or a length."""
    fields = Fields(params)
    number = fields.need("packageId", integer)
    name = exactly_one(fields, ("newExpirationDate", "newValidityDuration"))
    if name == "newExpirationDate":
        at = fields.need(name, moment)
        fields.done()
        packages.set_expiry(world, find_package(world, caller, number), at)
    else:
        length = fields.need(name, days)
        fields.done()
        packages.set_validity(world, find_package(world, caller, number), length)
    return NOTHING


def modify_subscriber_prepaid_package_status(world: World, caller: Token, params: object) -> object:
    """Block a package or let it be used again; the id has a name of its own here."""
    fields = Fields(params)
    number, active = fields.need("subsPrepaidPackageId", integer), fields.need("active", flag)
    fields.done()
    packages.set_active(world, find_package(world, caller, number), active)
    return NOTHING


def modify_subscriber_prepaid_package_active_period(world: World, caller: Token, params: object) -> object:
    """Dates for a package that waits for its first use; the comment is mandatory."""
    fields = Fields(params)
    number, comment = fields.need("packageId", integer), fields.need("comment", text)
    start, end = window(fields, "newActivationDateUtc", "newExpirationDateUtc")
    fields.done()
    packages.set_period(world, find_package(world, caller, number), start, end, comment)
    return NOTHING


def stop_resume_subs_recurring_package(world: World, caller: Token, params: object) -> object:
    """Stop or resume one series, all of a line, or all of a template."""
    fields = Fields(params)
    active = fields.need("active", flag)
    name = exactly_one(fields, OWNERS)
    packages.stop_or_resume(world, list(meant(world, caller, fields, name)), active)
    return NOTHING


def meant(world: World, caller: Token, fields: Fields, name: str) -> Iterable[Series]:
    """The series that are named."""
    number = fields.need(name, integer)
    fields.done()
    if name == "subscriberId":
        return find_line(world, caller, name, number).series
    if name == "recurringId":
        series = known(world.series, number, "recurring package")
        visible(world, caller, world.lines[series.line_id].reseller_id, "recurring package")
        return [series]
    visible(world, caller, known(world.templates, number, "template").reseller_id, "template")
    family = world.family(caller.reseller_id)
    return [one for one in world.series.values() if one.template_id == number and world.lines[one.line_id].reseller_id in family]
