"""Signing in and out: an address, then the code that was mailed to it. The pages are the same for addresses we know and for others."""

from dataclasses import replace

from starlette.responses import Response

from operations.people import browser_sessions
from operations.people.verifications import CODE_DESCRIPTIONS, MAILED_CODE_MINUTES, begin_sign_in, finish_sign_in
from registry.errors import BadRequest, QuotaExceeded
from storage.verifications import MOST_CODE_TRIES
from transports.web.pages.login_cookies import LoginStateCookie, browser_known_for, keep_login_state, read_login_state, remember_browser
from transports.web.pages.request import HOME_PAGE, PageProblem, PageRequest, next_page, problem_of, whole_path


async def show_home(visit: PageRequest) -> Response:
    return visit.redirect(HOME_PAGE if visit.session is not None else "/sign-in")


SIGN_IN = "sign-in"
WRONG_CODE = "That is not the code that was mailed for this page, or it is not good any more"
END_OF_CODES = f"after {MOST_CODE_TRIES} wrong tries or {MAILED_CODE_MINUTES} minutes no code is good any more, so get a new one"


async def show_sign_in(visit: PageRequest) -> Response:
    wanted = visit.query.get("next", "")
    if visit.session is not None:
        return visit.redirect(next_page(wanted))
    login_state = read_login_state(visit, SIGN_IN)
    return sign_in_page(visit, wanted, "" if login_state is None else login_state.address)


def sign_in_page(visit: PageRequest, wanted: str, address: str, problem: PageProblem | None = None) -> Response:
    """The form for the address; `then` is already one of our pages."""
    then = next_page(wanted)
    facts = {"then": whole_path(then), "elsewhere": then != HOME_PAGE, "address": address}
    return visit.page("sign_in.html", facts, problem=problem)


async def start_sign_in(visit: PageRequest) -> Response:
    """Mails a code, or that the address is unknown: only its reader learns which."""
    address, then = visit.form.get("email", ""), visit.form.get("next", "")
    try:
        token = await begin_sign_in(
            visit.context.deps, address=address, client=visit.client, now=visit.now, browser=browser_known_for(visit, address)
        )
    except (BadRequest, QuotaExceeded) as refusal:
        return sign_in_page(visit, then, address, problem_of(refusal))
    keep_login_state(
        visit, LoginStateCookie(SIGN_IN, token, address, next_page(then), {"email": address, "next": whole_path(next_page(then))})
    )
    return visit.redirect("/sign-in/code")


async def show_sign_in_code(visit: PageRequest) -> Response:
    login_state = read_login_state(visit, SIGN_IN)
    if login_state is None or visit.session is not None:
        return visit.redirect("/sign-in")
    return code_page(visit, login_state)


def code_page(visit: PageRequest, login_state: LoginStateCookie, problem: PageProblem | None = None) -> Response:
    """The form for the code, of a sign-in or of a sign-up."""
    if problem is not None and problem.code == "form_code_incorrect":
        spelled = CODE_DESCRIPTIONS["sign_in" if login_state.purpose == SIGN_IN else "sign_up"]
        problem = replace(problem, text=WRONG_CODE, hint=f"Check the {spelled}; {END_OF_CODES}")
    facts = {"slip": login_state, "console": visit.context.mail_on_console}
    return visit.page("code.html", facts, problem=problem)


async def complete_sign_in(visit: PageRequest) -> Response:
    login_state = read_login_state(visit, SIGN_IN, visit.form.get("request", ""))
    if login_state is None:
        return visit.redirect("/sign-in")
    try:
        person = await finish_sign_in(visit.context.deps, token=login_state.token, code=visit.form.get("code", ""), now=visit.now)
    except BadRequest as refusal:
        return code_page(visit, login_state, problem_of(refusal))
    await visit.sign_in(person)
    remember_browser(visit, login_state.address)
    return visit.redirect(login_state.then)


async def sign_out_here(visit: PageRequest) -> Response:
    await browser_sessions.sign_out_browser(visit.context.deps, session=visit.who, record=visit.record("sign_out"))
    return signed_out(visit)


async def sign_out_everywhere(visit: PageRequest) -> Response:
    """Every browser, for when one was lost, and their session tokens. Programs and API keys have buttons of their own."""
    await browser_sessions.sign_out_everywhere(visit.context.deps, session=visit.who, record=visit.record("sign_out"), now=visit.now)
    return signed_out(visit)


def signed_out(visit: PageRequest) -> Response:
    visit.forget(visit.context.cookies.session, visit.context.cookies.visitor, *visit.login_state_names())
    return visit.redirect("/sign-in")
