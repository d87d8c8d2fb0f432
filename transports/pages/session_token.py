"""A token for the API, for an hour, for whoever is signed in here."""

from operations.services.people.session_tokens import console_token
from transports.pages.answers import Page
from transports.pages.visit import Visit


async def show(visit: Visit) -> Page:
    """What it is for, and the button."""
    del visit
    return Page("session_token.html", {"issued": None, "expires_at": 0.0})


async def make(visit: Visit) -> Page:
    """The token, on this page and nowhere else."""
    acting = visit.acting
    token, expires_at = await console_token(
        visit.desk.deps, person=visit.who.person, organisation=acting.organisation or None, now=visit.now
    )
    return Page("session_token.html", {"issued": token, "expires_at": float(expires_at)})
