"""Idempotency keys that outlive their answers: what is left of a call that is never made a second time.

A key of a call that draws an eSIM or moves money never becomes free. When its stored answer is removed (key_retention.py), this row takes
the claim's place in the same transaction, so that at every moment one of the two is there.
"""

import hashlib
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import Conflict
from storage.engine.drivers import Value
from storage.engine.sql import CLUSTERED, BigInt, Command, Connection, Query, TableDescription, insert_once


class RemovedClaim(NamedTuple):
    """A claim as it was when it was removed."""

    organisation: str
    operation: str
    key: str
    fingerprint: bytes
    status: int | None
    claimed: int


class ExpiredKeyTable(TableDescription, table=True):
    """An idempotency key whose call is never made a second time, and whose stored answer is not kept any more. Never swept.

    `digest`: SHA-256 of organisation, operation and key. `status`: the answer's HTTP status; `iccid`: of the eSIM it drew, if any.
    """

    digest: bytes = Field(primary_key=True)
    organisation: str
    operation: str
    fingerprint: bytes
    status: int
    iccid: str | None
    claimed: BigInt
    __table_args__ = CLUSTERED


EXPIRED_KEY = ExpiredKeyTable.table

LEDGER_OPERATION = "issuance"
"""Stands for the operation where a row of the ledger was removed, whose key may be an intent's id."""


def key_digest(organisation: str, operation: str, key: str) -> bytes:
    """What a key is found by. None of the three holds a line feed."""
    return hashlib.sha256(f"{organisation}\n{operation}\n{key}".encode()).digest()


FIND_EXPIRED_KEY = Query(bytes, lambda _: sa.select(EXPIRED_KEY.c.digest).where(EXPIRED_KEY.c.digest == sa.bindparam("digest")))

INSERT_EXPIRED_KEY = Command(insert_once(EXPIRED_KEY, EXPIRED_KEY.c.keys(), key=["digest"]))


def key_has_expired() -> Conflict:
    """The refusal of a key whose answer is not kept any more."""
    return Conflict(
        "This idempotency key was used long ago and its answer is not kept any more; nothing was done now",
        code="idempotency_key_expired",
        param="idempotency_key",
        hint="Look up what the first call made in the list of its kind; use a new key only for a new request",
    )


def expired_key_values(swept: RemovedClaim, iccid: str | None) -> dict[str, Value]:
    digest = key_digest(swept.organisation, swept.operation, swept.key)
    kept = swept._asdict() | {"digest": digest, "status": swept.status or 0, "iccid": iccid}
    return {column.name: kept[column.name] for column in EXPIRED_KEY.c}


def insert_expired_key(connection: Connection, *, swept: RemovedClaim, iccid: str | None) -> None:
    """Remember a key for ever."""
    connection.run(INSERT_EXPIRED_KEY, **expired_key_values(swept, iccid))


def is_key_expired(connection: Connection, *, organisation: str, operation: str, key: str) -> bool:
    """Whether the answer of this key was swept."""
    return connection.first(FIND_EXPIRED_KEY, digest=key_digest(organisation, operation, key)) is not None
