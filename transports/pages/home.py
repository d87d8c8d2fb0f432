"""/auth itself: the way to the account, or to signing in."""

from transports.pages.answers import Redirect
from transports.pages.next_page import HOME
from transports.pages.visit import Visit


async def show(visit: Visit) -> Redirect:
    """Whichever fits."""
    return Redirect(HOME if visit.session is not None else "/sign-in")
