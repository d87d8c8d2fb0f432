"""Sign-ins of people at the service's own pages: a cookie of 32 random bytes, of which we keep a digest.

What is done without an operation is recorded here, in the transaction of what was done; `Record` makes the audit row for an organisation.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from operations.deps import Deps
from operations.services.people.session_tokens import CONSOLE
from operations.services.secret_token import digest_of, new_token
from registry.errors import NotFound
from registry.ports import Line
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.browser_sessions import (
    count_sessions,
    end_session,
    end_sessions,
    find_session,
    insert_session,
    switch_session,
    touch_session,
)
from storage.people.grants import revoke_grants_to
from storage.people.memberships import find_member, first_membership

LIFETIME = 14 * 86_400
IDLE = 24 * 3600
NOTED_EVERY = 300
COOKIE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

Record = Callable[[str], Line]
"""The audit row of what is being done, for an organisation (empty: none)."""


class SignedIn(NamedTuple):
    """Who sits before a browser. `cookie` is what it presented."""

    id: str
    person: str
    organisation: str | None
    address: str | None
    name: str | None
    cookie: str


async def start(
    deps: Deps, *, person: str, now: float, record: Record, organisation: str | None = None, instead_of: SignedIn | None = None
) -> str:
    """Somebody has proved who they are: a new cookie, always. The session that the browser was signed in with before ends."""
    cookie, id = new_token(deps.ids), deps.ids.new("bse_")
    old = None if instead_of is None else digest_of(instead_of.cookie)
    await deps.store.write(begin, digest=digest_of(cookie), id=id, person=person, now=now, wanted=organisation, old=old, record=record)
    return cookie


def begin(
    connection: Connection,
    *,
    digest: bytes,
    id: str,
    person: str,
    now: float,
    wanted: str | None,
    old: bytes | None,
    record: Record,
) -> None:
    """The session's row; it acts for the organisation that is wanted, else for the one that the person has belonged to longest."""
    if old is not None:
        end_session(connection, digest=old)
    member = None if wanted is None else find_member(connection, person=person, organisation=wanted)
    member = member or first_membership(connection, person=person)
    organisation = None if member is None else member.organisation_id
    insert_session(connection, digest=digest, id=id, person=person, organisation=organisation, now=now, expires_at=now + LIFETIME)
    append_line(connection, record(organisation or ""))


async def find(deps: Deps, *, cookie: str, now: float) -> SignedIn | None:
    """Who presents a cookie; None when it opens nothing. A use is noted every five minutes at most."""
    if not COOKIE.fullmatch(cookie):
        return None
    digest = digest_of(cookie)
    found = await deps.store.read(find_session, digest=digest, now=now, idle=now - IDLE)
    if found is None:
        return None
    if found.seen <= now - NOTED_EVERY:
        await deps.store.write(touch_session, digest=digest, now=now, noted=now - NOTED_EVERY, idle=now - IDLE)
    return SignedIn(found.id, found.person_id, found.organisation_id, found.address, found.name, cookie)


async def switch(deps: Deps, *, session: SignedIn, organisation: str, record: Record) -> None:
    """Act for another organisation; one that the person is no member of is not found, whether it exists or not."""
    await deps.store.write(move, digest=digest_of(session.cookie), person=session.person, organisation=organisation, record=record)


def move(connection: Connection, *, digest: bytes, person: str, organisation: str, record: Record) -> None:
    """The session's organisation, when the person belongs to it."""
    if find_member(connection, person=person, organisation=organisation) is None:
        raise NotFound("You are not a member of this organisation", hint="The organisations you belong to are listed on this page")
    switch_session(connection, digest=digest, organisation=organisation)
    append_line(connection, record(organisation))


async def end(deps: Deps, *, session: SignedIn, record: Record) -> None:
    """Sign this browser out."""
    await deps.store.write(leave, session=session, record=record)


def leave(connection: Connection, *, session: SignedIn, record: Record) -> None:
    """The row goes, so that a copied cookie opens nothing either."""
    end_session(connection, digest=digest_of(session.cookie))
    append_line(connection, record(session.organisation or ""))


async def end_everywhere(deps: Deps, *, session: SignedIn, record: Record, now: float) -> None:
    """Sign every browser of the person out."""
    await deps.store.write(leave_everywhere, session=session, record=record, now=now)


def leave_everywhere(connection: Connection, *, session: SignedIn, record: Record, now: float) -> None:
    """With the browsers go the session tokens that they were shown: whoever has a lost one may have copied them."""
    end_sessions(connection, person=session.person)
    revoke_grants_to(connection, person=session.person, client=CONSOLE, now=now)
    append_line(connection, record(session.organisation or ""))


async def count(deps: Deps, *, person: str, now: float) -> int:
    """How many browsers somebody is signed in with."""
    return await deps.store.read(count_sessions, person=person, now=now, idle=now - IDLE)
