"""Settling issuances whose outcome is unknown: from upstream evidence, or by a person. Nothing is ever sent again.

How long nothing was seen that a row could have drawn is measured by clocks that nobody sets. Wall clocks are set, and those of two
processes differ: fifteen minutes between two of their readings may have been five. So each process measures with its own monotonic
clock, from its own first look on, and adds what the row says that was measured before that look. The sum is never more than the time
that has passed, whoever looks in between; what passes while nobody looks is not counted.

What no evidence settles, a person settles after a look at the charging system, on their responsibility. It is audited.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import anyio

from operations.deps import Deps
from operations.ledger.esims import DrawnEsim, esim_from_line
from operations.ledger.evidence import (
    DRAW_CLOCK_SKEW,
    EFFECT_WINDOW,
    AccountReader,
    CandidateLine,
    IssuanceObstacle,
    IssuanceVerdict,
    MatchResult,
    PackageMemory,
    match_drawn_package,
    match_lines,
    read_account_evidence,
    template_of_package,
)
from operations.ledger.issuance import MANUAL_RECONCILIATION, PACKAGE_ADAPTING, no_esim_drawn, record_issuance_failed, record_issued_esim
from operations.ledger.issuance_events import log_esim_rolled_back
from operations.ledger.issuance_targets import target_of_issuance
from operations.ledger.rollback import INTENT_ROLLED_BACK
from operations.ledger.send_once import answer_unknown_key, audit_settlement
from operations.ledger.stock_snapshot import is_sim_in_stock
from operations.upstream.connection import Upstream, upstream_of_organisation
from registry.call import Surface
from registry.errors import Conflict, NotFound, OcsError, OcsNotFound, Refusal
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.intents import end_intent
from storage.issuance import UNRESOLVED_ISSUANCE_STATES, IssuanceRow, find_issuance, holder_of_iccid
from storage.line_tags import end_tags
from storage.reconciliation import (
    DueAccount,
    ReconcileFinding,
    claim_unknown_issuances,
    hold_issuance,
    hold_unknown,
    next_due_account,
    reconcile_later,
    require_manual,
    return_unknown_issuances,
    rival_issuances,
)
from storage.rollbacks import finish_rollback, resume_issued
from storage.stock_snapshots import was_returned

WATCHED_ROWS_LIMIT = 10_000


class ReplicaClockWatch:
    """When each row was first found clear by us, and for how long it had been clear then.

    Its `clear_since` names the stretch: after another one it begins anew.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[float, float, float]] = {}

    def seconds(self, row: IssuanceRow, *, at: float, began: float) -> float:
        """It is clear, by what was read `at` a time of the wall and from `began` on; the seconds for which it has been."""
        key, since = (row.organisation, row.key), row.clear_since or at
        found = self._first.get(key)
        if found is None or found[0] != since:
            if len(self._first) >= WATCHED_ROWS_LIMIT:  # others have settled most of them; what is forgotten is watched anew
                self._first.clear()
            found = self._first[key] = since, began, row.clear_seconds or 0.0
        return max(row.clear_seconds or 0.0, found[2] + began - found[1])

    def forget(self, row: IssuanceRow) -> None:
        self._first.pop((row.organisation, row.key), None)


RECONCILED_AT_ONCE = 20
NO_DRAW_SECONDS = EFFECT_WINDOW.total_seconds()
# Of what another process saw only the wall clock is known, and both its and ours may have been set.
NO_DRAW_SECONDS_BY_OTHERS = NO_DRAW_SECONDS + 2 * DRAW_CLOCK_SKEW.total_seconds()
ISSUANCE_PATIENCE_SECONDS = 24 * 3600
ISSUANCE_SOON_SECONDS, ISSUANCE_LATER_SECONDS = 30, 300
ReconciliationOutcome = Literal["issued", "failed", "manual", "open"]


@dataclass(frozen=True, slots=True)
class IssuanceFinding:
    """What was read for a row, and when the reading began: it tells nothing of what happened later."""

    verdict: IssuanceVerdict
    esim: DrawnEsim | None
    at: float
    watched: float = 0.0


@dataclass(frozen=True, slots=True)
class ReconciliationLimits:
    """Seconds: how long a row may take, until when in a turn and in a step another may be begun. In all less than the chore's minute."""

    row: float = 20.0
    turn: float = 10.0
    step: float = 25.0


class ReconciliationResult(NamedTuple):
    """What became of a row, and what hinders that it is settled where it stays open."""

    outcome: ReconciliationOutcome
    obstacle: IssuanceObstacle


class Reconciliation:
    """One worker's part of it. `report` is told what could not be looked into, `progress` how far each turn came, both without names."""

    def __init__(
        self,
        deps: Deps,
        report: Callable[[str], None],
        pace: ReconciliationLimits | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._deps, self._report, self._progress = deps, report, progress
        self._watch, self._memory = ReplicaClockWatch(), PackageMemory(deps.clock)
        self._pace, self._after = pace or ReconciliationLimits(), ""

    async def step(self) -> int:
        """Look into what is due, the organisations by turns; how many rows were settled. What is left waits for the next step."""
        clock, settled = self._deps.clock, 0
        ends = clock.monotonic() + self._pace.step
        while clock.monotonic() < ends:
            place = await self._deps.store.read(next_due_account, now_ms=self._now_ms(), after=self._after)
            done = None if place is None else await self._turn(place)
            if done is None:
                break
            settled += done
        return settled

    async def _turn(self, place: DueAccount) -> int | None:
        """Some rows of one account, those that are due longest; nothing when another worker has them."""
        deps, token = self._deps, self._deps.ids.new("lse_")
        outcomes, obstacles = Counter[ReconciliationOutcome](), Counter[IssuanceObstacle]()
        # Said first: whatever befalls this turn, the next one is another organisation's.
        self._after, ends = place.organisation, deps.clock.monotonic() + self._pace.turn
        rows = await deps.store.write(claim_unknown_issuances, place=place, token=token, now_ms=self._now_ms(), most=RECONCILED_AT_ONCE)
        reader = AccountReader(deps, self._memory)
        for count, row in enumerate(rows):
            if count and deps.clock.monotonic() >= ends:
                await deps.store.write(return_unknown_issuances, token=token, now_ms=self._now_ms())
                break
            result = await self._settle(row, token, reader)
            outcomes[result.outcome] += 1
            if result.outcome == "open":
                obstacles[result.obstacle] += 1
        if self._progress is not None and outcomes:
            self._progress(reconciliation_progress(place.account_id, outcomes, obstacles))
        return sum(count for outcome, count in outcomes.items() if outcome != "open") if rows else None

    async def _settle(self, row: IssuanceRow, token: str, reader: AccountReader) -> ReconciliationResult:
        deps = self._deps
        finding = await self._find_out(row, reader)
        if finding.verdict.kind == "clear":
            finding = replace(finding, watched=self._watch.seconds(row, at=finding.at, began=reader.began(row)))
        else:
            self._watch.forget(row)
        return await deps.store.write(apply_issuance_finding, deps=deps, row=row, token=token, finding=finding, now=deps.clock.now())

    async def _find_out(self, row: IssuanceRow, reader: AccountReader) -> IssuanceFinding:
        """What is found in the time that a row has: what takes longer must not keep the others waiting, and is tried again."""
        began, why = self._deps.clock.now(), "it took too long"
        obstacle: IssuanceObstacle = "slow"
        with anyio.move_on_after(self._pace.row) as time:
            try:
                return await find_issuance_outcome(self._deps, row, reader)
            except Refusal as refusal:
                why, obstacle = refusal.error_code, "unreadable"
        if time.cancelled_caught:
            reader.too_slow(row)
        self._report(f"an issuance of account {row.account_id} could not be looked into yet: {why}")
        return IssuanceFinding(IssuanceVerdict("unclear", None, obstacle), None, began)

    def _now_ms(self) -> int:
        return int(self._deps.clock.now() * 1000)


def reconciliation_progress(account: int, outcomes: Mapping[ReconciliationOutcome, int], obstacles: Mapping[IssuanceObstacle, int]) -> str:
    settled = [f"{name} {count}" for name, count in sorted(outcomes.items()) if name != "open"]
    done, left = sum(count for name, count in outcomes.items() if name != "open"), sum(obstacles.values())
    hindered = [f"{name} {count}" for name, count in sorted(obstacles.items())]
    was = f"{done} {'was' if done == 1 else 'were'} settled{counts_in_brackets(settled)}"
    stays = f"{left} {'stays' if left == 1 else 'stay'} open{counts_in_brackets(hindered)}"
    return f"account {account}: of {done + left} issuances of unknown outcome {was}, {stays}"


def counts_in_brackets(parts: Sequence[str]) -> str:
    return f" ({', '.join(parts)})" if parts else ""


async def find_issuance_outcome(deps: Deps, row: IssuanceRow, reader: AccountReader) -> IssuanceFinding:
    """Read the account, and decide. The line that is found is read once more where its packages were remembered."""
    reading = await read_account_evidence(deps, row, reader)
    if reading is None:
        return IssuanceFinding(IssuanceVerdict("unclear", None, "no_look"), None, deps.clock.now())
    verdict = reading.verdict(row)
    if verdict.candidate is None:
        return IssuanceFinding(verdict, None, reading.at)
    iccid = verdict.candidate.iccid
    now = await (await reader.account(row)).packages_of([iccid])
    verdict = reading._replace(state=reading.state._replace(packages={**reading.state.packages, **now})).verdict(row)
    esim = None if verdict.candidate is None else await read_drawn_esim(reading.upstream, verdict.candidate)
    return IssuanceFinding(verdict, esim, reading.at)


async def read_drawn_esim(upstream: Upstream, candidate: CandidateLine) -> DrawnEsim:
    line = await upstream.ocs.subscriber.get_single_subscriber(candidate.iccid, by="iccid")
    package_id = candidate.package.get("subscriberprepaidpackageid")
    subscriber_id = line.get("subscriberId")
    if package_id is None or subscriber_id is None:
        raise OcsError("The charging system did not name the line or its package")
    return esim_from_line(candidate.iccid, line.get("sim", {}), subscriber_id=subscriber_id, package_id=package_id)


def apply_issuance_finding(
    connection: Connection, *, deps: Deps, row: IssuanceRow, token: str, finding: IssuanceFinding, now: float
) -> ReconciliationResult:
    """What the evidence says, in one transaction with the check that nobody else could be meant by it, and that the row is ours still."""
    if not hold_unknown(connection, row=row, token=token):
        return ReconciliationResult("open", "waiting")
    kind, obstacle = finding.verdict.kind, finding.verdict.obstacle
    settled: ReconciliationOutcome = "open"
    since = (row.clear_since or finding.at) if kind == "clear" else None
    hindrance = find_hindrance(connection, row, finding)
    if kind == "found" and hindrance is None:
        settled = record_found_esim(connection, deps, row, finding, now)
    elif since is not None and (finding.watched >= NO_DRAW_SECONDS or finding.at - since >= NO_DRAW_SECONDS_BY_OTHERS):
        settled = record_nothing_drawn(connection, deps, row, now)
    if settled == "open" and kind != "clear" and now - row.dispatched >= ISSUANCE_PATIENCE_SECONDS:
        settled = hand_issuance_to_person(connection, deps, row, hindrance or obstacle, now)
    if settled == "open":
        pause = ISSUANCE_SOON_SECONDS if now - row.dispatched < 2 * NO_DRAW_SECONDS else ISSUANCE_LATER_SECONDS
        unproven = ReconcileFinding(since, None if since is None else finding.watched, hindrance or obstacle)
        reconcile_later(connection, row=row, token=token, next_ms=int((now + pause) * 1000), unproven=unproven)
    return ReconciliationResult(settled, hindrance or obstacle)


def record_found_esim(connection: Connection, deps: Deps, row: IssuanceRow, finding: IssuanceFinding, now: float) -> ReconciliationOutcome:
    if finding.esim is None:
        return "open"
    target, esim = target_of_issuance(connection, deps, row), finding.esim
    concluded = record_issued_esim(connection, target=target, organisation=row.organisation, key=row.key, esim=esim, now=now, note="found")
    if concluded.unknown and concluded.outcome != PACKAGE_ADAPTING:
        return "open"
    return audit_reconciliation(connection, deps, row, concluded, now, "issued")


def record_nothing_drawn(connection: Connection, deps: Deps, row: IssuanceRow, now: float) -> ReconciliationOutcome:
    target, named = target_of_issuance(connection, deps, row), {"organisation": row.organisation, "key": row.key}
    concluded = record_issuance_failed(connection, target=target, **named, refusal=no_esim_drawn(), now=now, note="nothing drawn")
    return "open" if concluded.unknown else audit_reconciliation(connection, deps, row, concluded, now, "failed")


def hand_issuance_to_person(
    connection: Connection, deps: Deps, row: IssuanceRow, obstacle: IssuanceObstacle, now: float
) -> ReconciliationOutcome:
    handed = require_manual(connection, organisation=row.organisation, key=row.key, obstacle=obstacle, now=now)
    if handed is None:
        return "open"
    return audit_reconciliation(
        connection, deps, row, target_of_issuance(connection, deps, row).unknown(connection, handed, MANUAL_RECONCILIATION), now, "manual"
    )


def find_hindrance(connection: Connection, row: IssuanceRow, finding: IssuanceFinding) -> IssuanceObstacle | None:
    """None where the line that was found is nobody's, or was in stock before the draw, and no other draw could have been given it."""
    candidate = finding.verdict.candidate
    if candidate is None:
        return None
    holder = holder_of_iccid(connection, iccid=candidate.iccid)
    if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
        return "line_of_another"
    alone = not any(
        match_drawn_package(candidate.package, rival) in ("shows", "unreadable") for rival in rival_issuances(connection, row=row)
    )
    return None if alone else "equal_keys"


def audit_reconciliation(
    connection: Connection, deps: Deps, row: IssuanceRow, concluded: Conclusion, now: float, outcome: ReconciliationOutcome
) -> ReconciliationOutcome:
    """The key's stored answer follows the row; the audit log says who decided."""
    update_issuance_answer(connection, deps, row, concluded)
    audit_settlement(connection, deps, row.organisation, row.operation, f"reconciled_{outcome}", now=now, status=concluded.status)
    return outcome


def update_issuance_answer(connection: Connection, deps: Deps, row: IssuanceRow, concluded: Conclusion) -> None:
    if row.claim_key is not None:
        named = (row.organisation, row.operation, row.claim_key)
        answer_unknown_key(connection, deps, *named, concluded.status, concluded.body, unknown=concluded.unknown)


IssuanceRuling = Literal["issued", "failed", "rolled_back", "still_issued"]
ISSUE_DECISIONS, ROLLBACK_DECISIONS = ("issued", "failed"), ("rolled_back", "still_issued")


class IssuanceNotSettled(Conflict):
    """The row is not one that waits for a person, or the eSIM is another's."""

    code = "issuance_not_settled"


class EsimOfAnotherKey(IssuanceNotSettled):
    """The eSIM that a person named has another row, which may be another organisation's."""


class IssuanceSettlement(NamedTuple):
    """What a person decided, and who they are, for the audit log. `esim` is what was drawn; `reason` is kept with the row."""

    decision: IssuanceRuling
    by: str
    esim: DrawnEsim | None = None
    reason: str | None = None
    surface: Surface = "cli"

    @property
    def note(self) -> str:
        """What the row says of its end."""
        return f"settled by {self.by}" + ("" if self.reason is None else f": {self.reason}")


async def match_account_lines(deps: Deps, row: IssuanceRow) -> MatchResult:
    """The lines of the account that show the draw of `row` now, for the person who decides. Waits for the network."""
    reading = await read_account_evidence(deps, row, AccountReader(deps))
    return MatchResult([], [], []) if reading is None else match_lines(row, reading.look, reading.state, reading.known)


async def find_esim_of_issuance(deps: Deps, row: IssuanceRow, iccid: str) -> DrawnEsim:
    """The eSIM that a person says was drawn, as the charging system knows it: of the row's account, with the row's package."""
    upstream = await upstream_of_organisation(deps, row.organisation)
    try:
        line = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid")
    except OcsNotFound:
        raise NotFound(f"The charging system has no line {iccid} that this organisation could have", param="iccid") from None
    subscriber_id = line.get("subscriberId", 0)
    if line.get("accountId") != row.account_id:
        raise IssuanceNotSettled(f"The line {iccid} is not of account {row.account_id}, which the eSIM was to be drawn from")
    if is_sim_in_stock(line):
        raise IssuanceNotSettled(f"The SIM of {iccid} is in stock, so it was not drawn, or was given back")
    packages = (await upstream.ocs.packages.list_packages(subscriber_id)).get("packages", [])
    found = [package for package in packages if template_of_package(package) == row.template_id]
    shows = [package for package in found if match_drawn_package(package, row) == "shows"] or found
    package_id = shows[-1].get("subscriberprepaidpackageid") if shows else None
    if package_id is None:
        raise IssuanceNotSettled(f"The line {iccid} has no package of template {row.template_id}, which was asked for")
    return esim_from_line(iccid, line.get("sim", {}), subscriber_id=subscriber_id, package_id=package_id)


def apply_issuance_settlement(
    connection: Connection, *, deps: Deps, organisation: str, key: str, settlement: IssuanceSettlement, now: float
) -> IssuanceRow:
    """Writes the decision, the key's answer and the audit row. Raises IssuanceNotSettled where there is nothing to decide."""
    hold_issuance(connection, organisation=organisation, key=key)  # of two who settle at once the second sees what the first has said
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise NotFound(f"The organisation {organisation} has no issuance {key}", param="key")
    if settlement.decision in ISSUE_DECISIONS:
        apply_issue_decision(connection, deps, row, settlement, now)
    else:
        apply_rollback_decision(connection, deps, row, settlement, now)
    outcome = f"settled_{settlement.decision}"
    audit_settlement(connection, deps, row.organisation, row.operation, outcome, now=now, by=settlement.by, surface=settlement.surface)
    return find_issuance(connection, organisation=organisation, key=key) or row


def apply_issue_decision(connection: Connection, deps: Deps, row: IssuanceRow, settlement: IssuanceSettlement, now: float) -> None:
    if row.state not in UNRESOLVED_ISSUANCE_STATES:
        raise IssuanceNotSettled(f"This issuance is {row.state}; only one whose outcome is unknown is settled as {settlement.decision}")
    target, note = target_of_issuance(connection, deps, row), settlement.note
    if settlement.esim is None:
        concluded = record_issuance_failed(
            connection, target=target, organisation=row.organisation, key=row.key, refusal=no_esim_drawn(), now=now, note=note
        )
    else:
        holder = holder_of_iccid(connection, iccid=settlement.esim.iccid)
        if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
            raise EsimOfAnotherKey(f"The eSIM {settlement.esim.iccid} belongs to the issuance {holder.key} of {holder.organisation}")
        concluded = record_issued_esim(
            connection, target=target, organisation=row.organisation, key=row.key, esim=settlement.esim, now=now, note=note
        )
    if concluded.unknown and concluded.outcome != PACKAGE_ADAPTING:
        raise issuance_decided_meanwhile()
    update_issuance_answer(connection, deps, row, concluded)


def apply_rollback_decision(connection: Connection, deps: Deps, row: IssuanceRow, settlement: IssuanceSettlement, now: float) -> None:
    if row.state != "rollback_unknown":
        raise IssuanceNotSettled(f"This issuance is {row.state}; only one in rollback_unknown is settled as {settlement.decision}")
    note = settlement.note
    if settlement.decision == "still_issued":
        settled = resume_issued(connection, organisation=row.organisation, key=row.key, note=note, now=now)
    else:
        given_back = finish_rollback(connection, organisation=row.organisation, key=row.key, steps=None, note=note, now=now)
        settled = given_back is not None
        if given_back is not None:
            log_esim_rolled_back(connection, row=given_back, ids=deps.ids, now=now)
        end_tags(connection, organisation=row.organisation, iccids=[row.iccid or ""])
    if not settled:
        raise issuance_decided_meanwhile()
    if settlement.decision == "rolled_back" and row.intent is not None:
        end_intent(connection, intent=row.intent, organisation=row.organisation, error=INTENT_ROLLED_BACK)


def issuance_decided_meanwhile() -> IssuanceNotSettled:
    return IssuanceNotSettled("This issuance was settled meanwhile; look at it again")
