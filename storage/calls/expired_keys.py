"""Idempotency keys that outlive their answers: what is left of a call that is never made a second time.

A key of a call that draws an eSIM or moves money never becomes free. When its stored answer is swept, this row takes the claim's place in
the same transaction, so that at every moment one of the two is there.
"""

import hashlib
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import Conflict
from storage.calls.replicas import all_know
from storage.connection import Connection
from storage.listed import listed, packed
from storage.schema import ClaimTable, ExpiredKeyTable, IssuanceTable
from storage.schema_steps import SchemaStepTable
from storage.statement import Command, Dialect, Query, Value, table, unindexed

CLAIM, EXPIRED, ISSUANCE = table(ClaimTable), table(ExpiredKeyTable), table(IssuanceTable)
STEP = table(SchemaStepTable)
REVISION = "0019"
"""The schema from which on programs look here before they draw: nothing is swept beside an older one."""
LEDGER = "issuance"
"""Stands for the operation where a row of the ledger was removed, whose key may be an intent's id."""


class SweptAnswer(NamedTuple):
    """A claim as it was when it was removed."""

    organisation: str
    operation: str
    key: str
    fingerprint: bytes
    status: int | None
    claimed: int


class DrawnBy(NamedTuple):
    """The eSIM that a claim's call drew, if it drew one."""

    organisation: str
    operation: str
    key: str
    iccid: str | None


class SchemaRevision(NamedTuple):
    """A schema revision."""

    revision: str


class Digest(NamedTuple):
    """A key that is there."""

    digest: bytes


def digest_of(organisation: str, operation: str, key: str) -> bytes:
    """What a key is found by. None of the three holds a line feed."""
    return hashlib.sha256(f"{organisation}\n{operation}\n{key}".encode()).digest()


DIGEST = EXPIRED.c.digest == sa.bindparam("digest")
FIND = Query(Digest, sa.select(EXPIRED.c.digest).where(DIGEST))
KEEP = Command(
    lambda dialect: (
        dialect.insert(EXPIRED)
        .values({column.name: sa.bindparam(column.name) for column in EXPIRED.c})
        .on_conflict_do_nothing(index_elements=["digest"])
    )
)
CLOSE = Command(
    sa.update(STEP)
    .where(STEP.c.revision >= sa.bindparam("revision", type_=sa.Text), STEP.c.works_from < sa.bindparam("revision", type_=sa.Text))
    .values(works_from=sa.bindparam("revision", type_=sa.Text))
)
CLOSED = Query(
    SchemaRevision,
    sa.select(STEP.c.revision).where(STEP.c.works_from >= sa.bindparam("revision", type_=sa.Text)).limit(1),
)
# An unknown outcome keeps its claim until somebody settles it.
HAS_AGED = (
    CLAIM.c.expires_at.is_(None) & (CLAIM.c.claimed < sa.bindparam("before", type_=sa.BigInteger)) & (unindexed(CLAIM.c.state) == "done")
)
NAMES = (CLAIM.c.organisation, CLAIM.c.operation, CLAIM.c.key)
OLDEST = sa.select(*NAMES).where(HAS_AGED).order_by(CLAIM.c.claimed).limit(sa.bindparam("most"))
# Said twice: PostgreSQL asks a row that has changed meanwhile for the outer condition only, and it may be unknown again.
REMOVE = Query(
    SweptAnswer,
    sa.delete(CLAIM).where(sa.tuple_(*NAMES).in_(OLDEST), HAS_AGED).returning(*NAMES, CLAIM.c.fingerprint, CLAIM.c.status, CLAIM.c.claimed),
)


def drawn(dialect: Dialect) -> sa.Executable:
    """The eSIMs that the calls of these claims drew."""
    given = listed(dialect, "claims", "given", organisation=sa.Text, operation=sa.Text, key=sa.Text)
    return sa.select(ISSUANCE.c.organisation, ISSUANCE.c.operation, ISSUANCE.c.claim_key.label("key"), ISSUANCE.c.iccid).join_from(
        given,
        ISSUANCE,
        (ISSUANCE.c.organisation == given.c.organisation)
        & (ISSUANCE.c.claim_key == given.c.key)
        & (ISSUANCE.c.operation == given.c.operation),
    )


DRAWN = Query(DrawnBy, drawn)


def expired() -> Conflict:
    """The refusal of a key whose answer is not kept any more."""
    return Conflict(
        "This idempotency key was used long ago and its answer is not kept any more; nothing was done now",
        code="idempotency_key_expired",
        param="idempotency_key",
        hint="Look up what the first call made in the list of its kind; use a new key only for a new request",
    )


def row_of(swept: SweptAnswer, iccid: str | None) -> dict[str, Value]:
    """What is kept of it."""
    digest = digest_of(swept.organisation, swept.operation, swept.key)
    kept = swept._asdict() | {"digest": digest, "status": swept.status or 0, "iccid": iccid}
    return {column.name: kept[column.name] for column in EXPIRED.c}


def keep_expired(connection: Connection, *, swept: SweptAnswer, iccid: str | None) -> None:
    """Remember a key for ever."""
    connection.run(KEEP, **row_of(swept, iccid))


def is_expired(connection: Connection, *, organisation: str, operation: str, key: str) -> bool:
    """Whether the answer of this key was swept."""
    return connection.first(FIND, digest=digest_of(organisation, operation, key)) is not None


def older_are_gone(connection: Connection, *, now: float, revision: str = REVISION) -> bool:
    """Whether no program runs, or will start, that does not know the small tables of `revision`. `now`: Unix seconds.

    Choice: the first call closes the database to such programs and says no. One that had just looked whether it may start is a running
    process by the next call, a minute later.
    """
    if close_to_older(connection, revision=revision):
        return False
    return is_closed(connection, revision=revision) and all_know(connection, revision=revision, now=now)


def close_to_older(connection: Connection, *, revision: str) -> bool:
    """Let no program start any more that was written for a schema before this revision; False where none could."""
    return connection.run(CLOSE, revision=revision) > 0


def is_closed(connection: Connection, *, revision: str) -> bool:
    """Whether only programs that know `revision` may start: no where the schema is older, and before anything was to be removed."""
    return connection.first(CLOSED, revision=revision) is not None


def sweep_answers(connection: Connection, *, before: float, most: int, now: float) -> int:
    """Remove the oldest stored answers of keys that never expire, and keep the keys; 0 while an older program runs beside."""
    if not older_are_gone(connection, now=now):
        return 0
    removed = connection.all(REMOVE, before=int(before), most=most)
    if removed:
        found = connection.all(DRAWN, claims=packed([each[:3] for each in removed]))
        iccids = {row[:3]: row.iccid for row in found}
        connection.run_many(KEEP, [row_of(each, iccids.get(each[:3])) for each in removed])
    return len(removed)
