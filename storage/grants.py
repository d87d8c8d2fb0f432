"""What people let programs do: the grant behind every session token of the built-in identity provider."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.changes import CALLERS, bump
from storage.connection import Connection
from storage.memberships import MEMBERS, MEMBERSHIP, Member, find_member
from storage.schema import AccessGrantTable, ApiKeyTable
from storage.statement import Command, Query, table

ACCESS, KEY = table(AccessGrantTable), table(ApiKeyTable)
GRANT = "gnt_"


class Grant(NamedTuple):
    """A grant; `scopes` are words separated by spaces, `organisation_id` None for a person without one."""

    id: str
    person_id: str
    organisation_id: str | None
    client_id: str
    client_name: str
    scopes: str
    resource: str
    created: float
    expires_at: float


COLUMNS = [ACCESS.c[name] for name in Grant._fields]
LIVE = (ACCESS.c.revoked_at.is_(None), ACCESS.c.expires_at > sa.bindparam("now"))
FIND = Query(Grant, sa.select(*COLUMNS).where(ACCESS.c.id == sa.bindparam("grant"), *LIVE))
OF_PERSON = Query(Grant, sa.select(*COLUMNS).where(ACCESS.c.person_id == sa.bindparam("person"), *LIVE).order_by(ACCESS.c.id.desc()))
# Rechecked in the transaction of a write that moves a SIM or money.
MEMBER_BY_GRANT = Query(
    Member,
    MEMBERS.join_from(
        MEMBERSHIP, ACCESS, (ACCESS.c.person_id == MEMBERSHIP.c.person_id) & (ACCESS.c.organisation_id == MEMBERSHIP.c.organisation_id)
    ).where(ACCESS.c.id == sa.bindparam("grant"), *LIVE),
)
INSERT = Command(sa.insert(ACCESS).values({name: sa.bindparam(name) for name in Grant._fields}))
REVOKE = Command(
    sa.update(ACCESS).where(ACCESS.c.id == sa.bindparam("grant"), ACCESS.c.revoked_at.is_(None)).values(revoked_at=sa.bindparam("now"))
)
REVOKE_KEYS = Command(
    sa.update(KEY).where(KEY.c.made_with == sa.bindparam("grant"), KEY.c.revoked_at.is_(None)).values(revoked_at=sa.bindparam("day"))
)


def insert_grant(connection: Connection, grant: Grant) -> None:
    """Keep what a person has just consented to."""
    connection.run(INSERT, **grant._asdict())


def find_grant(connection: Connection, *, grant: str, now: float) -> tuple[Grant, Member | None] | None:
    """A grant that has not ended, and the membership it acts in."""
    found = connection.first(FIND, grant=grant, now=now)
    if found is None:
        return None
    organisation = found.organisation_id
    return found, None if organisation is None else find_member(connection, person=found.person_id, organisation=organisation)


def grants_of(connection: Connection, *, person: str, now: float) -> list[Grant]:
    """What a person lets programs do at the moment, newest first."""
    return connection.all(OF_PERSON, person=person, now=now)


def revoke_grant(connection: Connection, *, grant: str, now: float) -> bool:
    """End a grant, and the API keys that were made with it: a program that lost its grant keeps nothing. Whether it was live."""
    revoked = connection.run(REVOKE, grant=grant, now=now) == 1
    if revoked:
        connection.run(REVOKE_KEYS, grant=grant, day=int(now))
        bump(connection, name=CALLERS)
    return revoked
