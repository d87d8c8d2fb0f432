"""What a browser remembers while its code is in the mail: which sign-up or sign-in it began, for which address, and where to go then.

Choice: in a cookie, sealed to the browser, and not in the page: a phone that went to read the mail may load the page anew.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from transports.pages.visit import Visit

SECONDS = 600


class Slip(NamedTuple):
    """A code is waited for. `token` is the other half of the proof."""

    purpose: str
    token: str
    address: str
    then: str
    again: Mapping[str, str]
    """What the form held that had the code mailed, to have another one mailed."""


def keep_slip(visit: Visit, slip: Slip) -> None:
    """Give it to the browser."""
    text = base64.urlsafe_b64encode(orjson.dumps(list(slip))).decode().rstrip("=")
    cookies = visit.desk.cookies
    sealed = visit.desk.seals.make("slip", f"{visit.visitor}|{text}")
    visit.setting[cookies.slip] = cookies.given(cookies.slip, f"{text}.{sealed}", SECONDS)


def read_slip(visit: Visit, purpose: str) -> Slip | None:
    """What the browser was given, if it was given it for this."""
    text, _, sealed = visit.cookies.get(visit.desk.cookies.slip, "").partition(".")
    if not text or not visit.desk.seals.good(sealed, "slip", f"{visit.visitor}|{text}"):
        return None
    try:
        slip = Slip(
            *cast(tuple[str, str, str, str, Mapping[str, str]], orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
        )
    except (binascii.Error, orjson.JSONDecodeError, TypeError):
        return None
    return slip if slip.purpose == purpose else None
