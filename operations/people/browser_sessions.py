"""Sign-ins of people at the service's own pages: a cookie of 32 random bytes, of which we keep a digest.

What is done without an operation is recorded here, in the transaction of what was done; `Record` makes the audit row for an organisation.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from operations.deps import Deps
from operations.people.session_tokens import CONSOLE_CLIENT
from operations.secret_tokens import new_secret_token, secret_digest
from registry.clock import DAY_SECONDS
from registry.errors import NotFound
from registry.ports import AuditRecord
from storage.access_grants import revoke_grants_to
from storage.audit import append_audit_record
from storage.browser_sessions import (
    count_browser_sessions,
    end_browser_session,
    end_browser_sessions,
    find_browser_session,
    insert_browser_session,
    switch_browser_session,
    touch_browser_session,
)
from storage.engine.sql import Connection
from storage.organisations import find_member, first_membership

SESSION_LIFETIME_SECONDS = 14 * DAY_SECONDS
SESSION_IDLE_SECONDS = 24 * 3600
SESSION_NOTED_SECONDS = 300
SESSION_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

AuditRecordMaker = Callable[[str], AuditRecord]
"""The audit row of what is being done, for an organisation (empty: none)."""


class BrowserSession(NamedTuple):
    """Who sits before a browser. `created`: when they signed in, Unix seconds; `cookie` is what it presented."""

    id: str
    person: str
    organisation: str | None
    created: float
    address: str | None
    name: str | None
    cookie: str


async def start_browser_session(
    deps: Deps,
    *,
    person: str,
    now: float,
    record: AuditRecordMaker,
    organisation: str | None = None,
    instead_of: BrowserSession | None = None,
) -> str:
    """A new cookie for `person`, who has just proved who they are. The session `instead_of` ends. `now`: Unix seconds."""
    cookie, id = new_secret_token(deps.ids), deps.ids.new("bse_")
    digest, expires_at = secret_digest(cookie), now + SESSION_LIFETIME_SECONDS

    def insert(connection: Connection) -> None:
        """The session acts for the organisation that is named, else for the one that the person has belonged to longest."""
        if instead_of is not None:
            end_browser_session(connection, digest=secret_digest(instead_of.cookie))
        member = None if organisation is None else find_member(connection, person=person, organisation=organisation)
        member = member or first_membership(connection, person=person)
        for_whom = None if member is None else member.organisation_id
        insert_browser_session(connection, digest=digest, id=id, person=person, organisation=for_whom, now=now, expires_at=expires_at)
        append_audit_record(connection, record(for_whom or ""))

    await deps.store.write(insert)
    return cookie


async def browser_session_of(deps: Deps, *, cookie: str, now: float) -> BrowserSession | None:
    """The session that `cookie` opens, or None. Its use is noted every five minutes at most. `now`: Unix seconds."""
    if not SESSION_COOKIE.fullmatch(cookie):
        return None
    digest = secret_digest(cookie)
    found = await deps.store.read(find_browser_session, digest=digest, now=now, idle=now - SESSION_IDLE_SECONDS)
    if found is None:
        return None
    if found.seen <= now - SESSION_NOTED_SECONDS:
        await deps.store.write(
            touch_browser_session, digest=digest, now=now, noted=now - SESSION_NOTED_SECONDS, idle=now - SESSION_IDLE_SECONDS
        )
    return BrowserSession(found.id, found.person_id, found.organisation_id, found.created, found.address, found.name, cookie)


async def switch_organisation(deps: Deps, *, session: BrowserSession, organisation: str, record: AuditRecordMaker) -> None:
    """Lets `session` act for `organisation`. Raises NotFound where its person is no member, whether it exists or not."""

    def switch(connection: Connection) -> None:
        if find_member(connection, person=session.person, organisation=organisation) is None:
            raise NotFound("You are not a member of this organisation", hint="The organisations you belong to are listed on this page")
        switch_browser_session(connection, digest=secret_digest(session.cookie), organisation=organisation)
        append_audit_record(connection, record(organisation))

    await deps.store.write(switch)


async def sign_out_browser(deps: Deps, *, session: BrowserSession, record: AuditRecordMaker) -> None:
    """Sign this browser out: its row is deleted, so that a copied cookie opens nothing either."""

    def end(connection: Connection) -> None:
        end_browser_session(connection, digest=secret_digest(session.cookie))
        append_audit_record(connection, record(session.organisation or ""))

    await deps.store.write(end)


async def sign_out_everywhere(deps: Deps, *, session: BrowserSession, record: AuditRecordMaker, now: float) -> None:
    """Sign every browser of the person out, and end the session tokens that they were shown: whoever has a lost browser may have them."""

    def end(connection: Connection) -> None:
        end_browser_sessions(connection, person=session.person)
        revoke_grants_to(connection, person=session.person, client=CONSOLE_CLIENT, now=now)
        append_audit_record(connection, record(session.organisation or ""))

    await deps.store.write(end)


async def count_signed_in_browsers(deps: Deps, *, person: str, now: float) -> int:
    """How many browsers `person` is signed in with at `now`, in Unix seconds."""
    return await deps.store.read(count_browser_sessions, person=person, now=now, idle=now - SESSION_IDLE_SECONDS)
