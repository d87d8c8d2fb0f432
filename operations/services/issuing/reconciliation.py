"""Settling issuances whose outcome is unknown, from upstream evidence only (decisions.md 6). Nothing is ever sent again."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import anyio
import orjson

from operations.deps import Deps
from operations.services.issuing.drawn_esim import DrawnEsim, found_esim
from operations.services.issuing.evidence import LATEST, SKEW, Candidate, Scene, Verdict, fit, gone, id_of, judge, suspects
from operations.services.issuing.intent_purpose import IntentPurpose
from operations.services.issuing.inventory_purpose import InventoryPurpose
from operations.services.issuing.ledger import settle_failed, settle_issued
from operations.services.issuing.obstacles import Obstacle
from operations.services.issuing.purpose import MANUAL, Purpose, nothing_drawn
from operations.services.issuing.survey import PackageMemory, Survey
from operations.services.issuing.watch import Watch
from operations.services.network.reached import Upstream
from operations.services.shop.order_purpose import FULFIL, OrderPurpose
from registry.errors import OcsError, Refusal
from registry.ports import Conclusion, Line
from storage.calls.audit import append_line
from storage.calls.claims import settle_unknown
from storage.connection import Connection
from storage.issuing.intents import find_intent
from storage.issuing.issuance import IssuanceRow, holder_of
from storage.issuing.placed import placed_among
from storage.issuing.reconciling import (
    Known,
    Place,
    Unproven,
    claim_unknown,
    give_up_lease,
    hand_over,
    hold,
    known_of,
    look_later,
    next_due,
    rivals_of,
)
from storage.issuing.stock import Look, read_look, was_returned
from storage.secrets.sealed_fields import claim_field

AT_ONCE = 20
# Of more suspected lines than these, what was read of their packages some minutes ago will do.
FEW_SUSPECTS = 50
CLEAR_SECONDS = LATEST.total_seconds()
# Of what another process saw only the wall clock is known, and both its and ours may have been set.
CLEAR_BY_OTHERS = CLEAR_SECONDS + 2 * SKEW.total_seconds()
PATIENCE_SECONDS = 24 * 3600
SOON_SECONDS, LATER_SECONDS = 30, 300
Outcome = Literal["issued", "failed", "manual", "open"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was read for a row, and when the reading began: it tells nothing of what happened later."""

    verdict: Verdict
    esim: DrawnEsim | None
    at: float
    watched: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: how long a row may take, until when in a turn and in a step another may be begun. In all less than the chore's minute."""

    row: float = 20.0
    turn: float = 10.0
    step: float = 25.0


class Result(NamedTuple):
    """What became of a row, and what hinders that it is settled where it stays open."""

    outcome: Outcome
    obstacle: Obstacle


class Reconciliation:
    """One worker's part of it. `report` is told what could not be looked into, `progress` how far each turn came, both without names."""

    def __init__(
        self, deps: Deps, report: Callable[[str], None], pace: Pace | None = None, progress: Callable[[str], None] | None = None
    ) -> None:
        self._deps, self._report, self._progress = deps, report, progress
        self._watch, self._memory = Watch(), PackageMemory(deps.clock)
        self._pace, self._after = pace or Pace(), ""

    async def step(self) -> int:
        """Look into what is due, the organisations by turns; how many rows were settled. What is left waits for the next step."""
        clock, settled = self._deps.clock, 0
        ends = clock.monotonic() + self._pace.step
        while clock.monotonic() < ends:
            place = await self._deps.store.read(next_due, now_ms=self._now_ms(), after=self._after)
            done = None if place is None else await self._turn(place)
            if done is None:
                break
            settled += done
        return settled

    async def _turn(self, place: Place) -> int | None:
        """Some rows of one account, those that are due longest; nothing when another worker has them."""
        deps, token, outcomes, obstacles = self._deps, self._deps.ids.new("lse_"), Counter[Outcome](), Counter[Obstacle]()
        # Said first: whatever befalls this turn, the next one is another organisation's.
        self._after, ends = place.organisation, deps.clock.monotonic() + self._pace.turn
        rows = await deps.store.write(claim_unknown, place=place, token=token, now_ms=self._now_ms(), most=AT_ONCE)
        survey = Survey(deps, self._memory)
        for count, row in enumerate(rows):
            if count and deps.clock.monotonic() >= ends:
                await deps.store.write(give_up_lease, token=token, now_ms=self._now_ms())
                break
            result = await self._settle(row, token, survey)
            outcomes[result.outcome] += 1
            if result.outcome == "open":
                obstacles[result.obstacle] += 1
        if self._progress is not None and outcomes:
            self._progress(progress_of(place.account_id, outcomes, obstacles))
        return sum(count for outcome, count in outcomes.items() if outcome != "open") if rows else None

    async def _settle(self, row: IssuanceRow, token: str, survey: Survey) -> Result:
        deps = self._deps
        finding = await self._find_out(row, survey)
        if finding.verdict.kind == "clear":
            finding = replace(finding, watched=self._watch.seconds(row, at=finding.at, began=survey.began(row)))
        else:
            self._watch.forget(row)
        return await deps.store.write(apply, deps=deps, row=row, token=token, finding=finding, now=deps.clock.now())

    async def _find_out(self, row: IssuanceRow, survey: Survey) -> Finding:
        """What is found in the time that a row has: what takes longer must not keep the others waiting, and is tried again."""
        began, why = self._deps.clock.now(), "it took too long"
        obstacle: Obstacle = "slow"
        with anyio.move_on_after(self._pace.row) as time:
            try:
                return await find_out(self._deps, row, survey)
            except Refusal as refusal:
                why, obstacle = refusal.error_code, "unreadable"
        if time.cancelled_caught:
            survey.too_slow(row)
        self._report(f"an issuance of account {row.account_id} could not be looked into yet: {why}")
        return Finding(Verdict("unclear", None, obstacle), None, began)

    def _now_ms(self) -> int:
        return int(self._deps.clock.now() * 1000)


def progress_of(account: int, outcomes: Mapping[Outcome, int], obstacles: Mapping[Obstacle, int]) -> str:
    """How far a turn came."""
    settled = [f"{name} {count}" for name, count in sorted(outcomes.items()) if name != "open"]
    done, left = sum(count for name, count in outcomes.items() if name != "open"), sum(obstacles.values())
    was, stays = f"{done} {'was' if done == 1 else 'were'} settled", f"{left} {'stays' if left == 1 else 'stay'} open"
    hindered = [f"{name} {count}" for name, count in sorted(obstacles.items())]
    return f"account {account}: of {done + left} issuances of unknown outcome {was}{bracketed(settled)}, {stays}{bracketed(hindered)}"


def bracketed(parts: Sequence[str]) -> str:
    """What a number is made of; nothing where there are none."""
    return f" ({', '.join(parts)})" if parts else ""


class Reading(NamedTuple):
    """An account as it is now, beside what it was before the draw and what the ledger knows of it."""

    at: float
    upstream: Upstream
    look: Look
    scene: Scene
    known: Sequence[Known]
    rivals: Sequence[IssuanceRow]

    def verdict(self, row: IssuanceRow) -> Verdict:
        """What it shows of the row's draw."""
        return judge(row, self.look, self.scene, self.known, self.rivals)


async def read_account(deps: Deps, row: IssuanceRow, survey: Survey) -> Reading | None:
    """The account, and the packages of the lines that are suspected; nothing when nobody looked at the stock before the draw."""
    account = await survey.account(row)
    look = await deps.store.read(read_look, stock=row.stock)
    if look is None:
        return None
    # Read after the lines: what was drawn while they were read is known to be its key's.
    known = await deps.store.read(known_of, account_id=row.account_id, iccids=gone(row, look, account.lines), since=look.taken)
    suspected = suspects(row, look, account.lines, known)
    packages = await account.packages_of(suspected, remembered=len(suspected) > FEW_SUSPECTS)
    ids = [id for found in packages.values() for package in found if (id := id_of(package)) is not None]
    placed = await deps.store.read(placed_among, packages=ids)
    rivals = await deps.store.read(rivals_of, row=row)
    return Reading(account.at, account.upstream, look, Scene(account.lines, account.whole, packages, placed), known, rivals)


async def find_out(deps: Deps, row: IssuanceRow, survey: Survey) -> Finding:
    """Read the account, and judge. The line that is found is read once more where its packages were remembered."""
    reading = await read_account(deps, row, survey)
    if reading is None:
        return Finding(Verdict("unclear", None, "no_look"), None, deps.clock.now())
    verdict = reading.verdict(row)
    if verdict.candidate is None:
        return Finding(verdict, None, reading.at)
    iccid = verdict.candidate.iccid
    now = await (await survey.account(row)).packages_of([iccid])
    verdict = reading._replace(scene=reading.scene._replace(packages={**reading.scene.packages, **now})).verdict(row)
    esim = None if verdict.candidate is None else await esim_of(reading.upstream, verdict.candidate)
    return Finding(verdict, esim, reading.at)


async def esim_of(upstream: Upstream, candidate: Candidate) -> DrawnEsim:
    """The line that was drawn, with what installs it."""
    line = await upstream.ocs.subscriber.get_single_subscriber(candidate.iccid, by="iccid")
    package_id = candidate.package.get("subscriberprepaidpackageid")
    subscriber_id = line.get("subscriberId")
    if package_id is None or subscriber_id is None:
        raise OcsError("The charging system did not name the line or its package")
    return found_esim(candidate.iccid, line.get("sim", {}), subscriber_id=subscriber_id, package_id=package_id)


def apply(connection: Connection, *, deps: Deps, row: IssuanceRow, token: str, finding: Finding, now: float) -> Result:
    """What the evidence says, in one transaction with the check that nobody else could be meant by it, and that the row is ours still."""
    if not hold(connection, row=row, token=token):
        return Result("open", "waiting")
    kind, obstacle = finding.verdict.kind, finding.verdict.obstacle
    settled: Outcome = "open"
    since = (row.clear_since or finding.at) if kind == "clear" else None
    hindrance = hindrance_of(connection, row, finding)
    if kind == "found" and hindrance is None:
        settled = settle_found(connection, deps, row, finding, now)
    elif since is not None and (finding.watched >= CLEAR_SECONDS or finding.at - since >= CLEAR_BY_OTHERS):
        settled = settle_clear(connection, deps, row, now)
    if settled == "open" and kind != "clear" and now - row.dispatched >= PATIENCE_SECONDS:
        settled = give_up(connection, deps, row, hindrance or obstacle, now)
    if settled == "open":
        pause = SOON_SECONDS if now - row.dispatched < 2 * CLEAR_SECONDS else LATER_SECONDS
        unproven = Unproven(since, None if since is None else finding.watched, hindrance or obstacle)
        look_later(connection, row=row, token=token, next_ms=int((now + pause) * 1000), unproven=unproven)
    return Result(settled, hindrance or obstacle)


def settle_found(connection: Connection, deps: Deps, row: IssuanceRow, finding: Finding, now: float) -> Outcome:
    """The eSIM is this key's."""
    if finding.esim is None:
        return "open"
    purpose, esim = purpose_of(connection, deps, row), finding.esim
    concluded = settle_issued(connection, purpose=purpose, organisation=row.organisation, key=row.key, esim=esim, now=now, note="found")
    return "open" if concluded.unknown else keep(connection, deps, row, concluded, now, "issued")


def settle_clear(connection: Connection, deps: Deps, row: IssuanceRow, now: float) -> Outcome:
    """Nothing was drawn."""
    purpose, named = purpose_of(connection, deps, row), {"organisation": row.organisation, "key": row.key}
    concluded = settle_failed(connection, purpose=purpose, **named, refusal=nothing_drawn(), now=now, note="nothing drawn")
    return "open" if concluded.unknown else keep(connection, deps, row, concluded, now, "failed")


def give_up(connection: Connection, deps: Deps, row: IssuanceRow, obstacle: Obstacle, now: float) -> Outcome:
    """From now on only a person settles it."""
    handed = hand_over(connection, organisation=row.organisation, key=row.key, obstacle=obstacle, now=now)
    if handed is None:
        return "open"
    return keep(connection, deps, row, purpose_of(connection, deps, row).unknown(connection, handed, MANUAL), now, "manual")


def hindrance_of(connection: Connection, row: IssuanceRow, finding: Finding) -> Obstacle | None:
    """None where the line that was found is nobody's, or was in stock before the draw, and no other draw could have been given it."""
    candidate = finding.verdict.candidate
    if candidate is None:
        return None
    holder = holder_of(connection, iccid=candidate.iccid)
    if holder is not None and not was_returned(connection, stock=row.stock, holder=holder):
        return "line_of_another"
    alone = not any(fit(candidate.package, rival) in ("shows", "unreadable") for rival in rivals_of(connection, row=row))
    return None if alone else "equal_keys"


def purpose_of(connection: Connection, deps: Deps, row: IssuanceRow) -> Purpose:
    """What a row was drawn for, long after its call."""
    if row.operation == FULFIL:
        return OrderPurpose(deps, row.key, row.organisation)
    if row.intent is None:
        return InventoryPurpose(row.key, deps.ids.new("req_"), deps.ids)
    intent = find_intent(connection, intent=row.intent, organisation=row.organisation)
    if intent is None:
        raise RuntimeError(f"there is no intent {row.intent}")
    status = 201 if row.operation == "create_connectivity_intent" else 200
    return IntentPurpose(intent, False, status, deps.keyring, deps.ids)


def keep(connection: Connection, deps: Deps, row: IssuanceRow, concluded: Conclusion, now: float, outcome: Outcome) -> Outcome:
    """The key's stored answer follows the row; the audit log says who decided."""
    keep_answer(connection, deps, row, concluded)
    append_line(connection, audit_of(row, deps, now, f"reconciled_{outcome}", concluded.status))
    return outcome


def keep_answer(connection: Connection, deps: Deps, row: IssuanceRow, concluded: Conclusion) -> None:
    """What the key answers from now on."""
    if row.claim_key is None:
        return
    settle_unknown(
        connection,
        organisation=row.organisation,
        operation=row.operation,
        key=row.claim_key,
        state="unknown" if concluded.unknown else "done",
        status=concluded.status,
        body=deps.keyring.seal(
            orjson.dumps(concluded.body).decode(), org_id=row.organisation, field=claim_field(row.operation, row.claim_key)
        ),
    )


def audit_of(row: IssuanceRow, deps: Deps, now: float, outcome: str, status: int) -> Line:
    """The audit row of a settlement by evidence."""
    return Line(now, row.organisation, "worker", row.operation, "reconciliation", "", outcome, status, 0.0, deps.ids.new("req_"))
