"""What the members of an organisation are told by mail, and how: what each has chosen for themselves.

A choice ends with the membership: one that is older than the membership counts for nothing.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import (
    BigInt,
    Command,
    Connection,
    Query,
    StatementBuild,
    TableDescription,
    bound_list,
    first_row,
    pack_rows,
    upsert,
    writes,
)
from storage.mail_notices import forget_notices
from storage.organisations import MEMBERSHIP
from storage.people import PERSON
from storage.schedule_mails import forget_schedule_mails


class MailChoice(NamedTuple):
    """What somebody has chosen in an organisation.

    `kinds`: JSON object of `at_once`, `digest` or `off` by the names and globs of kinds. The digest goes out at `hour` of the day in
    `timezone`, a name of the IANA database. `changed`: Unix seconds.
    """

    organisation: str
    person: str
    kinds: str
    hour: int
    timezone: str
    language: str
    changed: BigInt


class MailSubscriptionTable(TableDescription, row=MailChoice, without=("organisation", "person"), table=True):
    """What a member has chosen to be told by mail."""

    organisation: str = Field(primary_key=True)
    person: str = Field(primary_key=True)


class MailReader(NamedTuple):
    """A member whose address is proved, and what they have chosen: all None where they have chosen nothing."""

    organisation: str
    person: str
    role: str
    address: str
    kinds: str | None
    hour: int | None
    timezone: str | None
    language: str | None


MAIL_SUBSCRIPTION = MailSubscriptionTable.table


READER_COLUMNS: tuple[sa.ColumnElement[object], ...] = (
    MEMBERSHIP.c.organisation_id.label("organisation"),
    MEMBERSHIP.c.person_id.label("person"),
    MEMBERSHIP.c.role,
    PERSON.c.address,
    *(MAIL_SUBSCRIPTION.c[name] for name in ("kinds", "hour", "timezone", "language")),
)

IS_OF_MEMBERSHIP = (
    (MAIL_SUBSCRIPTION.c.organisation == MEMBERSHIP.c.organisation_id)
    & (MAIL_SUBSCRIPTION.c.person == MEMBERSHIP.c.person_id)
    & (MAIL_SUBSCRIPTION.c.changed >= MEMBERSHIP.c.created)
)

READERS = (
    sa.select(*READER_COLUMNS)
    .select_from(MEMBERSHIP.join(PERSON, PERSON.c.id == MEMBERSHIP.c.person_id).join(MAIL_SUBSCRIPTION, IS_OF_MEMBERSHIP, isouter=True))
    .where(PERSON.c.address.is_not(None))
    .order_by(MEMBERSHIP.c.organisation_id, MEMBERSHIP.c.person_id)
)

READERS_OF = Query(MailReader, lambda dialect: READERS.where(MEMBERSHIP.c.organisation_id.in_(bound_list(dialect, "organisations"))))

FORGET_CHOICE = Command(
    lambda _: sa.delete(MAIL_SUBSCRIPTION).where(
        MAIL_SUBSCRIPTION.c.organisation == sa.bindparam("organisation"), MAIL_SUBSCRIPTION.c.person == sa.bindparam("person")
    )
)


def mail_readers(connection: Connection, *, organisations: list[str]) -> list[MailReader]:
    """The members of these organisations whose address is proved, in the order of organisations and people."""
    return connection.all(READERS_OF, organisations=pack_rows([[each] for each in organisations]))


def find_mail_reader(connection: Connection, *, organisation: str, person: str) -> MailReader | None:
    """One member, if their address is proved."""
    return next((each for each in mail_readers(connection, organisations=[organisation]) if each.person == person), None)


@first_row(MailChoice)
def find_mail_choice(*, organisation: str, person: str) -> sa.Executable:
    """What a member has chosen since they became one, whether or not their address is proved."""
    return (
        sa.select(*(MAIL_SUBSCRIPTION.c[name] for name in MailChoice._fields))
        .select_from(MEMBERSHIP.join(MAIL_SUBSCRIPTION, IS_OF_MEMBERSHIP))
        .where(MEMBERSHIP.c.organisation_id == organisation, MEMBERSHIP.c.person_id == person)
    )


@first_row(str)
def proved_address(*, person: str) -> sa.Executable:
    """The address whose mail somebody has proved to read; None where there is none."""
    return sa.select(PERSON.c.address).where(PERSON.c.id == person, PERSON.c.address.is_not(None))


@writes
def put_mail_choice(*, choice: MailChoice) -> StatementBuild:
    """Keep what somebody has chosen, in the place of what they chose before."""
    return upsert(MAIL_SUBSCRIPTION, key=["organisation", "person"], **choice._asdict())


def forget_mail_choice(connection: Connection, *, organisation: str, person: str) -> None:
    """The membership has ended."""
    connection.run(FORGET_CHOICE, organisation=organisation, person=person)
    forget_schedule_mails(connection, organisation=organisation, person=person)
    forget_notices(connection, organisation=organisation, person=person)
