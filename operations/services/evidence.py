"""What an account's stock tells of a draw whose answer was lost. It proves or it does not; it is never guessed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clients.ocs.moment import read_time
from clients.ocs.wire.package import Package
from clients.ocs.wire.subscriber import Subscriber
from operations.services.package_state import ends_at, starts_at
from operations.services.stock import iccid_of, is_free
from registry.errors import OcsError
from storage.issuance import IssuanceRow
from storage.stock import Look

# Choice: how far the charging system's clock may be from ours, and how far a window of days may begin from the draw.
SKEW = timedelta(minutes=20)
# How far apart the clocks may be for a SIM that came into stock after the look and was drawn at once.
NEAR = timedelta(minutes=2)
# Choice: how long after its dispatch a call may still take effect; it is how long nothing must have happened before it has failed.
LATEST = timedelta(minutes=15)
Fit: TypeAlias = Literal["shows", "similar", "other", "unreadable"]


class Candidate(NamedTuple):
    """A line that may be the one that was drawn."""

    iccid: str
    line: Subscriber
    package: Package


class Verdict(NamedTuple):
    """`found`: one line shows the draw. `clear`: nothing in the account does, and everything that changed is explained."""

    kind: Literal["found", "clear", "unclear"]
    candidate: Candidate | None


class Scene(NamedTuple):
    """The account as it is now: its lines by ICCID, whether all could be read, and the packages of those that were suspected."""

    lines: Mapping[str, Subscriber]
    complete: bool
    packages: Mapping[str, Sequence[Package]]


def by_iccid(rows: Sequence[Subscriber]) -> dict[str, Subscriber]:
    """Lines by the ICCID in use."""
    return {iccid: row for row in rows if (iccid := iccid_of(row)) is not None}


def suspects(row: IssuanceRow, look: Look, lines: Mapping[str, Subscriber], known: Sequence[IssuanceRow]) -> list[str]:
    """The ICCIDs that may have been drawn: nobody's, not in stock, though they were, or were taken from it then."""
    claimed = {other.held for other in known if keeps(other, look)}
    taken = {iccid for iccid, line in lines.items() if was_taken(line, row)}
    found = stocked(look, known) | taken
    return sorted(iccid for iccid in found if iccid not in claimed and not (iccid in lines and is_free(lines[iccid])))


def stocked(look: Look, known: Sequence[IssuanceRow]) -> frozenset[str]:
    """The ICCIDs that were in stock at the look, and those that rows of the ledger gave back since."""
    return look.free | {other.iccid for other in known if other.iccid is not None and not keeps(other, look)}


def keeps(other: IssuanceRow, look: Look) -> bool:
    """Whether a row surely has its ICCID: it did not give it back, and the look did not see it in stock all the same."""
    if other.held is None or other.state in ("rollback_pending", "rollback_unknown"):
        return False
    return f"{other.held} {other.organisation} {other.key}" not in look.returned.split("\n")


def was_taken(line: Subscriber, row: IssuanceRow) -> bool:
    """Whether the SIM left the stock when the draw may have taken it: it may have come into stock after the look."""
    moment = moment_of(line.get("sim", {}).get("affectationDateUtc"))
    return moment is not None and in_time(moment, row, NEAR)


class Weighed(NamedTuple):
    """The suspected lines: those that show the draw, the ICCIDs of those that may be it all the same, and of those nothing explains."""

    candidates: list[Candidate]
    similar: list[str]
    unexplained: list[str]


def weigh(row: IssuanceRow, look: Look, scene: Scene, known: Sequence[IssuanceRow]) -> Weighed:
    """Every suspected line by itself. Packages that the ledger put on it tell nothing."""
    found = Weighed([], [], [])
    for iccid in suspects(row, look, scene.lines, known):
        line, packages = scene.lines.get(iccid), scene.packages.get(iccid)
        if line is None or packages is None:
            found.unexplained.append(iccid)
            continue
        theirs = {other.package_id for other in known if other.iccid == iccid}
        rest = [package for package in packages if package.get("subscriberprepaidpackageid") not in theirs]
        fits = [fit(package, row) for package in rest]
        odd = "shows" in fits or "unreadable" in fits or not (fits or theirs)
        if fits.count("shows") == 1 and "unreadable" not in fits and iccid in stocked(look, known):
            found.candidates.append(Candidate(iccid, line, rest[fits.index("shows")]))
        elif odd and iccid in stocked(look, known):
            found.unexplained.append(iccid)
        elif odd or "similar" in fits:
            found.similar.append(iccid)
    return found


def judge(row: IssuanceRow, look: Look, scene: Scene, known: Sequence[IssuanceRow]) -> Verdict:
    """Evidence of success is exactly one unclaimed line that shows the draw; evidence of failure is that nothing is unexplained.

    Two kinds of line hinder no success, but are no proof of failure: one with the template and another window (the charging system
    may have understood the window otherwise than we do), and one that shows the draw and was not in stock at the look.
    """
    candidates, similar, unexplained = weigh(row, look, scene, known)
    if len(candidates) == 1 and not unexplained:
        return Verdict("found", candidates[0])
    sure = not (candidates or unexplained or similar) and look.complete and scene.complete and row.replied is None
    return Verdict("clear" if sure else "unclear", None)


def fit(package: Package, row: IssuanceRow) -> Fit:
    """Whether a package is of the template and the window that were asked for, and was assigned when the draw was sent."""
    template = template_of(package)
    if template is None:
        return "unreadable"
    if template != row.template_id:
        return "other"
    assigned = moment_of(package.get("tsassigned"))
    if assigned is not None and not in_time(assigned, row):
        return "similar"
    return "shows" if in_window(package, row, assigned) else "similar"


def template_of(package: Package) -> int | None:
    """The template it was made from; nothing when the charging system does not say."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid")


def in_time(moment: datetime, row: IssuanceRow, before: timedelta = SKEW) -> bool:
    """Whether the draw may have happened then."""
    dispatched = datetime.fromtimestamp(row.dispatched, UTC)
    return dispatched - before <= moment <= dispatched + LATEST + SKEW


def in_window(package: Package, row: IssuanceRow, assigned: datetime | None) -> bool:
    """Dates that were given are exact; days run from the draw; without either the package waits for its first use, which comes later."""
    start, end = starts_at(package), ends_at(package)
    if row.period is not None:
        wanted = [read_time(moment) for moment in row.period.split("/")]
        return [start, end] == wanted
    if row.validity_days is None:
        return start is None or assigned is None or start > assigned
    if start is None or end is None:
        return False
    return abs(end - start - timedelta(days=row.validity_days)) < timedelta(hours=1) and in_time(start, row)


def moment_of(text: str | None) -> datetime | None:
    """A date of the charging system."""
    if text is None:
        return None
    try:
        return read_time(text)
    except ValueError:
        raise OcsError("The charging system gave a date that cannot be read", before_execution=True) from None
