"""Forms and queries as browsers send them: read with a limit, and taken only from our own pages, as they were shown to this browser."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast
from urllib.parse import parse_qsl

from registry.errors import BadRequest, Forbidden, RequestTimeout, UnsupportedMediaType
from transports.http.asgi import STATE_TIMED_OUT, BodyMessage, Headers, HttpScope, Receive
from transports.http.request import ClientGone, body_too_large

FORM_BYTES = 16 * 1024
"""A form of ours holds a page of text at most, each character of it perhaps escaped."""
MOST_FORM_FIELDS = 50
FORM_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
FORM_CONTENT_TYPE = re.compile(rb'application/x-www-form-urlencoded(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8"))?', re.IGNORECASE)


async def read_form(request: HttpScope, receive: Receive) -> Mapping[str, str]:
    """The fields of a posted form."""
    check_form_type(request["headers"])
    pieces, size, more = list[bytes](), 0, True
    while more:
        message = cast(BodyMessage, await receive())
        if message["type"] == "http.disconnect":
            raise broken_form(request)
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if size > FORM_BYTES:
            raise body_too_large(FORM_BYTES)
        pieces.append(piece)
    try:
        return form_fields(b"".join(pieces).decode("ascii"))
    except UnicodeDecodeError:
        raise unreadable_form() from None


def check_form_type(headers: Headers) -> None:
    """Plain forms only: no other type of body can be sent by a page of another site without asking first."""
    said = dict(headers)
    length = said.get(b"content-length", b"")
    if length.isdigit() and int(length) > FORM_BYTES:
        raise body_too_large(FORM_BYTES)
    if said.get(b"content-encoding", b"identity").lower() != b"identity":
        raise UnsupportedMediaType("Compressed forms are not taken", hint="Send the form as it is")
    if not FORM_CONTENT_TYPE.fullmatch(said.get(b"content-type", b"")):
        raise UnsupportedMediaType("Only forms are taken here", hint="Send Content-Type: application/x-www-form-urlencoded")


def broken_form(request: HttpScope) -> BadRequest | RequestTimeout:
    """The connection ended first."""
    if request.get("state", {}).get(STATE_TIMED_OUT):
        return RequestTimeout("The form did not arrive in time", hint="Send it again")
    return ClientGone("The connection ended before the form was complete")


def form_fields(text: str) -> Mapping[str, str]:
    """Each field once, without the space around it, and without control characters."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=MOST_FORM_FIELDS)
    except (ValueError, UnicodeDecodeError):
        raise unreadable_form() from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise BadRequest("A field of the form was sent twice", hint="Load the page again and send it once more")
        if FORM_CONTROL_CHARACTERS.search(name) or FORM_CONTROL_CHARACTERS.search(value):
            raise BadRequest("A field of the form holds a control character", hint="Type the text instead of pasting it, on one line")
        found[name] = value.strip()
    return found


def unreadable_form() -> BadRequest:
    """Neither a form nor a query."""
    return BadRequest("What was sent cannot be read as a form", hint="Load the page again and send it once more")


CSRF_FIELD = "csrf"
OWN_SITES = (b"same-origin", b"none")


class NotOurForm(Forbidden):
    """The form did not come from a page of ours that this browser was shown."""

    code = "form_not_ours"


class FormSeals:
    """Keyed digests: the first key makes them, all of them check, so that a change of keys breaks no open page."""

    def __init__(self, keyring_text: str) -> None:
        """Replicas with one keyring make the same ones; nothing else uses these keys."""
        parts = [key.strip() for key in keyring_text.split(",") if key.strip()]
        self._keys: Sequence[bytes] = [hashlib.sha256(b"web-forms|" + part.encode()).digest() for part in parts]

    def make(self, purpose: str, text: str) -> str:
        """The seal of a text, for one purpose."""
        return make_seal(self._keys[0], purpose, text)

    def good(self, given: str, purpose: str, text: str) -> bool:
        """Whether it is one of ours, told in the same time whatever is wrong with it."""
        presented = hashlib.sha256(given.encode()).digest()
        checks = [hmac.compare_digest(presented, hashlib.sha256(make_seal(key, purpose, text).encode()).digest()) for key in self._keys]
        return any(checks)


def make_seal(key: bytes, purpose: str, text: str) -> str:
    """HMAC-SHA256 as text."""
    digest = hmac.digest(key, f"{purpose}|{text}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def check_sender(headers: Headers, origin: str) -> None:
    """Where the browser says the form was sent from; a browser that says neither has the form's token alone to show."""
    said = dict(headers)
    if said.get(b"origin", origin.encode()) != origin.encode():
        refuse_form()
    if said.get(b"sec-fetch-site", b"same-origin") not in OWN_SITES:
        refuse_form()


def refuse_form() -> NoReturn:
    """The same words whatever was wrong: whoever forges a form learns nothing."""
    raise NotOurForm(
        "This form was not sent from a page that we showed to this browser, or that page is too old; nothing was changed",
        hint="Go back, load the page again and send it once more; cookies of this site must be allowed",
    )
