"""Mails that wait to be sent: written in the transaction of what they tell, taken under a lease, gone when sent."""

from collections.abc import Collection
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    Command,
    Connection,
    Key,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    changes_rows,
    delete_oldest,
    pack_rows,
    to_milliseconds,
    writes,
)
from storage.order_steps import mark_mail_sent


class WaitingMail(NamedTuple):
    """A mail that waits; `sealed` opens with the field `mail_field(id)`, and it is not sent after `expires_at` (Unix seconds)."""

    id: Key
    sealed: str
    attempts: int
    expires_at: float


class MailTable(TableDescription, row=WaitingMail, table=True):
    """A mail that is to be sent, sealed whole: it holds an address and often a code. The row goes when it was sent."""

    due_ms: int = Field(sa_type=sa.BigInteger, index=True)
    lease: str | None


MAIL = MailTable.table

MAIL_LEASE_MS = 120_000

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
    .values(due_ms=sa.bindparam("until_ms"), attempts=MAIL.c.attempts + 1, lease=sa.bindparam("token")),
)


@writes
def queue_mail(*, id: str, sealed: str, now: Annotated[float, to_milliseconds], expires_at: float) -> sa.Executable:
    """Queue a mail that is to be sent before `expires_at`, since its code is of no use afterwards. Both moments: Unix seconds."""
    return sa.insert(MAIL).values(
        id=id,
        sealed=sealed,
        attempts=0,
        due_ms=now,
        expires_at=expires_at,
    )


def take_mails(connection: Connection, *, token: str, now: float, most: int) -> list[WaitingMail]:
    """The due mails, oldest first, leased to `token` for two minutes. `now`: Unix seconds."""
    now_ms = int(now * 1000)
    return sorted(
        connection.all(TAKE_MAILS, token=token, now_ms=now_ms, until_ms=now_ms + MAIL_LEASE_MS, most=most)
    )  # by id: the oldest first


DROP_MAIL = Command(lambda _: sa.delete(MAIL).where(MAIL.c.id == sa.bindparam("mail"), MAIL.c.lease == sa.bindparam("token")))

WAITING_AMONG = Query(str, lambda dialect: sa.select(MAIL.c.id).where(MAIL.c.id.in_(bound_list(dialect, "mails"))))


def drop_mail(connection: Connection, *, mail: str, token: str, sent_at: float | None) -> None:
    """Delete a mail that was sent at `sent_at` (Unix seconds), or is never to be where that is None."""
    if connection.run(DROP_MAIL, mail=mail, token=token) and sent_at is not None:
        mark_mail_sent(connection, mail=mail, now=sent_at)


def waiting_among(connection: Connection, *, mails: Collection[str]) -> set[str]:
    """Those of these mails that are still to be sent."""
    return set(connection.all(WAITING_AMONG, mails=pack_rows([[mail] for mail in sorted(mails)]))) if mails else set()


@writes
def defer_mail(*, mail: str, token: str, at: Annotated[float, to_milliseconds]) -> sa.Executable:
    """Try a mail again at `at` (Unix seconds)."""
    return sa.update(MAIL).where(MAIL.c.id == mail, MAIL.c.lease == token).values(due_ms=at, lease=None)


@changes_rows
def sweep_mails(*, before: float, most: int) -> sa.Executable:
    """Delete the oldest mails that no worker came for before they expired. `before`: Unix seconds."""
    return delete_oldest(MAIL, MAIL.c.expires_at <= before, MAIL.c.expires_at, most)


@all_rows(WaitingMail)
def sealed_mails() -> sa.Executable:
    """Every mail that waits, of all organisations: only its sealed text says to whom it goes."""
    return sa.select(*(MAIL.c[name] for name in WaitingMail._fields))


@writes
def withdraw_mail(*, mail: str) -> sa.Executable:
    """Delete a mail that is not to be sent any more."""
    return sa.delete(MAIL).where(MAIL.c.id == mail)
