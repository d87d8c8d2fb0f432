"""Signing out: this browser, or every one of the person."""

from operations.services.people import browser_sessions
from transports.pages.answers import Redirect
from transports.pages.visit import Visit


async def here(visit: Visit) -> Redirect:
    """This browser."""
    await browser_sessions.end(visit.desk.deps, session=visit.who, record=visit.record("sign_out"))
    return left(visit)


async def everywhere(visit: Visit) -> Redirect:
    """Every browser, for when one was lost, and their session tokens. Programs and API keys have buttons of their own."""
    await browser_sessions.end_everywhere(visit.desk.deps, session=visit.who, record=visit.record("sign_out"), now=visit.now)
    return left(visit)


def left(visit: Visit) -> Redirect:
    """The cookies go, too."""
    visit.forget(visit.desk.cookies.session, visit.desk.cookies.visitor, *visit.slip_names())
    return Redirect("/sign-in")
