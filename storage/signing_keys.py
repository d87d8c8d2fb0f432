"""The keys that sign tokens: made once however many processes want one, published before they sign and after they have."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import Command, Connection, Key, Query, TableDescription, insert_once


class SigningKey(NamedTuple):
    """A key; `private` is sealed, `public` is its JWK as JSON."""

    kid: Key
    number: Annotated[int, Field(unique=True)]
    private: str
    public: str
    created: float
    retired: float | None


class SigningKeyTable(TableDescription, row=SigningKey, table=True):
    """A key that signs tokens: `private` is sealed, `public` is its JWK. A retired one is published until its tokens have expired.

    `number` counts them, so that of all processes that make the next one at once only one does.
    """


SIGNING_KEY = SigningKeyTable.table

PUBLISHED_AHEAD = 600.0
"""A new key is published for so long before it signs: whoever keeps the set for 5 minutes then knows it."""

PUBLISHED_AFTER = 24 * 3600.0
"""A retired key stays published for the longest life that a token may have."""

LIST_PUBLISHED_KEYS = Query(
    SigningKey,
    sa.select(*(SIGNING_KEY.c[name] for name in SigningKey._fields))
    .where(SIGNING_KEY.c.retired.is_(None) | (SIGNING_KEY.c.retired > sa.bindparam("kept_after")))
    .order_by(SIGNING_KEY.c.number.desc()),
)

INSERT_SIGNING_KEY = Command(insert_once(SIGNING_KEY, ("kid", "number", "private", "public", "created"), key=["number"]))

RETIRE_SIGNING_KEYS = Command(
    sa.update(SIGNING_KEY)
    .where(SIGNING_KEY.c.number < sa.bindparam("before"), SIGNING_KEY.c.retired.is_(None))
    .values(retired=sa.bindparam("at", type_=sa.Double))
)

SWEEP_SIGNING_KEYS = Command(lambda _: sa.delete(SIGNING_KEY).where(SIGNING_KEY.c.retired < sa.bindparam("gone_before")))


def published_keys(connection: Connection, *, now: float) -> list[SigningKey]:
    """Every key that a good token may be signed with at `now` (Unix seconds) or soon, newest first."""
    return connection.all(LIST_PUBLISHED_KEYS, kept_after=now - PUBLISHED_AFTER)


def insert_signing_key(connection: Connection, *, kid: str, number: int, private: str, public: str, now: float) -> bool:
    """Insert the key with this number and retire those before it; False where another process has made it. `now`: Unix seconds."""
    if connection.run(INSERT_SIGNING_KEY, kid=kid, number=number, private=private, public=public, created=now) != 1:
        return False
    connection.run(RETIRE_SIGNING_KEYS, before=number, at=now + PUBLISHED_AHEAD)
    return True


def sweep_signing_keys(connection: Connection, *, now: float) -> int:
    """Delete keys whose tokens have all expired at `now` (Unix seconds); returns how many."""
    return connection.run(SWEEP_SIGNING_KEYS, gone_before=now - PUBLISHED_AFTER)


def signer_of(keys: list[SigningKey], now: float) -> SigningKey:
    """The newest key that was published long enough at `now` (Unix seconds); the oldest where none was."""
    return next((key for key in keys if key.created <= now - PUBLISHED_AHEAD), keys[-1])
