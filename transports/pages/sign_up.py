"""Signing up: an organisation for whoever reads the mail of an address."""

import re
from typing import cast

from operations.services.people.addresses import normal
from storage.people.people import find_by_address
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.asking import ask, given
from transports.pages.known_browser import remember
from transports.pages.next_page import HOME, next_page
from transports.pages.problem import Problem
from transports.pages.sign_in import code_page
from transports.pages.slip import Slip, keep_slip, read_slip
from transports.pages.visit import Visit

PURPOSE = "sign-up"
CODE = re.compile(r"[A-Za-z0-9]{1,32}", re.ASCII)
FIELDS = ("email", "organization_name", "name", "referral_code")
"""What the operation takes; `next` is ours."""


async def show(visit: Visit) -> Page:
    """The form; a referral link fills its code in."""
    referral = visit.query.get("ref", "")
    values = {"referral_code": referral if CODE.fullmatch(referral) else "", "next": f"/auth{then_of(visit.query.get('next', ''))}"}
    if visit.session is not None:
        values |= {"email": visit.session.address or "", "name": visit.session.name or ""}
    slip = read_slip(visit, PURPOSE)
    if slip is not None and not visit.query:
        values = dict(slip.again)
    return form_page(values)


def then_of(wanted: str) -> str:
    """Where to go with the new organisation: to the page that was wanted before signing up, or to setting it up."""
    then = next_page(wanted)
    return "/onboarding" if then == HOME else then


def form_page(values: dict[str, str], problem: Problem | None = None) -> Page:
    """The form with what was typed so far."""
    facts = {"values": dict.fromkeys((*FIELDS, "next"), "") | values, "problem": problem}
    return Page("sign_up.html", facts, status=200 if problem is None else problem.status)


async def start(visit: Visit) -> Answer:
    """Have the code mailed."""
    typed = {name: visit.form.get(name, "") for name in FIELDS}
    typed["next"] = f"/auth{then_of(visit.form.get('next', ''))}"
    outcome = await ask(visit, "signup_start", given(typed, *FIELDS))
    if outcome.problem is not None:
        return form_page(typed, outcome.problem)
    keep_slip(visit, Slip(PURPOSE, str(outcome.body["client_token"]), typed["email"], then_of(typed["next"]), typed))
    return Redirect("/sign-up/code")


async def show_code(visit: Visit) -> Answer:
    """The form for the code."""
    slip = read_slip(visit, PURPOSE)
    return Redirect("/sign-up") if slip is None else code_page(visit, slip)


async def finish(visit: Visit) -> Answer:
    """Found the organisation.

    Choice: a new person who has just proved the address is signed in at once, instead of being mailed a second code. The operation's answer
    holds no credential; that the code belongs to the address in the slip we know because the slip is sealed by us. Somebody who had an
    account before, and is not signed in here, signs in with a code for that: six digits found one organisation more, and open none of
    theirs.
    """
    slip = read_slip(visit, PURPOSE, visit.form.get("request", ""))
    if slip is None:
        return Redirect("/sign-up")
    known = await visit.desk.deps.store.read(find_by_address, address=normal(slip.address))
    outcome = await ask(visit, "signup_verify", {"client_token": slip.token, "code": visit.form.get("code", "")})
    if outcome.problem is not None:
        return code_page(visit, slip, outcome.problem)
    person = await visit.desk.deps.store.read(find_by_address, address=normal(slip.address))
    here = None if visit.session is None else visit.session.person
    if person is None or (known is not None and known != here):
        return Redirect("/sign-in")
    await visit.sign_in(person, organisation=cast(str, outcome.body["organization_id"]))
    remember(visit, slip.address)
    return Redirect(slip.then)
