"""API keys: minted once, kept as a digest."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.calls.changes import CALLERS, bump
from storage.connection import Connection
from storage.schema import ApiKeyTable, PersonTable
from storage.statement import Command, Query, table

KEY, PERSON = table(ApiKeyTable), table(PersonTable)
# Sorts behind every id: z is the last character of their alphabet.
AFTER_ALL = "key_" + "z" * 27


class KeyRow(NamedTuple):
    """A key without its secret."""

    id: str
    prefix: str
    name: str
    description: str | None
    organisation_id: str | None
    person_id: str
    maker: str | None
    restrictions: str | None
    made_with: str | None
    expires_at: int | None
    revoked_at: int | None
    last_used_day: str | None
    created: int


class Id(NamedTuple):
    """A key that is there."""

    id: str


INSERTED = (
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
INSERT = Command(sa.insert(KEY).values({name: sa.bindparam(name) for name in INSERTED}))
COLUMNS = [PERSON.c.name.label("maker") if name == "maker" else KEY.c[name] for name in KeyRow._fields]
ROWS = sa.select(*COLUMNS).join_from(KEY, PERSON, KEY.c.person_id == PERSON.c.id)
OF_ORGANISATION = KEY.c.organisation_id == sa.bindparam("organisation")
OF_NOBODY_ELSE = KEY.c.organisation_id.is_(None) & (KEY.c.person_id == sa.bindparam("person"))
PAGE = ROWS.where(KEY.c.id < sa.bindparam("after")).order_by(KEY.c.id.desc()).limit(sa.bindparam("most"))
LIST, LIST_OWN = Query(KeyRow, PAGE.where(OF_ORGANISATION)), Query(KeyRow, PAGE.where(OF_NOBODY_ELSE))
READ = Query(KeyRow, ROWS.where(KEY.c.id == sa.bindparam("key")))
LIVE = (KEY.c.id == sa.bindparam("key"), KEY.c.revoked_at.is_(None))
# Whoever ends a key waits for those who make keys with it.
HOLD = Query(Id, sa.select(KEY.c.id).where(*LIVE).with_for_update(read=True))
REVOKE = Query(Id, sa.update(KEY).where(*LIVE).values(revoked_at=sa.bindparam("now")).returning(KEY.c.id))
# What was made with a credential, with a key that was made with it, and so on.
FIRST = sa.select(KEY.c.id).where(KEY.c.made_with == sa.bindparam("credential")).cte("made", recursive=True)
MADE = FIRST.union(sa.select(KEY.c.id).join_from(KEY, FIRST, KEY.c.made_with == FIRST.c.id))
REVOKE_MADE = Query(
    Id,
    sa.update(KEY)
    .where(KEY.c.id.in_(sa.select(MADE.c.id)), KEY.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now"))
    .returning(KEY.c.id),
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
    """End a key of an organisation and those made with it; takes effect with the next call."""
    row = find_key_row(connection, key=key)
    return row is not None and row.organisation_id == organisation and end_key(connection, key=key, now=now)


def end_key(connection: Connection, *, key: str, now: float) -> bool:
    """End a key, and every key that was made with it: whoever had it may have made them. Whether it was live."""
    bump(connection, name=CALLERS)  # first, as everywhere: it is a lock
    if connection.first(REVOKE, key=key, now=int(now)) is None:
        return False
    end_keys_made_with(connection, credential=key, now=now)
    return True


def end_keys_made_with(connection: Connection, *, credential: str, now: float) -> int:
    """End the keys that a key or a grant made, and those that were made with them; how many."""
    ended = 0
    while more := connection.all(REVOKE_MADE, credential=credential, now=int(now)):
        ended += len(more)  # again: the statement may have waited for somebody who made one more
    return ended


def hold_key(connection: Connection, *, key: str) -> bool:
    """Whether a key is live; it does not end before this transaction does."""
    return connection.first(HOLD, key=key) is not None


def find_key_row(connection: Connection, *, key: str) -> KeyRow | None:
    """A key, whoever's it is."""
    return connection.first(READ, key=key)


def list_keys(connection: Connection, *, organisation: str, after: str | None = None, most: int = 1000) -> list[KeyRow]:
    """An organisation's keys, newest first."""
    return connection.all(LIST, organisation=organisation, after=after or AFTER_ALL, most=most)


def list_own_keys(connection: Connection, *, person: str, after: str | None, most: int) -> list[KeyRow]:
    """The keys of a person that act for no organisation, newest first."""
    return connection.all(LIST_OWN, person=person, after=after or AFTER_ALL, most=most)
