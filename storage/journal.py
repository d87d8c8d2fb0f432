"""The pipeline's Journal: recheck, claim, confirm, charge, the call's own write, its answer and its audit row in one commit."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from registry.clock import Clock
from registry.errors import Refusal, StoreUnavailable, Unauthorized
from registry.limits import Role, Tier, scopes_of
from registry.ports import Arguments, Entry, Line, Replayed, Stored, Write, Writes
from storage import claims, confirm, quota
from storage.audit import append_line, append_lines
from storage.connection import Connection
from storage.directory import MEMBER_BY_KEY, MEMBER_OF
from storage.sealed_fields import claim_field
from storage.sealing import Keyring
from storage.store import Store

T = TypeVar("T")
BUFFERED_LINES = 50_000


class Answer(NamedTuple):
    """A stored answer, sealed."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What an opening needs beside the entry: the process that claims, the clock, and whether to charge here."""

    owner: str
    clock: Clock
    charge: bool


def recheck(connection: Connection, entry: Entry) -> None:
    """Key, membership and tier once more, inside the transaction that moves a SIM or money."""
    if entry.key_id:
        member = connection.first(MEMBER_BY_KEY, key_id=entry.key_id, now=entry.now)
    else:
        member = connection.first(MEMBER_OF, person=entry.principal, organisation=entry.organisation)
    if member is None or entry.scope & ~scopes_of(Tier(member.tier), Role(member.role)):
        raise Unauthorized("The credential or its membership has changed since the call began; nothing was done", presented=True)


def begin(connection: Connection, entry: Entry, opening: Opening, answer: Answer | None) -> None:
    """Recheck, claim, confirm and charge. With an answer the claim is done at once, without one it is dispatching."""
    if entry.recheck:
        recheck(connection, entry)
    if entry.idempotency_key is not None:
        claims.claim(
            connection,
            organisation=entry.owner,
            operation=entry.operation,
            key=entry.idempotency_key,
            fingerprint=entry.fingerprint,
            owner=opening.owner,
            now=int(entry.now),
            expires_at=entry.expires_at,
            state="done" if answer else "dispatching",
            status=answer.status if answer else None,
            body=answer.body if answer else None,
        )
    if entry.confirm is not None:
        spend(connection, entry=entry)
    if opening.charge and entry.cost:
        used = quota.charge(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost, limit=entry.limit)
        if used is None:
            raise entry.over_quota(entry.limit)
        entry.usage = quota.Usage(entry.limit, used, entry.period.reset)


def spend(connection: Connection, *, entry: Entry) -> None:
    """Use the confirm token up."""
    assert entry.confirm is not None
    confirm.consume(
        connection,
        digest=entry.confirm,
        organisation=entry.owner,
        principal=entry.principal,
        operation=entry.operation,
        fingerprint=entry.fingerprint,
        now=entry.now,
    )


def audit_line(entry: Entry, outcome: str, status: int, clock: Clock) -> Line:
    """The audit row of a write."""
    milliseconds = round((clock.monotonic() - entry.started) * 1000, 3)
    return Line(
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
    )


def settle(
    connection: Connection,
    *,
    entry: Entry,
    opening: Opening,
    answer: Answer | None,
    status: int,
    write: Write[T] | None,
    arguments: Arguments,
) -> T | None:
    """One commit for a call that writes only our own store."""
    begin(connection, entry, opening, answer)
    entry.began = True
    result = write(connection, **arguments) if write is not None else None
    append_line(connection, audit_line(entry, "ok", status, opening.clock))
    return result


def settle_result(
    connection: Connection,
    *,
    entry: Entry,
    opening: Opening,
    finish: Callable[[T], Answer],
    write: Write[T],
    arguments: Arguments,
) -> T:
    """One commit for a call whose answer only the write can tell."""
    begin(connection, entry, opening, None)
    entry.began = True
    result = write(connection, **arguments)
    answer = finish(result)
    if entry.idempotency_key is not None:
        keep(connection, entry, opening.owner, "done", answer)
    append_line(connection, audit_line(entry, "ok", answer.status, opening.clock))
    return result


def keep(connection: Connection, entry: Entry, owner: str, state: str, answer: Answer) -> None:
    """Store the answer under the key; fenced by owner and state."""
    assert entry.idempotency_key is not None
    claims.finish(
        connection,
        organisation=entry.owner,
        operation=entry.operation,
        key=entry.idempotency_key,
        owner=owner,
        state=state,
        status=answer.status,
        body=answer.body,
    )


def close(
    connection: Connection,
    *,
    entry: Entry,
    opening: Opening,
    answer: Answer,
    outcome: str,
    unknown: bool,
    writes: Writes,
) -> None:
    """The second commit of a call that stood between two."""
    for write, arguments in writes:
        write(connection, **arguments)
    if entry.idempotency_key is not None:
        keep(connection, entry, opening.owner, "unknown" if unknown else "done", answer)
    append_line(connection, audit_line(entry, outcome, answer.status, opening.clock))


def release(connection: Connection, *, entry: Entry, owner: str, charged: bool) -> None:
    """Undo an opening whose call never reached the provider."""
    if entry.idempotency_key is not None:
        claims.release(connection, organisation=entry.owner, operation=entry.operation, key=entry.idempotency_key, owner=owner)
    if charged:
        quota.give_back(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost)


class StoreJournal:
    """Runs the functions above in the store's transactions, and buffers what may be lost."""

    def __init__(self, store: Store, *, keyring: Keyring, blocks: quota.QuotaBlocks, clock: Clock, replica: str) -> None:
        self._store, self._keyring, self._blocks, self._clock, self.replica = store, keyring, blocks, clock, replica
        self._lines: list[Line] = []
        self._unkept: list[Entry] = []
        # On PostgreSQL one quota row would serialise an organisation's calls across COMMIT: there every charge is leased.
        self._leases = store.dialect_name == "postgresql"

    async def stored(self, entry: Entry) -> Stored | None:
        """The answer an earlier call with this key got."""
        assert entry.idempotency_key is not None
        now = int(entry.now)
        found = await self._store.read(
            claims.find_claim, organisation=entry.owner, operation=entry.operation, key=entry.idempotency_key, now=now
        )
        if found is None:
            return None
        if found.state == "dispatching" and not found.is_running(entry.now):
            await self._store.write(
                claims.freeze, organisation=entry.owner, operation=entry.operation, key=entry.idempotency_key, seen=found.owner
            )
        claims.judge(found, entry.fingerprint, entry.now)
        return self._unseal(entry, found)

    async def challenge(self, entry: Entry, digest: bytes, expires_at: float) -> None:
        """Keep a confirm token's digest."""
        await self._store.write(
            confirm.keep_token,
            digest=digest,
            organisation=entry.owner,
            principal=entry.principal,
            operation=entry.operation,
            fingerprint=entry.fingerprint,
            expires_at=expires_at,
        )

    async def settle(self, entry: Entry, stored: Stored, write: Write[T] | None, arguments: Arguments) -> T | None:
        """Open, the write and close in one commit."""
        answer = self._seal(entry, stored) if entry.idempotency_key else None
        return await self._opened(
            entry,
            lambda opening: self._store.write(
                settle, entry=entry, opening=opening, answer=answer, status=stored.status, write=write, arguments=arguments
            ),
        )

    async def settle_result(self, entry: Entry, encode: Callable[[T], Stored], write: Write[T], arguments: Arguments) -> T:
        """The same for an answer that only the write can tell."""

        def finish(result: T) -> Answer:
            stored = encode(result)
            return self._seal(entry, stored) if entry.idempotency_key else Answer(stored.status, "")

        return await self._opened(
            entry,
            lambda opening: self._store.write(settle_result, entry=entry, opening=opening, finish=finish, write=write, arguments=arguments),
        )

    async def open(self, entry: Entry) -> None:
        """Claim, consume the confirm token and charge, before a provider is called."""
        await self._opened(entry, lambda opening: self._store.write(begin, entry, opening, None))

    async def close(
        self,
        entry: Entry,
        stored: Stored,
        *,
        outcome: str,
        unknown: bool,
        writes: Writes,
    ) -> None:
        """Keep the answer, run the writes and record."""
        answer = self._seal(entry, stored) if entry.idempotency_key else Answer(stored.status, "")
        opening = Opening(self.replica, self._clock, charge=False)
        try:
            await self._store.write(close, entry=entry, opening=opening, answer=answer, outcome=outcome, unknown=unknown, writes=writes)
        except StoreUnavailable:
            if entry.idempotency_key is not None:
                self._unkept.append(entry)
                with suppress(StoreUnavailable):  # else the next flush does it
                    await self._freeze_unkept()
            raise

    async def release(self, entry: Entry) -> None:
        """Forget the claim and give the charge back."""
        await self._store.write(release, entry=entry, owner=self.replica, charged=bool(entry.cost) and not entry.leased)
        if entry.leased:
            self._blocks.give_back(entry.owner, entry.period)

    def record(self, line: Line) -> None:
        """Buffer the audit row of a read or a refusal; a flood beyond the buffer loses its oldest rows."""
        self._lines.append(line)
        if len(self._lines) > BUFFERED_LINES:
            del self._lines[: BUFFERED_LINES // 10]

    async def flush(self) -> None:
        """Write the buffered rows; what could not be written waits for the next flush."""
        await self._freeze_unkept()
        lines, self._lines = self._lines, []
        written = 0
        try:
            while written < len(lines):
                await self._store.write(append_lines, lines=lines[written : written + 500])
                written += 500
        finally:
            self._lines[:0] = lines[written:]

    async def _freeze_unkept(self) -> None:
        """Calls whose answer could not be stored: their outcome is unknown from now on, not in progress for ever."""
        while self._unkept:
            entry = self._unkept[0]
            assert entry.idempotency_key is not None
            await self._store.write(
                claims.freeze, organisation=entry.owner, operation=entry.operation, key=entry.idempotency_key, seen=self.replica
            )
            self._unkept.remove(entry)

    async def _opened(self, entry: Entry, run: Callable[[Opening], Awaitable[T]]) -> T:
        """Pay from the leased block where that is how this process pays, and give it back when the transaction refused."""
        entry.leased = bool(entry.cost) and (self._leases or self._blocks.unspent(entry.owner, entry.period) > 0)
        if entry.leased:
            entry.usage = await self._blocks.take(entry.owner, entry.limit, entry.period, entry.now)
            if entry.usage is None:
                raise entry.over_quota(entry.limit)
        done = False
        try:
            result = await run(Opening(self.replica, self._clock, charge=not entry.leased))
            done = True
            return result
        except claims.Lost as lost:
            raise Replayed(self._unseal(entry, lost.claim)) from None
        except Refusal as refusal:
            if entry.began and entry.confirm is not None and not isinstance(refusal, StoreUnavailable):
                await self._store.write(spend, entry=entry)  # the action has failed: its token went with it
            raise
        except asyncio.CancelledError:
            done = True  # whoever hangs up does not undo a write that has run: it stays paid for
            raise
        finally:
            if entry.leased and not done:
                self._blocks.give_back(entry.owner, entry.period)

    def _seal(self, entry: Entry, stored: Stored) -> Answer:
        return Answer(stored.status, self._keyring.seal(stored.body.decode(), org_id=entry.owner, field=field_of(entry)))

    def _unseal(self, entry: Entry, claim: claims.Claim) -> Stored:
        assert claim.body is not None and claim.status is not None
        return Stored(claim.status, self._keyring.open(claim.body, org_id=entry.owner, field=field_of(entry)).encode())


def field_of(entry: Entry) -> str:
    """What binds a sealed answer to its row."""
    assert entry.idempotency_key is not None
    return claim_field(entry.operation, entry.idempotency_key)
