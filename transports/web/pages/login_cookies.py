"""The two cookies of signing in: the logins whose codes are in the mail, and the addresses that a browser is known for.

Choice: a login's state is in a cookie, sealed to the browser, and not in the page: a phone that went to read the mail may load the page
anew. Each login has a cookie of its own, so that several can be open at once: a page names its login, and a code is tried for that one
alone. The cookie of a known browser holds a seal for each address, so that it tells nobody who the person is; it opens nothing.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from operations.people.browser_sessions import SESSION_COOKIE
from operations.secret_tokens import new_secret_token, secret_digest
from operations.vocabulary import normal_email
from transports.web.pages.request import PageRequest

LOGIN_STATE_SECONDS = 600
MOST_LOGIN_STATES, LOGIN_STATE_CHARACTERS = 3, 8000
"""Requests that are open at once in one browser, and how long their cookies may be together: a request's headers hold 16 KiB."""


class LoginStateCookie(NamedTuple):
    """A code is waited for. `token` is the other half of the proof, `begun` when it was asked for, Unix seconds."""

    purpose: str
    token: str
    address: str
    then: str
    again: Mapping[str, str]
    """What the form held that had the code mailed, to have another one mailed."""
    begun: float = 0.0

    @property
    def request(self) -> str:
        """The request's name, which says nothing about its token."""
        return secret_digest(f"request|{self.token}").hex()[:16]


def keep_login_state(visit: PageRequest, login_state: LoginStateCookie) -> None:
    """Give it to the browser; the oldest of too many is forgotten."""
    login_state, cookies = login_state._replace(begun=visit.now), visit.context.cookies
    text = base64.urlsafe_b64encode(orjson.dumps(list(login_state))).decode().rstrip("=")
    value = f"{text}.{visit.context.seals.make('slip', f'{visit.visitor}|{text}')}"
    room = LOGIN_STATE_CHARACTERS - len(value)
    for number, (name, _) in enumerate(login_states(visit), 1):
        room -= len(visit.cookies[name])
        if number >= MOST_LOGIN_STATES or room < 0:
            visit.forget(name)
    name = cookies.login_state + login_state.request
    visit.setting[name] = cookies.given(name, value, LOGIN_STATE_SECONDS)


def login_states(visit: PageRequest) -> list[tuple[str, LoginStateCookie]]:
    """The names of the cookies and what they hold, of those that this browser was given; the newest first."""
    opened = [(name, open_login_state(visit, visit.cookies[name])) for name in reversed(visit.login_state_names())]
    found = [(name, login_state) for name, login_state in opened if login_state is not None]
    return sorted(found, key=lambda each: each[1].begun, reverse=True)


def read_login_state(visit: PageRequest, purpose: str, request: str = "") -> LoginStateCookie | None:
    """The request of this name for this purpose; without a name the newest one."""
    states = [login_state for _, login_state in login_states(visit) if login_state.purpose == purpose]
    return next((login_state for login_state in states if request in ("", login_state.request)), None)


def open_login_state(visit: PageRequest, value: str) -> LoginStateCookie | None:
    text, _, sealed = value.partition(".")
    if not text or not visit.context.seals.good(sealed, "slip", f"{visit.visitor}|{text}"):
        return None
    try:
        held: list[object] = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return LoginStateCookie(*cast(tuple[str, str, str, str, Mapping[str, str], float], tuple(held)))
    except (binascii.Error, orjson.JSONDecodeError, TypeError):
        return None


KNOWN_BROWSER_SECONDS = 180 * 86_400
MOST_ADDRESSES = 5
KNOWN_BROWSER = "known-browser"


class AddressSeal(NamedTuple):
    """That somebody signed in with an address; good until then, Unix seconds."""

    until: int
    seal: str


class KnownBrowser(NamedTuple):
    """A browser by the name that it was given, with the seals that it presents, the newest first."""

    id: str
    seals: tuple[AddressSeal, ...]


def presented_browser(visit: PageRequest) -> KnownBrowser | None:
    """What the cookie says; whether a seal is one of ours is asked when it is used."""
    id, *parts = visit.cookies.get(visit.context.cookies.known, "").split(".")
    if not SESSION_COOKIE.fullmatch(id) or len(parts) > 2 * MOST_ADDRESSES:
        return None
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return KnownBrowser(
        id, tuple(AddressSeal(int(until), seal) for until, seal in pairs if until.isascii() and until.isdigit() and len(until) < 13)
    )


def seal_proves(visit: PageRequest, id: str, one: AddressSeal, address: str) -> bool:
    """Whether a seal says that somebody signed in here with the address, not too long ago."""
    return one.until > visit.now and visit.context.seals.good(one.seal, KNOWN_BROWSER, f"{id}|{one.until}|{normal_email(address)}")


def browser_known_for(visit: PageRequest, address: str) -> str | None:
    """The name of the browser, when somebody who reads the mail of the address has signed in with it."""
    browser = presented_browser(visit)
    if browser is None or not any(seal_proves(visit, browser.id, one, address) for one in browser.seals):
        return None
    return browser.id


def remember_browser(visit: PageRequest, address: str) -> None:
    """Somebody has just proved the address in this browser."""
    browser = presented_browser(visit) or KnownBrowser(new_secret_token(visit.context.deps.ids), ())
    others = [one for one in browser.seals if not seal_proves(visit, browser.id, one, address)]
    until = int(visit.now) + KNOWN_BROWSER_SECONDS
    newest = AddressSeal(until, visit.context.seals.make(KNOWN_BROWSER, f"{browser.id}|{until}|{normal_email(address)}"))
    text = ".".join([browser.id, *(f"{one.until}.{one.seal}" for one in [newest, *others][:MOST_ADDRESSES])])
    cookies = visit.context.cookies
    visit.setting[cookies.known] = cookies.given(cookies.known, text, KNOWN_BROWSER_SECONDS)
