"""Idempotency claims: the row is the lock, and its INSERT decides every race (storage.md 4).

`claimed`: opened, and surely not sent; what its process leaves behind is free again. `dispatching`: may have been sent; what is left of
it is `unknown`, for ever, until somebody settles it. `done`: answered, unless the provider's own answer comes later and says otherwise.
`expired`: answered long ago, and only the key is kept (expired_keys.py).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict, OcsError
from storage.calls.expired_keys import EXPIRED, digest_of, expired
from storage.calls.replicas import LEASE_SECONDS
from storage.connection import Connection
from storage.schema import ClaimTable, IssuanceTable, ReplicaTable
from storage.statement import Command, Query, table, unindexed

CLAIM, REPLICA, ISSUANCE = table(ClaimTable), table(ReplicaTable), table(IssuanceTable)
UNDER_WAY = ("claimed", "dispatching")


class Claim(NamedTuple):
    """A key's state and, once it is done, its sealed answer. `lease` is its owner's."""

    fingerprint: bytes
    state: str
    owner: str
    claimed: int
    expires_at: int | None
    status: int | None
    body: str | None
    lease: float | None

    def is_running(self, now: float) -> bool:
        """Its owner has not left, and lives, or claimed too lately to be called dead: one that missed its lease may have gone on."""
        return self.state in UNDER_WAY and self.lease is not None and max(self.lease, self.claimed + LEASE_SECONDS) >= now


class Owner(NamedTuple):
    """Who holds a claim."""

    owner: str


def same(organisation: str, operation: str, key: str) -> sa.ColumnElement[bool]:
    """The row of a key; the three names are the binds that hold it."""
    return (
        (CLAIM.c.organisation == sa.bindparam(organisation))
        & (CLAIM.c.operation == sa.bindparam(operation))
        & (CLAIM.c.key == sa.bindparam(key))
    )


def held(name: str) -> sa.ColumnElement[bool]:
    """Its call still has it: a process whose lease had run out for a while may have lost a claim, and another of its calls got it."""
    return same("of", "op", "named") & (CLAIM.c.owner == sa.bindparam(name)) & (CLAIM.c.lease == sa.bindparam("held_by"))


VALUES = ("organisation", "operation", "key", "fingerprint", "state", "owner", "lease", "claimed", "expires_at", "status", "body")
EXPIRED_HERE = EXPIRED.c.digest == sa.bindparam("digest", type_=sa.LargeBinary)
GIVEN = sa.select(*(sa.cast(sa.bindparam(name, type_=CLAIM.c[name].type), CLAIM.c[name].type).label(name) for name in VALUES))
# A key whose retention has ended is free again, unless nobody knows what its call did. One that never expires is not, though its claim is
# gone: a call looks for both in one snapshot before it comes here, and no call lasts as long as an answer is kept.
INSERT = Query(
    Owner,
    lambda dialect: (
        dialect.insert(CLAIM)
        .from_select(VALUES, GIVEN.where(sa.not_(sa.exists().where(EXPIRED_HERE))))
        .on_conflict_do_update(
            index_elements=["organisation", "operation", "key"],
            set_={name: sa.bindparam(name) for name in VALUES[3:]},
            where=(CLAIM.c.expires_at <= sa.bindparam("claimed")) & (CLAIM.c.state == "done"),
        )
        .returning(CLAIM.c.owner)
    ),
)
# Both halves in one statement, so that a key that is swept just now is seen in one of them.
READ = Query(
    Claim,
    sa.union_all(
        sa.select(
            CLAIM.c.fingerprint,
            CLAIM.c.state,
            CLAIM.c.owner,
            CLAIM.c.claimed,
            CLAIM.c.expires_at,
            CLAIM.c.status,
            CLAIM.c.body,
            REPLICA.c.expires_at.label("lease"),
        )
        .join_from(CLAIM, REPLICA, CLAIM.c.owner == REPLICA.c.id, isouter=True)
        .where(same("organisation", "operation", "key")),
        sa.select(
            EXPIRED.c.fingerprint,
            sa.literal_column("'expired'", sa.Text),
            sa.literal_column("''", sa.Text),
            EXPIRED.c.claimed,
            sa.null(),
            EXPIRED.c.status,
            sa.null(),
            sa.null(),
        ).where(EXPIRED_HERE),
    ),
)
FINISH = Command(
    sa.update(CLAIM)
    .where(held("mine"), CLAIM.c.state.in_([*UNDER_WAY, "unknown"]))
    .values(state=sa.bindparam("state"), status=sa.bindparam("status"), body=sa.bindparam("body"))
)
DISPATCH = Command(
    sa.update(CLAIM)
    .where(held("mine"), CLAIM.c.state == "claimed")
    .values(state="dispatching", status=sa.bindparam("status"), body=sa.bindparam("body"))
)
SETTLE = Command(
    sa.update(CLAIM)
    .where(same("of", "op", "named"), CLAIM.c.state == "unknown")
    .values(state=sa.bindparam("state"), status=sa.bindparam("status"), body=sa.bindparam("body"))
)
REOPEN = Command(sa.update(CLAIM).where(same("of", "op", "named"), CLAIM.c.state == "done").values(state="unknown"))
FREEZE = Command(sa.update(CLAIM).where(held("seen"), CLAIM.c.state == "dispatching").values(state="unknown"))
IN_THE_LEDGER = sa.exists().where(
    ISSUANCE.c.organisation == CLAIM.c.organisation, ISSUANCE.c.operation == CLAIM.c.operation, ISSUANCE.c.claim_key == CLAIM.c.key
)
# A process that missed its lease has its claims taken for unknown. The call knows better, unless a row was taken with the claim.
RELEASE = Command(
    sa.delete(CLAIM).where(held("mine"), CLAIM.c.state.in_(UNDER_WAY) | ((CLAIM.c.state == "unknown") & sa.not_(IN_THE_LEDGER)))
)
ORPHANED = CLAIM.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (CLAIM.c.claimed >= sa.bindparam("before")))
)
FREEZE_ORPHANS = Command(sa.update(CLAIM).where(CLAIM.c.state == "dispatching", ORPHANED).values(state="unknown"))
FREE_ORPHANS = Command(sa.delete(CLAIM).where(CLAIM.c.state == "claimed", ORPHANED))
FORGET = Command(sa.delete(CLAIM).where(CLAIM.c.operation == sa.bindparam("operation_id")))
HAS_ENDED = (CLAIM.c.expires_at <= sa.bindparam("before")) & (unindexed(CLAIM.c.state) == "done")
NAMES = (CLAIM.c.organisation, CLAIM.c.operation, CLAIM.c.key)
ENDED = sa.select(*NAMES).where(HAS_ENDED).order_by(CLAIM.c.expires_at).limit(sa.bindparam("most"))
# Said twice: PostgreSQL asks a row that has changed meanwhile for the outer condition only, and a key may have been claimed anew.
SWEEP = Command(sa.delete(CLAIM).where(sa.tuple_(*NAMES).in_(ENDED), HAS_ENDED))


class Lost(Exception):
    """Control flow: the key has an answer already."""

    def __init__(self, claim: Claim) -> None:
        super().__init__("claimed")
        self.claim = claim


def claim(
    connection: Connection,
    *,
    organisation: str,
    operation: str,
    key: str,
    fingerprint: bytes,
    owner: str,
    lease: str,
    now: int,
    expires_at: int | None,
    state: str = "dispatching",
    status: int | None = None,
    body: str | None = None,
    former: Sequence[str] = (),
) -> None:
    """Take the key, or say what stands in the way: Lost with its answer, Conflict while it is busy or with other input.

    The spellings in `former` are never taken. One of them may be the key all the same: it then has an answer, or is not what the call
    saw any more, and whoever repeats the call sees how it is now.
    """
    for spelling in former:
        known = find_claim(connection, organisation=organisation, operation=operation, key=spelling, now=now)
        if known is not None and spelling == key:
            judge(known, fingerprint, now)
            raise Lost(known)
        if known is not None:  # a process of the release before has stored it just now
            raise busy()
    if key in former:
        raise busy()
    named = {"organisation": organisation, "operation": operation, "key": key, "digest": digest_of(organisation, operation, key)}
    taken = connection.first(
        INSERT,
        **named,
        fingerprint=fingerprint,
        state=state,
        owner=owner,
        lease=lease,
        claimed=now,
        expires_at=expires_at,
        status=status,
        body=body,
    )
    if taken is None:
        found = connection.first(READ, **named)
        if found is None:
            raise busy()
        judge(found, fingerprint, now)
        raise Lost(found)


def find_claim(connection: Connection, *, organisation: str, operation: str, key: str, now: int) -> Claim | None:
    """The key's row, if its retention has not ended."""
    digest = digest_of(organisation, operation, key)
    found = connection.first(READ, organisation=organisation, operation=operation, key=key, digest=digest)
    if found is None or (found.state == "done" and found.expires_at is not None and found.expires_at <= now):
        return None
    return found


def first_known(connection: Connection, *, organisation: str, operation: str, keys: Sequence[str], now: int) -> str | None:
    """The first of the keys that has a row, if its retention has not ended."""
    rows = ((key, find_claim(connection, organisation=organisation, operation=operation, key=key, now=now)) for key in keys)
    return next((key for key, row in rows if row is not None), None)


def judge(found: Claim, fingerprint: bytes, now: float) -> None:
    """Refuse what is not a plain replay. An unknown outcome without an answer stays unknown, for ever, until somebody settles it."""
    if found.fingerprint != fingerprint:
        raise Conflict(
            "This idempotency key was used with other input; its first answer stands and nothing was done now",
            code="idempotency_key_reused",
            param="idempotency_key",
            hint="Use a new key for a new request; repeat the very same input to get the first answer again",
        )
    if found.state == "expired":
        raise expired()
    if found.is_running(now) or found.state == "claimed":  # nothing was sent yet: whoever repeats it finds the key free, or its answer
        raise busy()
    if found.body is None:
        raise OcsError(
            "The outcome of the first call with this key is not known; keep the key, it is never executed again by itself",
            code="OUTCOME_UNKNOWN",
            outcome_unknown=True,
        )


def busy() -> Conflict:
    """An earlier call with the key is still running."""
    refusal = Conflict(
        "An earlier call with this idempotency key is still running", code="idempotency_in_progress", hint="Repeat it in a second"
    )
    refusal.headers["Retry-After"] = "1"
    return refusal


def finish(
    connection: Connection, *, organisation: str, operation: str, key: str, owner: str, lease: str, state: str, status: int, body: str
) -> bool:
    """Keep the answer; False when somebody else has decided meanwhile."""
    named = {"of": organisation, "op": operation, "named": key, "mine": owner, "held_by": lease}
    return connection.run(FINISH, **named, state=state, status=status, body=body) == 1


def dispatch(
    connection: Connection, *, organisation: str, operation: str, key: str, owner: str, lease: str, status: int, body: str
) -> None:
    """From now on it may have been sent. Refused when the claim is not this call's any more: then nothing may be sent."""
    named = {"of": organisation, "op": operation, "named": key, "mine": owner, "held_by": lease}
    if connection.run(DISPATCH, **named, status=status, body=body) == 0:
        raise busy()


def settle_unknown(connection: Connection, *, organisation: str, operation: str, key: str, state: str, status: int, body: str) -> bool:
    """Give a key whose outcome was unknown its answer; `state` stays unknown where only the answer's text is better now."""
    return connection.run(SETTLE, of=organisation, op=operation, named=key, state=state, status=status, body=body) == 1


def reopen_claim(connection: Connection, *, organisation: str, operation: str, key: str) -> None:
    """Its answer is not certain any more; whoever says so gives it another in the same transaction."""
    connection.run(REOPEN, of=organisation, op=operation, named=key)


def freeze(connection: Connection, *, organisation: str, operation: str, key: str, seen: str, lease: str) -> None:
    """The owner's lease has run out while it was dispatching: the outcome is unknown from now on."""
    connection.run(FREEZE, of=organisation, op=operation, named=key, seen=seen, held_by=lease)


def release(connection: Connection, *, organisation: str, operation: str, key: str, owner: str, lease: str) -> None:
    """Free a key whose call never reached the provider."""
    connection.run(RELEASE, of=organisation, op=operation, named=key, mine=owner, held_by=lease)


def freeze_orphans(connection: Connection, *, now: float) -> int:
    """Mark what dead processes left behind, and free what they had not sent."""
    before = math.ceil(now - LEASE_SECONDS)
    connection.run(FREE_ORPHANS, now=now, before=before)
    return connection.run(FREEZE_ORPHANS, now=now, before=before)


def sweep_claims(connection: Connection, *, before: float, most: int) -> int:
    """Forget keys whose retention has ended, the oldest first."""
    return connection.run(SWEEP, before=int(before), most=most)


def forget_claims(connection: Connection, *, operations: Sequence[str]) -> None:
    """Drop the keys of these operations: what their answers tell of does not exist any more."""
    connection.run_many(FORGET, [{"operation_id": operation} for operation in operations])
