"""Which addresses somebody has signed in with in this browser: for those it has codes of its own, which no stranger can use up.

The cookie names the browser and holds a seal for each address, so that it tells nobody who the person is; it opens nothing.
"""

from typing import NamedTuple

from operations.services.people.addresses import normal
from operations.services.people.browser_sessions import COOKIE
from operations.services.secret_token import new_token
from transports.pages.visit import Visit

SECONDS = 180 * 86_400
MOST_ADDRESSES = 5
PURPOSE = "known-browser"


class Seal(NamedTuple):
    """That somebody signed in with an address; good until then, Unix seconds."""

    until: int
    seal: str


class KnownBrowser(NamedTuple):
    """A browser by the name that it was given, with the seals that it presents, the newest first."""

    id: str
    seals: tuple[Seal, ...]


def presented(visit: Visit) -> KnownBrowser | None:
    """What the cookie says; whether a seal is one of ours is asked when it is used."""
    id, *parts = visit.cookies.get(visit.desk.cookies.known, "").split(".")
    if not COOKIE.fullmatch(id) or len(parts) > 2 * MOST_ADDRESSES:
        return None
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return KnownBrowser(
        id, tuple(Seal(int(until), seal) for until, seal in pairs if until.isascii() and until.isdigit() and len(until) < 13)
    )


def proves(visit: Visit, id: str, one: Seal, address: str) -> bool:
    """Whether a seal says that somebody signed in here with the address, not too long ago."""
    return one.until > visit.now and visit.desk.seals.good(one.seal, PURPOSE, f"{id}|{one.until}|{normal(address)}")


def known_for(visit: Visit, address: str) -> str | None:
    """The name of the browser, when somebody who reads the mail of the address has signed in with it."""
    browser = presented(visit)
    if browser is None or not any(proves(visit, browser.id, one, address) for one in browser.seals):
        return None
    return browser.id


def remember(visit: Visit, address: str) -> None:
    """Somebody has just proved the address in this browser."""
    browser = presented(visit) or KnownBrowser(new_token(visit.desk.deps.ids), ())
    others = [one for one in browser.seals if not proves(visit, browser.id, one, address)]
    until = int(visit.now) + SECONDS
    newest = Seal(until, visit.desk.seals.make(PURPOSE, f"{browser.id}|{until}|{normal(address)}"))
    text = ".".join([browser.id, *(f"{one.until}.{one.seal}" for one in [newest, *others][:MOST_ADDRESSES])])
    cookies = visit.desk.cookies
    visit.setting[cookies.known] = cookies.given(cookies.known, text, SECONDS)
