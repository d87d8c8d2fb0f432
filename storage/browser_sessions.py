"""People who are signed in with a browser; of the cookie only its digest is here."""

from typing import Annotated, NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import TableDescription, changes_one, changes_rows, first_row, value_or, writes
from storage.people import PERSON


class BrowserSession(NamedTuple):
    """A browser that somebody is signed in with, and who they are."""

    id: Annotated[str, Field(unique=True)]
    person_id: Annotated[str, Field(foreign_key="person.id", index=True)]
    organisation_id: str | None
    created: float
    seen: float
    address: str | None
    name: str | None


class BrowserSessionTable(TableDescription, row=BrowserSession, without=("address", "name"), table=True):
    """A person who is signed in with a browser; `digest` is of the cookie."""

    digest: bytes = Field(primary_key=True)
    expires_at: float = Field(index=True)


BROWSER_SESSION = BrowserSessionTable.table

BROWSER_IS_LIVE = (BROWSER_SESSION.c.expires_at > sa.bindparam("now"), BROWSER_SESSION.c.seen > sa.bindparam("idle"))

BROWSER_OF_COOKIE = BROWSER_SESSION.c.digest == sa.bindparam("digest")


@writes
def insert_browser_session(
    *, digest: bytes, id: str, person: str, organisation: str | None, now: float, expires_at: float
) -> sa.Executable:
    """A person has signed in with a browser; `digest` is of its cookie. `now` and `expires_at`: Unix seconds."""
    values = {"digest": digest, "id": id, "person_id": person, "organisation_id": organisation}
    return sa.insert(BROWSER_SESSION).values(**values, created=now, seen=now, expires_at=expires_at)


@first_row(BrowserSession)
def find_browser_session(*, digest: bytes, now: float, idle: float) -> sa.Executable:
    """The session of a cookie, unless it has ended; `idle` is the moment after which it must have been seen. `now`: Unix seconds."""
    return (
        sa.select(
            BROWSER_SESSION.c.id,
            BROWSER_SESSION.c.person_id,
            BROWSER_SESSION.c.organisation_id,
            BROWSER_SESSION.c.created,
            BROWSER_SESSION.c.seen,
            PERSON.c.address,
            PERSON.c.name,
        )
        .join_from(BROWSER_SESSION, PERSON, BROWSER_SESSION.c.person_id == PERSON.c.id)
        .where(BROWSER_OF_COOKIE, *BROWSER_IS_LIVE)
    )


@writes
def touch_browser_session(*, digest: bytes, now: float, noted: float, idle: float) -> sa.Executable:
    """A browser was seen at `now`; written only where its last note is not younger than `noted`. All: Unix seconds."""
    return (
        sa.update(BROWSER_SESSION).where(BROWSER_OF_COOKIE, BROWSER_SESSION.c.seen <= noted, BROWSER_SESSION.c.seen > idle).values(seen=now)
    )


@changes_one
def switch_browser_session(*, digest: bytes, organisation: str | None) -> sa.Executable:
    """Let the browser act for `organisation` from now on; False where there is no such session."""
    return sa.update(BROWSER_SESSION).where(BROWSER_OF_COOKIE).values(organisation_id=organisation)


@changes_one
def end_browser_session(*, digest: bytes) -> sa.Executable:
    """Sign the browser with this cookie out; whether it was signed in."""
    return sa.delete(BROWSER_SESSION).where(BROWSER_OF_COOKIE)


@changes_rows
def end_browser_sessions(*, person: str) -> sa.Executable:
    """Sign every browser of `person` out; returns how many."""
    return sa.delete(BROWSER_SESSION).where(BROWSER_SESSION.c.person_id == person)


@value_or(0)
def count_browser_sessions(*, person: str, now: float, idle: float) -> sa.Executable:
    """How many browsers a person is signed in with. `now`: Unix seconds."""
    return sa.select(sa.func.count().label("browsers")).where(BROWSER_SESSION.c.person_id == person, *BROWSER_IS_LIVE)


@changes_rows
def sweep_browser_sessions(*, now: float, idle: float) -> sa.Executable:
    """Delete sessions that have expired at `now`, or were last seen before `idle`; returns how many. Both: Unix seconds."""
    return sa.delete(BROWSER_SESSION).where((BROWSER_SESSION.c.expires_at <= now) | (BROWSER_SESSION.c.seen <= idle))
