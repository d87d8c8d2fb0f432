"""What people let programs do: the grant behind every session token of the built-in identity provider."""

from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import NotFound
from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.people.keys import end_keys_made_with, hold_key
from storage.people.memberships import MEMBERS, MEMBERSHIP, Member, find_member
from storage.schema import AccessGrantTable
from storage.statement import Command, Query, table

ACCESS = table(AccessGrantTable)
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


class Held(NamedTuple):
    """A grant that is there."""

    id: str


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
PROLONG = Command(sa.update(ACCESS).where(ACCESS.c.id == sa.bindparam("grant"), *LIVE).values(expires_at=sa.bindparam("until")))
REVOKE = Command(
    sa.update(ACCESS).where(ACCESS.c.id == sa.bindparam("grant"), ACCESS.c.revoked_at.is_(None)).values(revoked_at=sa.bindparam("now"))
)
REVOKE_TO = Command(
    sa.update(ACCESS)
    .where(ACCESS.c.person_id == sa.bindparam("person"), ACCESS.c.client_id == sa.bindparam("client"), ACCESS.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now"))
)
HOLD = Query(Held, sa.select(ACCESS.c.id).where(ACCESS.c.id == sa.bindparam("grant"), *LIVE).with_for_update(read=True))


def insert_grant(connection: Connection, grant: Grant) -> None:
    """Keep what a person has just consented to."""
    connection.run(INSERT, **grant._asdict())


def grant_to_member(connection: Connection, grant: Grant) -> None:
    """Keep a grant whose organisation is one of the person's; NotFound otherwise.

    The counter is moved first: who ends the membership at this moment queues, and none of its grants is left for when they come back.
    """
    bump(connection, name=CALLERS)
    organisation = grant.organisation_id
    if organisation is not None and find_member(connection, person=grant.person_id, organisation=organisation) is None:
        raise NotFound("organization: no such organization among yours", param="organization", hint="Choose one that you belong to")
    insert_grant(connection, grant)


def prolong_grant(connection: Connection, *, grant: str, until: float, now: float) -> None:
    """The program has fetched what the person consented to: the grant, if it is live, lasts until then."""
    connection.run(PROLONG, grant=grant, until=until, now=now)


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
    """End a grant, and the API keys made with it or with those: a program that lost its grant keeps nothing. Whether it was live."""
    revoked = connection.run(REVOKE, grant=grant, now=now) == 1
    if revoked:
        end_keys_made_with(connection, credential=grant, now=now)
        bump(connection, name=CALLERS)
    return revoked


def revoke_grants_to(connection: Connection, *, person: str, client: str, now: float) -> None:
    """End what a person granted to one program. API keys that were made with it stay."""
    connection.run(REVOKE_TO, person=person, client=client, now=now)


def hold_credential(connection: Connection, *, credential: str, now: float) -> bool:
    """Whether a key or a grant is live; it does not end before this transaction does."""
    if credential.startswith(GRANT):
        return connection.first(HOLD, grant=credential, now=now) is not None
    return hold_key(connection, key=credential)
