"""Recurring packages: when each repetition starts, making it 12 hours ahead, and carrying leftovers over."""

from calendar import monthrange
from datetime import UTC, datetime

from clients.sandbox.ocs.coverage import left
from clients.sandbox.ocs.entities import DATA, DAY, MO_SMS, MOC, MT_SMS, MTC, Line, Package, Series, Template
from clients.sandbox.ocs.granting import grant
from clients.sandbox.ocs.state import World

AHEAD = DAY // 2


def starts_at(series: Series, start: int, index: int) -> int:
    """When repetition `index` starts. Monthly keeps the first day of month, clamped: 31 January, 28 February, 31 March."""
    steps = index * series.frequency
    return _add_months(start, steps) if series.periodicity == 2 else start + steps * DAY * (7 if series.periodicity == 1 else 1)


def next_creation(world: World, line: Line, series: Series) -> int | None:
    """When the next repetition is due to be made; None: never, as things stand."""
    if series.start is None or not series.active or line.status == "END_OF_LIFE" or _template(world, series) is None:
        return None  # Choice: a final line gets no more repetitions, a suspended one does
    if series.occurrences is not None and series.created >= series.occurrences:
        return None
    return starts_at(series, series.start, series.next_index) - AHEAD


def create_due(world: World, line: Line, series: Series) -> Package | None:
    """Make what is due. Choice: a repetition whose successor has begun (missed while stopped) is skipped and not counted."""
    made: Package | None = None
    while (due := next_creation(world, line, series)) is not None and due <= world.now and series.start is not None:
        if starts_at(series, series.start, series.next_index + 1) > world.now:
            made = _create(world, line, series, due + AHEAD)
        series.next_index += 1
    return made


def create_undated(world: World, line: Line, series: Series, template: Template) -> Package:
    """The first package of a series that begins with its first use."""
    return _record(world, series, grant(world, line, template, (None, None), series.id))


def begin(world: World, package: Package, at: int) -> None:
    """The first use of an undated package: it runs now, and its series with it."""
    package.activated, package.expires = at, at + package.period_days * DAY
    series = world.series.get(package.series_id) if package.series_id is not None else None
    if series is not None and series.start is None:
        series.start, series.next_index = at, 1


def carry_over(world: World, package: Package) -> None:
    """Add what the former package has left. Choice: it moves when the new one starts, and the former one ends then."""
    former = world.packages.get(package.carry_from) if package.carry_from is not None else None
    package.carry_from = None
    if former is None or package.activated is None:
        return
    package.data_limit = _with(package.data_limit, former, DATA)
    package.moc_limit = _with(package.moc_limit, former, MOC)
    package.mtc_limit = _with(package.mtc_limit, former, MTC)
    package.mo_sms_limit = _with(package.mo_sms_limit, former, MO_SMS)
    package.mt_sms_limit = _with(package.mt_sms_limit, former, MT_SMS)
    former.expires = min(former.expires or package.activated, package.activated)
    package.history.append(f"leftover of package {former.id} carried over")


def _with(limit: int | None, former: Package, usage_type: int) -> int | None:
    return None if limit is None else limit + left(former, usage_type)


def _create(world: World, line: Line, series: Series, start: int) -> Package | None:
    template = _template(world, series)
    if template is None:
        return None
    former = next((held.id for held in reversed(line.packages) if held.series_id == series.id), None)
    package = grant(world, line, template, (start, start + template.period_days * DAY), series.id)
    package.carry_from = former if series.carry_over else None
    return _record(world, series, package)


def _record(world: World, series: Series, package: Package) -> Package:
    series.created += 1
    series.last_created = world.now
    return package


def _template(world: World, series: Series) -> Template | None:
    """The template while it still makes packages: not deleted, recurring still on."""
    template = world.templates.get(series.template_id)
    return template if template is not None and template.recurring and not template.deleted else None


def _add_months(moment: int, months: int) -> int:
    day = datetime.fromtimestamp(moment, UTC)
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    last = monthrange(year, month + 1)[1]
    return int(day.replace(year=year, month=month + 1, day=min(day.day, last)).timestamp())
