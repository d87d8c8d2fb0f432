"""What an account's stock tells of a draw whose answer was lost. It proves or it does not; it is never guessed.

An account's lines and packages are read once for all issuances of it that are looked into together.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

import anyio
import anyio.lowlevel

from clients.ocs.packages import Package
from clients.ocs.subscribers import Subscriber
from clients.ocs.times import parse_wire_time
from operations.caches.account_parts import iccid_in_use
from operations.deps import Deps
from operations.ledger.stock_snapshot import find_stock, is_sim_in_stock
from operations.upstream.account_lines import read_account_lines
from operations.upstream.connection import Upstream, upstream_of_organisation
from operations.upstream.lines import package_end, package_start
from registry.clock import Clock
from registry.errors import OcsError, Refusal
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow
from storage.placed_packages import placed_packages_among
from storage.reconciliation import LedgerEntry, ledger_entries_of, rival_issuances
from storage.stock_snapshots import StockSnapshot, read_stock_snapshot

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
    """The words for the stored code `obstacle`; a code of another release stands for itself."""
    if obstacle is None:
        return "it was not looked into yet"
    return next((text for code, text in OBSTACLE_REASONS.items() if code == obstacle), obstacle.replace("_", " "))


# Choice: how far the charging system's clock may be from ours, and how far a window of days may begin from the draw.
DRAW_CLOCK_SKEW = timedelta(minutes=20)
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
    first, last = draw_time_range(row)
    # These may have come into stock after the look, and a clock that is behind ours says of their draw that it was before.
    taken = {iccid for iccid, line in lines.items() if line.taken is not None and first <= line.taken <= last and not line.free}
    return {iccid for iccid in look.free if not is_iccid_stocked(lines, iccid)} | taken


def is_iccid_stocked(lines: Mapping[str, StockLine], iccid: str) -> bool:
    line = lines.get(iccid)
    return line is not None and line.free


def candidate_iccids(row: IssuanceRow, look: StockSnapshot, lines: Mapping[str, StockLine], known: Sequence[LedgerEntry]) -> list[str]:
    """The ICCIDs that may have been drawn: nobody's, not in stock, though they were, or were taken from it then."""
    lost = former_iccid_holders(look)
    claimed = {other.held for other in known if still_holds_iccid(other, lost)}
    found = iccids_out_of_stock(row, look, lines) | {iccid for iccid in returned_iccids(known, lost) if not is_iccid_stocked(lines, iccid)}
    return sorted(found - claimed)


def returned_iccids(known: Sequence[LedgerEntry], lost: frozenset[str]) -> set[str]:
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
    found: dict[str, frozenset[int | None]] = {}
    for other in known:
        found[other.iccid] = found.get(other.iccid, frozenset()) | {other.package_id}
    return found


def id_of_package(package: Package) -> int | None:
    """The charging system's number of `package`."""
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
    """The template that `package` was made from; None where the charging system does not say."""
    return package.get("templateId") or package.get("packageTemplate", {}).get("prepaidpackagetemplateid")


def may_be_draw_time(moment: datetime, row: IssuanceRow) -> bool:
    first, last = draw_time_range(row)
    return first <= moment <= last


def draw_time_range(row: IssuanceRow) -> tuple[datetime, datetime]:
    """From when and until when, by the charging system's clock."""
    dispatched = datetime.fromtimestamp(row.dispatched, UTC)
    return dispatched - DRAW_CLOCK_SKEW, dispatched + EFFECT_WINDOW + DRAW_CLOCK_SKEW


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
    """The moment that the charging system wrote as `text`; raises OcsError where it cannot be read."""
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
        return decide_issuance(row, self.look, self.state, self.known, self.rivals)


PACKAGES_READ_AT_ONCE = 4
LINES_INDEXED_AT_ONCE = 500
PACKAGE_MEMORY_SECONDS = 600.0
PACKAGE_MEMORY_LIMIT = 20_000


class RememberedPackages(NamedTuple):
    """The packages of a line as they were read, the line as it was then, and when that was, by the monotonic clock."""

    line: StockLine
    packages: Sequence[Package]
    at: float


class PackageMemory:
    """Packages that were read in the last ten minutes, so that a large account is read in as many turns as it takes.

    Choice: a line is drawn from stock, so one that was out of stock with a package then, and left the stock at the same moment by the list
    of now, was not drawn in between. A line without a package is read anew: it may be about to get one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, int, str], RememberedPackages] = {}

    def keep(self, place: tuple[str, int], iccid: str, line: StockLine, packages: Sequence[Package]) -> None:
        """Remember the `packages` of `line`, which were read just now."""
        if packages and not line.free and line.taken is not None:
            if len(self._known) >= PACKAGE_MEMORY_LIMIT:
                self._known.clear()
            self._known[*place, iccid] = RememberedPackages(line, packages, self._clock.monotonic())

    def packages_of(self, place: tuple[str, int], iccid: str, line: StockLine | None) -> Sequence[Package] | None:
        """The packages that were read of a line, where `line` is as it was then and that was a short while ago; None: read them anew."""
        found = self._known.get((*place, iccid))
        fresh = found is not None and found.line == line and self._clock.monotonic() - found.at <= PACKAGE_MEMORY_SECONDS
        return found.packages if found is not None and fresh else None


class AccountReading:
    """An account as it was read: its lines, when that was (Unix seconds), whether all lines could be read, and packages of some lines."""

    def __init__(
        self, place: tuple[str, int], at: float, upstream: Upstream, lines: dict[str, StockLine], memory: PackageMemory, *, whole: bool
    ) -> None:
        self.at, self.upstream, self.lines, self.whole = at, upstream, lines, whole
        self._place, self._memory = place, memory
        self._packages: dict[str, Sequence[Package]] = {}

    async def packages_of(self, iccids: Sequence[str], *, remembered: bool = False) -> dict[str, Sequence[Package]]:
        """The packages of the lines with `iccids`; lines without a number are left out. Waits for the network, a few lines at a time.

        `remembered`: packages that were read some minutes ago will do.
        """
        found = dict(self._packages)
        if remembered:
            known = {iccid: self._memory.packages_of(self._place, iccid, self.lines.get(iccid)) for iccid in iccids if iccid not in found}
            found |= {iccid: packages for iccid, packages in known.items() if packages is not None}
        missing = [iccid for iccid in iccids if iccid not in found]
        for start in range(0, len(missing), PACKAGES_READ_AT_ONCE):
            await self._read(missing[start : start + PACKAGES_READ_AT_ONCE])
        found |= self._packages
        return {iccid: found[iccid] for iccid in iccids if iccid in found}

    async def _read(self, iccids: Sequence[str]) -> None:
        """Several at once; the first failure ends them all."""
        failures: list[Refusal] = []

        async def read(iccid: str, subscriber_id: int) -> None:
            try:
                packages = (await self.upstream.ocs.packages.list_packages(subscriber_id)).get("packages", [])
                self._packages[iccid] = packages
                self._memory.keep(self._place, iccid, self.lines[iccid], packages)
            except Refusal as failure:
                failures.append(failure)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for iccid in iccids:
                line = self.lines.get(iccid)
                if line is not None and line.subscriber_id is not None:
                    group.start_soon(read, iccid, line.subscriber_id)
        if failures:
            raise failures[0]


class AccountReader:
    """The accounts that some rows are about, each read once. An account that could not be read is not asked for again."""

    def __init__(self, deps: Deps, memory: PackageMemory | None = None) -> None:
        self._deps, self._memory = deps, memory or PackageMemory(deps.clock)
        self._read: dict[tuple[str, int], AccountReading] = {}
        self._failed: dict[tuple[str, int], Refusal] = {}
        self._began: dict[tuple[str, int], float] = {}

    def began(self, row: IssuanceRow) -> float:
        """When the reading of the lines of `row`'s account began, in seconds of the monotonic clock; 0.0: it did not begin."""
        return self._began.get((row.organisation, row.account_id), 0.0)

    def too_slow(self, row: IssuanceRow) -> None:
        """The time for `row` is over. Where its account's lines took it, other rows of that account do not wait for them again."""
        place = (row.organisation, row.account_id)
        if place not in self._read:
            self._failed[place] = OcsError("The charging system took too long to list the account's lines", before_execution=True)

    async def account(self, row: IssuanceRow) -> AccountReading:
        """The account of `row`. Waits for the network the first time; raises the Refusal that ended the reading."""
        place = (row.organisation, row.account_id)
        if place in self._failed:
            raise self._failed[place]
        if place not in self._read:
            at, self._began[place] = self._deps.clock.now(), self._deps.clock.monotonic()
            try:
                upstream = await upstream_of_organisation(self._deps, row.organisation)
                fleet = await read_account_lines(upstream, [row.account_id])
                stock, lines = await find_stock(fleet), await index_stock_lines(fleet.rows)
                self._read[place] = AccountReading(place, at, upstream, lines, self._memory, whole=stock.whole)
            except Refusal as refusal:
                self._failed[place] = refusal
                raise
        return self._read[place]


async def index_stock_lines(rows: Sequence[Subscriber]) -> dict[str, StockLine]:
    """Lines by ICCID, some at a time: there may be tens of thousands, and other tasks wait for the event loop."""
    found: dict[str, StockLine] = {}
    for start in range(0, len(rows), LINES_INDEXED_AT_ONCE):
        found |= stock_lines_by_iccid(rows[start : start + LINES_INDEXED_AT_ONCE])
        await anyio.lowlevel.checkpoint()
    return found


def stock_lines_by_iccid(rows: Sequence[Subscriber]) -> dict[str, StockLine]:
    """Lines by the ICCID in use; of an account with many lines the rest is not worth its memory."""
    return {
        iccid: StockLine(is_sim_in_stock(row), row.get("subscriberId"), parse_package_moment(row.get("sim", {}).get("affectationDateUtc")))
        for row in rows
        if (iccid := iccid_in_use(row)) is not None
    }


# Of more candidate lines than these, what was read of their packages some minutes ago will do.
FEW_CANDIDATES = 50


async def read_account_evidence(deps: Deps, row: IssuanceRow, reader: AccountReader) -> AccountEvidence | None:
    """The account, and the packages of its candidate lines; None when nobody looked at the stock before the draw."""
    account = await reader.account(row)
    look = await deps.store.read(read_stock_snapshot, stock=row.stock)
    if look is None:
        return None
    # Read after the lines: what was drawn while they were read is known to be its key's.
    known = await deps.store.read(
        ledger_entries_of, account_id=row.account_id, iccids=iccids_out_of_stock(row, look, account.lines), since=look.taken
    )
    candidates = candidate_iccids(row, look, account.lines, known)
    packages = await account.packages_of(candidates, remembered=len(candidates) > FEW_CANDIDATES)
    ids = [id for found in packages.values() for package in found if (id := id_of_package(package)) is not None]
    placed = await deps.store.read(placed_packages_among, packages=ids)
    rivals = await deps.store.read(rival_issuances, row=row)
    return AccountEvidence(
        account.at, account.upstream, look, IssuanceAccountState(account.lines, account.whole, packages, placed), known, rivals
    )
