"""Giving an issued eSIM back to stock: remove the package, free the SIM unless it was downloaded, and read back that it is so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import orjson
from typing_extensions import TypedDict

from clients.ocs.client import Ocs
from clients.ocs.failure import OcsNotFound
from operations.deps import Ctx
from operations.services.issuing.account_stock import is_free
from operations.services.issuing.intent_purpose import error_of
from operations.services.issuing.issued_line import LineHasPackages, has_issued, has_others, require_alone
from operations.services.issuing.ledger import NO_PROOF
from operations.services.issuing.purpose import MANUAL
from operations.services.network.lines import Line
from registry.errors import Conflict, OcsError, Refusal
from registry.policy import stamp
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.intents import end_intent
from storage.issuing.issuance import IssuanceRow, find_issuance
from storage.issuing.rollbacks import begin_rollback, finish_rollback, keep_issued, lose_rollback, note_steps, rollback_running
from storage.shop.top_ups import added_to

T = TypeVar("T")
IN_STOCK = frozenset({"available", "allocated", "released"})
ROLLED_BACK = error_of("rolled_back", "The eSIM was taken back: its package is removed")


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


def ledger_row(row: IssuanceRow) -> LedgerRow:
    """A row as its owner sees it."""
    return {
        "idempotency_key": row.key,
        "status": row.state,
        "iccid": row.iccid,
        "package_id": row.package_id,
        "account_id": row.account_id,
        "updated_at": stamp(row.updated),
    }


def rolled_back(connection: Connection, row: IssuanceRow) -> object:
    """The row, as its operator gets it."""
    del connection
    return {"data": ledger_row(row)}


Shown = Callable[[Connection, IssuanceRow], object]


class Stuck(Exception):
    """From here on nobody knows; nothing further is sent."""


class Seen(NamedTuple):
    """The line as it was read just now: still of the row's account, and without the issued package."""

    free: bool
    others: bool


async def roll_back(ctx: Ctx, line: Line, row: IssuanceRow, shown: Shown = rolled_back) -> Conclusion:
    """Look whether it may go, claim the row, give the eSIM back, and say what came of it; `shown` is the answer when it went."""
    added = await ctx.deps.store.read(added_to, order=row.key)
    await require_idle(ctx, line, row)
    attempt = Rollback(ctx, line.upstream.ocs, row)
    named = attempt.named
    attempt.steps.append(["delete_package", "sent"])
    ctx.if_unsent(keep_issued, **named, now=ctx.now)
    await ctx.dispatch(
        manual_answer(row._replace(state="rollback_unknown", updated=ctx.now), ctx.call.request_id),
        begin_rollback,
        **named,
        owner=ctx.deps.replica,
        steps=attempt.text,
        added=added,
        now=ctx.deps.clock.now(),
    )
    ctx.if_lost(lose_rollback, **named, now=ctx.now)
    refusal: Refusal | None = None
    settled: Callable[..., Conclusion] = settle_rolled_back
    try:
        refusal = await attempt.run()
        if refusal is not None:
            settled = settle_kept
    except Stuck:
        settled = settle_lost
    ctx.deps.stock.forget(row.iccid or "")
    return await ctx.conclude(
        settled, **named, steps=attempt.text, refusal=refusal, request_id=ctx.call.request_id, shown=shown, now=ctx.deps.clock.now()
    )


async def require_idle(ctx: Ctx, line: Line, row: IssuanceRow) -> None:
    """Nothing has been sent yet, and nothing is while the line has another package."""
    held = await line.upstream.ocs.packages.list_packages(line.subscriber_id)
    try:
        require_alone(held, row, ctx.deps.clock.now())
    except LineHasPackages:  # unless another call took the eSIM back since we read the row: then it is the next one's package
        now = await ctx.deps.store.read(find_issuance, organisation=row.organisation, key=row.key)
        if now is None or now.state != row.state:
            raise rollback_running() from None
        raise


@dataclass(slots=True)
class Rollback:
    """One attempt, and what it has done so far: each step with how it went."""

    ctx: Ctx
    ocs: Ocs
    row: IssuanceRow
    steps: list[list[str]] = field(default_factory=list[list[str]])

    @property
    def named(self) -> dict[str, str]:
        """The row, and the call that has it."""
        return {"organisation": self.row.organisation, "key": self.row.key, "lease": self.ctx.call.request_id}

    @property
    def text(self) -> str:
        """The steps as they are kept."""
        return orjson.dumps(self.steps).decode()

    async def run(self) -> Refusal | None:
        """Every step and the read-back. A refusal: nothing was done, for sure. Stuck: the first answer that proves nothing."""
        refusal = await self._delete_package()
        if refusal is not None:
            return refusal
        downloaded = await self._was_downloaded()
        if not downloaded:
            await self._free_sim()
        await self._read_back(downloaded)
        return None

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
            if refusal.outcome_unknown or refusal.ocs_code in NO_PROOF:
                raise Stuck
        self.steps[-1][1] = "refused"
        return refusal

    async def _was_downloaded(self) -> bool:
        """Whether the profile ever left the SM-DP+: then it cannot be installed again, and stays affected."""
        await self._record("asked", "provider_status")
        rows = await proven(self.ocs.subscriber.get_sim_provider_status(self._sim_id()))
        if not rows:  # the draw put a row there, and a fault empties lists
            self.steps[-1][1] = "nothing told"
            raise Stuck
        downloaded = any(row.get("status", "").lower() not in IN_STOCK for row in rows)
        await self._record("downloaded" if downloaded else "never downloaded")
        return downloaded

    async def _free_sim(self) -> None:
        """The SIM goes to whoever draws next, so the line is read once more: the steps before took their time."""
        self.steps.append(["line", "asked"])
        if (await self._look()).others:
            self.steps[-1][1] = "has another package"
            raise Stuck
        self.steps[-1][1] = "without packages"
        await self._record("sent", "free_sim")
        await proven(self.ocs.subscriber.change_sim_status(self._sim_id(), "Free"))
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
            raise Stuck
        self.steps[-1][1] = "package gone, SIM " + ("stays affected" if downloaded else "drawn again" if drawn_again else "free")

    async def _look(self) -> Seen:
        """The line as it is now. It was moved, or still has the issued package: Stuck."""
        line = await proven(self.ocs.subscriber.get_single_subscriber(self.row.iccid or "", by="iccid"))
        if line.get("accountId") != self.row.account_id:
            raise Stuck
        held = await proven(self.ocs.packages.list_packages(line.get("subscriberId", 0)))
        if has_issued(held, self.row):
            raise Stuck
        return Seen(is_free(line), has_others(held, self.row, self.ctx.deps.clock.now()))

    def _sim_id(self) -> int:
        if self.row.sim_id is None:
            raise Stuck
        return self.row.sim_id

    async def _record(self, outcome: str, step: str | None = None) -> None:
        """Keep what was done before the next thing is. A row that was taken away from this call ends it."""
        if step is None:
            self.steps[-1][1] = outcome
        else:
            self.steps.append([step, outcome])
        deps = self.ctx.deps
        if not await proven(deps.store.write(note_steps, **self.named, steps=self.text, now=deps.clock.now())):
            raise Stuck


async def proven(asking: Awaitable[T]) -> T:
    """The answer; once something may have been changed every failure leaves it unknown how things stand."""
    try:
        return await asking
    except Refusal:
        raise Stuck from None


def settle_rolled_back(
    connection: Connection, *, organisation: str, key: str, steps: str, shown: Shown, now: float, **told: object
) -> Conclusion:
    """It was given back; an intent has its eSIM no more."""
    del told
    row = finish_rollback(connection, organisation=organisation, key=key, steps=steps, note=None, now=now)
    if row is not None and row.intent is not None:
        end_intent(connection, intent=row.intent, organisation=organisation, error=ROLLED_BACK)
    return Conclusion(200, shown(connection, row or current(connection, organisation, key)), False, "ok")


def settle_kept(
    connection: Connection,
    *,
    organisation: str,
    key: str,
    lease: str,
    steps: str,
    refusal: Refusal,
    request_id: str,
    now: float,
    **told: object,
) -> Conclusion:
    """Nothing was given back."""
    del told
    keep_issued(connection, organisation=organisation, key=key, lease=lease, now=now, steps=steps)
    return Conclusion(refusal.status, refusal.body(request_id), False, refusal.error_code)


def settle_lost(
    connection: Connection,
    *,
    organisation: str,
    key: str,
    lease: str,
    steps: str,
    request_id: str,
    shown: Shown,
    now: float,
    **told: object,
) -> Conclusion:
    """Nobody knows what was given back."""
    del told
    row = lose_rollback(connection, organisation=organisation, key=key, lease=lease, now=now, steps=steps)
    row = row or current(connection, organisation, key)
    if row.state == "rolled_back":  # seen in stock, and drawn again, meanwhile
        return Conclusion(200, shown(connection, row), False, "ok")
    status, body = manual_answer(row, request_id)
    return Conclusion(status, body, True, MANUAL)


def current(connection: Connection, organisation: str, key: str) -> IssuanceRow:
    """The row as it is now."""
    row = find_issuance(connection, organisation=organisation, key=key)
    if row is None:
        raise RuntimeError(f"there is no issuance {key}")
    return row


def manual(row: IssuanceRow) -> OcsError:
    """What was given back is not known; the row is part of the answer."""
    return OcsError(
        "Whether the eSIM was given back is not known; a person at the service has to settle it. It is never issued again by itself",
        code=MANUAL,
        outcome_unknown=True,
        details={**ledger_row(row)},
        hint="Keep the key, and have whoever runs the service look: reseller issuance list --unknown",
    )


def manual_answer(row: IssuanceRow, request_id: str) -> tuple[int, dict[str, object]]:
    """Its status and body."""
    refusal = manual(row)
    return refusal.status, refusal.body(request_id)


def require_issued(row: IssuanceRow, line: Line | None) -> Line:
    """Refuse what cannot be rolled back; nothing is sent then. The line of what can be."""
    if row.state == "rollback_pending":
        raise rollback_running()
    if row.state == "rollback_unknown":
        raise manual(row)
    if row.state != "issued" or line is None:
        raise NotIssued(
            f"This issuance is {row.state}, so there is no eSIM to give back",
            hint="An outcome that is not known is found out by itself; repeat the issuing call with its key to learn it",
        )
    if row.package_id is None:
        raise NotIssued("This issuance has no package id, so it cannot be rolled back automatically; a person has to", code=MANUAL)
    return line
