"""Verifications of who runs an organisation. Which change a session takes is decided by a conditional update."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of


class IdentitySessionTable(TableDescription, table=True):
    """A verification of who runs an organisation: requires_input, processing, verified or canceled."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(index=True, sa_type=sa.Text)
    person: str = Field(sa_type=sa.Text)
    kind: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    reason: str | None = Field(default=None, sa_type=sa.Text)
    return_url: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)


IDENTITY_SESSION = table_of(IdentitySessionTable)


class IdentitySession(NamedTuple):
    """A session; `kind` is what is shown as proof."""

    id: str
    organisation: str
    person: str
    kind: str
    status: str
    reason: str | None
    return_url: str | None
    created: int
    updated: int


IDENTITY_SESSION_COLUMNS = tuple(IDENTITY_SESSION.c[name] for name in IdentitySession._fields)

OWN_IDENTITY_SESSION = IDENTITY_SESSION.c.organisation == sa.bindparam("organisation")

INSERT_IDENTITY_SESSION = Command(sa.insert(IDENTITY_SESSION).values({name: sa.bindparam(name) for name in IdentitySession._fields}))

FIND_IDENTITY_SESSION = Query(IdentitySession, sa.select(*IDENTITY_SESSION_COLUMNS).where(IDENTITY_SESSION.c.id == sa.bindparam("session")))

LATEST_IDENTITY_SESSION = Query(
    IdentitySession, sa.select(*IDENTITY_SESSION_COLUMNS).where(OWN_IDENTITY_SESSION).order_by(IDENTITY_SESSION.c.id.desc()).limit(1)
)

FIND_VERIFIED_SESSION = Query(
    IdentitySession, sa.select(*IDENTITY_SESSION_COLUMNS).where(OWN_IDENTITY_SESSION, IDENTITY_SESSION.c.status == "verified").limit(1)
)

MOVE_IDENTITY_SESSION = Query(
    IdentitySession,
    sa.update(IDENTITY_SESSION)
    .where(IDENTITY_SESSION.c.id == sa.bindparam("session"), IDENTITY_SESSION.c.status == sa.bindparam("before"))
    .values(status=sa.bindparam("status"), reason=sa.bindparam("reason"), updated=sa.bindparam("now"))
    .returning(*IDENTITY_SESSION_COLUMNS),
)


def insert_identity_session(connection: Connection, *, session: IdentitySession) -> None:
    """Keep a new session."""
    connection.run(INSERT_IDENTITY_SESSION, **session._asdict())


def find_identity_session(connection: Connection, *, session: str) -> IdentitySession | None:
    """A session of whatever organisation."""
    return connection.first(FIND_IDENTITY_SESSION, session=session)


def latest_identity_session(connection: Connection, *, organisation: str) -> IdentitySession | None:
    """The organisation's newest."""
    return connection.first(LATEST_IDENTITY_SESSION, organisation=organisation)


def has_verified_identity(connection: Connection, *, organisation: str) -> bool:
    """Whether any of its sessions was verified."""
    return connection.first(FIND_VERIFIED_SESSION, organisation=organisation) is not None


def move_identity_session(
    connection: Connection, *, session: str, before: str, status: str, reason: str | None, now: float
) -> IdentitySession | None:
    """From one status to another; nothing when it is not in the first any more."""
    return connection.first(MOVE_IDENTITY_SESSION, session=session, before=before, status=status, reason=reason, now=int(now))
