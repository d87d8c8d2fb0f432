"""Mails that wait to be sent: written in the transaction of what they tell, taken under a lease, gone when sent."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.sweep import delete_oldest
from storage.engine.table import TableDescription, table_of


class MailTable(TableDescription, table=True):
    """A mail that is to be sent, sealed whole: it holds an address and often a code. The row goes when it was sent."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    sealed: str = Field(sa_type=sa.Text)
    attempts: int
    due_ms: int = Field(sa_type=sa.BigInteger, index=True)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double)


MAIL = table_of(MailTable)

MAIL_LEASE_MS = 120_000


class WaitingMail(NamedTuple):
    """A mail that is due."""

    id: str
    sealed: str
    attempts: int
    expires_at: float


INSERT_MAIL = Command(
    sa.insert(MAIL).values(
        id=sa.bindparam("id"),
        sealed=sa.bindparam("sealed"),
        attempts=0,
        due_ms=sa.bindparam("due_ms"),
        expires_at=sa.bindparam("expires_at"),
    )
)

PICK_MAILS = (
    sa.select(MAIL.c.id)
    .where(MAIL.c.due_ms <= sa.bindparam("now_ms"))
    .order_by(MAIL.c.due_ms)
    .limit(sa.bindparam("most"))
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)

TAKE_MAILS = Query(
    WaitingMail,
    sa.update(MAIL)
    .where(MAIL.c.id.in_(PICK_MAILS))
    .values(due_ms=sa.bindparam("until_ms"), attempts=MAIL.c.attempts + 1, lease=sa.bindparam("token"))
    .returning(*(MAIL.c[name] for name in WaitingMail._fields)),
)

DROP_MAIL = Command(sa.delete(MAIL).where(MAIL.c.id == sa.bindparam("mail"), MAIL.c.lease == sa.bindparam("token")))

DEFER_MAIL = Command(
    sa.update(MAIL)
    .where(MAIL.c.id == sa.bindparam("mail"), MAIL.c.lease == sa.bindparam("token"))
    .values(due_ms=sa.bindparam("at_ms"), lease=None)
)

SWEEP_MAILS = delete_oldest(MAIL, MAIL.c.expires_at <= sa.bindparam("before"), MAIL.c.expires_at)


def queue_mail(connection: Connection, *, id: str, sealed: str, now: float, expires_at: float) -> None:
    """A mail is to be sent, before `expires_at`: a code that is not good any more is of no use to anybody."""
    connection.run(INSERT_MAIL, id=id, sealed=sealed, due_ms=int(now * 1000), expires_at=expires_at)


def take_mails(connection: Connection, *, token: str, now: float, most: int) -> list[WaitingMail]:
    """The mails that are due, for whoever has the token; after two minutes somebody else may take them."""
    now_ms = int(now * 1000)
    return sorted(
        connection.all(TAKE_MAILS, token=token, now_ms=now_ms, until_ms=now_ms + MAIL_LEASE_MS, most=most)
    )  # by id: the oldest first


def drop_mail(connection: Connection, *, mail: str, token: str) -> None:
    """It was sent, or never will be."""
    connection.run(DROP_MAIL, mail=mail, token=token)


def defer_mail(connection: Connection, *, mail: str, token: str, at: float) -> None:
    """It is tried again later."""
    connection.run(DEFER_MAIL, mail=mail, token=token, at_ms=int(at * 1000))


def sweep_mails(connection: Connection, *, before: float, most: int) -> int:
    """Forget the oldest mails that nobody has come for: where a postman is at work it has dropped them itself, and said so."""
    return connection.run(SWEEP_MAILS, before=before, most=most)


class SealedMail(NamedTuple):
    """A mail that waits."""

    id: str
    sealed: str


LIST_SEALED_MAILS = Query(SealedMail, sa.select(MAIL.c.id, MAIL.c.sealed))

WITHDRAW_MAIL = Command(sa.delete(MAIL).where(MAIL.c.id == sa.bindparam("mail")))


def sealed_mails(connection: Connection) -> list[SealedMail]:
    """Every mail that waits, whosever: only what is inside tells to whom it goes."""
    return connection.all(LIST_SEALED_MAILS)


def withdraw_mail(connection: Connection, *, mail: str) -> None:
    """It is not sent any more."""
    connection.run(WITHDRAW_MAIL, mail=mail)
