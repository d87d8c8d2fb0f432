"""The line of an issued eSIM: where it is now, and whether anything but what was issued is on it."""

from datetime import UTC, datetime

from clients.ocs.wire.package import Package, PackageList, RecurringSeries
from operations.services.issuing.evidence import SKEW
from operations.services.network.lines import Line, find_line
from operations.services.network.package_state import ends_at
from operations.services.network.reached import Upstream
from registry.errors import Conflict, NotFound, OcsError
from storage.issuing.issuance import IssuanceRow


class LineHasPackages(Conflict):
    """The line has a package besides the issued one, so its SIM is in use."""

    code = "line_has_packages"


async def issued_line(upstream: Upstream, row: IssuanceRow) -> Line | None:
    """The line, if it still is in the account that it was drawn from; whoever has it otherwise, it is not theirs to give back."""
    try:
        line = await find_line(upstream, row.iccid or "")
    except NotFound:
        return None
    return line if line.row.get("accountId") == row.account_id else None


def has_issued(held: PackageList, row: IssuanceRow) -> bool:
    """Whether the package that was issued is on the line."""
    return any(is_issued(package, row) for package in held.get("packages", []))


def has_others(held: PackageList, row: IssuanceRow, now: float) -> bool:
    """Whether anything else is: a package that has not expired, or a series that will make one."""
    others = (package for package in held.get("packages", []) if not is_issued(package, row))
    return any(not expired(package, now) for package in others) or any(goes_on(series) for series in held.get("recurring", []))


def is_issued(package: Package, row: IssuanceRow) -> bool:
    """Whether it is the row's own."""
    return package.get("subscriberprepaidpackageid") == row.package_id


def expired(package: Package, now: float) -> bool:
    """Choice: only what ended longer ago than clocks differ has expired for sure; a date that cannot be read proves nothing."""
    try:
        end = ends_at(package)
    except OcsError:
        return False
    return end is not None and end + SKEW <= datetime.fromtimestamp(now, UTC)


def goes_on(series: RecurringSeries) -> bool:
    """Whether it makes packages still: it was not stopped, and has not made all of them."""
    most = series.get("nbOccurrence")
    return series.get("active") is not False and (most is None or series.get("nbCreated", 0) < most)


def require_alone(held: PackageList, row: IssuanceRow, now: float) -> None:
    """Refuse while somebody uses the line for something else: its SIM would go to stock, and to the next one, with that on it."""
    if has_others(held, row, now):
        raise LineHasPackages(
            "This eSIM's line has another package or series, so it cannot go back to stock; nothing was taken back",
            hint="Remove it first: delete_subscriber_package, or stop_resume_recurring_package for a series; "
            "list_subscriber_packages shows what the line has",
        )
