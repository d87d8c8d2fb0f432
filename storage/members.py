"""Members of an organisation and those who were asked to be: listing them, and ending a membership."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa

from storage.access_grants import ACCESS_GRANT, revoke_grant
from storage.api_keys import API_KEY, EndedKey, LogEndedKeys, end_keys_made_with
from storage.browser_sessions import BROWSER_SESSION
from storage.engine.sql import Command, Connection, Query, all_rows, first_row, insert_once, or_last, row_exists
from storage.invitations import INVITATION
from storage.mail_subscriptions import forget_mail_choice
from storage.organisations import MEMBERSHIP, count_change
from storage.people import PERSON


class MemberRow(NamedTuple):
    """A member, or somebody who is invited; `email` is None where we know no address."""

    id: str
    email: str | None
    name: str | None
    role: str
    active: int
    created: float


MEMBER_ORGANISATION = sa.bindparam("organisation", type_=sa.Text)

MEMBER_EMAIL = sa.func.coalesce(PERSON.c.address, PERSON.c.email)

ACTIVE_MEMBERS = (
    sa.select(
        PERSON.c.id,
        MEMBER_EMAIL.label("email"),
        PERSON.c.name,
        MEMBERSHIP.c.role,
        sa.literal_column("1", sa.Integer).label("active"),
        sa.cast(MEMBERSHIP.c.created, sa.Double).label("created"),
    )
    .join_from(MEMBERSHIP, PERSON, MEMBERSHIP.c.person_id == PERSON.c.id)
    .where(MEMBERSHIP.c.organisation_id == MEMBER_ORGANISATION)
)

INVITED_MEMBERS = sa.select(
    INVITATION.c.id,
    INVITATION.c.address.label("email"),
    sa.cast(sa.null(), sa.Text).label("name"),
    INVITATION.c.role,
    sa.literal_column("0", sa.Integer).label("active"),
    INVITATION.c.created,
).where(INVITATION.c.organisation_id == MEMBER_ORGANISATION, INVITATION.c.expires_at > sa.bindparam("now"))

MEMBERS_AND_INVITED = sa.union_all(ACTIVE_MEMBERS, INVITED_MEMBERS).subquery("people")

THIS_MEMBERSHIP = (MEMBERSHIP.c.person_id == sa.bindparam("person")) & (MEMBERSHIP.c.organisation_id == MEMBER_ORGANISATION)

OTHER_MEMBER = MEMBERSHIP.alias("other")

ANOTHER_ADMIN = sa.exists().where(
    OTHER_MEMBER.c.organisation_id == MEMBER_ORGANISATION,
    OTHER_MEMBER.c.role == "admin",
    OTHER_MEMBER.c.person_id != sa.bindparam("person"),
)

REMOVE_MEMBERSHIP = Command(lambda _: sa.delete(MEMBERSHIP).where(THIS_MEMBERSHIP, (MEMBERSHIP.c.role != "admin") | ANOTHER_ADMIN))

KEYS_OF_MEMBER = (
    API_KEY.c.person_id == sa.bindparam("person"),
    API_KEY.c.organisation_id == MEMBER_ORGANISATION,
    API_KEY.c.revoked_at.is_(None),
)

LIST_KEYS_OF_MEMBER = Query(str, lambda _: sa.select(API_KEY.c.id).where(*KEYS_OF_MEMBER))

END_KEYS_OF_MEMBER = Query(EndedKey, lambda _: sa.update(API_KEY).where(*KEYS_OF_MEMBER).values(revoked_at=sa.bindparam("day")))

LIST_GRANTS_OF_MEMBER = Query(
    str,
    lambda _: sa.select(ACCESS_GRANT.c.id).where(
        ACCESS_GRANT.c.person_id == sa.bindparam("person"),
        ACCESS_GRANT.c.organisation_id == MEMBER_ORGANISATION,
        ACCESS_GRANT.c.revoked_at.is_(None),
    ),
)

LEAVE_BROWSERS = Command(
    sa.update(BROWSER_SESSION)
    .where(BROWSER_SESSION.c.person_id == sa.bindparam("person"), BROWSER_SESSION.c.organisation_id == sa.bindparam("left"))
    .values(organisation_id=None)
)

WITHDRAW_INVITATIONS_BY = Command(
    sa.delete(INVITATION).where(INVITATION.c.invited_by == sa.bindparam("person"), INVITATION.c.organisation_id == MEMBER_ORGANISATION)
)

JOIN_ORGANISATION = Command(insert_once(MEMBERSHIP, MEMBERSHIP.c.keys(), key=["person_id", "organisation_id"]))


@all_rows(MemberRow)
def list_people(*, organisation: str, now: float, after: Annotated[str | None, or_last("usr_")], most: int) -> sa.Executable:
    """Members, then those whose invitation waits. `now`: Unix seconds."""
    # Ids of people sort behind those of invitations: members come first, and of each the newest.
    return (
        sa.select(*(MEMBERS_AND_INVITED.c[name] for name in MemberRow._fields))
        .where(MEMBERS_AND_INVITED.c.id < after)
        .order_by(MEMBERS_AND_INVITED.c.id.desc())
        .limit(most)
    )


@first_row(MemberRow)
def member_with_address(*, organisation: str, address: str) -> sa.Executable:
    """The member who has an address, in lower case; nothing is said of people who are no members."""
    return ACTIVE_MEMBERS.where(sa.func.lower(MEMBER_EMAIL) == address)


@row_exists
def is_member(*, person: str, organisation: str) -> sa.Executable:
    return sa.select(MEMBERSHIP.c.person_id.label("id")).where(THIS_MEMBERSHIP)


@first_row(str)
def hold_membership(*, person: str, organisation: str) -> sa.Executable:
    """The role that somebody has, if they are a member; it does not end before this transaction does."""
    # Whoever ends a membership waits for those who act by it.
    return sa.select(MEMBERSHIP.c.role).where(THIS_MEMBERSHIP).with_for_update(read=True)


def queue_for_members(connection: Connection) -> None:
    """Wait for whoever is ending a membership, before anything else that they may lock is read."""
    count_change(connection)


def join_organisation(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> bool:
    """A new membership; False where there was one. Whoever is a member keeps the role they have: an invitation is no way to lose the last
    admin."""
    joined = connection.run(JOIN_ORGANISATION, person_id=person, organisation_id=organisation, role=role, created=int(now)) == 1
    count_change(connection)
    return joined


def end_membership(connection: Connection, *, person: str, organisation: str, now: float, log: LogEndedKeys | None = None) -> bool:
    """End a membership with all that acts for it; False when it is that of the last admin, or is not there. `log` gets the keys among it.

    The counter is moved first, since that makes those who do this at once queue: of two admins who remove each other one stays.
    """
    count_change(connection)
    of: dict[str, str] = {"person": person, "organisation": organisation}
    if connection.run(REMOVE_MEMBERSHIP, **of) != 1:
        return False
    for grant in connection.all(LIST_GRANTS_OF_MEMBER, **of):
        revoke_grant(connection, grant=grant, now=now, log=log)
    for key in connection.all(LIST_KEYS_OF_MEMBER, **of):
        end_keys_made_with(connection, credential=key, now=now, log=log)
    ended = connection.all(END_KEYS_OF_MEMBER, **of, day=int(now))
    if log is not None and ended:
        log(connection, ended, now)
    connection.run(WITHDRAW_INVITATIONS_BY, **of)
    connection.run(LEAVE_BROWSERS, person=person, left=organisation)
    forget_mail_choice(connection, **of)
    return True
