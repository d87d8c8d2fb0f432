"""People who are signed in with a browser; of the cookie only its digest is here."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.connection import Connection
from storage.engine.statement import Command, Query
from storage.engine.table import TableDescription, table_of
from storage.people import PERSON


class BrowserSessionTable(TableDescription, table=True):
    """A person who is signed in with a browser; `digest` is of the cookie."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    id: str = Field(unique=True, sa_type=sa.Text)
    person_id: str = Field(foreign_key="person.id", index=True, sa_type=sa.Text)
    organisation_id: str | None = Field(default=None, sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    seen: float = Field(sa_type=sa.Double)
    expires_at: float = Field(sa_type=sa.Double, index=True)


BROWSER_SESSION = table_of(BrowserSessionTable)


class BrowserSession(NamedTuple):
    """A browser that somebody is signed in with, and who they are."""

    id: str
    person_id: str
    organisation_id: str | None
    seen: float
    address: str | None
    name: str | None


class BrowserCount(NamedTuple):
    """How many there are."""

    browsers: int


BROWSER_IS_LIVE = (BROWSER_SESSION.c.expires_at > sa.bindparam("now"), BROWSER_SESSION.c.seen > sa.bindparam("idle"))

BROWSER_OF_COOKIE = BROWSER_SESSION.c.digest == sa.bindparam("cookie")

FIND_BROWSER = Query(
    BrowserSession,
    sa.select(
        BROWSER_SESSION.c.id,
        BROWSER_SESSION.c.person_id,
        BROWSER_SESSION.c.organisation_id,
        BROWSER_SESSION.c.seen,
        PERSON.c.address,
        PERSON.c.name,
    )
    .join_from(BROWSER_SESSION, PERSON, BROWSER_SESSION.c.person_id == PERSON.c.id)
    .where(BROWSER_OF_COOKIE, *BROWSER_IS_LIVE),
)

COUNT_BROWSERS = Query(
    BrowserCount,
    sa.select(sa.func.count().label("browsers")).where(BROWSER_SESSION.c.person_id == sa.bindparam("person"), *BROWSER_IS_LIVE),
)

BROWSER_FIELDS = ("digest", "id", "person_id", "organisation_id", "created", "seen", "expires_at")

INSERT_BROWSER = Command(sa.insert(BROWSER_SESSION).values({name: sa.bindparam(name) for name in BROWSER_FIELDS}))

TOUCH_BROWSER = Command(
    sa.update(BROWSER_SESSION)
    .where(BROWSER_OF_COOKIE, BROWSER_SESSION.c.seen <= sa.bindparam("noted"), BROWSER_SESSION.c.seen > sa.bindparam("idle"))
    .values(seen=sa.bindparam("now"))
)

SWITCH_BROWSER = Command(sa.update(BROWSER_SESSION).where(BROWSER_OF_COOKIE).values(organisation_id=sa.bindparam("organisation")))

END_BROWSER = Command(sa.delete(BROWSER_SESSION).where(BROWSER_OF_COOKIE))

END_BROWSERS = Command(sa.delete(BROWSER_SESSION).where(BROWSER_SESSION.c.person_id == sa.bindparam("person")))

SWEEP_BROWSERS = Command(
    sa.delete(BROWSER_SESSION).where(
        (BROWSER_SESSION.c.expires_at <= sa.bindparam("now")) | (BROWSER_SESSION.c.seen <= sa.bindparam("idle"))
    )
)


def insert_browser_session(
    connection: Connection, *, digest: bytes, id: str, person: str, organisation: str | None, now: float, expires_at: float
) -> None:
    """Somebody has signed in."""
    connection.run(
        INSERT_BROWSER, digest=digest, id=id, person_id=person, organisation_id=organisation, created=now, seen=now, expires_at=expires_at
    )


def find_browser_session(connection: Connection, *, digest: bytes, now: float, idle: float) -> BrowserSession | None:
    """The session of a cookie, unless it has ended; `idle` is the moment after which it must have been seen."""
    return connection.first(FIND_BROWSER, cookie=digest, now=now, idle=idle)


def touch_browser_session(connection: Connection, *, digest: bytes, now: float, noted: float, idle: float) -> None:
    """It was seen again; written when the last note is not younger than `noted`."""
    connection.run(TOUCH_BROWSER, cookie=digest, now=now, noted=noted, idle=idle)


def switch_browser_session(connection: Connection, *, digest: bytes, organisation: str | None) -> bool:
    """From now on it acts for this organisation."""
    return connection.run(SWITCH_BROWSER, cookie=digest, organisation=organisation) == 1


def end_browser_session(connection: Connection, *, digest: bytes) -> bool:
    """The cookie opens nothing any more; whether it did."""
    return connection.run(END_BROWSER, cookie=digest) == 1


def end_browser_sessions(connection: Connection, *, person: str) -> int:
    """Every browser of a person is signed out; how many there were."""
    return connection.run(END_BROWSERS, person=person)


def count_browser_sessions(connection: Connection, *, person: str, now: float, idle: float) -> int:
    """How many browsers a person is signed in with."""
    row = connection.first(COUNT_BROWSERS, person=person, now=now, idle=idle)
    return 0 if row is None else row.browsers


def sweep_browser_sessions(connection: Connection, *, now: float, idle: float) -> int:
    """Forget those that have ended by themselves."""
    return connection.run(SWEEP_BROWSERS, now=now, idle=idle)
