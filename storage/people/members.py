"""Members of an organisation and those who were asked to be: listing them, and ending a membership."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.people.grants import revoke_grant
from storage.people.keys import end_keys_made_with
from storage.schema import AccessGrantTable, ApiKeyTable, BrowserSessionTable, InvitationTable, MembershipTable, PersonTable
from storage.statement import Command, Query, table

PERSON, MEMBERSHIP, INVITATION = table(PersonTable), table(MembershipTable), table(InvitationTable)
KEY, GRANT, SESSION = table(ApiKeyTable), table(AccessGrantTable), table(BrowserSessionTable)
# Sorts behind every id of people and of invitations.
AFTER_ALL = "usr_" + "z" * 27


class MemberRow(NamedTuple):
    """A member, or somebody who is invited; `email` is None where we know no address."""

    id: str
    email: str | None
    name: str | None
    role: str
    active: int
    created: float


class Id(NamedTuple):
    """Something that is there."""

    id: str


class Role(NamedTuple):
    """What a member is."""

    role: str


ORGANISATION = sa.bindparam("organisation", type_=sa.Text)
EMAIL = sa.func.coalesce(PERSON.c.address, PERSON.c.email)
ACTIVE = (
    sa.select(
        PERSON.c.id,
        EMAIL.label("email"),
        PERSON.c.name,
        MEMBERSHIP.c.role,
        sa.literal_column("1", sa.Integer).label("active"),
        sa.cast(MEMBERSHIP.c.created, sa.Double).label("created"),
    )
    .join_from(MEMBERSHIP, PERSON, MEMBERSHIP.c.person_id == PERSON.c.id)
    .where(MEMBERSHIP.c.organisation_id == ORGANISATION)
)
INVITED = sa.select(
    INVITATION.c.id,
    INVITATION.c.address.label("email"),
    sa.cast(sa.null(), sa.Text).label("name"),
    INVITATION.c.role,
    sa.literal_column("0", sa.Integer).label("active"),
    INVITATION.c.created,
).where(INVITATION.c.organisation_id == ORGANISATION, INVITATION.c.expires_at > sa.bindparam("now"))
BOTH = sa.union_all(ACTIVE, INVITED).subquery("people")
# Ids of people sort behind those of invitations: members come first, and of each the newest.
LIST = Query(
    MemberRow,
    sa.select(*(BOTH.c[name] for name in MemberRow._fields))
    .where(BOTH.c.id < sa.bindparam("after"))
    .order_by(BOTH.c.id.desc())
    .limit(sa.bindparam("most")),
)
BY_ADDRESS = Query(MemberRow, ACTIVE.where(sa.func.lower(EMAIL) == sa.bindparam("address")))
ITS = (MEMBERSHIP.c.person_id == sa.bindparam("person")) & (MEMBERSHIP.c.organisation_id == ORGANISATION)
OTHER = MEMBERSHIP.alias("other")
ANOTHER_ADMIN = sa.exists().where(
    OTHER.c.organisation_id == ORGANISATION, OTHER.c.role == "admin", OTHER.c.person_id != sa.bindparam("person")
)
REMOVE = Command(sa.delete(MEMBERSHIP).where(ITS, (MEMBERSHIP.c.role != "admin") | ANOTHER_ADMIN))
IS_MEMBER = Query(Id, sa.select(MEMBERSHIP.c.person_id.label("id")).where(ITS))
# Whoever ends a membership waits for those who act by it.
HOLD = Query(Role, sa.select(MEMBERSHIP.c.role).where(ITS).with_for_update(read=True))
THEIRS = (KEY.c.person_id == sa.bindparam("person"), KEY.c.organisation_id == ORGANISATION, KEY.c.revoked_at.is_(None))
KEYS = Query(Id, sa.select(KEY.c.id).where(*THEIRS))
END_KEYS = Command(sa.update(KEY).where(*THEIRS).values(revoked_at=sa.bindparam("day")))
GRANTS = Query(
    Id,
    sa.select(GRANT.c.id).where(
        GRANT.c.person_id == sa.bindparam("person"), GRANT.c.organisation_id == ORGANISATION, GRANT.c.revoked_at.is_(None)
    ),
)
LEAVE = Command(
    sa.update(SESSION)
    .where(SESSION.c.person_id == sa.bindparam("person"), SESSION.c.organisation_id == sa.bindparam("left"))
    .values(organisation_id=None)
)
WITHDRAW = Command(
    sa.delete(INVITATION).where(INVITATION.c.invited_by == sa.bindparam("person"), INVITATION.c.organisation_id == ORGANISATION)
)
JOIN = Command(
    lambda dialect: (
        dialect.insert(MEMBERSHIP)
        .values({name: sa.bindparam(name) for name in ("person_id", "organisation_id", "role", "created")})
        .on_conflict_do_nothing(index_elements=["person_id", "organisation_id"])
    )
)


def list_people(connection: Connection, *, organisation: str, now: float, after: str | None, most: int) -> list[MemberRow]:
    """Members, then those whose invitation waits."""
    return connection.all(LIST, organisation=organisation, now=now, after=after or AFTER_ALL, most=most)


def member_with_address(connection: Connection, *, organisation: str, address: str) -> MemberRow | None:
    """The member who has an address, in lower case; nothing is said of people who are no members."""
    return connection.first(BY_ADDRESS, organisation=organisation, address=address)


def is_member(connection: Connection, *, person: str, organisation: str) -> bool:
    """Whether there is a membership."""
    return connection.first(IS_MEMBER, person=person, organisation=organisation) is not None


def hold_membership(connection: Connection, *, person: str, organisation: str) -> str | None:
    """The role that somebody has, if they are a member; it does not end before this transaction does."""
    found = connection.first(HOLD, person=person, organisation=organisation)
    return None if found is None else found.role


def queue_for_members(connection: Connection) -> None:
    """Wait for whoever is ending a membership, before anything else that they may lock is read."""
    bump(connection, name=CALLERS)


def join(connection: Connection, *, person: str, organisation: str, role: str, now: float) -> None:
    """A new membership. Whoever is a member keeps the role they have: an invitation is no way to lose the last admin."""
    connection.run(JOIN, person_id=person, organisation_id=organisation, role=role, created=int(now))
    bump(connection, name=CALLERS)


def end_membership(connection: Connection, *, person: str, organisation: str, now: float) -> bool:
    """End a membership with all that acts for it; False when it is that of the last admin, or is not there.

    The counter is moved first, since that makes those who do this at once queue: of two admins who remove each other one stays.
    """
    bump(connection, name=CALLERS)
    of: dict[str, str] = {"person": person, "organisation": organisation}
    if connection.run(REMOVE, **of) != 1:
        return False
    for grant in connection.all(GRANTS, **of):
        revoke_grant(connection, grant=grant.id, now=now)
    for key in connection.all(KEYS, **of):
        end_keys_made_with(connection, credential=key.id, now=now)
    connection.run(END_KEYS, **of, day=int(now))
    connection.run(WITHDRAW, **of)
    connection.run(LEAVE, person=person, left=organisation)
    return True
