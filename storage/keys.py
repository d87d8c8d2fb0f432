"""API keys: minted once, kept as a digest."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.changes import CALLERS, bump
from storage.connection import Connection
from storage.schema import ApiKeyTable
from storage.statement import Command, Query, table

KEY = table(ApiKeyTable)


class KeyRow(NamedTuple):
    """A key without its secret."""

    id: str
    prefix: str
    name: str
    description: str | None
    expires_at: int | None
    revoked_at: int | None
    last_used_day: str | None
    created: int


COLUMNS = (
    "id",
    "digest",
    "prefix",
    "organisation_id",
    "person_id",
    "name",
    "description",
    "restrictions",
    "made_with",
    "expires_at",
    "created",
)
INSERT = Command(sa.insert(KEY).values({name: sa.bindparam(name) for name in COLUMNS}))
REVOKE = Command(
    sa.update(KEY)
    .where(KEY.c.id == sa.bindparam("key_id"), KEY.c.organisation_id == sa.bindparam("organisation"), KEY.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now"))
)
LIST = Query(
    KeyRow,
    sa.select(*(KEY.c[name] for name in KeyRow._fields))
    .where(KEY.c.organisation_id == sa.bindparam("organisation"))
    .order_by(KEY.c.id.desc()),
)


def insert_key(
    connection: Connection,
    *,
    id: str,
    digest: bytes,
    prefix: str,
    organisation: str | None,
    person: str,
    name: str,
    now: float,
    description: str | None = None,
    expires_at: int | None = None,
    restrictions: str | None = None,
    made_with: str | None = None,
) -> None:
    """Keep a new key's digest. `made_with`: the credential it was made with; a grant takes it along when it ends."""
    connection.run(
        INSERT,
        id=id,
        digest=digest,
        prefix=prefix,
        organisation_id=organisation,
        person_id=person,
        name=name,
        description=description,
        restrictions=restrictions,
        made_with=made_with,
        expires_at=expires_at,
        created=int(now),
    )


def revoke_key(connection: Connection, *, key: str, organisation: str, now: float) -> bool:
    """End a key; takes effect with the next call."""
    revoked = connection.run(REVOKE, key_id=key, organisation=organisation, now=int(now)) == 1
    bump(connection, name=CALLERS)
    return revoked


def list_keys(connection: Connection, *, organisation: str) -> list[KeyRow]:
    """An organisation's keys, newest first."""
    return connection.all(LIST, organisation=organisation)
