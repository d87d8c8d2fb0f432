"""The transactions of a call: recheck, claim, confirm, charge, its own writes, its answer and its audit row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from registry.call import QuotaUsage
from registry.clock import Clock
from registry.errors import Unauthorized
from registry.limits import Role, Tier, scopes_of
from registry.ports import AuditRecord, CallRecord, Conclusion, WriteArguments, WriteFunction, WriteList
from storage import claims, confirm_tokens, quota
from storage.access_grants import GRANT_PREFIX, MEMBER_BY_GRANT
from storage.audit import append_audit_record
from storage.directory import MEMBER_BY_KEY
from storage.engine.connection import Connection, T
from storage.memberships import FIND_MEMBERSHIP


class SealedAnswer(NamedTuple):
    """A stored answer, sealed."""

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
    if entry.key_id.startswith(GRANT_PREFIX):
        member = connection.first(MEMBER_BY_GRANT, grant=entry.key_id, now=entry.now)
    elif entry.key_id:
        member = connection.first(MEMBER_BY_KEY, key_id=entry.key_id, now=entry.now)
    else:
        member = connection.first(FIND_MEMBERSHIP, person=entry.principal, organisation=entry.organisation)
    lacks_role = entry.admin and member is not None and Role(member.role) is not Role.ADMIN
    if member is None or lacks_role or entry.scope & ~scopes_of(Tier(member.tier), Role(member.role)):
        raise Unauthorized("The credential or its membership has changed since the call began; nothing was done", presented=True)


class ClaimKey(TypedDict):
    """Which claim a call has."""

    organisation: str
    operation: str
    key: str


def claim_key_of(entry: CallRecord) -> ClaimKey | None:
    """Nothing, for a call without an idempotency key."""
    if entry.idempotency_key is None:
        return None
    return {"organisation": entry.owner, "operation": entry.operation, "key": entry.idempotency_key}


def open_call(connection: Connection, entry: CallRecord, opening: CallOpening, answer: SealedAnswer | None) -> None:
    """Recheck, claim, confirm and charge. With an answer the claim is done at once, without one it is under way."""
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


def spend_confirm_token(connection: Connection, *, entry: CallRecord) -> None:
    """Use the confirm token up."""
    assert entry.confirm is not None
    confirm_tokens.use_confirm_token(
        connection,
        digest=entry.confirm,
        organisation=entry.owner,
        principal=entry.principal,
        operation=entry.operation,
        fingerprint=entry.confirm_fingerprint,
        now=entry.now,
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
    `refund`: what a restricted key was charged is."""
    for write, arguments in writes:
        write(connection, **arguments)
    name = claim_key_of(entry)
    if name is not None:
        claims.release_claim(connection, **name, owner=owner, lease=entry.request_id)
    if charged:
        quota.refund_quota(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost)
    if refund and entry.key_limit is not None and not entry.key_leased:
        quota.refund_quota(connection, organisation=entry.key_limit.name, period=entry.period.name, cost=entry.cost)
