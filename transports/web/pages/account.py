"""The account: who you are, where you belong, what may act for you, and what you are told by mail; and what the tiers carry.

The page behind the link that ends mails of one kind (RFC 8058) changes nothing when it is looked at, only when something is posted to it.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from starlette.responses import Response

from operations.languages import DEFAULT_LANGUAGE, texts_in
from operations.ledger.event_letters import happened_text
from operations.ledger.mail_choices import DIGEST_KIND, Unsubscription, end_mails, read_unsubscription
from operations.people import browser_sessions
from operations.people.browser_sessions import AuditRecordMaker
from operations.people.organisation_events import log_ended_keys
from operations.secret_tokens import secret_digest
from operations.setup.members import accept_invitation, open_invitations
from registry.caller import Role, Tier
from registry.errors import NotFound, Refusal
from registry.ids import Ids
from registry.operation import Scope
from registry.policy import scopes_of
from storage.access_grants import AccessGrant, grants_of, revoke_grant
from storage.audit import append_audit_record
from storage.browser_sessions import switch_browser_session
from storage.engine.sql import Connection
from storage.invitations import WaitingInvitation
from storage.organisations import Membership, memberships_of
from transports.web.pages.request import HOME_PAGE, PageProblem, PageRequest, problem_of, unknown_form


class AccountBelongings(NamedTuple):
    memberships: list[Membership]
    invitations: list[WaitingInvitation]
    programs: list[AccessGrant]


def read_belongings(connection: Connection, *, person: str, address: str | None, now: float) -> AccountBelongings:
    """Read in one snapshot. Only a proved address gets to see its invitations."""
    return AccountBelongings(
        memberships_of(connection, person=person),
        [] if address is None else open_invitations(connection, address=address, now=now),
        grants_of(connection, person=person, now=now),
    )


async def show_account(visit: PageRequest, problem: PageProblem | None = None) -> Response:
    who, deps = visit.who, visit.context.deps
    found = await deps.store.read(read_belongings, person=who.person, address=who.address, now=visit.now)
    names = {member.organisation_id: member.name for member in found.memberships}
    facts: Mapping[str, object] = {
        **found._asdict(),
        "names": names,
        "browsers": await browser_sessions.count_signed_in_browsers(deps, person=who.person, now=visit.now),
    }
    return visit.page("account.html", facts, problem=problem)


async def show_invitations(visit: PageRequest) -> Response:
    """Where the mail of an invitation leads."""
    return visit.redirect(f"{HOME_PAGE}#invitations")


async def post_account(visit: PageRequest) -> Response:
    """One of the page's forms; each names what it is about."""
    named = visit.form.get("id", "")
    try:
        match visit.form.get("do"):
            case "switch":
                record = visit.record("switch_organization")
                await browser_sessions.switch_organisation(visit.context.deps, session=visit.who, organisation=named, record=record)
            case "accept":
                await join_organisation(visit, named)
            case "revoke":
                await visit.context.deps.store.write(
                    end_program,
                    grant=named,
                    person=visit.who.person,
                    ids=visit.context.deps.ids,
                    now=visit.now,
                    record=visit.record("revoke_access"),
                )
            case _:
                raise unknown_form()
    except Refusal as refusal:
        return await show_account(visit, problem_of(refusal))
    return visit.redirect(HOME_PAGE)


async def join_organisation(visit: PageRequest, invitation: str) -> None:
    """Accept an invitation; the page is then about the new organisation."""
    who = visit.who
    if who.address is None:
        raise NotFound("There is no such invitation for you")
    await visit.context.deps.store.write(
        enter_organisation,
        invitation=invitation,
        person=who.person,
        address=who.address,
        cookie=who.cookie,
        ids=visit.context.deps.ids,
        now=visit.now,
        record=visit.record("accept_invitation"),
    )


def enter_organisation(
    connection: Connection, *, invitation: str, person: str, address: str, cookie: str, ids: Ids, now: float, record: AuditRecordMaker
) -> None:
    """The membership, and the session that acts in it, with the audit row of the organisation."""
    organisation = accept_invitation(connection, invitation=invitation, person=person, address=address, ids=ids, now=now)
    switch_browser_session(connection, digest=secret_digest(cookie), organisation=organisation)
    append_audit_record(connection, record(organisation))


def end_program(connection: Connection, *, grant: str, person: str, ids: Ids, now: float, record: AuditRecordMaker) -> None:
    """End what the person let a program do; another's grant is not found."""
    found = next((one for one in grants_of(connection, person=person, now=now) if one.id == grant), None)
    if found is None or not revoke_grant(connection, grant=grant, now=now, log=partial(log_ended_keys, ids)):
        raise NotFound("This program has no access any more", hint="Load the page again")
    append_audit_record(connection, record(found.organisation_id or ""))


SCOPE_WORDS = {Scope.READ: "read", Scope.WRITE: "write", Scope.ADMIN: "admin"}


async def show_tiers(visit: PageRequest) -> Response:
    """For anybody: refusals of the API lead here."""
    carried = {tier: [word for scope, word in SCOPE_WORDS.items() if scope in scopes_of(tier, Role.ADMIN)] for tier in Tier}
    current = visit.caller.tier if visit.caller is not None and visit.caller.organisation else None
    return visit.page("upgrade.html", {"tiers": visit.context.deps.rate_limiter.limits.tiers, "carried": carried, "current": current})


async def show_unsubscribe(visit: PageRequest) -> Response:
    """A button, since mail programs open links to look at them."""
    what = read_unsubscription(visit.context.deps, visit.request.path_params["token"])
    return unsubscribe_page(visit, what, done=False)


async def post_unsubscribe(visit: PageRequest) -> Response:
    """Ends that person's mails of that kind, once or as often as it is posted. Whoever posts need not be signed in."""
    deps = visit.context.deps
    what = read_unsubscription(deps, visit.request.path_params["token"])
    await deps.store.write(end_mails, what=what, now=visit.now)
    return unsubscribe_page(visit, what, done=True)


def unsubscribe_page(visit: PageRequest, what: Unsubscription, *, done: bool) -> Response:
    """The page names the kind alone: neither who gets the mails, nor of which organisation."""
    kind = what.kind.partition(":")[0]
    name = "What happened in a day" if kind == DIGEST_KIND else happened_text(texts_in(DEFAULT_LANGUAGE), kind)
    return visit.page("unsubscribe.html", {"kind": name, "done": done})
