"""An account's lines and packages at the charging system, read once for all issuances of it that are looked into together."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio
import anyio.lowlevel

from clients.ocs.wire.package import Package
from clients.ocs.wire.subscriber import Subscriber
from operations.caches.account_parts import iccid_in_use
from operations.deps import Deps
from operations.ledger.evidence import (
    AccountEvidence,
    IssuanceAccountState,
    StockLine,
    candidate_iccids,
    iccids_out_of_stock,
    id_of_package,
    parse_package_moment,
)
from operations.ledger.stock import is_fully_read, is_sim_in_stock
from operations.upstream.account_lines import read_account_lines
from operations.upstream.connection import Upstream, upstream_of_organisation
from registry.clock import Clock
from registry.errors import OcsError, Refusal
from storage.issuance import IssuanceRow
from storage.placed_packages import placed_packages_among
from storage.reconciliation import (
    ledger_entries_of,
    rival_issuances,
)
from storage.stock_snapshots import read_stock_snapshot

PACKAGES_READ_AT_ONCE = 4
LINES_INDEXED_AT_ONCE = 2_000
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
        """They were read just now."""
        if packages and not line.free and line.taken is not None:
            if len(self._known) >= PACKAGE_MEMORY_LIMIT:
                self._known.clear()
            self._known[*place, iccid] = RememberedPackages(line, packages, self._clock.monotonic())

    def packages_of(self, place: tuple[str, int], iccid: str, line: StockLine | None) -> Sequence[Package] | None:
        """Those of a line that is as it was."""
        found = self._known.get((*place, iccid))
        fresh = found is not None and found.line == line and self._clock.monotonic() - found.at <= PACKAGE_MEMORY_SECONDS
        return found.packages if found is not None and fresh else None


class AccountReading:
    """Its lines, when they were read, whether all could be, and the packages of those that were asked for."""

    def __init__(
        self, place: tuple[str, int], at: float, upstream: Upstream, lines: dict[str, StockLine], memory: PackageMemory, *, whole: bool
    ) -> None:
        self.at, self.upstream, self.lines, self.whole = at, upstream, lines, whole
        self._place, self._memory = place, memory
        self._packages: dict[str, Sequence[Package]] = {}

    async def packages_of(self, iccids: Sequence[str], *, remembered: bool = False) -> dict[str, Sequence[Package]]:
        """The packages of these lines, a few at a time; none of a line that cannot be asked for. `remembered`: those of before will do."""
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
    """The accounts that some rows are about, each read once; what failed is not asked again for the next."""

    def __init__(self, deps: Deps, memory: PackageMemory | None = None) -> None:
        self._deps, self._memory = deps, memory or PackageMemory(deps.clock)
        self._read: dict[tuple[str, int], AccountReading] = {}
        self._failed: dict[tuple[str, int], Refusal] = {}
        self._began: dict[tuple[str, int], float] = {}

    def began(self, row: IssuanceRow) -> float:
        """When the reading of the account's lines began, by the monotonic clock."""
        return self._began.get((row.organisation, row.account_id), 0.0)

    def too_slow(self, row: IssuanceRow) -> None:
        """The time for a row ended: where it was the lines that took it, the other rows of the account do not wait for them again."""
        place = (row.organisation, row.account_id)
        if place not in self._read:
            self._failed[place] = OcsError("The charging system took too long to list the account's lines", before_execution=True)

    async def account(self, row: IssuanceRow) -> AccountReading:
        """The account of a row."""
        place = (row.organisation, row.account_id)
        if place in self._failed:
            raise self._failed[place]
        if place not in self._read:
            at, self._began[place] = self._deps.clock.now(), self._deps.clock.monotonic()
            try:
                upstream = await upstream_of_organisation(self._deps, row.organisation)
                fleet = await read_account_lines(upstream, [row.account_id])
                self._read[place] = AccountReading(
                    place, at, upstream, await index_stock_lines(fleet.rows), self._memory, whole=is_fully_read(fleet)
                )
            except Refusal as refusal:
                self._failed[place] = refusal
                raise
        return self._read[place]


async def index_stock_lines(rows: Sequence[Subscriber]) -> dict[str, StockLine]:
    """What is kept of the lines, a part at a time: there may be tens of thousands, and others wait for the loop."""
    found: dict[str, StockLine] = {}
    for start in range(0, len(rows), LINES_INDEXED_AT_ONCE):
        found |= stock_lines_by_iccid(rows[start : start + LINES_INDEXED_AT_ONCE])
        await anyio.lowlevel.checkpoint()
    return found


def stock_lines_by_iccid(rows: Sequence[Subscriber]) -> dict[str, StockLine]:
    """Lines by the ICCID in use; of an account with many lines the rest is not worth its memory."""
    return {iccid: stock_line_of(row) for row in rows if (iccid := iccid_in_use(row)) is not None}


def stock_line_of(row: Subscriber) -> StockLine:
    """A line."""
    return StockLine(is_sim_in_stock(row), row.get("subscriberId"), parse_package_moment(row.get("sim", {}).get("affectationDateUtc")))


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
