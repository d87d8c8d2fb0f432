"""Confirm tokens: consumed by one statement that matches everything, so a stranger burns nothing."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import TableDescription, changes_one, changes_rows, writes


class ConfirmTokenTable(TableDescription, table=True):
    """A pending confirmation; the row is deleted by its use."""

    digest: bytes = Field(primary_key=True)
    organisation: str
    principal: str
    operation: str
    fingerprint: bytes
    expires_at: float = Field(index=True)


CONFIRM_TOKEN = ConfirmTokenTable.table


@writes
def insert_confirm_token(
    *, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, expires_at: float
) -> sa.Executable:
    """Store the digest of a token that a challenge handed out, and what it confirms. `expires_at`: Unix seconds."""
    return sa.insert(CONFIRM_TOKEN).values({name: sa.bindparam(name) for name in ConfirmTokenTable.__annotations__})


@changes_one
def use_confirm_token(*, digest: bytes, organisation: str, principal: str, operation: str, fingerprint: bytes, now: float) -> sa.Executable:
    """Use a token up; False where it has expired at `now` (Unix seconds), or was not given for this very call."""
    return sa.delete(CONFIRM_TOKEN).where(
        CONFIRM_TOKEN.c.digest == digest,
        CONFIRM_TOKEN.c.organisation == organisation,
        CONFIRM_TOKEN.c.principal == principal,
        CONFIRM_TOKEN.c.operation == operation,
        CONFIRM_TOKEN.c.fingerprint == fingerprint,
        CONFIRM_TOKEN.c.expires_at > now,
    )


@changes_rows
def sweep_confirm_tokens(*, now: float) -> sa.Executable:
    """Delete tokens that have expired at `now` (Unix seconds); returns how many."""
    return sa.delete(CONFIRM_TOKEN).where(CONFIRM_TOKEN.c.expires_at <= now)
