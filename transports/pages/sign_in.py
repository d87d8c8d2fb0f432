"""Signing in: an address, then the code that was mailed to it. The pages are the same for addresses we know and for others."""

from dataclasses import replace

from operations.services.people.verifications import CODE_MINUTES, SPELLED, begin_sign_in, finish_sign_in
from registry.errors import BadRequest, QuotaExceeded
from storage.people.verifications import MOST_TRIES
from transports.pages.answers import Answer, Page, Redirect
from transports.pages.known_browser import known_for, remember
from transports.pages.next_page import HOME, next_page
from transports.pages.problem import Problem, problem_of
from transports.pages.slip import Slip, keep_slip, read_slip
from transports.pages.visit import Visit

PURPOSE = "sign-in"
WRONG = "That is not the code that was mailed for this page, or it is not good any more"
END = f"after {MOST_TRIES} wrong tries or {CODE_MINUTES} minutes no code is good any more, so get a new one"


async def show(visit: Visit) -> Answer:
    """The form for the address."""
    wanted = visit.query.get("next", "")
    if visit.session is not None:
        return Redirect(next_page(wanted))
    slip = read_slip(visit, PURPOSE)
    return address_page(wanted, "" if slip is None else slip.address)


def address_page(wanted: str, address: str, problem: Problem | None = None) -> Page:
    """The form for the address; `then` is already one of our pages."""
    then = next_page(wanted)
    facts = {"then": f"/auth{then}", "elsewhere": then != HOME, "address": address, "problem": problem}
    return Page("sign_in.html", facts, status=200 if problem is None else problem.status)


async def start(visit: Visit) -> Answer:
    """Mail a code, or a word that nobody is known by this address: only who reads that mail learns which."""
    address, then = visit.form.get("email", ""), visit.form.get("next", "")
    try:
        token = await begin_sign_in(visit.desk.deps, address=address, client=visit.client, now=visit.now, browser=known_for(visit, address))
    except (BadRequest, QuotaExceeded) as refusal:
        return address_page(then, address, problem_of(refusal))
    keep_slip(visit, Slip(PURPOSE, token, address, next_page(then), {"email": address, "next": f"/auth{next_page(then)}"}))
    return Redirect("/sign-in/code")


async def show_code(visit: Visit) -> Answer:
    """The form for the code."""
    slip = read_slip(visit, PURPOSE)
    if slip is None or visit.session is not None:
        return Redirect("/sign-in")
    return code_page(visit, slip)


def code_page(visit: Visit, slip: Slip, problem: Problem | None = None) -> Page:
    """The form for the code, of a sign-in or of a sign-up."""
    if problem is not None and problem.code == "form_code_incorrect":
        spelled = SPELLED["sign_in" if slip.purpose == PURPOSE else "sign_up"]
        problem = replace(problem, text=WRONG, hint=f"Check the {spelled}; {END}")
    facts = {"slip": slip, "console": visit.desk.mail_on_console, "problem": problem}
    return Page("code.html", facts, status=200 if problem is None else problem.status)


async def finish(visit: Visit) -> Answer:
    """Check the code, and sign the browser in."""
    slip = read_slip(visit, PURPOSE, visit.form.get("request", ""))
    if slip is None:
        return Redirect("/sign-in")
    try:
        person = await finish_sign_in(visit.desk.deps, token=slip.token, code=visit.form.get("code", ""), now=visit.now)
    except BadRequest as refusal:
        return code_page(visit, slip, problem_of(refusal))
    await visit.sign_in(person)
    remember(visit, slip.address)
    return Redirect(slip.then)
