"""Forms and queries as browsers send them: read with a limit, and refused where they could be read in two ways."""

import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import parse_qsl

from registry.errors import BadRequest, RequestTimeout, UnsupportedMediaType
from transports.http.asgi import BodyMessage, Headers, HttpScope, Receive
from transports.http.body import ClientGone, too_large
from transports.http.connection import TIMED_OUT

FORM_BYTES = 16 * 1024
"""A form of ours holds a page of text at most, each character of it perhaps escaped."""
FIELDS = 50
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
FORM_TYPE = re.compile(rb'application/x-www-form-urlencoded(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8"))?', re.IGNORECASE)


async def read_form(request: HttpScope, receive: Receive) -> Mapping[str, str]:
    """The fields of a posted form."""
    check_type(request["headers"])
    pieces, size, more = list[bytes](), 0, True
    while more:
        message = cast(BodyMessage, await receive())
        if message["type"] == "http.disconnect":
            raise gone(request)
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if size > FORM_BYTES:
            raise too_large(FORM_BYTES)
        pieces.append(piece)
    try:
        return fields(b"".join(pieces).decode("ascii"))
    except UnicodeDecodeError:
        raise unreadable() from None


def check_type(headers: Headers) -> None:
    """Plain forms only: no other type of body can be sent by a page of another site without asking first."""
    said = dict(headers)
    length = said.get(b"content-length", b"")
    if length.isdigit() and int(length) > FORM_BYTES:
        raise too_large(FORM_BYTES)
    if said.get(b"content-encoding", b"identity").lower() != b"identity":
        raise UnsupportedMediaType("Compressed forms are not taken", hint="Send the form as it is")
    if not FORM_TYPE.fullmatch(said.get(b"content-type", b"")):
        raise UnsupportedMediaType("Only forms are taken here", hint="Send Content-Type: application/x-www-form-urlencoded")


def gone(request: HttpScope) -> BadRequest | RequestTimeout:
    """The connection ended first."""
    if request.get("state", {}).get(TIMED_OUT):
        return RequestTimeout("The form did not arrive in time", hint="Send it again")
    return ClientGone("The connection ended before the form was complete")


def fields(text: str) -> Mapping[str, str]:
    """Each field once, without the space around it, and without control characters."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=FIELDS)
    except (ValueError, UnicodeDecodeError):
        raise unreadable() from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise BadRequest("A field of the form was sent twice", hint="Load the page again and send it once more")
        if CONTROL.search(name) or CONTROL.search(value):
            raise BadRequest("A field of the form holds a control character", hint="Type the text instead of pasting it, on one line")
        found[name] = value.strip()
    return found


def unreadable() -> BadRequest:
    """Neither a form nor a query."""
    return BadRequest("What was sent cannot be read as a form", hint="Load the page again and send it once more")
