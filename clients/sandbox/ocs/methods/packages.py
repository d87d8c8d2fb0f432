"""Packages on lines: assigning, listing, removing."""

from clients.sandbox.ocs import packages
from clients.sandbox.ocs.entities import Token
from clients.sandbox.ocs.params import Fields, days, exactly_one, flag, integer, moment, refuse, window
from clients.sandbox.ocs.render_package import esim_of, package_of, series_of
from clients.sandbox.ocs.resolve import alive, find_account, find_package, flat_line, nested_line
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING, Members, lean


def affect_package_to_subscriber(world: World, caller: Token, params: object) -> object:
    """Give a package to a line, or to the free eSIM with the lowest id of an account."""
    fields = Fields(params)
    template_id = fields.need("packageTemplateId", integer)
    period, validity = read_period(fields), fields.maybe("validityPeriod", days)
    if period and validity:
        raise refuse("give activePeriod or validityPeriod, not both")
    if exactly_one(fields, ("subscriber", "accountForSubs")) == "subscriber":
        line = alive(nested_line(world, caller, fields))
    else:
        number = fields.need("accountForSubs", integer)
        fields.done()
        line = packages.draw_free(world, find_account(world, caller, number))
    template = packages.usable_template(world, template_id, world.family(caller.reseller_id))
    package = packages.assign(world, line, template, period=period, validity_days=validity)
    return esim_of(world, line, package)


def read_period(fields: Fields) -> tuple[int, int] | None:
    """Exact dates, when they are given."""
    period = fields.maybe("activePeriod", Fields)
    if period is None:
        return None
    found = window(period, "start", "end")
    period.done()
    return found


def affect_recurring_package_to_subscriber(world: World, caller: Token, params: object) -> object:
    """Start a series of packages; the first one is made now unless it begins more than twelve hours ahead."""
    fields = Fields(params)
    template_id = fields.need("packageTemplateId", integer)
    start, at_first_use = fields.maybe("startTimeUTC", moment), fields.maybe("activationAtFirstUse", flag) or False
    if start is not None and at_first_use:
        raise refuse("params.startTimeUTC cannot be given with activationAtFirstUse true")
    line = alive(nested_line(world, caller, fields))
    template = packages.usable_template(world, template_id, world.family(caller.reseller_id))
    _, package = packages.assign_recurring(world, line, template, start=start, at_first_use=at_first_use)
    parent = line.reseller_id != caller.reseller_id
    info = package_of(world, line, package, recurring=True, parent=parent) if package else None
    return lean({"packageInfo": info, "simInfo": esim_of(world, line, package)})


def list_subscriber_prepaid_packages(world: World, caller: Token, params: object) -> object:
    """All packages of a line, expired and blocked ones too."""
    return lean(listed(world, caller, params, recurring=False))


def list_subscriber_prepaid_packages_v2(world: World, caller: Token, params: object) -> object:
    """As v1, with the series and each package's link to its own."""
    return lean(listed(world, caller, params, recurring=True))


def listed(world: World, caller: Token, params: object, *, recurring: bool) -> Members:
    """The answer of both versions."""
    line = flat_line(world, caller, params)
    parent = line.reseller_id != caller.reseller_id
    return {
        "packages": [package_of(world, line, package, recurring=recurring, parent=parent) for package in line.packages],
        "recurring": [series_of(series) for series in line.series] if recurring else None,
        "callUseSingleCounter": world.resellers[line.reseller_id].single_counter,
    }


def clean_subscriber_all_packages(world: World, caller: Token, params: object) -> object:
    """Remove every package and series of a line."""
    packages.clean(world, flat_line(world, caller, params))
    return NOTHING


def delete_subscriber_package(world: World, caller: Token, params: object) -> object:
    """Remove one package."""
    packages.delete(world, find_package(world, caller, integer(params, "params")))
    return NOTHING
