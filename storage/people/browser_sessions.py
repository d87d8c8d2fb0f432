"""People who are signed in with a browser; of the cookie only its digest is here."""

from typing import NamedTuple

import sqlalchemy as sa

from storage.connection import Connection
from storage.people.identity_tables import BrowserSessionTable
from storage.schema import PersonTable
from storage.statement import Command, Query, table

SESSION, PERSON = table(BrowserSessionTable), table(PersonTable)


class BrowserSession(NamedTuple):
    """A browser that somebody is signed in with, and who they are."""

    id: str
    person_id: str
    organisation_id: str | None
    seen: float
    address: str | None
    name: str | None


class Count(NamedTuple):
    """How many there are."""

    browsers: int


LIVE = (SESSION.c.expires_at > sa.bindparam("now"), SESSION.c.seen > sa.bindparam("idle"))
OF_COOKIE = SESSION.c.digest == sa.bindparam("cookie")
FIND = Query(
    BrowserSession,
    sa.select(
        SESSION.c.id,
        SESSION.c.person_id,
        SESSION.c.organisation_id,
        SESSION.c.seen,
        PERSON.c.address,
        PERSON.c.name,
    )
    .join_from(SESSION, PERSON, SESSION.c.person_id == PERSON.c.id)
    .where(OF_COOKIE, *LIVE),
)
COUNT = Query(Count, sa.select(sa.func.count().label("browsers")).where(SESSION.c.person_id == sa.bindparam("person"), *LIVE))
FIELDS = ("digest", "id", "person_id", "organisation_id", "created", "seen", "expires_at")
INSERT = Command(sa.insert(SESSION).values({name: sa.bindparam(name) for name in FIELDS}))
TOUCH = Command(
    sa.update(SESSION)
    .where(OF_COOKIE, SESSION.c.seen <= sa.bindparam("noted"), SESSION.c.seen > sa.bindparam("idle"))
    .values(seen=sa.bindparam("now"))
)
SWITCH = Command(sa.update(SESSION).where(OF_COOKIE).values(organisation_id=sa.bindparam("organisation")))
END = Command(sa.delete(SESSION).where(OF_COOKIE))
END_ALL = Command(sa.delete(SESSION).where(SESSION.c.person_id == sa.bindparam("person")))
SWEEP = Command(sa.delete(SESSION).where((SESSION.c.expires_at <= sa.bindparam("now")) | (SESSION.c.seen <= sa.bindparam("idle"))))


def insert_session(
    connection: Connection, *, digest: bytes, id: str, person: str, organisation: str | None, now: float, expires_at: float
) -> None:
    """Somebody has signed in."""
    connection.run(
        INSERT, digest=digest, id=id, person_id=person, organisation_id=organisation, created=now, seen=now, expires_at=expires_at
    )


def find_session(connection: Connection, *, digest: bytes, now: float, idle: float) -> BrowserSession | None:
    """The session of a cookie, unless it has ended; `idle` is the moment after which it must have been seen."""
    return connection.first(FIND, cookie=digest, now=now, idle=idle)


def touch_session(connection: Connection, *, digest: bytes, now: float, noted: float, idle: float) -> None:
    """It was seen again; written when the last note is not younger than `noted`."""
    connection.run(TOUCH, cookie=digest, now=now, noted=noted, idle=idle)


def switch_session(connection: Connection, *, digest: bytes, organisation: str | None) -> bool:
    """From now on it acts for this organisation."""
    return connection.run(SWITCH, cookie=digest, organisation=organisation) == 1


def end_session(connection: Connection, *, digest: bytes) -> bool:
    """The cookie opens nothing any more; whether it did."""
    return connection.run(END, cookie=digest) == 1


def end_sessions(connection: Connection, *, person: str) -> int:
    """Every browser of a person is signed out; how many there were."""
    return connection.run(END_ALL, person=person)


def count_sessions(connection: Connection, *, person: str, now: float, idle: float) -> int:
    """How many browsers a person is signed in with."""
    row = connection.first(COUNT, person=person, now=now, idle=idle)
    return 0 if row is None else row.browsers


def sweep_sessions(connection: Connection, *, now: float, idle: float) -> int:
    """Forget those that have ended by themselves."""
    return connection.run(SWEEP, now=now, idle=idle)
