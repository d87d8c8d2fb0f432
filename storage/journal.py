"""The pipeline's Journal, and the transactions of a call that it runs: recheck, claim, confirm, charge, the call's own writes, its answer
and its audit row. It seals answers, and buffers what may be lost.
"""

import asyncio
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, NamedTuple, TypedDict

from registry.call import QuotaUsage
from registry.caller import Role, Tier
from registry.clock import Clock
from registry.errors import BadRequest, Refusal, StoreUnavailable, Unauthorized
from registry.policy import scopes_of
from registry.ports import (
    AlreadyAnswered,
    AuditRecord,
    CallRecord,
    Conclusion,
    SpendingCharge,
    StoredAnswer,
    WriteArguments,
    WriteFunction,
    WriteList,
)
from registry.versions import ChangeAuthor, ChangeLookup
from storage import claims, confirm_tokens, quota
from storage.audit import NumberedAuditRecord, append_audit_reads, append_audit_record, last_change
from storage.directory import recheck_member
from storage.engine.sql import Connection, P, T, is_run_in_thread, runs_in_thread
from storage.engine.store import Store
from storage.orphans import LogLost, recover_orphans
from storage.sealing import Keyring, claim_field
from storage.spending import give_back_call, keep_charges, reserve_spending


class SealedAnswer(NamedTuple):
    status: int
    body: str


@dataclass(frozen=True, slots=True)
class CallOpening:
    """What an opening needs beside the entry: the process that claims, the clock, and whether to charge here."""

    owner: str
    clock: Clock
    charge: bool


def recheck_membership(connection: Connection, entry: CallRecord) -> None:
    """Key, membership and tier once more, inside the transaction that moves a SIM or money."""
    named = {"person": entry.principal, "organisation": entry.organisation, "credential": entry.key_id}
    member = recheck_member(connection, **named, now=entry.now)
    lacks_role = entry.admin and member is not None and Role(member.role) is not Role.ADMIN
    if member is None or lacks_role or entry.scope & ~scopes_of(Tier(member.tier), Role(member.role)):
        raise Unauthorized("The credential or its membership has changed since the call began; nothing was done", presented=True)


class ClaimKey(TypedDict):
    organisation: str
    operation: str
    key: str


def claim_key_of(entry: CallRecord) -> ClaimKey | None:
    """Nothing, for a call without an idempotency key."""
    if entry.idempotency_key is None:
        return None
    return {"organisation": entry.owner, "operation": entry.operation, "key": entry.idempotency_key}


def open_call(connection: Connection, entry: CallRecord, opening: CallOpening, answer: SealedAnswer | None) -> None:
    """Recheck, claim, confirm and charge, money and `times` last. With an answer the claim is done at once, without one it is under way."""
    if entry.recheck:
        recheck_membership(connection, entry)
    name = claim_key_of(entry)
    if name is not None:
        claims.take_claim(
            connection,
            **name,
            fingerprint=entry.fingerprint,
            owner=opening.owner,
            lease=entry.request_id,
            now=int(entry.now),
            expires_at=entry.expires_at,
            state="done" if answer else "claimed" if entry.staged else "dispatching",
            status=answer.status if answer else None,
            body=answer.body if answer else None,
            former=entry.former_keys,
        )
    if entry.confirm is not None:
        spend_confirm_token(connection, entry=entry)
    if entry.key_limit is not None and entry.cost and not entry.key_leased:
        own = quota.charge_quota(
            connection, organisation=entry.key_limit.name, period=entry.period.name, cost=entry.cost, limit=entry.key_limit.calls
        )
        if own is None:
            raise entry.key_limit.over
    if opening.charge and entry.cost:
        used = quota.charge_quota(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost, limit=entry.limit)
        if used is None:
            raise entry.over_quota(entry.limit)
        entry.usage = QuotaUsage(entry.limit, used, entry.period.reset)
    if entry.charges:
        reserve_spending(connection, charges=entry.charges, now=entry.now)


def open_separately(connection: Connection, *, entry: CallRecord, opening: CallOpening) -> None:
    """The commit that opens a call before a provider is asked: what it takes from limits may have to be given back."""
    open_call(connection, entry, opening, None)
    if entry.charges:
        keep_charges(connection, call=entry.request_id, charges=entry.charges)


def spend_confirm_token(connection: Connection, *, entry: CallRecord) -> None:
    """Use the confirm token of a call up. BadRequest does not say which part of it did not match."""
    assert entry.confirm is not None
    was_good = confirm_tokens.use_confirm_token(
        connection,
        digest=entry.confirm,
        organisation=entry.owner,
        principal=entry.principal,
        operation=entry.operation,
        fingerprint=entry.confirm_fingerprint,
        now=entry.now,
    )
    if not was_good:
        raise BadRequest(
            "The confirm token is wrong, expired, already used, or was given for another call; this call did nothing",
            code="confirm_token_invalid",
            param="confirm_token",
            hint="If it was used, the call that it confirmed was made: look what came of it before you ask again. "
            "A call without a token gets a new one; it is valid for 120 seconds, once, for the same input",
        )


def audit_record_of(entry: CallRecord, outcome: str, status: int, clock: Clock) -> AuditRecord:
    """The audit row of a write."""
    milliseconds = round((clock.monotonic() - entry.started) * 1000, 3)
    return AuditRecord(
        entry.now,
        entry.organisation,
        entry.surface,
        entry.operation,
        entry.principal,
        entry.key_id,
        outcome,
        status,
        milliseconds,
        entry.request_id,
        entry.change,
    )


def runs_in_thread_like(write: object, fn: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Connection, P], T]:
    """A function that runs another one in its transaction takes as long as that one."""
    return runs_in_thread(fn) if is_run_in_thread(write) else fn


def settle_call(
    connection: Connection,
    *,
    entry: CallRecord,
    opening: CallOpening,
    answer: SealedAnswer | None,
    status: int,
    write: WriteFunction[T] | None,
    arguments: WriteArguments,
) -> T | None:
    """One commit for a call that writes only our own store."""
    open_call(connection, entry, opening, answer)
    entry.began = True
    result = write(connection, **arguments) if write is not None else None
    append_audit_record(connection, audit_record_of(entry, "ok", status, opening.clock))
    return result


def settle_call_result(
    connection: Connection,
    *,
    entry: CallRecord,
    opening: CallOpening,
    finish: Callable[[T], SealedAnswer],
    write: WriteFunction[T],
    arguments: WriteArguments,
) -> T:
    """One commit for a call whose answer only the write can tell."""
    open_call(connection, entry, opening, None)
    entry.began = True
    result = write(connection, **arguments)
    answer = finish(result)
    store_answer(connection, entry, opening.owner, "done", answer)
    append_audit_record(connection, audit_record_of(entry, "ok", answer.status, opening.clock))
    return result


def store_answer(connection: Connection, entry: CallRecord, owner: str, state: str, answer: SealedAnswer) -> bool:
    """Store the answer, where the call has a key; False when the claim is not this call's any more."""
    name = claim_key_of(entry)
    if name is None:
        return True
    return claims.finish_claim(connection, **name, owner=owner, lease=entry.request_id, state=state, status=answer.status, body=answer.body)


def close_call(
    connection: Connection,
    *,
    entry: CallRecord,
    opening: CallOpening,
    answer: SealedAnswer,
    outcome: str,
    unknown: bool,
    writes: WriteList,
) -> None:
    """The second commit of a call that stood between two."""
    if entry.unsent and entry.charges:
        give_back_call(connection, call=entry.request_id)
    for write, arguments in writes:
        write(connection, **arguments)
    store_answer(connection, entry, opening.owner, "unknown" if unknown else "done", answer)
    append_audit_record(connection, audit_record_of(entry, outcome, answer.status, opening.clock))


def dispatch_call(connection: Connection, *, entry: CallRecord, owner: str, lost: SealedAnswer, writes: WriteList) -> None:
    """The commit right before the provider is called: whoever lost access meanwhile sends nothing."""
    if entry.recheck:
        recheck_membership(connection, entry)
    name = claim_key_of(entry)
    if name is not None:
        claims.dispatch_claim(connection, **name, owner=owner, lease=entry.request_id, status=lost.status, body=lost.body)
    for write, arguments in writes:
        write(connection, **arguments)


def mark_outcome_unknown(connection: Connection, *, entry: CallRecord, owner: str, writes: WriteList) -> None:
    """An answer that could not be stored: the outcome is unknown from now on, not in progress for ever."""
    name = claim_key_of(entry)
    if name is not None:
        claims.mark_claim_unknown(connection, **name, seen=owner, lease=entry.request_id)
    for write, arguments in writes:
        write(connection, **arguments)


def conclude_call(
    connection: Connection,
    *,
    entry: CallRecord,
    opening: CallOpening,
    finish: Callable[[Conclusion], SealedAnswer],
    write: Callable[..., Conclusion],
    arguments: WriteArguments,
) -> Conclusion:
    """The second commit of a dispatched call: what the write finds decides the answer."""
    concluded = write(connection, **arguments)
    answer = finish(concluded)
    if concluded.nothing_done and entry.charges:
        give_back_call(connection, call=entry.request_id)
    name = claim_key_of(entry)
    kept = store_answer(connection, entry, opening.owner, "unknown" if concluded.unknown else "done", answer)
    if name is not None and not kept:
        found = claims.find_claim(connection, **name, now=int(entry.now))
        if found is not None and found.body is not None:  # settled while this process was away: one key has one answer
            raise claims.ClaimAnswered(found)
    append_audit_record(connection, audit_record_of(entry, concluded.outcome, answer.status, opening.clock))
    return concluded


def release_call(connection: Connection, *, entry: CallRecord, owner: str, charged: bool, refund: bool, writes: WriteList) -> None:
    """Undo an opening of which the provider did nothing. `charged`: the organisation's call was charged here and is given back;
    `refund`: what a restricted key was charged is. What it took from limits of money and `times` always is."""
    if entry.charges:  # first: an opening, too, locks these counters before the rows of its writes
        give_back_call(connection, call=entry.request_id)
    for write, arguments in writes:
        write(connection, **arguments)
    name = claim_key_of(entry)
    if name is not None:
        claims.release_claim(connection, **name, owner=owner, lease=entry.request_id)
    if charged:
        quota.refund_quota(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost)
    if refund and entry.key_limit is not None and not entry.key_leased:
        quota.refund_quota(connection, organisation=entry.key_limit.name, period=entry.period.name, cost=entry.cost)


MOST_BUFFERED_RECORDS = 50_000
MOST_DEFERRED_OPENINGS = 10_000


class StoreJournal:
    """Runs the transactions of calls in a store."""

    def __init__(
        self, store: Store, *, keyring: Keyring, blocks: quota.QuotaBlocks, clock: Clock, replica: str, log_lost: LogLost | None = None
    ) -> None:
        """`log_lost` writes the events of issuances that a process which is gone had sent."""
        self._log_lost = log_lost
        self._store, self._keyring, self._blocks, self._clock, self.replica = store, keyring, blocks, clock, replica
        self._lines: list[NumberedAuditRecord] = []
        # Begins elsewhere in each process, so that reads of two processes in one millisecond rarely have the same number.
        self._number = zlib.crc32(replica.encode())
        self._debts: list[Callable[[Connection], None]] = []
        # Calls that were refused because the store failed; in a long outage they are many. Choice: beyond this the oldest are dropped:
        # few of their claims are there, and what is there is freed by recovery when this process has ended.
        self._openings: deque[Callable[[Connection], None]] = deque(maxlen=MOST_DEFERRED_OPENINGS)
        # On PostgreSQL one quota row would serialise an organisation's calls across COMMIT: there every charge is leased.
        self._leases = store.dialect_name == "postgresql"

    async def first_known(self, organisation: str, operation: str, keys: Sequence[str], now: float) -> str | None:
        """The first of these idempotency keys that has been used; None when none has."""
        return await self._store.read(claims.first_claimed_key, organisation=organisation, operation=operation, keys=keys, now=int(now))

    async def stored(self, entry: CallRecord) -> StoredAnswer | None:
        """The answer an earlier call with this key got."""
        assert entry.idempotency_key is not None
        now = int(entry.now)
        found = await self._store.read(
            claims.find_claim, organisation=entry.owner, operation=entry.operation, key=entry.idempotency_key, now=now
        )
        if found is None:
            return None
        if found.state in claims.CLAIM_RUNNING_STATES and not found.is_running(entry.now):
            await self._store.write(recover_orphans, now=entry.now, log=self._log_lost)
            if found.state == "claimed":  # it was never sent, so the key is free
                return None
        claims.check_replay(found, entry.fingerprint, entry.now)
        return self._unseal(entry, found)

    async def challenge(self, entry: CallRecord, digest: bytes, expires_at: float) -> None:
        """Keep a confirm token's digest."""
        await self._store.write(
            confirm_tokens.insert_confirm_token,
            digest=digest,
            organisation=entry.owner,
            principal=entry.principal,
            operation=entry.operation,
            fingerprint=entry.confirm_fingerprint,
            expires_at=expires_at,
        )

    async def charge(self, charges: Sequence[SpendingCharge], now: float) -> None:
        """Take what a read takes from the limits of its credential, in a commit of its own."""
        await self._store.write(reserve_spending, charges=charges, now=now)

    async def settle(self, entry: CallRecord, stored: StoredAnswer, write: WriteFunction[T] | None, arguments: WriteArguments) -> T | None:
        """Open, the write and close in one commit."""
        answer = self._seal(entry, stored) if entry.idempotency_key else None
        return await self._opened(
            entry,
            lambda opening: self._store.write(
                runs_in_thread_like(write, settle_call),
                entry=entry,
                opening=opening,
                answer=answer,
                status=stored.status,
                write=write,
                arguments=arguments,
            ),
        )

    async def settle_result(
        self, entry: CallRecord, encode: Callable[[T], StoredAnswer], write: WriteFunction[T], arguments: WriteArguments
    ) -> T:
        """The same for an answer that only the write can tell."""

        def finish(result: T) -> SealedAnswer:
            return self._seal(entry, encode(result))

        return await self._opened(
            entry,
            lambda opening: self._store.write(
                runs_in_thread_like(write, settle_call_result),
                entry=entry,
                opening=opening,
                finish=finish,
                write=write,
                arguments=arguments,
            ),
        )

    async def open(self, entry: CallRecord) -> None:
        """Claim, consume the confirm token and charge, before a provider is called."""
        try:
            await self._opened(entry, lambda opening: self._store.write(open_separately, entry=entry, opening=opening))
        except (StoreUnavailable, asyncio.CancelledError):
            if entry.idempotency_key is not None or entry.charges:  # the commit may be there though nobody heard: its key would be busy
                self._openings.append(partial(release_call, entry=entry, owner=self.replica, charged=False, refund=False, writes=[]))
            raise

    async def dispatch(self, entry: CallRecord, lost: StoredAnswer, writes: WriteList) -> None:
        """Mark a staged call as sent, right before it is."""
        answer = self._seal(entry, lost)
        await self._store.write(dispatch_call, entry=entry, owner=self.replica, lost=answer, writes=writes)

    async def close(
        self,
        entry: CallRecord,
        stored: StoredAnswer,
        *,
        outcome: str,
        unknown: bool,
        writes: WriteList,
        lost: WriteList,
    ) -> None:
        """Keep the answer, run the writes and record; without a store, remember that the outcome is not known."""
        answer = self._seal(entry, stored)
        opening = CallOpening(self.replica, self._clock, charge=False)
        try:
            await self._store.write(
                close_call, entry=entry, opening=opening, answer=answer, outcome=outcome, unknown=unknown, writes=writes
            )
        except StoreUnavailable:
            await self._owe(partial(mark_outcome_unknown, entry=entry, owner=self.replica, writes=lost))
            raise

    async def conclude(
        self,
        entry: CallRecord,
        encode: Callable[[object], bytes],
        write: Callable[..., Conclusion],
        arguments: WriteArguments,
        *,
        lost: WriteList,
    ) -> Conclusion:
        """Close a dispatched call by a write that says what its answer is."""

        def finish(concluded: Conclusion) -> SealedAnswer:
            return self._seal(entry, StoredAnswer(concluded.status, encode(concluded.body)))

        opening = CallOpening(self.replica, self._clock, charge=False)
        try:
            return await self._store.write(conclude_call, entry=entry, opening=opening, finish=finish, write=write, arguments=arguments)
        except claims.ClaimAnswered as lost_to:
            raise AlreadyAnswered(self._unseal(entry, lost_to.claim)) from None
        except StoreUnavailable:
            await self._owe(partial(mark_outcome_unknown, entry=entry, owner=self.replica, writes=lost))
            raise

    async def release(self, entry: CallRecord, writes: WriteList, *, refund: bool) -> None:
        """Forget the claim, and give the charge back where it is due."""
        charged = refund and bool(entry.cost) and not entry.leased
        freeing = partial(release_call, entry=entry, owner=self.replica, charged=charged, refund=refund and bool(entry.cost), writes=writes)
        try:
            await self._store.write(freeing)
        except StoreUnavailable:
            await self._owe(freeing)
            raise
        if refund:
            self._return(entry)

    async def read(self, read: Callable[..., T], *arguments: object) -> T:
        """What a function of a connection and these arguments finds."""
        return await self._store.read(read, *arguments)

    async def last_change(self, lookup: ChangeLookup) -> ChangeAuthor | None:
        """Who made a change, by the audit log."""
        return await self._store.read(last_change, lookup=lookup, now=self._clock.now())

    def record(self, line: AuditRecord) -> None:
        """Buffer the audit row of a read or a refusal; a flood beyond the buffer loses its oldest rows."""
        self._number += 1
        self._lines.append(NumberedAuditRecord(self._number, line))
        if len(self._lines) > MOST_BUFFERED_RECORDS:
            del self._lines[: MOST_BUFFERED_RECORDS // 10]

    async def flush(self) -> None:
        """Write the buffered rows; what could not be written waits for the next flush."""
        await self._pay()
        lines, self._lines = self._lines, []
        written = 0
        try:
            while written < len(lines):
                await self._store.write(append_audit_reads, lines=lines[written : written + 500])
                written += 500
        finally:
            self._lines[:0] = lines[written:]

    async def _owe(self, debt: Callable[[Connection], None]) -> None:
        """What the store would not take is written as soon as it works again, now or with the next flush."""
        self._debts.append(debt)
        with suppress(StoreUnavailable):
            await self._pay()

    async def _pay(self) -> None:
        while self._debts:
            debt = self._debts.pop(0)  # so that two flushes at once never both pay it
            try:
                await self._store.write(debt)
            except BaseException:
                self._debts.insert(0, debt)
                raise
        while self._openings:
            opening = self._openings.popleft()
            try:
                await self._store.write(opening)
            except BaseException:
                if len(self._openings) < MOST_DEFERRED_OPENINGS:  # else it is the oldest of too many
                    self._openings.appendleft(opening)
                raise

    async def _opened(self, entry: CallRecord, run: Callable[[CallOpening], Awaitable[T]]) -> T:
        """Pay from the leased block where that is how this process pays, and give it back when the transaction refused."""
        await self._take(entry)
        done = False
        try:
            result = await run(CallOpening(self.replica, self._clock, charge=not entry.leased))
            done = True
            return result
        except claims.ClaimAnswered as lost:
            raise AlreadyAnswered(self._unseal(entry, lost.claim)) from None
        except Refusal as refusal:
            if entry.began and entry.confirm is not None and not isinstance(refusal, StoreUnavailable):
                await self._store.write(spend_confirm_token, entry=entry)  # the action has failed: its token went with it
            raise
        except asyncio.CancelledError:
            done = True  # whoever hangs up does not undo a write that has run: it stays paid for
            raise
        finally:
            if not done:
                self._return(entry)

    async def _take(self, entry: CallRecord) -> None:
        """One call from the leased blocks of the organisation and of the key, where that is how they are paid."""
        key, blocks = entry.key_limit, self._blocks
        if key is not None and entry.cost and blocks.unspent(key.name, entry.period) > 0:
            entry.key_leased = await blocks.take(key.name, key.calls, entry.period, entry.now) is not None
            if not entry.key_leased:
                raise key.over
        entry.leased = bool(entry.cost) and (self._leases or blocks.unspent(entry.owner, entry.period) > 0)
        if entry.leased:
            entry.usage = await blocks.take(entry.owner, entry.limit, entry.period, entry.now)
            if entry.usage is None:
                entry.leased = False
                self._return(entry)
                raise entry.over_quota(entry.limit)

    def _return(self, entry: CallRecord) -> None:
        """Put back what was taken from leased blocks."""
        if entry.leased:
            self._blocks.give_back(entry.owner, entry.period)
        if entry.key_leased and entry.key_limit is not None:
            self._blocks.give_back(entry.key_limit.name, entry.period)

    def _seal(self, entry: CallRecord, stored: StoredAnswer) -> SealedAnswer:
        """The answer as it is stored; its status alone where the call has no key."""
        if not entry.idempotency_key:
            return SealedAnswer(stored.status, "")
        return SealedAnswer(stored.status, self._keyring.seal(stored.body.decode(), org_id=entry.owner, field=answer_field(entry)))

    def _unseal(self, entry: CallRecord, claim: claims.Claim) -> StoredAnswer:
        assert claim.body is not None and claim.status is not None
        return StoredAnswer(claim.status, self._keyring.open(claim.body, org_id=entry.owner, field=answer_field(entry)).encode())


def answer_field(entry: CallRecord) -> str:
    """What binds a sealed answer to its row."""
    assert entry.idempotency_key is not None
    return claim_field(entry.operation, entry.idempotency_key)
