"""Verifications of who runs an organisation. Which change a session takes is decided by a conditional update."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.money.money_tables import IdentitySessionTable
from storage.statement import Command, Query, table

SESSION = table(IdentitySessionTable)


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


COLUMNS = tuple(SESSION.c[name] for name in IdentitySession._fields)
OWN = SESSION.c.organisation == sa.bindparam("organisation")
INSERT = Command(sa.insert(SESSION).values({name: sa.bindparam(name) for name in IdentitySession._fields}))
FIND = Query(IdentitySession, sa.select(*COLUMNS).where(SESSION.c.id == sa.bindparam("session")))
LATEST = Query(IdentitySession, sa.select(*COLUMNS).where(OWN).order_by(SESSION.c.id.desc()).limit(1))
VERIFIED = Query(IdentitySession, sa.select(*COLUMNS).where(OWN, SESSION.c.status == "verified").limit(1))
MOVE = Query(
    IdentitySession,
    sa.update(SESSION)
    .where(SESSION.c.id == sa.bindparam("session"), SESSION.c.status == sa.bindparam("before"))
    .values(status=sa.bindparam("status"), reason=sa.bindparam("reason"), updated=sa.bindparam("now"))
    .returning(*COLUMNS),
)


def insert_session(connection: Connection, *, session: IdentitySession) -> None:
    """Keep a new session."""
    connection.run(INSERT, **session._asdict())


def find_session(connection: Connection, *, session: str) -> IdentitySession | None:
    """A session of whatever organisation."""
    return connection.first(FIND, session=session)


def latest_session(connection: Connection, *, organisation: str) -> IdentitySession | None:
    """The organisation's newest."""
    return connection.first(LATEST, organisation=organisation)


def is_verified(connection: Connection, *, organisation: str) -> bool:
    """Whether any of its sessions was verified."""
    return connection.first(VERIFIED, organisation=organisation) is not None


def move_session(
    connection: Connection, *, session: str, before: str, status: str, reason: str | None, now: float
) -> IdentitySession | None:
    """From one status to another; nothing when it is not in the first any more."""
    return connection.first(MOVE, session=session, before=before, status=status, reason=reason, now=int(now))
