"""The account: who you are, where you belong, and what may act for you."""

from collections.abc import Mapping
from typing import NamedTuple

from operations.services.people import browser_sessions
from operations.services.people.browser_sessions import Record
from operations.services.people.invitations import Invited, accept, waiting_for
from operations.services.secret_token import digest_of
from registry.errors import BadRequest, NotFound, Refusal
from storage.calls.audit import append_line
from storage.connection import Connection
from storage.people.browser_sessions import switch_session
from storage.people.grants import Grant, grants_of, revoke_grant
from storage.people.memberships import Member, memberships_of
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.next_page import HOME
from transports.pages.problem import Problem, problem_of
from transports.pages.visit import Visit


class Belongings(NamedTuple):
    """What a person has."""

    memberships: list[Member]
    invitations: list[Invited]
    programs: list[Grant]


def belongings(connection: Connection, *, person: str, address: str | None, now: float) -> Belongings:
    """Read in one snapshot. Only a proved address gets to see its invitations."""
    return Belongings(
        memberships_of(connection, person=person),
        [] if address is None else waiting_for(connection, address=address, now=now),
        grants_of(connection, person=person, now=now),
    )


async def show(visit: Visit, problem: Problem | None = None) -> Page:
    """Everything on one page."""
    who, deps = visit.who, visit.desk.deps
    found = await deps.store.read(belongings, person=who.person, address=who.address, now=visit.now)
    names = {member.organisation_id: member.name for member in found.memberships}
    facts: Mapping[str, object] = {
        **found._asdict(),
        "names": names,
        "browsers": await browser_sessions.count(deps, person=who.person, now=visit.now),
        "problem": problem,
    }
    return Page("account.html", facts, status=200 if problem is None else problem.status)


async def invitations(visit: Visit) -> Redirect:
    """Where the mail of an invitation leads."""
    del visit
    return Redirect(f"{HOME}#invitations")


async def act(visit: Visit) -> Answer:
    """One of the page's forms; each names what it is about."""
    named = visit.form.get("id", "")
    try:
        match visit.form.get("do"):
            case "switch":
                record = visit.record("switch_organization")
                await browser_sessions.switch(visit.desk.deps, session=visit.who, organisation=named, record=record)
            case "accept":
                await join(visit, named)
            case "revoke":
                await visit.desk.deps.store.write(
                    end_program, grant=named, person=visit.who.person, now=visit.now, record=visit.record("revoke_access")
                )
            case _:
                raise BadRequest("The form does not say what to do", hint="Use the buttons of this page")
    except Refusal as refusal:
        return await show(visit, problem_of(refusal))
    return Redirect(HOME)


async def join(visit: Visit, invitation: str) -> None:
    """Accept an invitation; the page is then about the new organisation."""
    who = visit.who
    if who.address is None:
        raise NotFound("There is no such invitation for you")
    await visit.desk.deps.store.write(
        enter,
        invitation=invitation,
        person=who.person,
        address=who.address,
        cookie=who.cookie,
        now=visit.now,
        record=visit.record("accept_invitation"),
    )


def enter(connection: Connection, *, invitation: str, person: str, address: str, cookie: str, now: float, record: Record) -> None:
    """The membership, and the session that acts in it, with the audit row of the organisation."""
    organisation = accept(connection, invitation=invitation, person=person, address=address, now=now)
    switch_session(connection, digest=digest_of(cookie), organisation=organisation)
    append_line(connection, record(organisation))


def end_program(connection: Connection, *, grant: str, person: str, now: float, record: Record) -> None:
    """End what the person let a program do; another's grant is not found."""
    found = next((one for one in grants_of(connection, person=person, now=now) if one.id == grant), None)
    if found is None or not revoke_grant(connection, grant=grant, now=now):
        raise NotFound("This program has no access any more", hint="Load the page again")
    append_line(connection, record(found.organisation_id or ""))
