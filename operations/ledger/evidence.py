"""What an account's stock tells of a draw whose answer was lost. It proves or it does not; it is never guessed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clients.ocs.wire.package import Package
from clients.ocs.wire.values import parse_wire_time
from operations.upstream.connection import Upstream
from operations.upstream.packages import package_end, package_start
from registry.errors import OcsError
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow
from storage.reconciliation import (
    LedgerEntry,
)
from storage.stock_snapshots import StockSnapshot

IssuanceObstacle = Literal[
    "waiting",
    "several_lines",
    "equal_keys",
    "line_of_another",
    "unexplained_lines",
    "similar_lines",
    "incomplete_list",
    "incomplete_look",
    "no_look",
    "answer_named_another",
    "late_answer",
    "slow",
    "unreadable",
]
OBSTACLE_REASONS: Mapping[IssuanceObstacle, str] = {
    "waiting": "nothing in the account shows the draw; it has failed once that was so for 15 minutes",
    "several_lines": "more than one line of the account shows this draw",
    "equal_keys": "one line shows this draw, and other issuances that are not settled asked for the same template and window",
    "line_of_another": "the line that shows this draw belongs to another issuance",
    "unexplained_lines": "lines left the stock, and nothing tells what became of them",
    "similar_lines": "no line shows this draw, but one has the template with another window or from another time",
    "incomplete_list": "the charging system does not list every line of the account, or lists lines that cannot be understood",
    "incomplete_look": "the list of free eSIMs just before the draw was not whole",
    "no_look": "there is no list of the free eSIMs from just before the draw",
    "answer_named_another": "the answer named an eSIM that was another issuance's",
    "late_answer": "an answer that names an eSIM came after this had been settled as failed",
    "slow": "the charging system tells of the account too slowly to look into all of it in one turn; the next turn goes on",
    "unreadable": "the charging system could not be asked about the account",
}
OBSTACLE_NOT_EXAMINED = "not_looked_into"


def obstacle_reason(obstacle: str | None) -> str:
    """The words for a code that is kept; a code of another release stands for itself."""
    if obstacle is None:
        return "it was not looked into yet"
    return next((text for code, text in OBSTACLE_REASONS.items() if code == obstacle), obstacle.replace("_", " "))


# Choice: how far the charging system's clock may be from ours, and how far a window of days may begin from the draw.
DRAW_CLOCK_SKEW = timedelta(minutes=20)
# How far apart the clocks may be for a SIM that came into stock after the look and was drawn at once.
STOCK_CLOCK_SKEW = timedelta(minutes=2)
# Choice: how long after its dispatch a call may still take effect; it is how long nothing must have happened before it has failed.
EFFECT_WINDOW = timedelta(minutes=15)
DrawMatch: TypeAlias = Literal["shows", "similar", "other", "unreadable"]


class StockLine(NamedTuple):
    """What is kept of a line of the account: whether its SIM is in stock, its number, and when the SIM left the stock."""

    free: bool
    subscriber_id: int | None
    taken: datetime | None


class CandidateLine(NamedTuple):
    """A line that may be the one that was drawn."""

    iccid: str
    line: StockLine
    package: Package


class IssuanceVerdict(NamedTuple):
    """`found`: one line shows the draw. `clear`: nothing in the account does, and everything that changed is explained.

    `obstacle`: why it is `unclear`.
    """

    kind: Literal["found", "clear", "unclear"]
    candidate: CandidateLine | None
    obstacle: IssuanceObstacle = "waiting"


class IssuanceAccountState(NamedTuple):
    """The account as it is now: its lines by ICCID, whether all could be read, and the packages of the candidate lines.

    `placed`: those of the packages that operations of ours put on lines that somebody named.
    """

    lines: Mapping[str, StockLine]
    complete: bool
    packages: Mapping[str, Sequence[Package]]
    placed: frozenset[int] = frozenset()


def iccids_out_of_stock(row: IssuanceRow, look: StockSnapshot, lines: Mapping[str, StockLine]) -> set[str]:
    """The ICCIDs that are not in stock, though they were at the look or left it when the draw may have taken them."""
    return {iccid for iccid in look.free if not is_iccid_stocked(lines, iccid)} | iccids_taken_in_time(row, lines)


def iccids_taken_in_time(row: IssuanceRow, lines: Mapping[str, StockLine]) -> set[str]:
    """The SIMs that left the stock when the draw may have taken them: they may have come into stock after the look."""
    first, last = draw_time_range(row, STOCK_CLOCK_SKEW)
    return {iccid for iccid, line in lines.items() if line.taken is not None and first <= line.taken <= last and not line.free}


def is_iccid_stocked(lines: Mapping[str, StockLine], iccid: str) -> bool:
    """Whether it is in stock now."""
    line = lines.get(iccid)
    return line is not None and line.free


def candidate_iccids(row: IssuanceRow, look: StockSnapshot, lines: Mapping[str, StockLine], known: Sequence[LedgerEntry]) -> list[str]:
    """The ICCIDs that may have been drawn: nobody's, not in stock, though they were, or were taken from it then."""
    lost = former_iccid_holders(look)
    claimed = {other.held for other in known if still_holds_iccid(other, lost)}
    found = iccids_out_of_stock(row, look, lines) | {iccid for iccid in returned_iccids(known, lost) if not is_iccid_stocked(lines, iccid)}
    return sorted(found - claimed)


def returned_iccids(known: Sequence[LedgerEntry], lost: frozenset[str]) -> set[str]:
    """The ICCIDs that rows of the ledger gave back."""
    return {other.iccid for other in known if not still_holds_iccid(other, lost)}


def former_iccid_holders(look: StockSnapshot) -> frozenset[str]:
    """Who had lost an ICCID by then, each as a line of `returned`."""
    return frozenset(look.returned.split("\n")) - {""}


def still_holds_iccid(other: LedgerEntry, lost: frozenset[str]) -> bool:
    """Whether a row surely has its ICCID: it did not give it back, and the look did not see it in stock all the same."""
    if other.held is None or other.state in ("rollback_pending", "rollback_unknown"):
        return False
    return f"{other.held} {other.organisation} {other.key}" not in lost


class MatchResult(NamedTuple):
    """Candidate lines: those that show the draw, the ICCIDs of those that may be it all the same, and of those nothing explains."""

    candidates: list[CandidateLine]
    similar: list[str]
    unexplained: list[str]


def match_lines(row: IssuanceRow, look: StockSnapshot, state: IssuanceAccountState, known: Sequence[LedgerEntry]) -> MatchResult:
    """Match every candidate line by itself. Packages that the ledger put on it, or somebody who named the line, tell nothing."""
    found, theirs = MatchResult([], [], []), ledger_packages(known)
    stocked = look.free | returned_iccids(known, former_iccid_holders(look))
    for iccid in candidate_iccids(row, look, state.lines, known):
        line, packages = state.lines.get(iccid), state.packages.get(iccid)
        if line is None or packages is None:
            found.unexplained.append(iccid)
            continue
        explained = theirs.get(iccid, frozenset[int | None]()) | (state.placed & {id_of_package(package) for package in packages})
        rest = [package for package in packages if id_of_package(package) not in explained]
        fits = [match_drawn_package(package, row) for package in rest]
        odd = "shows" in fits or "unreadable" in fits or not (fits or explained)
        if fits.count("shows") == 1 and "unreadable" not in fits and iccid in stocked:
            found.candidates.append(CandidateLine(iccid, line, rest[fits.index("shows")]))
        elif odd and iccid in stocked:
            found.unexplained.append(iccid)
        elif odd or "similar" in fits:
            found.similar.append(iccid)
    return found


def ledger_packages(known: Sequence[LedgerEntry]) -> dict[str, frozenset[int | None]]:
    """The packages that the ledger put on lines."""
    found: dict[str, frozenset[int | None]] = {}
    for other in known:
        found[other.iccid] = found.get(other.iccid, frozenset()) | {other.package_id}
    return found


def id_of_package(package: Package) -> int | None:
    """Its number."""
    return package.get("subscriberprepaidpackageid")


def decide_issuance(
    row: IssuanceRow, look: StockSnapshot, state: IssuanceAccountState, known: Sequence[LedgerEntry], rivals: Sequence[IssuanceRow] = ()
) -> IssuanceVerdict:
    """Evidence of success is exactly one unclaimed line that shows the draw; evidence of failure is that nothing is unexplained.

    Two kinds of line hinder no success, but are no proof of failure: one with the template and another window (the charging system
    may have understood the window otherwise than we do), and one that shows the draw and was not in stock at the look. The first
    kind is explained where `rivals`, other unsettled draws of the template, are a group that asked for just as many such lines.
    """
    candidates, similar, unexplained = match_lines(row, look, state, known)
    if len(candidates) == 1 and not unexplained:
        return IssuanceVerdict("found", candidates[0])
    loose = set(similar) - lines_of_rivals(row, state, known, rivals, similar)
    obstacles: list[tuple[object, IssuanceObstacle]] = [
        (len(candidates) > 1, "several_lines"),
        (unexplained, "unexplained_lines"),
        (row.replied, "answer_named_another"),
        (loose, "similar_lines"),
        (not look.complete, "incomplete_look"),
        (not state.complete, "incomplete_list"),
    ]
    for hinders, obstacle in obstacles:
        if hinders:
            return IssuanceVerdict("unclear", None, obstacle)
    return IssuanceVerdict("clear", None)


def lines_of_rivals(
    row: IssuanceRow, state: IssuanceAccountState, known: Sequence[LedgerEntry], rivals: Sequence[IssuanceRow], similar: Sequence[str]
) -> set[str]:
    """The similar lines that show the draws of a group of rivals, where each rival of the group has one, whichever it is."""
    groups: dict[frozenset[tuple[str, str]], set[str]] = {}
    theirs = ledger_packages(known)
    for iccid in similar:
        rest = [
            package for package in state.packages.get(iccid, ()) if id_of_package(package) not in theirs.get(iccid, frozenset[int | None]())
        ]
        fits = [match_drawn_package(package, row) for package in rest]
        if fits.count("similar") != 1 or "shows" in fits or "unreadable" in fits:
            continue
        package = rest[fits.index("similar")]
        group = frozenset(
            (rival.organisation, rival.key)
            for rival in rivals
            if rival.state in UNRESOLVED_ISSUANCE_STATES and match_drawn_package(package, rival) == "shows"
        )
        groups.setdefault(group, set()).add(iccid)
    return {iccid for group, iccids in groups.items() if len(group) == len(iccids) for iccid in iccids}


def match_drawn_package(package: Package, row: IssuanceRow) -> DrawMatch:
    """Whether a package is of the template and the window that were asked for, and was assigned when the draw was sent."""
    template = template_of_package(package)
    if template is None:
        return "unreadable"
    if template != row.template_id:
        return "other"
    if package.get("recurringPackage") is not None:
        return "similar"  # a series made it, and draws begin none
    assigned = parse_package_moment(package.get("tsassigned"))
    if assigned is not None and not may_be_draw_time(assigned, row):
        return "similar"
    return "shows" if has_requested_window(package, row, assigned) else "similar"


def template_of_package(package: Package) -> int | None:
    """The template it was made from; nothing when the charging system does not say."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid")


def may_be_draw_time(moment: datetime, row: IssuanceRow, before: timedelta = DRAW_CLOCK_SKEW) -> bool:
    """Whether the draw may have happened then."""
    first, last = draw_time_range(row, before)
    return first <= moment <= last


def draw_time_range(row: IssuanceRow, before: timedelta) -> tuple[datetime, datetime]:
    """From when and until when, by the charging system's clock."""
    dispatched = datetime.fromtimestamp(row.dispatched, UTC)
    return dispatched - before, dispatched + EFFECT_WINDOW + DRAW_CLOCK_SKEW


def has_requested_window(package: Package, row: IssuanceRow, assigned: datetime | None) -> bool:
    """Dates that were given are exact; days run from the draw; without either the package waits for its first use, which comes later."""
    start, end = package_start(package), package_end(package)
    if row.period is not None:
        wanted = [parse_wire_time(moment) for moment in row.period.split("/")]
        return [start, end] == wanted
    if row.validity_days is None:
        return start is None or assigned is None or start > assigned
    if start is None or end is None:
        return False
    return abs(end - start - timedelta(days=row.validity_days)) < timedelta(hours=1) and may_be_draw_time(start, row)


def parse_package_moment(text: str | None) -> datetime | None:
    """A date of the charging system."""
    if text is None:
        return None
    try:
        return parse_wire_time(text)
    except ValueError:
        raise OcsError("The charging system gave a date that cannot be read", before_execution=True) from None


class AccountEvidence(NamedTuple):
    """An account as it is now, beside what it was before the draw and what the ledger knows of it."""

    at: float
    upstream: Upstream
    look: StockSnapshot
    state: IssuanceAccountState
    known: Sequence[LedgerEntry]
    rivals: Sequence[IssuanceRow]

    def verdict(self, row: IssuanceRow) -> IssuanceVerdict:
        """What it shows of the row's draw."""
        return decide_issuance(row, self.look, self.state, self.known, self.rivals)
