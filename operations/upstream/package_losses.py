"""What goes with the packages and series of a line: their names, what of them is not used, and when they end."""

from collections.abc import Mapping

from clients.ocs.packages import Package, PackageList, RecurringSeries
from operations.languages import texts_in
from operations.times import utc_time_text
from operations.upstream.lines import Line, package_state, series_continues
from registry.challenge import LOSSES_LIMIT, Challenge, Loss, describe_loss, name_losses

UNNAMED_PACKAGE = "a package without a name"
USED_UP_STATES = frozenset({"expired", "exhausted"})
UNUSED_COUNTERS = (
    ("unused_calls_made", "pckmocsecond", ("usedmocsecond", "usedmocvoipsecond"), "s"),
    ("unused_calls_received", "pckmtcsecond", ("usedmtcsecond",), "s"),
    ("unused_sms_sent", "pckmosmsnumber", ("usedmosmsnumber",), "SMS"),
    ("unused_sms_received", "pckmtsmsnumber", ("usedmtsmsnumber",), "SMS"),
)


def data_text(count: int) -> str:
    """An amount of data in bytes as people read it: 600 MB, 1.2 GB."""
    return texts_in("en").bytes(count)


def package_loss(package: Package, now: float, *, single_counter: bool = False) -> Loss:
    """The package with what is left of it at `now`, Unix seconds. Raises OcsError for dates that cannot be read."""
    members: Mapping[str, object] = {**package}
    details = {
        "package": str(package.get("subscriberprepaidpackageid", "")),
        "state": package_state(package, now, single_counter=single_counter),
        "unused_data": unused_data_text(package),
        **{word: unused_text(members, limit, used, unit) for word, limit, used, unit in UNUSED_COUNTERS},
        "ends": utc_time_text(package.get("tsexpirationutc")) or package_days_text(package),
    }
    return describe_loss("package", package.get("packageTemplate", {}).get("prepaidpackagetemplatename") or UNNAMED_PACKAGE, **details)


def unused_data_text(package: Package) -> str | None:
    """What is left of its data, and of how much; None where it holds none."""
    held = package.get("pckdatabyte", 0)
    return f"{data_text(max(held - package.get('useddatabyte', 0), 0))} of {data_text(held)}" if held > 0 else None


def unused_text(members: Mapping[str, object], limit: str, used: tuple[str, ...], unit: str) -> str | None:
    held, *gone = [value if isinstance(value, int) else 0 for value in map(members.get, (limit, *used))]
    return f"{max(held - sum(gone), 0)} of {held} {unit}" if held > 0 else None


def package_days_text(package: Package) -> str | None:
    """When a package ends that waits for its first use."""
    days = package.get("perioddays")
    return None if days is None else f"{texts_in('en').days(days)} after its first use"


def series_loss(series: RecurringSeries) -> Loss:
    """The series with what it would still have made."""
    most, made = series.get("nbOccurrence"), series.get("nbCreated", 0)
    left = "without an end" if most is None else f"{max(most - made, 0)} of {most} packages"
    return describe_loss("series", series.get("templateName") or UNNAMED_PACKAGE, series=str(series.get("id", "")), still_to_come=left)


def package_losses(held: PackageList, now: float) -> tuple[Loss, ...]:
    """All that would go with the packages and series of a line but what is used up or over. `now`: Unix seconds. Raises OcsError."""
    single = held.get("callUseSingleCounter", False)
    packages = [package_loss(package, now, single_counter=single) for package in held.get("packages", [])]
    live = [loss for loss in packages if loss.get("details", {}).get("state") not in USED_UP_STATES]
    return (*live, *(series_loss(series) for series in held.get("recurring", []) if series_continues(series)))


async def line_package_losses(line: Line, now: float) -> tuple[Loss, ...]:
    """The same of `line`, as the network has it now. `now`: Unix seconds. Raises OcsError. Waits for the network."""
    return package_losses(await line.upstream.ocs.packages.list_packages(line.subscriber_id, version="v2"), now)


def losses_challenge(begin: str, losses: tuple[Loss, ...], end: str) -> Challenge:
    """`begin`, the losses by name, and `end`, as sentences; with none it is said that nothing is left to lose."""
    named = f"{begin}: {name_losses(losses)}." if losses else f"{begin}. Nothing that is still of use is on it now."
    return Challenge(f"{named} {end}", losses[:LOSSES_LIMIT])
