"""Verifications of who runs an organisation. Which change a session takes is decided by a conditional update."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Key, TableDescription, first_row, row_exists, writes


class IdentitySession(NamedTuple):
    """A session; `kind` is what is shown as proof."""

    id: Key
    organisation: Annotated[str, Field(index=True)]
    person: str
    kind: str
    status: str
    reason: str | None
    return_url: str | None
    created: BigInt
    updated: BigInt


class IdentitySessionTable(TableDescription, row=IdentitySession, table=True):
    """A verification of who runs an organisation: requires_input, processing, verified or canceled."""


IDENTITY_SESSION = IdentitySessionTable.table

IDENTITY_SESSION_COLUMNS = tuple(IDENTITY_SESSION.c[name] for name in IdentitySession._fields)

OWN_IDENTITY_SESSION = IDENTITY_SESSION.c.organisation == sa.bindparam("organisation")


@writes
def insert_identity_session(*, session: IdentitySession) -> sa.Executable:
    return sa.insert(IDENTITY_SESSION).values(session._asdict())


@first_row(IdentitySession)
def find_identity_session(*, session: str) -> sa.Executable:
    return sa.select(*IDENTITY_SESSION_COLUMNS).where(IDENTITY_SESSION.c.id == session)


@first_row(IdentitySession)
def latest_identity_session(*, organisation: str) -> sa.Executable:
    return sa.select(*IDENTITY_SESSION_COLUMNS).where(OWN_IDENTITY_SESSION).order_by(IDENTITY_SESSION.c.id.desc()).limit(1)


@row_exists
def has_verified_identity(*, organisation: str) -> sa.Executable:
    return sa.select(*IDENTITY_SESSION_COLUMNS).where(OWN_IDENTITY_SESSION, IDENTITY_SESSION.c.status == "verified").limit(1)


@first_row(IdentitySession)
def move_identity_session(*, session: str, before: str, status: str, reason: str | None, now: Annotated[float, int]) -> sa.Executable:
    """The session after it went from the status `before` to `status`; None where it is in another one. `now`: Unix seconds."""
    return (
        sa.update(IDENTITY_SESSION)
        .where(IDENTITY_SESSION.c.id == session, IDENTITY_SESSION.c.status == before)
        .values(status=status, reason=reason, updated=now)
    )
