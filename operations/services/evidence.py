"""What an account's stock tells of a draw whose answer was lost. It proves or it does not; it is never guessed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from clients.ocs.moment import read_time
from clients.ocs.wire.package import Package
from clients.ocs.wire.subscriber import Subscriber
from operations.services.package_state import days_of, ends_at, starts_at
from operations.services.stock import iccid_of, is_free
from storage.issuance import IssuanceRow
from storage.stock import Look

# Choice: how far the charging system's clock may be from ours, and how far a window of days may begin from the draw.
SKEW = timedelta(minutes=20)


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
    """The account as it is now: its lines by ICCID, whether all could be read, and the packages of those no longer in stock."""

    lines: Mapping[str, Subscriber]
    complete: bool
    packages: Mapping[str, Sequence[Package]]


def changed(look: Look, scene_lines: Mapping[str, Subscriber]) -> list[str]:
    """The ICCIDs that were in stock and are not there now."""
    return sorted(iccid for iccid in look.free if iccid not in scene_lines or not is_free(scene_lines[iccid]))


def by_iccid(rows: Sequence[Subscriber]) -> dict[str, Subscriber]:
    """Lines by the ICCID in use."""
    return {iccid: row for row in rows if (iccid := iccid_of(row)) is not None}


def judge(row: IssuanceRow, look: Look, scene: Scene, known: Sequence[IssuanceRow]) -> Verdict:
    """Evidence of success is exactly one unclaimed line that shows the draw; evidence of failure is that nothing is unexplained."""
    held = {other.held for other in known if other.held is not None}
    given_up = {other.iccid for other in known if other.updated >= look.taken}
    candidates: list[Candidate] = []
    unexplained = False
    for iccid in changed(look, scene.lines):
        if iccid in held:
            continue
        line, packages = scene.lines.get(iccid), scene.packages.get(iccid, ())
        shows = [package for package in packages if matches(package, row)]
        if line is not None and len(shows) == 1:
            candidates.append(Candidate(iccid, line, shows[0]))
        elif line is None or shows or not (packages or iccid in given_up):
            unexplained = True
    if len(candidates) == 1 and not unexplained:
        return Verdict("found", candidates[0])
    sure = not candidates and not unexplained and look.complete and scene.complete and row.replied is None
    return Verdict("clear" if sure else "unclear", None)


def matches(package: Package, row: IssuanceRow) -> bool:
    """Whether a package is of the template and the window that were asked for, and was assigned no earlier."""
    template = package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid")
    if template != row.template_id:
        return False
    dispatched = datetime.fromtimestamp(row.dispatched, UTC)
    assigned = package.get("tsassigned")
    if assigned is not None and read_time(assigned) < dispatched - SKEW:
        return False
    return in_window(package, row, dispatched)


def in_window(package: Package, row: IssuanceRow, dispatched: datetime) -> bool:
    """Dates that were given are exact; days run from the draw; without either the package waited for its first use."""
    start, end = starts_at(package), ends_at(package)
    if row.period is not None:
        wanted = [read_time(moment) for moment in row.period.split("/")]
        return [start, end] == wanted
    if row.validity_days is None:
        return True
    if start is None or end is None:
        return days_of(package) == row.validity_days
    return abs(end - start - timedelta(days=row.validity_days)) < timedelta(hours=1) and abs(start - dispatched) < SKEW
