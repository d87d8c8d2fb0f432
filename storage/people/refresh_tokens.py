"""Refresh tokens: each is used once and names its successor's grant; a second use ends the grant."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.people.grants import Grant, find_grant, revoke_grant
from storage.schema import RefreshTokenTable
from storage.statement import Command, Query, table

TOKEN = table(RefreshTokenTable)
SLIDING_SECONDS = 30 * 86_400.0
# Choice: a program whose threads renew at the same moment sends one token twice. Within 10 s of its use the second is refused and nothing
# else happens; later it was stolen from one of two, and the grant ends. Nobody gets two successors of one token.
SAME_MOMENT_SECONDS = 10.0


class RefreshToken(NamedTuple):
    """A refresh token that has not expired, used or not."""

    grant_id: str
    client_id: str
    scopes: str
    used_at: float | None


FIELDS = ("digest", "grant_id", "client_id", "scopes", "expires_at")
INSERT = Command(sa.insert(TOKEN).values({name: sa.bindparam(name) for name in FIELDS}))
FIND = Query(
    RefreshToken,
    sa.select(*(TOKEN.c[name] for name in RefreshToken._fields)).where(
        TOKEN.c.digest == sa.bindparam("digest"), TOKEN.c.expires_at > sa.bindparam("now")
    ),
)
USE = Command(
    sa.update(TOKEN)
    .where(
        TOKEN.c.digest == sa.bindparam("token"),
        TOKEN.c.client_id == sa.bindparam("client"),
        TOKEN.c.used_at.is_(None),
        TOKEN.c.expires_at > sa.bindparam("now"),
    )
    .values(used_at=sa.bindparam("at"))
)
SWEEP = Command(sa.delete(TOKEN).where(TOKEN.c.expires_at < sa.bindparam("now")))


def insert_refresh_token(connection: Connection, *, digest: bytes, grant: Grant, now: float) -> None:
    """Keep a token of a grant: it lives 30 days from now, and never beyond the grant."""
    expires_at = min(now + SLIDING_SECONDS, grant.expires_at)
    connection.run(INSERT, digest=digest, grant_id=grant.id, client_id=grant.client_id, scopes=grant.scopes, expires_at=expires_at)


def find_refresh_token(connection: Connection, *, digest: bytes, now: float) -> RefreshToken | None:
    """A token that has not expired."""
    return connection.first(FIND, digest=digest, now=now)


def use_refresh_token(connection: Connection, *, digest: bytes, client: str, successor: bytes, now: float) -> Grant | None:
    """The live grant of a token that is used for the first time, with its successor kept; None refuses it."""
    used = connection.run(USE, token=digest, client=client, now=now, at=now) == 1
    token = connection.first(FIND, digest=digest, now=now)
    if token is None or token.client_id != client:
        return None
    if not used:
        if token.used_at is not None and now - token.used_at > SAME_MOMENT_SECONDS:
            revoke_grant(connection, grant=token.grant_id, now=now)
        return None
    found = find_grant(connection, grant=token.grant_id, now=now)
    if found is None:
        return None
    insert_refresh_token(connection, digest=successor, grant=found[0], now=now)
    return found[0]


def sweep_refresh_tokens(connection: Connection, *, now: float) -> int:
    """Forget what has expired; until then a used one must be known again."""
    return connection.run(SWEEP, now=now)
