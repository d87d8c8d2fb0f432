"""What people let programs do: the grant behind every session token of the built-in identity provider."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from registry.errors import NotFound
from storage.api_keys import LogEndedKeys, end_keys_made_with, hold_key
from storage.engine.sql import Command, Connection, Key, Query, TableDescription, all_rows, writes
from storage.organisations import MEMBERSHIP, SELECT_MEMBERSHIPS, Membership, count_change, find_member


class AccessGrant(NamedTuple):
    """A grant; `scopes` are words separated by spaces, `organisation_id` None for a person without one."""

    id: Key
    person_id: Annotated[str, Field(foreign_key="person.id", index=True)]
    organisation_id: Annotated[str, Field(index=True)] | None
    client_id: str
    client_name: str
    scopes: str
    resource: str
    created: float
    expires_at: Annotated[float, Field(index=True)]


class AccessGrantTable(TableDescription, row=AccessGrant, table=True):
    """What a person let a program do: the tokens of a login name it, and nothing in them counts but that."""

    revoked_at: float | None


ACCESS_GRANT = AccessGrantTable.table

GRANT_PREFIX = "gnt_"

GRANT_COLUMNS = [ACCESS_GRANT.c[name] for name in AccessGrant._fields]

GRANT_IS_LIVE = (ACCESS_GRANT.c.revoked_at.is_(None), ACCESS_GRANT.c.expires_at > sa.bindparam("now"))

FIND_GRANT = Query(AccessGrant, lambda _: sa.select(*GRANT_COLUMNS).where(ACCESS_GRANT.c.id == sa.bindparam("grant"), *GRANT_IS_LIVE))

# Rechecked in the transaction of a write that moves a SIM or money.
MEMBER_BY_GRANT = Query(
    Membership,
    lambda _: SELECT_MEMBERSHIPS.join_from(
        MEMBERSHIP,
        ACCESS_GRANT,
        (ACCESS_GRANT.c.person_id == MEMBERSHIP.c.person_id) & (ACCESS_GRANT.c.organisation_id == MEMBERSHIP.c.organisation_id),
    ).where(ACCESS_GRANT.c.id == sa.bindparam("grant"), *GRANT_IS_LIVE),
)

INSERT_GRANT = Command(lambda _: sa.insert(ACCESS_GRANT).values({name: sa.bindparam(name) for name in AccessGrant._fields}))

REVOKE_GRANT = Command(
    sa.update(ACCESS_GRANT)
    .where(ACCESS_GRANT.c.id == sa.bindparam("grant"), ACCESS_GRANT.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now"))
)

HOLD_GRANT = Query(
    str, lambda _: sa.select(ACCESS_GRANT.c.id).where(ACCESS_GRANT.c.id == sa.bindparam("grant"), *GRANT_IS_LIVE).with_for_update(read=True)
)


def insert_grant(connection: Connection, grant: AccessGrant) -> None:
    """Insert the grant that a person has just consented to."""
    connection.run(INSERT_GRANT, **grant._asdict())


def grant_to_member(connection: Connection, grant: AccessGrant) -> None:
    """Keep a grant whose organisation is one of the person's; NotFound otherwise.

    The counter is moved first: who ends the membership at this moment queues, and none of its grants is left for when they come back.
    """
    count_change(connection)
    organisation = grant.organisation_id
    if organisation is not None and find_member(connection, person=grant.person_id, organisation=organisation) is None:
        raise NotFound("organization: no such organization among yours", param="organization", hint="Choose one that you belong to")
    insert_grant(connection, grant)


@writes
def prolong_grant(*, grant: str, until: float, now: float) -> sa.Executable:
    """A program has fetched its code: the grant, if it is live at `now`, ends at `until`. Both: Unix seconds."""
    return sa.update(ACCESS_GRANT).where(ACCESS_GRANT.c.id == grant, *GRANT_IS_LIVE).values(expires_at=until)


def find_grant(connection: Connection, *, grant: str, now: float) -> tuple[AccessGrant, Membership | None] | None:
    """The grant with this id and the membership that it acts in, if any; None where it has ended at `now` (Unix seconds)."""
    found = connection.first(FIND_GRANT, grant=grant, now=now)
    if found is None:
        return None
    organisation = found.organisation_id
    return found, None if organisation is None else find_member(connection, person=found.person_id, organisation=organisation)


@all_rows(AccessGrant)
def grants_of(*, person: str, now: float) -> sa.Executable:
    """The grants of `person` that have not ended at `now` (Unix seconds), newest first."""
    return sa.select(*GRANT_COLUMNS).where(ACCESS_GRANT.c.person_id == person, *GRANT_IS_LIVE).order_by(ACCESS_GRANT.c.id.desc())


def revoke_grant(connection: Connection, *, grant: str, now: float, log: LogEndedKeys | None = None) -> bool:
    """End a grant and all API keys made with it, or with one of these; whether it was live. `now`: Unix seconds.

    `log` gets the keys that have ended.
    """
    revoked = connection.run(REVOKE_GRANT, grant=grant, now=now) == 1
    if revoked:
        end_keys_made_with(connection, credential=grant, now=now, log=log)
        count_change(connection)
    return revoked


@writes
def revoke_grants_to(*, person: str, client: str, now: float) -> sa.Executable:
    """End what `person` granted to the program `client`; API keys that were made with it stay. `now`: Unix seconds."""
    return (
        sa.update(ACCESS_GRANT)
        .where(
            ACCESS_GRANT.c.person_id == person,
            ACCESS_GRANT.c.client_id == client,
            ACCESS_GRANT.c.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )


def hold_credential(connection: Connection, *, credential: str, now: float) -> bool:
    """Whether a key or a grant is live; it does not end before this transaction does. `now`: Unix seconds."""
    if credential.startswith(GRANT_PREFIX):
        return connection.first(HOLD_GRANT, grant=credential, now=now) is not None
    return hold_key(connection, key=credential)
