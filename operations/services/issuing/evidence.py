"""What an account's stock tells of a draw whose answer was lost. It proves or it does not; it is never guessed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clients.ocs.moment import read_time
from clients.ocs.wire.package import Package
from clients.ocs.wire.subscriber import Subscriber
from operations.services.issuing.account_stock import is_free
from operations.services.issuing.obstacles import Obstacle
from operations.services.network.account_parts import iccid_of
from operations.services.network.package_state import ends_at, starts_at
from registry.errors import OcsError
from storage.issuing.issuance import UNSETTLED, IssuanceRow
from storage.issuing.reconciling import Known
from storage.issuing.stock import Look

# Choice: how far the charging system's clock may be from ours, and how far a window of days may begin from the draw.
SKEW = timedelta(minutes=20)
# How far apart the clocks may be for a SIM that came into stock after the look and was drawn at once.
NEAR = timedelta(minutes=2)
# Choice: how long after its dispatch a call may still take effect; it is how long nothing must have happened before it has failed.
LATEST = timedelta(minutes=15)
Fit: TypeAlias = Literal["shows", "similar", "other", "unreadable"]


class Seen(NamedTuple):
    """What is kept of a line of the account: whether its SIM is in stock, its number, and when the SIM left the stock."""

    free: bool
    subscriber_id: int | None
    taken: datetime | None


class Candidate(NamedTuple):
    """A line that may be the one that was drawn."""

    iccid: str
    line: Seen
    package: Package


class Verdict(NamedTuple):
    """`found`: one line shows the draw. `clear`: nothing in the account does, and everything that changed is explained.

    `obstacle`: why it is `unclear`.
    """

    kind: Literal["found", "clear", "unclear"]
    candidate: Candidate | None
    obstacle: Obstacle = "waiting"


class Scene(NamedTuple):
    """The account as it is now: its lines by ICCID, whether all could be read, and the packages of those that were suspected.

    `placed`: those of the packages that operations of ours put on lines that somebody named.
    """

    lines: Mapping[str, Seen]
    complete: bool
    packages: Mapping[str, Sequence[Package]]
    placed: frozenset[int] = frozenset()


def by_iccid(rows: Sequence[Subscriber]) -> dict[str, Seen]:
    """Lines by the ICCID in use; of an account with many lines the rest is not worth its memory."""
    return {iccid: seen(row) for row in rows if (iccid := iccid_of(row)) is not None}


def seen(row: Subscriber) -> Seen:
    """A line."""
    return Seen(is_free(row), row.get("subscriberId"), moment_of(row.get("sim", {}).get("affectationDateUtc")))


def gone(row: IssuanceRow, look: Look, lines: Mapping[str, Seen]) -> set[str]:
    """The ICCIDs that are not in stock, though they were at the look or left it when the draw may have taken them."""
    return {iccid for iccid in look.free if not is_stocked(lines, iccid)} | taken_then(row, lines)


def taken_then(row: IssuanceRow, lines: Mapping[str, Seen]) -> set[str]:
    """The SIMs that left the stock when the draw may have taken them: they may have come into stock after the look."""
    first, last = times_of(row, NEAR)
    return {iccid for iccid, line in lines.items() if line.taken is not None and first <= line.taken <= last and not line.free}


def is_stocked(lines: Mapping[str, Seen], iccid: str) -> bool:
    """Whether it is in stock now."""
    line = lines.get(iccid)
    return line is not None and line.free


def suspects(row: IssuanceRow, look: Look, lines: Mapping[str, Seen], known: Sequence[Known]) -> list[str]:
    """The ICCIDs that may have been drawn: nobody's, not in stock, though they were, or were taken from it then."""
    lost = lost_in(look)
    claimed = {other.held for other in known if keeps(other, lost)}
    found = gone(row, look, lines) | {iccid for iccid in given_back(known, lost) if not is_stocked(lines, iccid)}
    return sorted(found - claimed)


def given_back(known: Sequence[Known], lost: frozenset[str]) -> set[str]:
    """The ICCIDs that rows of the ledger gave back."""
    return {other.iccid for other in known if not keeps(other, lost)}


def lost_in(look: Look) -> frozenset[str]:
    """Who had lost an ICCID by then, each as a line of `returned`."""
    return frozenset(look.returned.split("\n")) - {""}


def keeps(other: Known, lost: frozenset[str]) -> bool:
    """Whether a row surely has its ICCID: it did not give it back, and the look did not see it in stock all the same."""
    if other.held is None or other.state in ("rollback_pending", "rollback_unknown"):
        return False
    return f"{other.held} {other.organisation} {other.key}" not in lost


class Weighed(NamedTuple):
    """The suspected lines: those that show the draw, the ICCIDs of those that may be it all the same, and of those nothing explains."""

    candidates: list[Candidate]
    similar: list[str]
    unexplained: list[str]


def weigh(row: IssuanceRow, look: Look, scene: Scene, known: Sequence[Known]) -> Weighed:
    """Every suspected line by itself. Packages that the ledger put on it, or somebody who named the line, tell nothing."""
    found, theirs = Weighed([], [], []), packages_in(known)
    stocked = look.free | given_back(known, lost_in(look))
    for iccid in suspects(row, look, scene.lines, known):
        line, packages = scene.lines.get(iccid), scene.packages.get(iccid)
        if line is None or packages is None:
            found.unexplained.append(iccid)
            continue
        explained = theirs.get(iccid, frozenset[int | None]()) | (scene.placed & {id_of(package) for package in packages})
        rest = [package for package in packages if id_of(package) not in explained]
        fits = [fit(package, row) for package in rest]
        odd = "shows" in fits or "unreadable" in fits or not (fits or explained)
        if fits.count("shows") == 1 and "unreadable" not in fits and iccid in stocked:
            found.candidates.append(Candidate(iccid, line, rest[fits.index("shows")]))
        elif odd and iccid in stocked:
            found.unexplained.append(iccid)
        elif odd or "similar" in fits:
            found.similar.append(iccid)
    return found


def packages_in(known: Sequence[Known]) -> dict[str, frozenset[int | None]]:
    """The packages that the ledger put on lines."""
    found: dict[str, frozenset[int | None]] = {}
    for other in known:
        found[other.iccid] = found.get(other.iccid, frozenset()) | {other.package_id}
    return found


def id_of(package: Package) -> int | None:
    """Its number."""
    return package.get("subscriberprepaidpackageid")


def judge(row: IssuanceRow, look: Look, scene: Scene, known: Sequence[Known], rivals: Sequence[IssuanceRow] = ()) -> Verdict:
    """Evidence of success is exactly one unclaimed line that shows the draw; evidence of failure is that nothing is unexplained.

    Two kinds of line hinder no success, but are no proof of failure: one with the template and another window (the charging system
    may have understood the window otherwise than we do), and one that shows the draw and was not in stock at the look. The first
    kind is explained where `rivals`, other unsettled draws of the template, are a group that asked for just as many such lines.
    """
    candidates, similar, unexplained = weigh(row, look, scene, known)
    if len(candidates) == 1 and not unexplained:
        return Verdict("found", candidates[0])
    loose = set(similar) - accounted_for(row, scene, known, rivals, similar)
    obstacles: list[tuple[object, Obstacle]] = [
        (len(candidates) > 1, "several_lines"),
        (unexplained, "unexplained_lines"),
        (row.replied, "answer_named_another"),
        (loose, "similar_lines"),
        (not look.complete, "incomplete_look"),
        (not scene.complete, "incomplete_list"),
    ]
    for hinders, obstacle in obstacles:
        if hinders:
            return Verdict("unclear", None, obstacle)
    return Verdict("clear", None)


def accounted_for(
    row: IssuanceRow, scene: Scene, known: Sequence[Known], rivals: Sequence[IssuanceRow], similar: Sequence[str]
) -> set[str]:
    """The similar lines that show the draws of a group of rivals, where each rival of the group has one, whichever it is."""
    groups: dict[frozenset[tuple[str, str]], set[str]] = {}
    theirs = packages_in(known)
    for iccid in similar:
        rest = [package for package in scene.packages.get(iccid, ()) if id_of(package) not in theirs.get(iccid, frozenset[int | None]())]
        fits = [fit(package, row) for package in rest]
        if fits.count("similar") != 1 or "shows" in fits or "unreadable" in fits:
            continue
        package = rest[fits.index("similar")]
        group = frozenset(
            (rival.organisation, rival.key) for rival in rivals if rival.state in UNSETTLED and fit(package, rival) == "shows"
        )
        groups.setdefault(group, set()).add(iccid)
    return {iccid for group, iccids in groups.items() if len(group) == len(iccids) for iccid in iccids}


def fit(package: Package, row: IssuanceRow) -> Fit:
    """Whether a package is of the template and the window that were asked for, and was assigned when the draw was sent."""
    template = template_of(package)
    if template is None:
        return "unreadable"
    if template != row.template_id:
        return "other"
    if package.get("recurringPackage") is not None:
        return "similar"  # a series made it, and draws begin none
    assigned = moment_of(package.get("tsassigned"))
    if assigned is not None and not in_time(assigned, row):
        return "similar"
    return "shows" if in_window(package, row, assigned) else "similar"


def template_of(package: Package) -> int | None:
    """The template it was made from; nothing when the charging system does not say."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid")


def in_time(moment: datetime, row: IssuanceRow, before: timedelta = SKEW) -> bool:
    """Whether the draw may have happened then."""
    first, last = times_of(row, before)
    return first <= moment <= last


def times_of(row: IssuanceRow, before: timedelta) -> tuple[datetime, datetime]:
    """From when and until when, by the charging system's clock."""
    dispatched = datetime.fromtimestamp(row.dispatched, UTC)
    return dispatched - before, dispatched + LATEST + SKEW


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
