"""Confirm tokens: consumed by one statement that matches everything, so a stranger burns nothing (storage.md 5)."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import BadRequest
from storage.connection import Connection
from storage.schema import ConfirmTokenTable
from storage.statement import Command, Query, table

TOKEN = table(ConfirmTokenTable)


class Digest(NamedTuple):
    """A consumed token."""

    digest: bytes


INSERT = Command(
    sa.insert(TOKEN).values(
        {name: sa.bindparam(name) for name in ("digest", "organisation", "principal", "operation", "fingerprint", "expires_at")}
    )
)
CONSUME = Query(
    Digest,
    sa.delete(TOKEN)
    .where(
        TOKEN.c.digest == sa.bindparam("digest"),
        TOKEN.c.organisation == sa.bindparam("organisation"),
        TOKEN.c.principal == sa.bindparam("principal"),
        TOKEN.c.operation == sa.bindparam("operation"),
        TOKEN.c.fingerprint == sa.bindparam("fingerprint"),
        TOKEN.c.expires_at > sa.bindparam("now"),
    )
    .returning(TOKEN.c.digest),
)
SWEEP = Command(sa.delete(TOKEN).where(TOKEN.c.expires_at <= sa.bindparam("now")))


def keep_token(
    connection: Connection, *, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, expires_at: float
) -> None:
    """Store what a challenge handed out."""
    connection.run(
        INSERT,
        digest=digest,
        organisation=organisation,
        principal=principal,
        operation=operation,
        fingerprint=fingerprint,
        expires_at=expires_at,
    )


def consume(
    connection: Connection, *, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, now: float
) -> None:
    """Use a token up, or refuse without saying which part did not match."""
    used = connection.first(
        CONSUME, digest=digest, organisation=organisation, principal=principal, operation=operation, fingerprint=fingerprint, now=now
    )
    if used is None:
        raise BadRequest(
            "The confirm token is wrong, expired, already used, or was given for another call; this call did nothing",
            code="confirm_token_invalid",
            param="confirm_token",
            hint="If it was used, the call that it confirmed was made: look what came of it before you ask again. "
            "A call without a token gets a new one; it is valid for 120 seconds, once, for the same input",
        )


def sweep_tokens(connection: Connection, *, now: float) -> int:
    """Forget expired tokens."""
    return connection.run(SWEEP, now=now)
