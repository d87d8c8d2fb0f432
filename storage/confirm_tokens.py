"""Confirm tokens: consumed by one statement that matches everything, so a stranger burns nothing."""

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import BadRequest
from storage.engine.connection import Connection, Query, changes_rows, writes
from storage.engine.table import TableDescription, table_of


class ConfirmTokenTable(TableDescription, table=True):
    """A pending confirmation; the row is deleted by its use."""

    digest: bytes = Field(primary_key=True)
    organisation: str
    principal: str
    operation: str
    fingerprint: bytes
    expires_at: float = Field(index=True)


CONFIRM_TOKEN = table_of(ConfirmTokenTable)


USE_CONFIRM_TOKEN = Query(
    bytes,
    sa.delete(CONFIRM_TOKEN)
    .where(
        CONFIRM_TOKEN.c.digest == sa.bindparam("digest"),
        CONFIRM_TOKEN.c.organisation == sa.bindparam("organisation"),
        CONFIRM_TOKEN.c.principal == sa.bindparam("principal"),
        CONFIRM_TOKEN.c.operation == sa.bindparam("operation"),
        CONFIRM_TOKEN.c.fingerprint == sa.bindparam("fingerprint"),
        CONFIRM_TOKEN.c.expires_at > sa.bindparam("now"),
    )
    .returning(CONFIRM_TOKEN.c.digest),
)


@writes
def insert_confirm_token(
    *, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, expires_at: float
) -> sa.Executable:
    """Store what a challenge handed out."""
    return sa.insert(CONFIRM_TOKEN).values(
        {name: sa.bindparam(name) for name in ("digest", "organisation", "principal", "operation", "fingerprint", "expires_at")}
    )


def use_confirm_token(
    connection: Connection, *, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, now: float
) -> None:
    """Use a token up, or refuse without saying which part did not match."""
    used = connection.first(
        USE_CONFIRM_TOKEN,
        digest=digest,
        organisation=organisation,
        principal=principal,
        operation=operation,
        fingerprint=fingerprint,
        now=now,
    )
    if used is None:
        raise BadRequest(
            "The confirm token is wrong, expired, already used, or was given for another call; this call did nothing",
            code="confirm_token_invalid",
            param="confirm_token",
            hint="If it was used, the call that it confirmed was made: look what came of it before you ask again. "
            "A call without a token gets a new one; it is valid for 120 seconds, once, for the same input",
        )


@changes_rows
def sweep_confirm_tokens(*, now: float) -> sa.Executable:
    """Forget expired tokens."""
    return sa.delete(CONFIRM_TOKEN).where(CONFIRM_TOKEN.c.expires_at <= now)
