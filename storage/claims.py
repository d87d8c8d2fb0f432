"""Idempotency claims: the row is the lock, and its INSERT decides every race.

`claimed`: opened, and surely not sent; what its process leaves behind is free again. `dispatching`: may have been sent; what is left of
it is `unknown`, for ever, until somebody settles it. `done`: answered, unless the provider's own answer comes later and says otherwise.
`expired`: answered long ago, and only the key is kept (expired_keys.py).
"""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import Conflict, OcsError
from storage.engine.sql import BigInt, Command, Connection, Query, TableDescription, changes_one, changes_rows, runs_only, unindexed, writes
from storage.expired_keys import EXPIRED_KEY, key_digest, key_has_expired
from storage.issuance import ISSUANCE
from storage.replicas import REPLICA, REPLICA_LEASE_SECONDS


class Claim(NamedTuple):
    """A key's state and, once it is done, its sealed answer. `lease` is its owner's."""

    fingerprint: bytes
    state: str
    owner: str
    claimed: BigInt
    expires_at: BigInt | None
    status: int | None
    body: str | None
    lease: float | None

    def is_running(self, now: float) -> bool:
        """Its owner has not left, and lives, or claimed too lately to be called dead: one that missed its lease may have gone on."""
        return (
            self.state in CLAIM_RUNNING_STATES and self.lease is not None and max(self.lease, self.claimed + REPLICA_LEASE_SECONDS) >= now
        )


class ClaimTable(TableDescription, row=Claim, without=("lease",), table=True):
    """An idempotency key; its states are in claims.py. The stored answer is sealed, since it may hold an eSIM.

    `owner` is the process, `lease` the call's own name: what it did not claim it neither sends nor frees.
    """

    organisation: str = Field(primary_key=True)
    operation: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    lease: str | None
    __table_args__ = (
        sa.Index("claim_expires", "expires_at", sqlite_where=sa.text("expires_at IS NOT NULL")),
        # Keys that never expire, by their age.
        sa.Index("claim_lasting", "claimed", sqlite_where=sa.text("expires_at IS NULL")),
        sa.Index("claim_state", "state", "owner"),
    )


CLAIM = ClaimTable.table

CLAIM_RUNNING_STATES = ("claimed", "dispatching")


def claim_is(organisation: str, operation: str, key: str) -> sa.ColumnElement[bool]:
    """The row of a key; the three names are the binds that hold it."""
    return (
        (CLAIM.c.organisation == sa.bindparam(organisation))
        & (CLAIM.c.operation == sa.bindparam(operation))
        & (CLAIM.c.key == sa.bindparam(key))
    )


def owned_by_lease(name: str) -> sa.ColumnElement[bool]:
    """That the claim is still this call's. Another call of the same process may have it, after a lease that had run out for a while."""
    return claim_is("organisation", "operation", "key") & (CLAIM.c.owner == sa.bindparam(name)) & (CLAIM.c.lease == sa.bindparam("lease"))


CLAIM_VALUES = ("organisation", "operation", "key", "fingerprint", "state", "owner", "lease", "claimed", "expires_at", "status", "body")

EXPIRED_HERE = EXPIRED_KEY.c.digest == sa.bindparam("digest", type_=sa.LargeBinary)

GIVEN_CLAIM = sa.select(*(sa.cast(sa.bindparam(name, type_=CLAIM.c[name].type), CLAIM.c[name].type).label(name) for name in CLAIM_VALUES))

# A key whose retention has ended is free again, unless nobody knows what its call did. One that never expires is not, though its claim is
# gone: a call looks for both in one snapshot before it comes here, and no call lasts as long as an answer is kept.
INSERT_CLAIM = Query(
    str,
    lambda dialect: (
        dialect.insert(CLAIM)
        .from_select(CLAIM_VALUES, GIVEN_CLAIM.where(sa.not_(sa.exists().where(EXPIRED_HERE))))
        .on_conflict_do_update(
            index_elements=["organisation", "operation", "key"],
            set_={name: sa.bindparam(name) for name in CLAIM_VALUES[3:]},
            where=(CLAIM.c.expires_at <= sa.bindparam("claimed")) & (CLAIM.c.state == "done"),
        )
        .returning(CLAIM.c.owner)
    ),
)

# Both halves in one statement, so that a key that is swept just now is seen in one of them.
READ_CLAIM = Query(
    Claim,
    lambda _: sa.union_all(
        sa.select(*(CLAIM.c[name] for name in Claim._fields[:-1]), REPLICA.c.expires_at.label("lease"))
        .join_from(CLAIM, REPLICA, CLAIM.c.owner == REPLICA.c.id, isouter=True)
        .where(claim_is("organisation", "operation", "key")),
        sa.select(
            EXPIRED_KEY.c.fingerprint,
            sa.literal_column("'expired'", sa.Text),
            sa.literal_column("''", sa.Text),
            EXPIRED_KEY.c.claimed,
            sa.null(),
            EXPIRED_KEY.c.status,
            sa.null(),
            sa.null(),
        ).where(EXPIRED_HERE),
    ),
)

DISPATCH_CLAIM = Command(
    sa.update(CLAIM)
    .where(owned_by_lease("owner"), CLAIM.c.state == "claimed")
    .values(state="dispatching", status=sa.bindparam("status"), body=sa.bindparam("body"))
)

IN_THE_LEDGER = sa.exists().where(
    ISSUANCE.c.organisation == CLAIM.c.organisation, ISSUANCE.c.operation == CLAIM.c.operation, ISSUANCE.c.claim_key == CLAIM.c.key
)

CLAIM_IS_ORPHANED = CLAIM.c.owner.not_in(
    sa.select(REPLICA.c.id).where((REPLICA.c.expires_at >= sa.bindparam("now")) | (CLAIM.c.claimed >= sa.bindparam("before")))
)

MARK_ORPHANS_UNKNOWN = Command(lambda _: sa.update(CLAIM).where(CLAIM.c.state == "dispatching", CLAIM_IS_ORPHANED).values(state="unknown"))

DELETE_ORPHANED_CLAIMS = Command(lambda _: sa.delete(CLAIM).where(CLAIM.c.state == "claimed", CLAIM_IS_ORPHANED))

FORGET_CLAIM = Command(lambda _: sa.delete(CLAIM).where(CLAIM.c.operation == sa.bindparam("operation_id")))

CLAIM_HAS_ENDED = (CLAIM.c.expires_at <= sa.bindparam("before")) & (unindexed(CLAIM.c.state) == "done")

CLAIM_KEY = (CLAIM.c.organisation, CLAIM.c.operation, CLAIM.c.key)

ENDED_CLAIMS = sa.select(*CLAIM_KEY).where(CLAIM_HAS_ENDED).order_by(CLAIM.c.expires_at).limit(sa.bindparam("most"))


class ClaimAnswered(Exception):
    """Control flow: the key has an answer already."""

    def __init__(self, claim: Claim) -> None:
        super().__init__("claimed")
        self.claim = claim


def take_claim(
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
            check_replay(known, fingerprint, now)
            raise ClaimAnswered(known)
        if known is not None:  # a process of the release before has stored it just now
            raise call_in_progress()
    if key in former:
        raise call_in_progress()
    named = {"organisation": organisation, "operation": operation, "key": key, "digest": key_digest(organisation, operation, key)}
    taken = connection.first(
        INSERT_CLAIM,
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
        found = connection.first(READ_CLAIM, **named)
        if found is None:
            raise call_in_progress()
        check_replay(found, fingerprint, now)
        raise ClaimAnswered(found)


@runs_only(READ_CLAIM)
def find_claim(connection: Connection, *, organisation: str, operation: str, key: str, now: int) -> Claim | None:
    """The row of a key, or None where there is none, or its retention has ended at `now` (Unix seconds)."""
    digest = key_digest(organisation, operation, key)
    found = connection.first(READ_CLAIM, organisation=organisation, operation=operation, key=key, digest=digest)
    if found is None or (found.state == "done" and found.expires_at is not None and found.expires_at <= now):
        return None
    return found


def first_claimed_key(connection: Connection, *, organisation: str, operation: str, keys: Sequence[str], now: int) -> str | None:
    """The first of the keys that has a row, if its retention has not ended."""
    rows = ((key, find_claim(connection, organisation=organisation, operation=operation, key=key, now=now)) for key in keys)
    return next((key for key, row in rows if row is not None), None)


def check_replay(found: Claim, fingerprint: bytes, now: float) -> None:
    """Refuse what is not a plain replay. An unknown outcome without an answer stays unknown, for ever, until somebody settles it."""
    if found.fingerprint != fingerprint:
        raise Conflict(
            "This idempotency key was used with other input; its first answer stands and nothing was done now",
            code="idempotency_key_reused",
            param="idempotency_key",
            hint="Use a new key for a new request; repeat the very same input to get the first answer again",
        )
    if found.state == "expired":
        raise key_has_expired()
    if found.is_running(now) or found.state == "claimed":  # nothing was sent yet: whoever repeats it finds the key free, or its answer
        raise call_in_progress()
    if found.body is None:
        raise OcsError(
            "The outcome of the first call with this key is not known; keep the key, it is never executed again by itself",
            code="OUTCOME_UNKNOWN",
            outcome_unknown=True,
        )


def call_in_progress() -> Conflict:
    """An earlier call with the key is still running."""
    refusal = Conflict(
        "An earlier call with this idempotency key is still running", code="idempotency_in_progress", hint="Repeat it in a second"
    )
    refusal.headers["Retry-After"] = "1"
    return refusal


@changes_one
def finish_claim(
    *, organisation: str, operation: str, key: str, owner: str, lease: str, state: str, status: int, body: str
) -> sa.Executable:
    """Keep the answer of a call; False when the claim is not this call's any more, or has been answered."""
    is_open = CLAIM.c.state.in_([*CLAIM_RUNNING_STATES, "unknown"])
    return sa.update(CLAIM).where(owned_by_lease("owner"), is_open).values(state=state, status=status, body=body)


def dispatch_claim(
    connection: Connection, *, organisation: str, operation: str, key: str, owner: str, lease: str, status: int, body: str
) -> None:
    """Mark the call as sent. Raises Conflict when the claim is not this call's any more: then nothing may be sent."""
    named = {"organisation": organisation, "operation": operation, "key": key, "owner": owner, "lease": lease}
    if connection.run(DISPATCH_CLAIM, **named, status=status, body=body) == 0:
        raise call_in_progress()


@changes_one
def resolve_unknown_claim(*, organisation: str, operation: str, key: str, state: str, status: int, body: str) -> sa.Executable:
    """Give a key whose outcome was unknown its answer; `state` stays unknown where only the answer's text is better now."""
    return (
        sa.update(CLAIM)
        .where(claim_is("organisation", "operation", "key"), CLAIM.c.state == "unknown")
        .values(state=state, status=status, body=body)
    )


@writes
def reopen_claim(*, organisation: str, operation: str, key: str) -> sa.Executable:
    """Make the answer of a key uncertain; the same transaction has to give it another."""
    return sa.update(CLAIM).where(claim_is("organisation", "operation", "key"), CLAIM.c.state == "done").values(state="unknown")


@writes
def mark_claim_unknown(*, organisation: str, operation: str, key: str, seen: str, lease: str) -> sa.Executable:
    """Mark a dispatched claim as unknown, because the lease of its owner `seen` has run out."""
    return sa.update(CLAIM).where(owned_by_lease("seen"), CLAIM.c.state == "dispatching").values(state="unknown")


@writes
def release_claim(*, organisation: str, operation: str, key: str, owner: str, lease: str) -> sa.Executable:
    """Free a key whose call never reached the provider."""
    # A process that missed its lease has its claims taken for unknown. The call knows better, unless a row was taken with the claim.
    return sa.delete(CLAIM).where(
        owned_by_lease("owner"), CLAIM.c.state.in_(CLAIM_RUNNING_STATES) | ((CLAIM.c.state == "unknown") & sa.not_(IN_THE_LEDGER))
    )


def release_orphaned_claims(connection: Connection, *, now: float) -> int:
    """Mark what dead processes left behind, and free what they had not sent. `now`: Unix seconds."""
    before = math.ceil(now - REPLICA_LEASE_SECONDS)
    connection.run(DELETE_ORPHANED_CLAIMS, now=now, before=before)
    return connection.run(MARK_ORPHANS_UNKNOWN, now=now, before=before)


@changes_rows
def sweep_claims(*, before: Annotated[float, int], most: int) -> sa.Executable:
    """Forget keys whose retention has ended, the oldest first. `before`: Unix seconds."""
    # Said twice: PostgreSQL asks a row that has changed meanwhile for the outer condition only, and a key may have been claimed anew.
    return sa.delete(CLAIM).where(sa.tuple_(*CLAIM_KEY).in_(ENDED_CLAIMS), CLAIM_HAS_ENDED)


def forget_claims(connection: Connection, *, operations: Sequence[str]) -> None:
    """Delete the keys of these `operations`: what their answers tell of does not exist any more."""
    connection.run_many(FORGET_CLAIM, [{"operation_id": operation} for operation in operations])
