"""Notices: what somebody is still to be told by mail, one row for each person and event, written in the commit that places the event.

A notice becomes a mail in one commit, which marks it and queues the mail; so a process that dies loses none and repeats none.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Query,
    TableDescription,
    all_rows,
    bound_list,
    changes_rows,
    delete_oldest,
    insert_once,
    pack_rows,
    to_milliseconds,
    value_or,
)
from storage.mail import MAIL


class MailNotice(NamedTuple):
    """What somebody is to be told. `how`: `at_once` or `digest`; `day`: the local day of that digest as 20261127, 0 for none.

    `created`: when it happened, Unix seconds; `due_ms`: when it may be mailed, Unix milliseconds.
    """

    organisation: str
    person: str
    event: str
    type: str
    how: str
    day: int
    created: BigInt
    due_ms: BigInt


class MailNoticeTable(TableDescription, row=MailNotice, without=("person", "event"), table=True):
    """What somebody is told by mail. `ended_ms`: when it became a mail, or was wanted no more; `mail`: which one, empty for none."""

    person: str = Field(primary_key=True)
    event: str = Field(primary_key=True)
    ended_ms: BigInt | None
    mail: str
    __table_args__ = (
        sa.Index("mail_notice_due", "due_ms", sqlite_where=sa.text("ended_ms IS NULL")),
        # What waits, of each reader: what was told before is not gone through again.
        sa.Index(
            "mail_notice_waiting",
            "organisation",
            "person",
            "due_ms",
            sqlite_where=sa.text("ended_ms IS NULL"),
        ),
        sa.Index("mail_notice_digest", "organisation", "person", "day"),
        sa.Index("mail_notice_ended", "ended_ms"),
    )


class NoticeReader(NamedTuple):
    """Somebody who is to be told something."""

    organisation: str
    person: str


MAIL_NOTICE = MailNoticeTable.table

NOTICE_COLUMNS: Sequence[sa.ColumnElement[object]] = tuple(MAIL_NOTICE.c[name] for name in MailNotice._fields)

NOTICE_WAITS = MAIL_NOTICE.c.ended_ms.is_(None)

NOTICE_IS_DUE = NOTICE_WAITS & (MAIL_NOTICE.c.due_ms <= sa.bindparam("now_ms", type_=sa.BigInteger))

NOTICE_IS_READERS = (MAIL_NOTICE.c.organisation == sa.bindparam("of", type_=sa.Text)) & (
    MAIL_NOTICE.c.person == sa.bindparam("whom", type_=sa.Text)
)

QUEUE_NOTICE = Command(insert_once(MAIL_NOTICE, MailNotice._fields, key=["person", "event"], ended_ms=None, mail=""))

# The rows stay locked: of two workers one tells them.
DUE_NOTICES = Query(
    MailNotice,
    sa.select(*NOTICE_COLUMNS)
    .where(NOTICE_IS_DUE, NOTICE_IS_READERS)
    .order_by(MAIL_NOTICE.c.created, MAIL_NOTICE.c.event)
    .limit(sa.bindparam("most"))
    .with_for_update(),
)

END_NOTICES = Command(
    lambda dialect: (
        sa.update(MAIL_NOTICE)
        .where(MAIL_NOTICE.c.person == sa.bindparam("whom"), MAIL_NOTICE.c.event.in_(bound_list(dialect, "events")), NOTICE_WAITS)
        .values(ended_ms=sa.bindparam("at_ms"), mail=sa.bindparam("named"))
    )
)

MOVE_NOTICES = Command(
    lambda dialect: (
        sa.update(MAIL_NOTICE)
        .where(MAIL_NOTICE.c.person == sa.bindparam("whom"), MAIL_NOTICE.c.event.in_(bound_list(dialect, "events")), NOTICE_WAITS)
        .values(due_ms=sa.bindparam("later_ms"), day=sa.bindparam("of_day"))
    )
)

MOVE_DIGESTS = Command(
    sa.update(MAIL_NOTICE)
    .where(NOTICE_IS_READERS, NOTICE_WAITS, MAIL_NOTICE.c.how == "digest")
    .values(due_ms=sa.bindparam("later_ms"), day=sa.bindparam("of_day"))
)

FORGET_NOTICES = Command(lambda _: sa.delete(MAIL_NOTICE).where(NOTICE_IS_READERS, NOTICE_WAITS))

WITHDRAW_MAILS = Command(
    lambda _: sa.delete(MAIL).where(MAIL.c.id.in_(sa.select(MAIL_NOTICE.c.mail).where(NOTICE_IS_READERS, MAIL_NOTICE.c.mail != "")))
)


def queue_notices(connection: Connection, *, notices: Sequence[MailNotice]) -> int:
    """Keep what people are to be told; how many are new. Nobody is told one event twice."""
    return sum(connection.run(QUEUE_NOTICE, **notice._asdict()) for notice in notices)


@all_rows(NoticeReader)
def list_readers_due(*, now_ms: int, most: int) -> sa.Executable:
    """Those who are to be told something now, whoever waits longest first. `now_ms`: Unix milliseconds."""
    return (
        sa.select(MAIL_NOTICE.c.organisation, MAIL_NOTICE.c.person)
        .where(NOTICE_WAITS, MAIL_NOTICE.c.due_ms <= now_ms)
        .group_by(MAIL_NOTICE.c.organisation, MAIL_NOTICE.c.person)
        .order_by(sa.func.min(MAIL_NOTICE.c.due_ms))
        .limit(most)
    )


def take_due_notices(connection: Connection, *, organisation: str, person: str, now_ms: int, most: int) -> list[MailNotice]:
    """What one person is to be told now, the oldest first; nobody else takes these before the transaction ends."""
    return connection.all(DUE_NOTICES, of=organisation, whom=person, now_ms=now_ms, most=most)


def end_notices(connection: Connection, *, person: str, events: Sequence[str], mail: str, now_ms: int) -> None:
    """The events are told in `mail`; empty: they are told no more."""
    if events:
        connection.run(END_NOTICES, whom=person, events=pack_rows([[each] for each in events]), named=mail, at_ms=now_ms)


def move_notices(connection: Connection, *, person: str, events: Sequence[str], due_ms: int, day: int) -> None:
    """Tell these events later."""
    if events:
        connection.run(MOVE_NOTICES, whom=person, events=pack_rows([[each] for each in events]), later_ms=due_ms, of_day=day)


def move_digest(connection: Connection, *, organisation: str, person: str, due_ms: int, day: int) -> None:
    """The digest of one person comes at another time."""
    connection.run(MOVE_DIGESTS, of=organisation, whom=person, later_ms=due_ms, of_day=day)


@value_or(0)
def last_digest_day(*, organisation: str, person: str) -> sa.Executable:
    """The local day of the newest digest that somebody was sent; 0: they had none."""
    return sa.select(sa.func.max(MAIL_NOTICE.c.day).label("day")).where(
        MAIL_NOTICE.c.organisation == organisation, MAIL_NOTICE.c.person == person, MAIL_NOTICE.c.mail != ""
    )


@value_or(0)
def late_mails(*, person: str, before: Annotated[float, to_milliseconds]) -> sa.Executable:
    """How many of somebody's mails were queued before `before` (Unix seconds), and still wait for the mail server."""
    late = sa.select(MAIL_NOTICE.c.mail).where(MAIL_NOTICE.c.person == person, MAIL_NOTICE.c.mail != "", MAIL_NOTICE.c.ended_ms <= before)
    return sa.select(sa.func.count().label("mails")).where(MAIL.c.id.in_(late))


@changes_rows
def sweep_notices(*, before: Annotated[float, to_milliseconds], most: int) -> sa.Executable:
    """Delete the oldest notices that were told, or wanted no more, before `before` (Unix seconds)."""
    return delete_oldest(MAIL_NOTICE, MAIL_NOTICE.c.ended_ms < before, MAIL_NOTICE.c.ended_ms, most)


def forget_notices(connection: Connection, *, organisation: str, person: str) -> None:
    """Somebody is to be told nothing more of an organisation: neither what waits for its mail, nor what waits for the mail server."""
    connection.run(FORGET_NOTICES, of=organisation, whom=person)
    connection.run(WITHDRAW_MAILS, of=organisation, whom=person)
