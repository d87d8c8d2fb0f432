"""Schedules whose reports are mailed to whoever made them."""

from typing import Literal, NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Key, StatementBuild, TableDescription, all_rows, first_row, insert_once, writes

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


@writes
def insert_schedule_mail(*, mail: ScheduleMail) -> StatementBuild:
    return insert_once(SCHEDULE_MAIL, key=["schedule"], **mail._asdict())


@first_row(ScheduleMail)
def find_schedule_mail(*, schedule: str) -> sa.Executable:
    """How a schedule's reports are mailed, if they are."""
    return sa.select(*(SCHEDULE_MAIL.c[name] for name in ScheduleMail._fields)).where(SCHEDULE_MAIL.c.schedule == schedule)


@all_rows(ScheduleMail)
def list_schedule_mails(*, organisation: str) -> sa.Executable:
    """How the reports of an organisation's schedules are mailed."""
    return sa.select(*(SCHEDULE_MAIL.c[name] for name in ScheduleMail._fields)).where(SCHEDULE_MAIL.c.organisation == organisation)


@writes
def forget_schedule_mail(*, schedule: str, person: str) -> sa.Executable:
    """Mail no more reports of a schedule to this person."""
    return sa.delete(SCHEDULE_MAIL).where(SCHEDULE_MAIL.c.schedule == schedule, SCHEDULE_MAIL.c.person == person)


@writes
def forget_schedule_mails(*, organisation: str, person: str) -> sa.Executable:
    """Mail this person no more reports of an organisation."""
    return sa.delete(SCHEDULE_MAIL).where(SCHEDULE_MAIL.c.organisation == organisation, SCHEDULE_MAIL.c.person == person)


@writes
def remove_schedule_mail(*, schedule: str) -> sa.Executable:
    """The schedule is gone."""
    return sa.delete(SCHEDULE_MAIL).where(SCHEDULE_MAIL.c.schedule == schedule)
