"""Schedules whose reports are mailed to whoever made them."""

from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Key, Query, TableDescription, insert_once

ReportMailForm = Literal["link", "pdf"]


class ScheduleMail(NamedTuple):
    """How the reports of a schedule are mailed, and to whom. `share` is the token of the share link, sealed."""

    schedule: Key
    organisation: str
    person: str
    form: ReportMailForm
    share: str


class ScheduleMailTable(TableDescription, row=ScheduleMail, table=True):
    """The mails of a schedule; none where it has no row."""


SCHEDULE_MAIL = ScheduleMailTable.table

INSERT_SCHEDULE_MAIL = Command(insert_once(SCHEDULE_MAIL, ScheduleMail._fields, key=["schedule"]))

FIND_SCHEDULE_MAIL = Query(
    ScheduleMail,
    sa.select(*(SCHEDULE_MAIL.c[name] for name in ScheduleMail._fields)).where(SCHEDULE_MAIL.c.schedule == sa.bindparam("schedule")),
)

FORGET_SCHEDULE_MAIL = Command(
    sa.delete(SCHEDULE_MAIL).where(SCHEDULE_MAIL.c.schedule == sa.bindparam("schedule"), SCHEDULE_MAIL.c.person == sa.bindparam("person"))
)

FORGET_SCHEDULE_MAILS = Command(
    lambda _: sa.delete(SCHEDULE_MAIL).where(
        SCHEDULE_MAIL.c.organisation == sa.bindparam("organisation"), SCHEDULE_MAIL.c.person == sa.bindparam("person")
    )
)

SCHEDULE_MAILS_OF = Query(
    ScheduleMail,
    lambda _: sa.select(*(SCHEDULE_MAIL.c[name] for name in ScheduleMail._fields)).where(
        SCHEDULE_MAIL.c.organisation == sa.bindparam("organisation")
    ),
)

REMOVE_SCHEDULE_MAIL = Command(lambda _: sa.delete(SCHEDULE_MAIL).where(SCHEDULE_MAIL.c.schedule == sa.bindparam("schedule")))


def insert_schedule_mail(connection: Connection, *, mail: ScheduleMail) -> None:
    connection.run(INSERT_SCHEDULE_MAIL, **mail._asdict())


def find_schedule_mail(connection: Connection, *, schedule: str) -> ScheduleMail | None:
    """How a schedule's reports are mailed, if they are."""
    return connection.first(FIND_SCHEDULE_MAIL, schedule=schedule)


def list_schedule_mails(connection: Connection, *, organisation: str) -> list[ScheduleMail]:
    """How the reports of an organisation's schedules are mailed."""
    return connection.all(SCHEDULE_MAILS_OF, organisation=organisation)


def forget_schedule_mail(connection: Connection, *, schedule: str, person: str) -> None:
    """Mail no more reports of a schedule to this person."""
    connection.run(FORGET_SCHEDULE_MAIL, schedule=schedule, person=person)


def forget_schedule_mails(connection: Connection, *, organisation: str, person: str) -> None:
    """Mail this person no more reports of an organisation."""
    connection.run(FORGET_SCHEDULE_MAILS, organisation=organisation, person=person)


def remove_schedule_mail(connection: Connection, *, schedule: str) -> None:
    """The schedule is gone."""
    connection.run(REMOVE_SCHEDULE_MAIL, schedule=schedule)
