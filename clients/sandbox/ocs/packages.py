"""Packages of lines: assigning, changing, removing, and what the clock does to them (ocs.md 3.3)."""

from collections.abc import Iterable

from clients.sandbox.ocs import coverage, granting, recurring, throttling
from clients.sandbox.ocs.entities import DAY, Account, Line, Package, Refused, Series, Template
from clients.sandbox.ocs.state import World


def usable_template(world: World, template_id: int, family: frozenset[int]) -> Template:
    """A template of the family that is not deleted; refused with 6, or 11 when it is another's."""
    template = world.templates.get(template_id)
    if template is None:
        raise Refused(6, f"Package template {template_id} not found")
    if template.reseller_id not in family:
        raise Refused(11, f"Package template {template_id} is not visible")
    if template.deleted:
        raise Refused(6, f"Package template {template_id} is deleted")
    return template


def draw_free(world: World, account: Account) -> Line:
    """The account's line with the lowest id whose SIM is free."""
    found = world.lookup.first_free(world.lines, account.id)
    if found is None:
        raise Refused(6, f"No free eSIM in account {account.id}")
    return found


def assign(world: World, line: Line, template: Template, *, period: tuple[int, int] | None, validity_days: int | None) -> Package:
    """Give a line a package: exact dates, or valid from now, or from its first use. The line becomes ACTIVE."""
    dates = _dates(world, period, validity_days)
    granting.check(line, template)
    package = granting.grant(world, line, template, dates)
    if validity_days is not None:
        package.period_days = validity_days
    granting.bring_to_life(world, line)
    _refresh(world, line)
    return package


def assign_recurring(
    world: World, line: Line, template: Template, *, start: int | None, at_first_use: bool
) -> tuple[Series, Package | None]:
    """Start a series. Its first package is made now when it begins within 12 hours or with its first use."""
    if at_first_use and start is not None:
        raise Refused(2, "startTimeUTC is not allowed with activationAtFirstUse")
    granting.check(line, template)
    series = _series(world, line, template, None if at_first_use else world.now if start is None else start)
    granting.bring_to_life(world, line)
    if at_first_use:
        return series, recurring.create_undated(world, line, series, template)
    package = recurring.create_due(world, line, series)
    _refresh(world, line)
    return series, package


def clean(world: World, line: Line) -> None:
    """Remove every package and series of a line."""
    for package in line.packages:
        world.packages.pop(package.id, None)
    for series in line.series:
        world.series.pop(series.id, None)
    line.packages.clear()
    line.series.clear()
    _refresh(world, line)


def delete(world: World, package: Package) -> None:
    """Remove one package."""
    line = world.lines[package.line_id]
    line.packages = [held for held in line.packages if held.id != package.id]
    world.packages.pop(package.id, None)
    _refresh(world, line)


def set_limits(
    world: World,
    package: Package,
    *,
    data: int | None,
    moc: int | None,
    mtc: int | None,
    mo_sms: int | None,
    mt_sms: int | None,
    comment: str,
) -> None:
    """Replace limits; None leaves one as it is. A threshold that is no longer reached may be told again."""
    package.data_limit = package.data_limit if data is None else data
    package.moc_limit = package.moc_limit if moc is None else moc
    package.mtc_limit = package.mtc_limit if mtc is None else mtc
    package.mo_sms_limit = package.mo_sms_limit if mo_sms is None else mo_sms
    package.mt_sms_limit = package.mt_sms_limit if mt_sms is None else mt_sms
    package.notified = frozenset(mark for mark in package.notified if _still_reached(package, mark))
    package.history.append(f"limits changed: {comment}")
    _refresh(world, world.lines[package.line_id])


def set_expiry(world: World, package: Package, at: int) -> None:
    """Move an expiry that exists; an undated package has none (14). Choice: it must lie after the activation (2)."""
    if package.expires is None:
        raise Refused(14, f"Package {package.id} has no expiration date yet")
    if package.activated is not None and at <= package.activated:
        raise Refused(2, "newExpirationDate must be after the activation")
    package.expires = at
    _refresh(world, world.lines[package.line_id])


def set_validity(world: World, package: Package, days: int) -> None:
    """Set the validity: from the activation, or kept for the first use."""
    package.period_days = days
    if package.activated is not None:
        package.expires = package.activated + days * DAY
    _refresh(world, world.lines[package.line_id])


def set_period(world: World, package: Package, start: int, end: int, comment: str) -> None:
    """Give exact dates to a package that waits for its first use; one with a date, even a future one, is refused (14)."""
    if end <= start:
        raise Refused(2, "newExpirationDateUtc must be after newActivationDateUtc")
    if package.activated is not None:
        raise Refused(14, f"Package {package.id} has an activation date already")
    package.activated, package.expires = start, end
    _start_series(world, package, start)
    package.history.append(f"active period changed: {comment}")
    _refresh(world, world.lines[package.line_id])


def set_active(world: World, package: Package, active: bool) -> None:
    """Block a package or let it be used again; it keeps its dates and counters."""
    package.active = active
    _refresh(world, world.lines[package.line_id])


def stop_or_resume(world: World, series: Iterable[Series], active: bool) -> None:
    """Stop series or let them go on; packages that exist stay."""
    for found in series:
        found.active = active
        if active:
            tick(world, world.lines[found.line_id])


def tick(world: World, line: Line) -> None:
    """What is due by now: repetitions 12 hours ahead, leftovers of packages that start, throttles of those that ended."""
    for series in line.series:
        recurring.create_due(world, line, series)
    for package in line.packages:
        if package.carry_from is not None and package.activated is not None and package.activated <= world.now:
            recurring.carry_over(world, package)
    _refresh(world, line)


def next_due(world: World, line: Line, end: int) -> list[int]:
    """The moments up to `end` at which `tick` has something to do, as things stand; what is overdue is due now."""
    due = [moment for series in line.series if (moment := recurring.next_creation(world, line, series)) is not None]
    for package in line.packages:
        if package.activated is not None and (package.activated > world.now or package.carry_from is not None):
            due.append(package.activated)
        if package.expires is not None and package.expires > world.now:
            due.append(package.expires)
    return [max(moment, world.now) for moment in due if moment <= end]


def _dates(world: World, period: tuple[int, int] | None, validity_days: int | None) -> tuple[int | None, int | None]:
    if period is not None and validity_days is not None:
        raise Refused(2, "activePeriod and validityPeriod exclude each other")
    if period is not None and period[1] <= period[0]:
        raise Refused(2, "activePeriod.end must be after activePeriod.start")
    if validity_days is not None and validity_days < 1:
        raise Refused(2, "validityPeriod must be at least 1 day")
    if validity_days is not None:
        return world.now, world.now + validity_days * DAY
    return period if period is not None else (None, None)


def _series(world: World, line: Line, template: Template, start: int | None) -> Series:
    if not template.recurring or template.periodicity is None or not template.frequency:
        raise Refused(14, f"Package template {template.id} is not recurring")
    series = Series(
        id=world.next_id("series"),
        line_id=line.id,
        template_id=template.id,
        template_name=template.name,
        start=start,
        periodicity=template.periodicity,
        frequency=template.frequency,
        occurrences=template.occurrences,
        carry_over=template.carry_over,
    )
    line.series.append(series)
    world.series[series.id] = series
    return series


def _start_series(world: World, package: Package, start: int) -> None:
    """Choice: dates given by hand to the first package of a first-use series start the series there."""
    series = world.series.get(package.series_id) if package.series_id is not None else None
    if series is not None and series.start is None:
        series.start, series.next_index = start, 1


def _still_reached(package: Package, mark: int) -> bool:
    usage_type, percent = divmod(mark, 1000)
    limit, used = coverage.counter(package, usage_type)
    return limit is not None and used * 100 >= limit * percent


def _refresh(world: World, line: Line) -> None:
    """A throttle follows the package in use. Where the line is does not matter until it uses something."""
    world.agenda.touched.add(line.id)
    if line.throttled or any(package.throttled_kbps for package in line.packages):
        throttling.refresh(world, line, None, world.now)
