"""Giving an issued eSIM back to stock: remove the package, free the SIM unless it was downloaded, and read back that it is so.

A draw makes its line Active. One that was Inactive before is made Inactive again, while its SIM is not in stock yet.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple, TypeVar

import orjson
from typing_extensions import TypedDict

from clients.ocs.client import Ocs
from clients.ocs.packages import Package, PackageList, RecurringSeries
from clients.ocs.subscribers import Subscriber
from clients.ocs.times import wire_seconds
from operations.caches.account_parts import entry_start
from operations.deps import Ctx
from operations.ledger.evidence import DRAW_CLOCK_SKEW
from operations.ledger.intents import ROLLED_BACK
from operations.ledger.issuance import MANUAL_RECONCILIATION, current_issuance, is_unproven
from operations.ledger.issuance_events import log_esim_rolled_back
from operations.ledger.issuance_targets import intent_error_json
from operations.ledger.send_once import UNKNOWN, SendOutcome, send_once
from operations.ledger.stock_snapshot import is_sim_in_stock
from operations.upstream.connection import Upstream
from operations.upstream.lines import Line, find_line, line_status_word, package_end
from operations.upstream.package_losses import losses_challenge, package_loss
from operations.vocabulary import render_fields
from registry.challenge import Challenge, describe_loss, quote_name
from registry.clock import rfc3339_utc
from registry.errors import Conflict, NotFound, OcsError, OcsNotFound, Refusal
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.fleet_lines import mark_lines
from storage.intents import end_intent
from storage.issuance import IssuanceRow, find_issuance
from storage.line_tags import end_tags
from storage.rollbacks import begin_rollback, finish_rollback, keep_issued, mark_rollback_unknown, note_steps, rollback_is_running
from storage.top_ups import packages_added_to


async def issuance_challenge(row: IssuanceRow, line: Line | None, now: float) -> Challenge:
    """What taking the eSIM of `row` back from `line` would destroy. `now`: Unix seconds. Raises OcsError. Waits for the network."""
    order = quote_name(row.key)
    if line is None:
        return Challenge(f"The issuance {order} is {row.state}: nothing is taken back from it any more.")
    held = await line.upstream.ocs.packages.list_packages(line.subscriber_id, version="v2")
    esim = describe_loss("esim", line.iccid, order=row.key, account=str(row.account_id))
    losses = tuple(package_loss(package, now) for package in held.get("packages", []) if is_issued_package(package, row))
    return losses_challenge(
        f"This will take back the eSIM that was issued for the order {order}",
        (esim, *losses),
        "Its package is removed and what is unused is lost; a profile that was downloaded does not return to stock.",
    )


class LineHasPackages(Conflict):
    """The line has a package besides the issued one, so its SIM is in use."""

    code = "line_has_packages"


async def find_issued_line(upstream: Upstream, row: IssuanceRow) -> Line | None:
    """The line of `row`, where it is still in the account that it was drawn from; else None, since nobody gives it back from elsewhere."""
    try:
        line = await find_line(upstream, row.iccid or "")
    except NotFound:
        return None
    return line if line.row.get("accountId") == row.account_id else None


def has_issued_package(held: PackageList, row: IssuanceRow) -> bool:
    """Whether `held`, the packages of the line, has the package that `row` issued."""
    return any(is_issued_package(package, row) for package in held.get("packages", []))


def has_other_packages(held: PackageList, row: IssuanceRow, now: float) -> bool:
    """Whether the line has anything else: a package that has not expired, or a series that will make one. `now`: Unix seconds."""
    others = (package for package in held.get("packages", []) if not is_issued_package(package, row))
    return any(not has_surely_expired(package, now) for package in others) or any(
        makes_more_packages(series) for series in held.get("recurring", [])
    )


def is_issued_package(package: Package, row: IssuanceRow) -> bool:
    return package.get("subscriberprepaidpackageid") == row.package_id


def has_surely_expired(package: Package, now: float) -> bool:
    """Choice: only what ended longer ago than clocks differ has expired for sure; a date that cannot be read proves nothing."""
    try:
        end = package_end(package)
    except OcsError:
        return False
    return end is not None and end + DRAW_CLOCK_SKEW <= datetime.fromtimestamp(now, UTC)


def makes_more_packages(series: RecurringSeries) -> bool:
    """Whether it makes packages still: it was not stopped, and has not made all of them."""
    most = series.get("nbOccurrence")
    return series.get("active") is not False and (most is None or series.get("nbCreated", 0) < most)


ACTIVATION_SECONDS = 60.0
"""Choice: how far the charging system's own times of a draw, of its SIM and of its line, may be apart."""


def was_inactive_before_draw(line: Subscriber) -> bool:
    """Whether it was the draw that made the line Active, and it was Inactive until then, by the charging system's own times."""
    drawn = wire_seconds(line.get("sim", {}).get("affectationDateUtc"))
    history = sorted(line.get("status", ()), key=entry_start)
    for before, entry in pairwise(history):
        since = wire_seconds(entry.get("startDate"))
        if drawn is not None and since is not None and abs(since - drawn) <= ACTIVATION_SECONDS:
            return [(each.get("status") or "").upper() for each in (before, entry)] == ["INACTIVE", "ACTIVE"]
    return False


def require_no_other_packages(held: PackageList, row: IssuanceRow, now: float) -> None:
    """Refuse while somebody uses the line for something else: its SIM would go to stock, and to the next one, with that on it."""
    if has_other_packages(held, row, now):
        raise LineHasPackages(
            "This eSIM's line has another package or series, so it cannot go back to stock; nothing was taken back",
            hint="Remove it first: delete_subscriber_package, or stop_resume_recurring_package for a series; "
            "list_subscriber_packages shows what the line has",
        )


ProvenAnswer = TypeVar("ProvenAnswer")
PROVIDER_STOCK_STATUSES = frozenset({"available", "allocated", "released"})
INTENT_ROLLED_BACK = intent_error_json(ROLLED_BACK, "The eSIM was taken back: its package is removed")


class LedgerRow(TypedDict):
    """An issuance: its key, what became of it, and what it drew. `updated_at` is UTC."""

    idempotency_key: str
    status: str
    iccid: str | None
    package_id: int | None
    account_id: int
    updated_at: str


class LedgerData(TypedDict):
    """`data` holds the row."""

    data: LedgerRow


class NotIssued(Conflict):
    """There is nothing that could be rolled back."""

    code = "issuance_not_issued"


def render_ledger_row(row: IssuanceRow) -> LedgerRow:
    """The ledger's `row` as its owner sees it."""
    return render_fields(row, LedgerRow, idempotency_key=row.key, status=row.state, updated_at=rfc3339_utc(row.updated))


def render_rolled_back(_connection: Connection, row: IssuanceRow) -> object:
    return {"data": render_ledger_row(row)}


RenderRollback = Callable[[Connection, IssuanceRow], object]


class RollbackOutcomeUnknown(Exception):
    """From here on nobody knows; nothing further is sent."""


class RollbackLine(NamedTuple):
    """The line as it was read just now: still of the row's account, and without the issued package."""

    id: int
    free: bool
    others: bool
    active: bool


async def roll_back_issuance(ctx: Ctx, line: Line, row: IssuanceRow, shown: RenderRollback = render_rolled_back) -> Conclusion:
    """Look whether it may go, claim the row, give the eSIM back, and say what came of it; `shown` is the answer when it went."""
    added = await ctx.deps.store.read(packages_added_to, order=row.key)
    await require_idle_line(ctx, line, row)
    return await send_once(ctx, RollbackAttempt(ctx, line.upstream.ocs, row, added, shown, was_inactive_before_draw(line.row)))


async def require_idle_line(ctx: Ctx, line: Line, row: IssuanceRow) -> None:
    """Nothing has been sent yet, and nothing is while the line has another package."""
    held = await line.upstream.ocs.packages.list_packages(line.subscriber_id)
    try:
        require_no_other_packages(held, row, ctx.deps.clock.now())
    except LineHasPackages:  # unless another call took the eSIM back since we read the row: then it is the next one's package
        now = await ctx.deps.store.read(find_issuance, organisation=row.organisation, key=row.key)
        if now is None or now.state != row.state:
            raise rollback_is_running() from None
        raise


@dataclass(slots=True)
class RollbackAttempt:
    """One attempt, and what it has done so far: each step with how it went. `added`: the packages that top-ups put on the line.

    `inactive`: the line was Inactive before the draw.
    """

    ctx: Ctx
    ocs: Ocs
    row: IssuanceRow
    added: frozenset[int]
    shown: RenderRollback
    inactive: bool
    steps: list[list[str]] = field(default_factory=lambda: [["delete_package", "sent"]])

    @property
    def named(self) -> dict[str, str]:
        return {"organisation": self.row.organisation, "key": self.row.key, "lease": self.ctx.call.request_id}

    @property
    def text(self) -> str:
        return orjson.dumps(self.steps).decode()

    @property
    def lost_answer(self) -> tuple[int, object]:
        return rollback_unknown_answer(self.row._replace(state="rollback_unknown", updated=self.ctx.now), self.ctx.call.request_id)

    def begin(self, connection: Connection, *, now: float) -> None:
        begin_rollback(connection, **self.named, owner=self.ctx.deps.replica, steps=self.text, added=self.added, now=now)

    async def send(self, waited: float) -> SendOutcome[None]:
        """Every step and the read-back. Nothing further is sent after the first answer that proves nothing."""
        del waited
        try:
            outcome = await self._give_back()
        except RollbackOutcomeUnknown:
            outcome = UNKNOWN
        self.ctx.deps.stock.forget(self.row.iccid or "")
        return outcome

    def settle(self, connection: Connection, *, outcome: SendOutcome[None], now: float) -> Conclusion:
        mark_lines(connection, iccids=[self.row.iccid or ""], now=now, by=self.row.organisation)
        if isinstance(outcome, Refusal):
            keep_issued(connection, **self.named, now=now, steps=self.text)
            return Conclusion(outcome.status, outcome.body(self.ctx.call.request_id), False, outcome.error_code)
        organisation, key = self.row.organisation, self.row.key
        if outcome is UNKNOWN:
            row = mark_rollback_unknown(connection, **self.named, now=now, steps=self.text)
        else:
            row = finish_rollback(connection, organisation=organisation, key=key, steps=self.text, note=None, now=now)
            end_tags(connection, organisation=organisation, iccids=[self.row.iccid or ""])
            if row is not None:
                log_esim_rolled_back(connection, row=row, ids=self.ctx.deps.ids, now=now)
            if row is not None and row.intent is not None:
                end_intent(connection, intent=row.intent, organisation=organisation, error=INTENT_ROLLED_BACK)
        row = row or current_issuance(connection, organisation, key)
        if outcome is None or row.state == "rolled_back":  # also one that was seen in stock, and drawn again, meanwhile
            return Conclusion(200, self.shown(connection, row), False, "ok")
        status, body = rollback_unknown_answer(row, self.ctx.call.request_id)
        return Conclusion(status, body, True, MANUAL_RECONCILIATION)

    def unsend(self, connection: Connection, *, now: float) -> None:
        keep_issued(connection, **self.named, now=now)

    async def _give_back(self) -> Refusal | None:
        refusal = await self._delete_package()
        if refusal is None:
            downloaded = await self._was_downloaded()
            if not downloaded:
                await self._free_sim()
            elif self.inactive:
                await self._make_inactive(await self._look())
            await self._read_back(downloaded)
        return refusal

    async def _delete_package(self) -> Refusal | None:
        package_id = self.row.package_id or 0
        try:
            await self.ocs.packages.delete(package_id)
        except OcsNotFound:  # somebody removed it, or so it says: a SIM that has its package still must not go back to stock
            await self._look()
            await self._record("absent")
        except Refusal as refusal:
            return await self._refused(refusal)
        else:
            await self._record("done")
        return None

    async def _refused(self, refusal: Refusal) -> Refusal:
        if isinstance(refusal, OcsError):
            if refusal.before_execution and refusal.ocs_code is None:
                raise refusal  # it never left: the pipeline takes the claim back
            if is_unproven(refusal):
                raise RollbackOutcomeUnknown
        self.steps[-1][1] = "refused"
        return refusal

    async def _was_downloaded(self) -> bool:
        """Whether the profile ever left the SM-DP+: then it cannot be installed again, and stays affected."""
        await self._record("asked", "provider_status")
        rows = await require_rollback_answer(self.ocs.subscriber.get_sim_provider_status(self._sim_id()))
        if not rows:  # the draw put a row there, and a fault empties lists
            self.steps[-1][1] = "nothing told"
            raise RollbackOutcomeUnknown
        downloaded = any(row.get("status", "").lower() not in PROVIDER_STOCK_STATUSES for row in rows)
        await self._record("downloaded" if downloaded else "never downloaded")
        return downloaded

    async def _free_sim(self) -> None:
        """The SIM goes to whoever draws next, so the line is read once more: the steps before took their time."""
        self.steps.append(["line", "asked"])
        seen = await self._look()
        if seen.others:
            self.steps[-1][1] = "has another package"
            raise RollbackOutcomeUnknown
        self.steps[-1][1] = "without packages"
        await self._make_inactive(seen)
        await self._record("sent", "free_sim")
        await require_rollback_answer(self.ocs.subscriber.change_sim_status(self._sim_id(), "Free"))
        await self._record("done")

    async def _make_inactive(self, seen: RollbackLine) -> None:
        """The line, as it is `seen`, is what it was before the draw. Somebody who suspended it since, or uses it, has the last word.

        Choice: one that the charging system refuses to make Inactive stays Active, and goes back all the same.
        """
        if not self.inactive or seen.others or not seen.active:
            return
        await self._record("sent", "inactive")
        try:
            await self.ocs.subscriber.modify_status(seen.id, "INACTIVE")
        except Refusal as refusal:
            if isinstance(refusal, OcsError) and (refusal.before_execution or is_unproven(refusal)):
                raise RollbackOutcomeUnknown from None
            await self._record("refused")
        else:
            await self._record("done")

    async def _read_back(self, downloaded: bool) -> None:
        """The package is gone and the SIM is in stock, or it stays with whoever downloaded it.

        Choice: a SIM whose line had no package when it was freed, and has another one now, was in stock and was drawn again meanwhile.
        """
        self.steps.append(["read_back", "asked"])
        seen = await self._look()
        if seen.free and seen.others:  # drawn between the two reads of one look
            seen = await self._look()
        drawn_again = not downloaded and seen.others and not seen.free
        if not drawn_again and (seen.free == downloaded or (seen.free and seen.others)):
            raise RollbackOutcomeUnknown
        self.steps[-1][1] = "package gone, SIM " + ("stays affected" if downloaded else "drawn again" if drawn_again else "free")

    async def _look(self) -> RollbackLine:
        """The line as it is now. Raises RollbackOutcomeUnknown where it was moved, or still has the issued package."""
        line = await require_rollback_answer(self.ocs.subscriber.get_single_subscriber(self.row.iccid or "", by="iccid"))
        if line.get("accountId") != self.row.account_id:
            raise RollbackOutcomeUnknown
        id = line.get("subscriberId", 0)
        held = await require_rollback_answer(self.ocs.packages.list_packages(id))
        if has_issued_package(held, self.row):
            raise RollbackOutcomeUnknown
        others = has_other_packages(held, self.row, self.ctx.deps.clock.now())
        return RollbackLine(id, is_sim_in_stock(line), others, line_status_word(line) == "ACTIVE")

    def _sim_id(self) -> int:
        if self.row.sim_id is None:
            raise RollbackOutcomeUnknown
        return self.row.sim_id

    async def _record(self, outcome: str, step: str | None = None) -> None:
        """Keep what was done before the next thing is. A row that was taken away from this call ends it."""
        if step is None:
            self.steps[-1][1] = outcome
        else:
            self.steps.append([step, outcome])
        deps = self.ctx.deps
        if not await require_rollback_answer(deps.store.write(note_steps, **self.named, steps=self.text, now=deps.clock.now())):
            raise RollbackOutcomeUnknown


async def require_rollback_answer(asking: Awaitable[ProvenAnswer]) -> ProvenAnswer:
    """The answer; once something may have been changed every failure leaves it unknown how things stand."""
    try:
        return await asking
    except Refusal:
        raise RollbackOutcomeUnknown from None


def rollback_unknown(row: IssuanceRow) -> OcsError:
    """The refusal where nobody knows what was given back; it shows `row`."""
    return OcsError(
        "Whether the eSIM was given back is not known; a person at the service has to settle it. It is never issued again by itself",
        code=MANUAL_RECONCILIATION,
        outcome_unknown=True,
        details={**render_ledger_row(row)},
        hint="Keep the key, and have whoever runs the service look: reseller issuance list --unknown",
    )


def rollback_unknown_answer(row: IssuanceRow, request_id: str) -> tuple[int, dict[str, object]]:
    refusal = rollback_unknown(row)
    return refusal.status, refusal.body(request_id)


def require_rollbackable(row: IssuanceRow, line: Line | None) -> Line:
    """The line of an issuance that can be rolled back. Raises NotIssued, Conflict or OcsError, before anything is sent."""
    if row.state == "rollback_pending":
        raise rollback_is_running()
    if row.state == "rollback_unknown":
        raise rollback_unknown(row)
    if row.state != "issued" or line is None:
        raise NotIssued(
            f"This issuance is {row.state}, so there is no eSIM to give back",
            hint="An outcome that is not known is found out by itself; repeat the issuing call with its key to learn it",
        )
    if row.package_id is None:
        raise NotIssued(
            "This issuance has no package id, so it cannot be rolled back automatically; a person has to", code=MANUAL_RECONCILIATION
        )
    return line
