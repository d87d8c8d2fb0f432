"""A program asks to act for somebody: who it is, where its answer goes, what it wants; and the person's yes or no."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from starlette.responses import Response

from clients.identity.redirect_uris import is_loopback_redirect
from operations.people.consents import ConsentQuestion, consent_question, deny_consent, grant_consent
from operations.setup.credentials.worst_case import worst_case
from registry.caller import Caller, Restrictions, Role
from registry.errors import BadRequest, NotFound, Refusal
from registry.operation import Scope
from storage.directory import restricted_caller
from storage.organisations import Membership, memberships_of
from transports.web.pages.request import PageProblem, PageRequest, problem_of
from transports.web.site import see_other

CONSENT_SCOPES = ("read", "write", "admin")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


async def show_consent(visit: PageRequest) -> Response:
    """The question, for the organisation that is looked at or for another one of the person's."""
    request = await find_request(visit, visit.query.get("request", ""))
    return await consent_page(visit, request, visit.query.get("request", ""), visit.query.get("organization"))


async def find_request(visit: PageRequest, token: str) -> ConsentQuestion:
    """The request; one that is unknown, answered or too old is not found."""
    found = await consent_question(visit.context.deps, token=token, now=visit.now)
    if found is None:
        raise NotFound("This login has been answered already, or it took too long", hint="Begin the login again in the program that asked")
    return found


async def consent_page(
    visit: PageRequest, request: ConsentQuestion, token: str, wanted: str | None, problem: PageProblem | None = None
) -> Response:
    """What is asked. Boxes are there for what was asked for and what the person has in the organisation; admin is never ticked for them."""
    memberships = await visit.context.deps.store.read(memberships_of, person=visit.who.person)
    chosen = next(
        (one for one in memberships if one.organisation_id == (wanted or visit.acting.organisation)),
        memberships[0] if memberships else None,
    )
    caller = await caller_in(visit, chosen)
    able = offered_scopes(request, caller)
    facts: Mapping[str, object] = {
        "question": request,
        "request_token": token,
        "local": request.redirect_host in LOCAL_HOSTS,
        "checked": ticked_scopes(visit, able) if problem is not None else [scope for scope in able if scope != "admin"],
        "memberships": memberships,
        "chosen": chosen,
        "offered": able,
        "beyond": [scope for scope in request.scopes if scope not in able],
        "worst": login_worst_case(visit, caller, able),
    }
    return visit.page("consent.html", facts, problem=problem, posts_to=csp_source(request.redirect_uri))


def login_worst_case(visit: PageRequest, caller: Caller, scopes: Sequence[str]) -> str:
    """The most that a program can do with all of `scopes`, in a sentence."""
    held = Restrictions(read_only="write" not in scopes, no_admin="admin" not in scopes)
    catalogue = visit.context.deps.internal_calls.pipeline.catalogue
    return worst_case(catalogue, restricted_caller(caller, held))["sentence"]


async def caller_in(visit: PageRequest, chosen: Membership | None) -> Caller:
    return await visit.context.directory.signed_in(visit.who.person, None if chosen is None else chosen.organisation_id)


def offered_scopes(request: ConsentQuestion, caller: Caller) -> list[str]:
    """What can be allowed: asked for, and the person's own.

    Choice: `write` is what every tier may write, too, and `admin` is the role; what the tier does not carry is refused at each call.
    """
    own = {"read": True, "write": caller.has(Scope.ANY), "admin": bool(caller.organisation) and caller.role is Role.ADMIN}
    return [name for name, has in own.items() if has and name in request.scopes]


def ticked_scopes(visit: PageRequest, scopes: Sequence[str]) -> list[str]:
    return [scope for scope in scopes if visit.form.get(f"scope_{scope}") == "on"]


def csp_source(redirect_uri: str) -> str:
    """Where the answer goes, as a Content-Security-Policy spells it: browsers check a redirect after a form against form-action.

    The policy has no spelling for IPv6 addresses and none for a program's own scheme but the scheme itself.
    """
    parts = urlsplit(redirect_uri)
    if parts.scheme in ("http", "https") and parts.hostname and ":" not in parts.hostname:
        port = f":{parts.port}" if parts.port is not None else ""
        return f"{parts.scheme}://{parts.hostname}{port}"
    return f"{parts.scheme}:"


async def post_consent(visit: PageRequest) -> Response:
    """Allow or deny. Whatever else is pressed asks again."""
    token, wanted = visit.form.get("request", ""), visit.form.get("organization", "")
    request = await find_request(visit, token)
    if visit.form.get("do") == "deny":
        target = await deny_consent(visit.context.deps, token=token, now=visit.now)
        if target is None:
            raise NotFound("This login has been answered already, or it took too long")
        return denial(visit, request, target)
    try:
        return see_other(await allow_program(visit, request, token, wanted))
    except Refusal as refusal:
        return await consent_page(visit, request, token, wanted, problem_of(refusal))


def denial(visit: PageRequest, request: ConsentQuestion, target: str) -> Response:
    """Where a no leads.

    Choice: a program on the person's own computer is told at once. To every other one there is a link: who said no to a program did not
    ask to be sent to it, and its page may look like ours (RFC 9700 section 4.11.2).
    """
    return (
        see_other(target)
        if is_loopback_redirect(request.redirect_uri)
        else visit.page("denied.html", {"question": request, "target": target})
    )


async def allow_program(visit: PageRequest, request: ConsentQuestion, token: str, wanted: str) -> str:
    """The way back to the program. What the person does not have in this organisation is refused, never left out in silence."""
    if visit.form.get("do") != "allow":
        raise BadRequest("The form does not say what to do", hint="Press Allow or Deny")
    memberships = await visit.context.deps.store.read(memberships_of, person=visit.who.person)
    chosen = next((one for one in memberships if one.organisation_id == wanted), None)
    if chosen is None and (wanted or memberships):
        raise BadRequest("You are not a member of this organisation", param="organization", hint="Choose one of yours")
    scopes = ticked_scopes(visit, CONSENT_SCOPES)
    able = offered_scopes(request, await caller_in(visit, chosen))
    if not scopes or any(scope not in able for scope in scopes):
        raise BadRequest("Choose at least one thing that the program may do, or deny", param="scopes")
    line = visit.record("grant_access")(wanted)
    who, organisation = visit.who.person, wanted or None
    return await grant_consent(
        visit.context.deps, token=token, person=who, organisation=organisation, scopes=scopes, now=visit.now, line=line
    )
