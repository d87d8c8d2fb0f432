"""Mails that wait to be sent: written in the transaction of what they tell, taken under a lease, gone when sent."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.schema import MailTable
from storage.statement import Command, Query, table
from storage.sweep import oldest

MAIL = table(MailTable)
LEASE_MS = 120_000


class Waiting(NamedTuple):
    """A mail that is due."""

    id: str
    sealed: str
    attempts: int
    expires_at: float


INSERT = Command(
    sa.insert(MAIL).values(
        id=sa.bindparam("id"),
        sealed=sa.bindparam("sealed"),
        attempts=0,
        due_ms=sa.bindparam("due_ms"),
        expires_at=sa.bindparam("expires_at"),
    )
)
PICK = (
    sa.select(MAIL.c.id)
    .where(MAIL.c.due_ms <= sa.bindparam("now_ms"))
    .order_by(MAIL.c.due_ms)
    .limit(sa.bindparam("most"))
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
TAKE = Query(
    Waiting,
    sa.update(MAIL)
    .where(MAIL.c.id.in_(PICK))
    .values(due_ms=sa.bindparam("until_ms"), attempts=MAIL.c.attempts + 1, lease=sa.bindparam("token"))
    .returning(*(MAIL.c[name] for name in Waiting._fields)),
)
GONE = Command(sa.delete(MAIL).where(MAIL.c.id == sa.bindparam("mail"), MAIL.c.lease == sa.bindparam("token")))
LATER = Command(
    sa.update(MAIL)
    .where(MAIL.c.id == sa.bindparam("mail"), MAIL.c.lease == sa.bindparam("token"))
    .values(due_ms=sa.bindparam("at_ms"), lease=None)
)
SWEEP = oldest(MAIL, MAIL.c.expires_at <= sa.bindparam("before"), MAIL.c.expires_at)


def queue_mail(connection: Connection, *, id: str, sealed: str, now: float, expires_at: float) -> None:
    """A mail is to be sent, before `expires_at`: a code that is not good any more is of no use to anybody."""
    connection.run(INSERT, id=id, sealed=sealed, due_ms=int(now * 1000), expires_at=expires_at)


def take_mails(connection: Connection, *, token: str, now: float, most: int) -> list[Waiting]:
    """The mails that are due, for whoever has the token; after two minutes somebody else may take them."""
    now_ms = int(now * 1000)
    return sorted(connection.all(TAKE, token=token, now_ms=now_ms, until_ms=now_ms + LEASE_MS, most=most))  # by id: the oldest first


def drop_mail(connection: Connection, *, mail: str, token: str) -> None:
    """It was sent, or never will be."""
    connection.run(GONE, mail=mail, token=token)


def defer_mail(connection: Connection, *, mail: str, token: str, at: float) -> None:
    """It is tried again later."""
    connection.run(LATER, mail=mail, token=token, at_ms=int(at * 1000))


def sweep_mails(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest mails that nobody has come for: where a postman is at work it has dropped them itself, and said so."""
    return connection.run(SWEEP, before=before, most=most)
