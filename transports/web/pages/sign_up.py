"""Signing up: an organisation for whoever reads the mail of an address."""

import re
from typing import cast

from starlette.responses import Response

from operations.vocabulary import normal_email
from storage.people import find_by_address
from transports.web.pages.calls import call_operation, filled_fields
from transports.web.pages.login_cookies import LoginStateCookie, keep_login_state, read_login_state, remember_browser
from transports.web.pages.request import HOME_PAGE, PageProblem, PageRequest, next_page, whole_path
from transports.web.pages.sign_in import code_page

SIGN_UP = "sign-up"
REFERRAL_CODE = re.compile(r"[A-Za-z0-9]{1,32}", re.ASCII)
SIGN_UP_FIELDS = ("email", "organization_name", "name", "referral_code")
"""What the operation takes; `next` is ours."""


async def show_sign_up(visit: PageRequest) -> Response:
    """The form; a referral link fills its code in."""
    referral = visit.query.get("ref", "")
    values = {
        "referral_code": referral if REFERRAL_CODE.fullmatch(referral) else "",
        "next": whole_path(page_after_sign_up(visit.query.get("next", ""))),
    }
    if visit.session is not None:
        values |= {"email": visit.session.address or "", "name": visit.session.name or ""}
    login_state = read_login_state(visit, SIGN_UP)
    if login_state is not None and not visit.query:
        values = dict(login_state.again)
    return sign_up_page(visit, values)


def page_after_sign_up(wanted: str) -> str:
    """Where to go with the new organisation: to the page that was wanted before signing up, or to setting it up."""
    then = next_page(wanted)
    return "/onboarding" if then == HOME_PAGE else then


def sign_up_page(visit: PageRequest, values: dict[str, str], problem: PageProblem | None = None) -> Response:
    facts = {"values": dict.fromkeys((*SIGN_UP_FIELDS, "next"), "") | values}
    return visit.page("sign_up.html", facts, problem=problem)


async def start_sign_up(visit: PageRequest) -> Response:
    typed = {name: visit.form.get(name, "") for name in SIGN_UP_FIELDS}
    typed["next"] = whole_path(page_after_sign_up(visit.form.get("next", "")))
    outcome = await call_operation(visit, "signup_start", filled_fields(typed, *SIGN_UP_FIELDS))
    if outcome.problem is not None:
        return sign_up_page(visit, typed, outcome.problem)
    keep_login_state(
        visit, LoginStateCookie(SIGN_UP, str(outcome.body["client_token"]), typed["email"], page_after_sign_up(typed["next"]), typed)
    )
    return visit.redirect("/sign-up/code")


async def show_sign_up_code(visit: PageRequest) -> Response:
    login_state = read_login_state(visit, SIGN_UP)
    return visit.redirect("/sign-up") if login_state is None else code_page(visit, login_state)


async def complete_sign_up(visit: PageRequest) -> Response:
    """Found the organisation.

    Choice: a new person who has just proved the address is signed in at once, instead of being mailed a second code. The operation's answer
    holds no credential; that the code belongs to the address in the cookie we know because the cookie is sealed by us. Somebody who had an
    account before, and is not signed in here, signs in with a code for that: six digits found one organisation more, and open none of
    theirs.
    """
    login_state = read_login_state(visit, SIGN_UP, visit.form.get("request", ""))
    if login_state is None:
        return visit.redirect("/sign-up")
    known = await visit.context.deps.store.read(find_by_address, address=normal_email(login_state.address))
    outcome = await call_operation(visit, "signup_verify", {"client_token": login_state.token, "code": visit.form.get("code", "")})
    if outcome.problem is not None:
        return code_page(visit, login_state, outcome.problem)
    person = await visit.context.deps.store.read(find_by_address, address=normal_email(login_state.address))
    here = None if visit.session is None else visit.session.person
    if person is None or (known is not None and known != here):
        return visit.redirect("/sign-in")
    await visit.sign_in(person, organisation=cast(str, outcome.body["organization_id"]))
    remember_browser(visit, login_state.address)
    return visit.redirect(login_state.then)
