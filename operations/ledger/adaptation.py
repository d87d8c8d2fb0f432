"""Packages that were drawn and are not as they were sold yet: a worker reads each, sets what it lacks, and hands the eSIM out.

Whoever draws an eSIM sets its package at once (issuance.py). What is left to the worker is what a crash, a fault or a refusal came
between, and what reconciliation found. The package is read before anything is sent: an earlier call whose answer was lost may have done it,
and so may a person.
"""

from collections.abc import Callable
from typing import NamedTuple

from clients.ocs.packages import Package
from operations.deps import Deps
from operations.ledger.esims import DrawnEsim, esim_from_line
from operations.ledger.issuance import ADAPTATION_PAUSES, AdaptationAttempt, record_adaptation, try_package_terms
from operations.ledger.issuance_targets import target_of_issuance
from operations.upstream.connection import Upstream, upstream_of_organisation
from operations.upstream.lines import find_line
from operations.upstream.package_terms import has_terms
from registry.errors import Refusal
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.package_adaptations import (
    UNDRAWN_MS,
    PackageAdaptation,
    PackageTerms,
    adapt_later,
    adaptation_is_due,
    claim_adaptation,
    end_adaptation,
)

ADAPTATION_STEP_SECONDS = 25.0
ENDED_ISSUANCES = ("failed", "rolled_back", "released")
GIVING_BACK = ("rollback_pending", "rollback_unknown")
GIVING_BACK_MS = 600_000


class DrawnPackage(NamedTuple):
    """A package as it is now, and the eSIM that it is on. `adapted`: it is as it was sold."""

    upstream: Upstream
    esim: DrawnEsim
    package: Package
    id: int
    adapted: bool


class PackageAdaptations:
    """One worker's part of it. `report` is told what could not be done, without names."""

    def __init__(self, deps: Deps, report: Callable[[str], None]) -> None:
        self._deps, self._report = deps, report

    async def step(self) -> int:
        """Look at what is due; how many packages were settled. Raises StoreUnavailable."""
        deps, settled = self._deps, 0
        ends = deps.clock.monotonic() + ADAPTATION_STEP_SECONDS
        while deps.clock.monotonic() < ends and await deps.store.read(adaptation_is_due, now_ms=self._now_ms()):
            adaptation = await deps.store.write(claim_adaptation, token=deps.ids.new("lse_"), now_ms=self._now_ms())
            if adaptation is None:
                break
            settled += await self._look_at(adaptation)
        return settled

    async def _look_at(self, adaptation: PackageAdaptation) -> bool:
        """Whether the package is as it was sold now."""
        deps = self._deps
        row = await deps.store.read(find_issuance, organisation=adaptation.organisation, key=adaptation.key)
        if row is None or row.state in ENDED_ISSUANCES:
            await deps.store.write(end_adaptation, **named_lease(adaptation))
            return False
        if row.state != "issued":
            await self._later(adaptation, GIVING_BACK_MS if row.state in GIVING_BACK else UNDRAWN_MS)
            return False
        wait = await deps.rate_limiter.take_upstream(row.organisation)
        if wait is not None:
            await self._later(adaptation, int(wait * 1000) + 1)
            return False
        try:
            drawn = await read_drawn_package(deps, row, adaptation.terms)
        except Refusal as refusal:
            self._report(f"a package that is to be adapted could not be read yet: {refusal.error_code}")
            drawn = None
        if drawn is None:
            await self._later(adaptation, 1000 * ADAPTATION_PAUSES[min(adaptation.tries, len(ADAPTATION_PAUSES) - 1)])
            return False
        terms = adaptation.terms
        outcome = None if drawn.adapted else await try_package_terms(drawn.upstream.ocs, drawn.id, terms, drawn.package)
        attempt = AdaptationAttempt(adaptation.lease or "", adaptation.tries, outcome)
        await deps.store.write(settle_adaptation, deps=deps, row=row, esim=drawn.esim, attempt=attempt, now=deps.clock.now())
        return outcome is None

    async def _later(self, adaptation: PackageAdaptation, pause_ms: int) -> None:
        await self._deps.store.write(adapt_later, **named_lease(adaptation), due_ms=self._now_ms() + pause_ms)

    def _now_ms(self) -> int:
        return int(self._deps.clock.now() * 1000)


def named_lease(adaptation: PackageAdaptation) -> dict[str, str]:
    return {"organisation": adaptation.organisation, "key": adaptation.key, "lease": adaptation.lease or ""}


def settle_adaptation(
    connection: Connection, *, deps: Deps, row: IssuanceRow, esim: DrawnEsim, attempt: AdaptationAttempt, now: float
) -> Conclusion | None:
    """As `record_adaptation`, for what `row` was drawn for."""
    target = target_of_issuance(connection, deps, row)
    named = {"organisation": row.organisation, "key": row.key}
    return record_adaptation(connection, deps=deps, target=target, **named, esim=esim, attempt=attempt, now=now)


async def read_drawn_package(deps: Deps, row: IssuanceRow, terms: PackageTerms) -> DrawnPackage | None:
    """The package that `row` drew, its eSIM, and whether it has the `terms` of what was sold; None where the line does not have it now.

    Raises Refusal. Waits for the network.
    """
    upstream = await upstream_of_organisation(deps, row.organisation)
    line = await find_line(upstream, row.iccid or "")
    id = row.package_id or 0
    for package in (await upstream.ocs.packages.list_packages(line.subscriber_id)).get("packages", []):
        if package.get("subscriberprepaidpackageid") == id:
            esim = esim_from_line(line.iccid, line.row.get("sim", {}), subscriber_id=line.subscriber_id, package_id=id)
            return DrawnPackage(upstream, esim, package, id, has_terms(package, terms))
    return None
