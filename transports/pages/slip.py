"""What a browser remembers while its code is in the mail: which sign-up or sign-in it began, for which address, and where to go then.

Choice: in a cookie, sealed to the browser, and not in the page: a phone that went to read the mail may load the page anew. Each request has
a cookie of its own, so that several can be open at once: a page names its request, and a code is tried for that one alone.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from operations.services.secret_token import digest_of
from transports.pages.visit import Visit

SECONDS = 600
MOST_OPEN, MOST_CHARACTERS = 3, 8000
"""Requests that are open at once in one browser, and how long their cookies may be together: a request's headers hold 16 KiB."""


class Slip(NamedTuple):
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
        return digest_of(f"request|{self.token}").hex()[:16]


def keep_slip(visit: Visit, slip: Slip) -> None:
    """Give it to the browser; the oldest of too many is forgotten."""
    slip, cookies = slip._replace(begun=visit.now), visit.desk.cookies
    text = base64.urlsafe_b64encode(orjson.dumps(list(slip))).decode().rstrip("=")
    value = f"{text}.{visit.desk.seals.make('slip', f'{visit.visitor}|{text}')}"
    room = MOST_CHARACTERS - len(value)
    for number, (name, _) in enumerate(open_slips(visit), 1):
        room -= len(visit.cookies[name])
        if number >= MOST_OPEN or room < 0:
            visit.forget(name)
    name = cookies.slip + slip.request
    visit.setting[name] = cookies.given(name, value, SECONDS)


def open_slips(visit: Visit) -> list[tuple[str, Slip]]:
    """The names of the cookies and what they hold, of those that this browser was given; the newest first."""
    found = [(name, slip) for name in reversed(visit.slip_names()) if (slip := opened(visit, visit.cookies[name])) is not None]
    return sorted(found, key=lambda each: each[1].begun, reverse=True)


def read_slip(visit: Visit, purpose: str, request: str = "") -> Slip | None:
    """The request of this name for this purpose; without a name the newest one."""
    slips = [slip for _, slip in open_slips(visit) if slip.purpose == purpose]
    return next((slip for slip in slips if request in ("", slip.request)), None)


def opened(visit: Visit, value: str) -> Slip | None:
    """What a cookie holds, if this browser was given it."""
    text, _, sealed = value.partition(".")
    if not text or not visit.desk.seals.good(sealed, "slip", f"{visit.visitor}|{text}"):
        return None
    try:
        held: list[object] = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return Slip(*cast(tuple[str, str, str, str, Mapping[str, str], float], tuple(held)))
    except (binascii.Error, orjson.JSONDecodeError, TypeError):
        return None
