"""Packages of lines and series of them: assigning, changing, removing, and what the clock does to them."""

from calendar import monthrange
from collections.abc import Iterable
from datetime import UTC, datetime

from simulators.network.entities import (
    DATA,
    DAY_SECONDS,
    MO_SMS,
    MOC,
    MT_SMS,
    MTC,
    Line,
    NetworkRefusal,
    Package,
    PackageSeries,
    PackageTemplate,
    ResellerAccount,
    StatusRow,
)
from simulators.network.fair_use import refresh_throttle
from simulators.network.world import World

SERIES_LEAD_SECONDS = DAY_SECONDS // 2
PACKAGE_LIMITS = {DATA: "data_limit", MOC: "moc_limit", MTC: "mtc_limit", MO_SMS: "mo_sms_limit", MT_SMS: "mt_sms_limit"}


def find_usable_template(world: World, template_id: int, family: frozenset[int]) -> PackageTemplate:
    """A template of the family that is not deleted; refused with 6, or 11 when it is another's."""
    template = world.templates.get(template_id)
    if template is None:
        raise NetworkRefusal(6, f"Package template {template_id} not found")
    if template.reseller_id not in family:
        raise NetworkRefusal(11, f"Package template {template_id} is not visible")
    if template.deleted:
        raise NetworkRefusal(6, f"Package template {template_id} is deleted")
    return template


def draw_free_line(world: World, account: ResellerAccount) -> Line:
    """The account's line with the lowest id whose SIM is free."""
    found = world.lookup.first_free(world.lines, account.id)
    if found is None:
        raise NetworkRefusal(6, f"No free eSIM in account {account.id}")
    return found


def assign_package(
    world: World, line: Line, template: PackageTemplate, *, period: tuple[int, int] | None, validity_days: int | None
) -> Package:
    """Give a line a package: exact dates, or valid from now, or from its first use. The line becomes ACTIVE."""
    dates = _package_dates(world, period, validity_days)
    check_template_fits(line, template)
    package = grant_package(world, line, template, dates)
    if validity_days is not None:
        package.period_days = validity_days
    activate_line(world, line)
    _refresh_line(world, line)
    return package


def assign_package_series(
    world: World, line: Line, template: PackageTemplate, *, start: int | None, at_first_use: bool
) -> tuple[PackageSeries, Package | None]:
    """Start a series. Its first package is made now when it begins within 12 hours or with its first use."""
    if at_first_use and start is not None:
        raise NetworkRefusal(2, "startTimeUTC is not allowed with activationAtFirstUse")
    check_template_fits(line, template)
    series = _make_series(world, line, template, None if at_first_use else world.now if start is None else start)
    activate_line(world, line)
    if at_first_use:
        return series, _count_repetition(world, series, grant_package(world, line, template, (None, None), series.id))
    package = create_due_packages(world, line, series)
    _refresh_line(world, line)
    return series, package


def remove_all_packages(world: World, line: Line) -> None:
    for package in line.packages:
        world.packages.pop(package.id, None)
    for series in line.series:
        world.series.pop(series.id, None)
    line.packages.clear()
    line.series.clear()
    _refresh_line(world, line)


def remove_package(world: World, package: Package) -> None:
    line = world.lines[package.line_id]
    line.packages = [held for held in line.packages if held.id != package.id]
    world.packages.pop(package.id, None)
    _refresh_line(world, line)


def set_package_limits(world: World, package: Package, limits: Iterable[int | None], comment: str) -> None:
    """Replaces limits, in the order of PACKAGE_LIMITS; None keeps one. A threshold that is no longer reached can be notified again."""
    for name, limit in zip(PACKAGE_LIMITS.values(), limits, strict=True):
        if limit is not None:
            setattr(package, name, limit)
    package.notified = frozenset(mark for mark in package.notified if _still_reached(package, mark))
    package.history.append(f"limits changed: {comment}")
    _refresh_line(world, world.lines[package.line_id])


def set_package_expiry(world: World, package: Package, at: int) -> None:
    """Move an expiry that exists; an undated package has none (14). Choice: it must lie after the activation (2)."""
    if package.expires is None:
        raise NetworkRefusal(14, f"Package {package.id} has no expiration date yet")
    if package.activated is not None and at <= package.activated:
        raise NetworkRefusal(2, "newExpirationDate must be after the activation")
    package.expires = at
    _refresh_line(world, world.lines[package.line_id])


def set_package_validity(world: World, package: Package, days: int) -> None:
    """Set the validity: from the activation, or kept for the first use."""
    package.period_days = days
    if package.activated is not None:
        package.expires = package.activated + days * DAY_SECONDS
    _refresh_line(world, world.lines[package.line_id])


def set_package_period(world: World, package: Package, start: int, end: int, comment: str) -> None:
    """Give exact dates to a package that waits for its first use; one with a date, even a future one, is refused (14)."""
    if end <= start:
        raise NetworkRefusal(2, "newExpirationDateUtc must be after newActivationDateUtc")
    if package.activated is not None:
        raise NetworkRefusal(14, f"Package {package.id} has an activation date already")
    package.activated, package.expires = start, end
    _start_series(world, package, start)
    package.history.append(f"active period changed: {comment}")
    _refresh_line(world, world.lines[package.line_id])


def set_package_active(world: World, package: Package, active: bool) -> None:
    """Block a package or let it be used again; it keeps its dates and counters."""
    package.active = active
    _refresh_line(world, world.lines[package.line_id])


def set_series_active(world: World, series: Iterable[PackageSeries], active: bool) -> None:
    """Stop series or let them go on; packages that exist stay."""
    for found in series:
        found.active = active
        if active:
            tick_packages(world, world.lines[found.line_id])


def tick_packages(world: World, line: Line) -> None:
    """What is due by now: repetitions 12 hours ahead, leftovers of packages that start, throttles of those that ended."""
    for series in line.series:
        create_due_packages(world, line, series)
    for package in line.packages:
        if package.carry_from is not None and package.activated is not None and package.activated <= world.now:
            carry_over_package(world, package)
    _refresh_line(world, line)


def package_due_moments(world: World, line: Line, end: int) -> list[int]:
    """The moments up to `end` at which `tick_packages` has something to do, as things stand; what is overdue is due now."""
    now, due = world.now, list[int]()
    for series in line.series:
        moment = next_series_creation(world, line, series)
        if moment is not None and moment <= end:
            due.append(max(moment, now))
    for package in line.packages:
        activated, expires = package.activated, package.expires
        if activated is not None and activated <= end and (activated > now or package.carry_from is not None):
            due.append(max(activated, now))
        if expires is not None and now < expires <= end:
            due.append(expires)
    return due


def _package_dates(world: World, period: tuple[int, int] | None, validity_days: int | None) -> tuple[int | None, int | None]:
    if period is not None and validity_days is not None:
        raise NetworkRefusal(2, "activePeriod and validityPeriod exclude each other")
    if period is not None and period[1] <= period[0]:
        raise NetworkRefusal(2, "activePeriod.end must be after activePeriod.start")
    if validity_days is not None and validity_days < 1:
        raise NetworkRefusal(2, "validityPeriod must be at least 1 day")
    if validity_days is not None:
        return world.now, world.now + validity_days * DAY_SECONDS
    return period if period is not None else (None, None)


def _make_series(world: World, line: Line, template: PackageTemplate, start: int | None) -> PackageSeries:
    if not template.recurring or template.periodicity is None or not template.frequency:
        raise NetworkRefusal(14, f"Package template {template.id} is not recurring")
    series = PackageSeries(
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
    """Starts the series that waits for its first package. Choice: dates that are given by hand start it as the first use does."""
    series = world.series.get(package.series_id) if package.series_id is not None else None
    if series is not None and series.start is None:
        series.start, series.next_index = start, 1


def _still_reached(package: Package, mark: int) -> bool:
    usage_type, percent = divmod(mark, 1000)
    limit, used = package.counter(usage_type)
    return limit is not None and used * 100 >= limit * percent


def _refresh_line(world: World, line: Line) -> None:
    """A throttle follows the package in use. Where the line is does not matter until it uses something."""
    world.agenda.touched.add(line.id)
    if line.throttled or any(package.throttled_kbps for package in line.packages):
        refresh_throttle(world, line, None, world.now)


def check_template_fits(line: Line, template: PackageTemplate) -> None:
    """Refuse a final line (17), a deleted template (6) and a SIM of another sponsor (14)."""
    if line.status == "END_OF_LIFE":
        raise NetworkRefusal(17, f"Subscriber {line.id} is end of life")
    if template.deleted:
        raise NetworkRefusal(6, f"Package template {template.id} is deleted")
    if template.sponsor_id != line.sim.sponsor_id:
        raise NetworkRefusal(14, f"Package template {template.id} is for another sponsor than the SIM of subscriber {line.id}")


def grant_package(
    world: World, line: Line, template: PackageTemplate, dates: tuple[int | None, int | None], series_id: int | None = None
) -> Package:
    """Copy the template onto the line, behind the packages it has."""
    package = Package(
        id=world.next_id("package"),
        line_id=line.id,
        template_id=template.id,
        template_name=template.name,
        priority=max((held.priority for held in line.packages), default=0) + 1,
        zone_id=template.zone_id,
        destination_id=template.destination_id,
        data_limit=template.data_bytes,
        moc_limit=template.moc_seconds,
        mtc_limit=template.mtc_seconds,
        mo_sms_limit=template.mo_sms,
        mt_sms_limit=template.mt_sms,
        period_days=template.period_days,
        cost=template.cost,
        assigned=world.now,
        activated=dates[0],
        expires=dates[1],
        series_id=series_id,
    )
    line.packages.append(package)
    world.packages[package.id] = package
    return package


def activate_line(world: World, line: Line) -> None:
    """The line becomes ACTIVE and a free SIM is taken into use."""
    if line.status != "ACTIVE":
        line.statuses[-1].end = world.now
        line.statuses.append(StatusRow(world.next_id("status"), "ACTIVE", world.now))
    if line.activated_at is None:
        line.activated_at = world.now
    if line.sim.status == "FREE":
        line.sim.status, line.sim.affected_at = "AFFECTED", world.now
        world.lookup.sim_changed(line, "FREE")
        profile = line.sim.provider[-1].profile_type if line.sim.provider else "P1"
        world.add_provider_status(line, "Released", profile)


def repetition_start(series: PackageSeries, start: int, index: int) -> int:
    """When repetition `index` starts. Monthly keeps the first day of month, clamped: 31 January, 28 February, 31 March."""
    steps = index * series.frequency
    return _add_months(start, steps) if series.periodicity == 2 else start + steps * DAY_SECONDS * (7 if series.periodicity == 1 else 1)


def next_series_creation(world: World, line: Line, series: PackageSeries) -> int | None:
    """When the next repetition is due to be made; None: never, as things stand."""
    if series.start is None or not series.active or line.status == "END_OF_LIFE" or _series_template(world, series) is None:
        return None  # Choice: a final line gets no more repetitions, a suspended one does
    if series.occurrences is not None and series.created >= series.occurrences:
        return None
    return repetition_start(series, series.start, series.next_index) - SERIES_LEAD_SECONDS


def create_due_packages(world: World, line: Line, series: PackageSeries) -> Package | None:
    """Make what is due. Choice: a repetition whose successor has begun (missed while stopped) is skipped and not counted."""
    made: Package | None = None
    while (due := next_series_creation(world, line, series)) is not None and due <= world.now and series.start is not None:
        if repetition_start(series, series.start, series.next_index + 1) > world.now:
            made = _create_repetition(world, line, series, due + SERIES_LEAD_SECONDS)
        series.next_index += 1
    return made


def begin_package(world: World, package: Package, at: int) -> None:
    """The first use of an undated package: its period begins, and that of its series."""
    package.activated, package.expires = at, at + package.period_days * DAY_SECONDS
    _start_series(world, package, at)


def carry_over_package(world: World, package: Package) -> None:
    """Add what the former package has left. Choice: it moves when the new one starts, and the former one ends then."""
    former = world.packages.get(package.carry_from) if package.carry_from is not None else None
    package.carry_from = None
    if former is None or package.activated is None:
        return
    for kind, name in PACKAGE_LIMITS.items():
        limit: int | None = getattr(package, name)
        setattr(package, name, None if limit is None else limit + former.units_left(kind))
    former.expires = min(former.expires or package.activated, package.activated)
    package.history.append(f"leftover of package {former.id} carried over")


def _create_repetition(world: World, line: Line, series: PackageSeries, start: int) -> Package | None:
    template = _series_template(world, series)
    if template is None:
        return None
    former = next((held.id for held in reversed(line.packages) if held.series_id == series.id), None)
    package = grant_package(world, line, template, (start, start + template.period_days * DAY_SECONDS), series.id)
    package.carry_from = former if series.carry_over else None
    return _count_repetition(world, series, package)


def _count_repetition(world: World, series: PackageSeries, package: Package) -> Package:
    series.created += 1
    series.last_created = world.now
    return package


def _series_template(world: World, series: PackageSeries) -> PackageTemplate | None:
    """The template while it still makes packages: not deleted, recurring still on."""
    template = world.templates.get(series.template_id)
    return template if template is not None and template.recurring and not template.deleted else None


def _add_months(moment: int, months: int) -> int:
    day = datetime.fromtimestamp(moment, UTC)
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    last = monthrange(year, month + 1)[1]
    return int(day.replace(year=year, month=month + 1, day=min(day.day, last)).timestamp())
