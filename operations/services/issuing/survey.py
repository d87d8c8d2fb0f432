"""One account as the charging system shows it, read once for all the rows that are looked into together."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel

from clients.ocs.wire.package import Package
from clients.ocs.wire.subscriber import Subscriber
from operations.deps import Deps
from operations.services.issuing.evidence import Seen, by_iccid
from operations.services.issuing.stock import is_whole
from operations.services.network.fleet import lines_of
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach_for
from registry.errors import OcsError, Refusal
from storage.issuing.issuance import IssuanceRow

AT_ONCE = 4
LINES_AT_ONCE = 2_000


class Account:
    """Its lines, when they were read, whether all could be, and the packages of those that were asked for."""

    def __init__(self, at: float, upstream: Upstream, lines: dict[str, Seen], *, whole: bool) -> None:
        self.at, self.upstream, self.lines, self.whole = at, upstream, lines, whole
        self._packages: dict[str, Sequence[Package]] = {}

    async def packages_of(self, iccids: Sequence[str]) -> dict[str, Sequence[Package]]:
        """The packages of these lines, a few at a time; of a line that cannot be asked for, nothing."""
        for start in range(0, len(iccids), AT_ONCE):
            await self._read([iccid for iccid in iccids[start : start + AT_ONCE] if iccid not in self._packages])
        return {iccid: self._packages[iccid] for iccid in iccids if iccid in self._packages}

    async def _read(self, iccids: Sequence[str]) -> None:
        """Several at once; the first failure ends them all."""
        failures: list[Refusal] = []

        async def read(iccid: str, subscriber_id: int) -> None:
            try:
                self._packages[iccid] = (await self.upstream.ocs.packages.list_packages(subscriber_id)).get("packages", [])
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


class Survey:
    """The accounts that some rows are about, each read once; what failed is not asked again for the next."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._read: dict[tuple[str, int], Account] = {}
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

    async def account(self, row: IssuanceRow) -> Account:
        """The account of a row."""
        place = (row.organisation, row.account_id)
        if place in self._failed:
            raise self._failed[place]
        if place not in self._read:
            at, self._began[place] = self._deps.clock.now(), self._deps.clock.monotonic()
            try:
                upstream = await reach_for(self._deps, row.organisation)
                fleet = await lines_of(upstream, [row.account_id])
                self._read[place] = Account(at, upstream, await kept(fleet.rows), whole=is_whole(fleet))
            except Refusal as refusal:
                self._failed[place] = refusal
                raise
        return self._read[place]


async def kept(rows: Sequence[Subscriber]) -> dict[str, Seen]:
    """What is kept of the lines, a part at a time: there may be tens of thousands, and others wait for the loop."""
    found: dict[str, Seen] = {}
    for start in range(0, len(rows), LINES_AT_ONCE):
        found |= by_iccid(rows[start : start + LINES_AT_ONCE])
        await anyio.lowlevel.checkpoint()
    return found
