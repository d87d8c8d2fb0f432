"""The transactions of a call: recheck, claim, confirm, charge, its own writes, its answer and its audit row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, TypeVar

from registry.clock import Clock
from registry.errors import Unauthorized
from registry.limits import Role, Tier, scopes_of
from registry.ports import Arguments, Conclusion, Entry, Line, Write, Writes
from storage.calls import claims, confirm, quota
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.directory import MEMBER_BY_KEY
from storage.people.grants import GRANT, MEMBER_BY_GRANT
from storage.people.memberships import MEMBER_OF

T = TypeVar("T")


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
    if entry.key_id.startswith(GRANT):
        member = connection.first(MEMBER_BY_GRANT, grant=entry.key_id, now=entry.now)
    elif entry.key_id:
        member = connection.first(MEMBER_BY_KEY, key_id=entry.key_id, now=entry.now)
    else:
        member = connection.first(MEMBER_OF, person=entry.principal, organisation=entry.organisation)
    lacks_role = entry.admin and member is not None and Role(member.role) is not Role.ADMIN
    if member is None or lacks_role or entry.scope & ~scopes_of(Tier(member.tier), Role(member.role)):
        raise Unauthorized("The credential or its membership has changed since the call began; nothing was done", presented=True)


class ClaimName(TypedDict):
    """Which claim a call has."""

    organisation: str
    operation: str
    key: str


def name_of(entry: Entry) -> ClaimName | None:
    """Nothing, for a call without an idempotency key."""
    if entry.idempotency_key is None:
        return None
    return {"organisation": entry.owner, "operation": entry.operation, "key": entry.idempotency_key}


def begin(connection: Connection, entry: Entry, opening: Opening, answer: Answer | None) -> None:
    """Recheck, claim, confirm and charge. With an answer the claim is done at once, without one it is under way."""
    if entry.recheck:
        recheck(connection, entry)
    name = name_of(entry)
    if name is not None:
        claims.claim(
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
        )
    if entry.confirm is not None:
        spend(connection, entry=entry)
    if entry.key_limit is not None and entry.cost and not entry.key_leased:
        own = quota.charge(
            connection, organisation=entry.key_limit.name, period=entry.period.name, cost=entry.cost, limit=entry.key_limit.calls
        )
        if own is None:
            raise entry.key_limit.over
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
        fingerprint=entry.confirm_fingerprint,
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
        entry.change,
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
    keep(connection, entry, opening.owner, "done", answer)
    append_line(connection, audit_line(entry, "ok", answer.status, opening.clock))
    return result


def keep(connection: Connection, entry: Entry, owner: str, state: str, answer: Answer) -> bool:
    """Store the answer, where the call has a key; False when the claim is not this call's any more."""
    name = name_of(entry)
    if name is None:
        return True
    return claims.finish(connection, **name, owner=owner, lease=entry.request_id, state=state, status=answer.status, body=answer.body)


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
    keep(connection, entry, opening.owner, "unknown" if unknown else "done", answer)
    append_line(connection, audit_line(entry, outcome, answer.status, opening.clock))


def send(connection: Connection, *, entry: Entry, owner: str, lost: Answer, writes: Writes) -> None:
    """The commit right before the provider is called: whoever lost access meanwhile sends nothing."""
    if entry.recheck:
        recheck(connection, entry)
    name = name_of(entry)
    if name is not None:
        claims.dispatch(connection, **name, owner=owner, lease=entry.request_id, status=lost.status, body=lost.body)
    for write, arguments in writes:
        write(connection, **arguments)


def give_up(connection: Connection, *, entry: Entry, owner: str, writes: Writes) -> None:
    """An answer that could not be stored: the outcome is unknown from now on, not in progress for ever."""
    name = name_of(entry)
    if name is not None:
        claims.freeze(connection, **name, seen=owner, lease=entry.request_id)
    for write, arguments in writes:
        write(connection, **arguments)


def conclude(
    connection: Connection,
    *,
    entry: Entry,
    opening: Opening,
    finish: Callable[[Conclusion], Answer],
    write: Callable[..., Conclusion],
    arguments: Arguments,
) -> Conclusion:
    """The second commit of a dispatched call: what the write finds decides the answer."""
    concluded = write(connection, **arguments)
    answer = finish(concluded)
    name = name_of(entry)
    kept = keep(connection, entry, opening.owner, "unknown" if concluded.unknown else "done", answer)
    if name is not None and not kept:
        found = claims.find_claim(connection, **name, now=int(entry.now))
        if found is not None and found.body is not None:  # settled while this process was away: one key has one answer
            raise claims.Lost(found)
    append_line(connection, audit_line(entry, concluded.outcome, answer.status, opening.clock))
    return concluded


def release(connection: Connection, *, entry: Entry, owner: str, charged: bool, refund: bool, writes: Writes) -> None:
    """Undo an opening of which the provider did nothing. `charged`: the organisation's call was charged here and is given back;
    `refund`: what a restricted key was charged is."""
    for write, arguments in writes:
        write(connection, **arguments)
    name = name_of(entry)
    if name is not None:
        claims.release(connection, **name, owner=owner, lease=entry.request_id)
    if charged:
        quota.give_back(connection, organisation=entry.owner, period=entry.period.name, cost=entry.cost)
    if refund and entry.key_limit is not None and not entry.key_leased:
        quota.give_back(connection, organisation=entry.key_limit.name, period=entry.period.name, cost=entry.cost)
