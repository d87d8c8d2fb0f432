"""The one reader of request bodies, forms and queries. Each kind of body names its media type and its refusals; the limits stand here."""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple, cast

from registry.binding import read_pairs
from registry.errors import BadRequest, BodyTooLarge, Refusal, RequestTimeout, UnsupportedMediaType
from transports.http.asgi import STATE_TIMED_OUT, BodyMessage, HttpScope, Receive
from transports.http.request import RequestHead

FORM_BYTES, FORM_FIELDS = 16 * 1024, 100
"""A form of ours holds a page of text at most, each character of it perhaps escaped, or a box for each type of events."""
BOX_FIELDS, MOST_BOXES = frozenset({"pick", "columns"}), 250
"""The fields that a form may send many times: a box beside each row of a table, or for each of its columns. Values stand joined by dots."""
OAUTH_BYTES, OAUTH_FIELDS = 16 * 1024, 40
MCP_QUERY_FIELDS = 20


class ClientGone(BadRequest, code="client_disconnected"):
    """The connection ended before the body did: nobody reads this answer, but the log tells it from a fault of ours."""


class BodyKind(NamedTuple):
    """One kind of body, and how what is no such body is refused.

    `media_type` matches a whole Content-Type; None takes every one. `compressed` is None where the coding is not looked at. `incomplete` is
    asked whether the time for the body was over; else the connection ended before the body did.
    """

    media_type: re.Pattern[bytes] | None
    wrong_type: Callable[[], Exception]
    compressed: Callable[[], Exception] | None
    too_large: Callable[[int], Exception]
    incomplete: Callable[[bool], Exception]


def check_body_type(kind: BodyKind, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that is compressed or of another type than `kind` takes."""
    if kind.compressed is not None and headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise kind.compressed()
    if kind.media_type is not None and not kind.media_type.fullmatch(headers.get(b"content-type", b"")):
        raise kind.wrong_type()


def check_body_length(kind: BodyKind, headers: Mapping[bytes, bytes], limit: int) -> None:
    """Refuse a body that says it is larger than `limit` bytes, before any of it is read."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limit:
        raise kind.too_large(limit)


class BodyReader:
    """Reads one body whole. `size`: the bytes that came so far, also after a refusal."""

    __slots__ = ("_kind", "_receive", "_scope", "size")

    def __init__(self, kind: BodyKind, scope: HttpScope, receive: Receive) -> None:
        self._kind, self._scope, self._receive = kind, scope, receive
        self.size = 0

    async def read(self, limit: int) -> bytes:
        """The body; it waits for the client. Refused as soon as it is larger than `limit` bytes, and where it does not come to its end:
        its beginning may read like a whole one (RFC 9112 section 8)."""
        pieces, more = list[bytes](), True
        while more:
            message = cast(BodyMessage, await self._receive())
            if message["type"] == "http.disconnect":
                raise self._kind.incomplete(bool(self._scope.get("state", {}).get(STATE_TIMED_OUT)))
            piece, more = message.get("body", b""), message.get("more_body", False)
            self.size += len(piece)
            if self.size > limit:
                raise self._kind.too_large(limit)
            pieces.append(piece)
        return b"".join(pieces)


async def read_json_body(kind: BodyKind, head: RequestHead, scope: HttpScope, receive: Receive, limit: int) -> bytes:
    """The body of an operation's request, not yet parsed; empty where none came. It waits for the client."""
    if head.has_body:
        check_body_type(kind, head.single)
        check_body_length(kind, head.single, limit)
    body = await BodyReader(kind, scope, receive).read(limit)
    if body and not head.has_body:  # a server that frames bodies without headers (HTTP/2)
        check_body_type(kind, head.single)
    return body


def incomplete_body(timed_out: bool, *, what: str = "body", hint: str = "Send the request again, at once and whole") -> Refusal:
    """A body that never became whole; mostly there is nobody left to tell, but for the log line. `what`: the name of such a body."""
    if timed_out:
        return RequestTimeout(f"The {what} did not arrive in time", hint=hint)
    return ClientGone(f"The connection ended before the {what} was complete")


def body_too_large(limit: int, *, hint: str = "Send it in smaller pieces") -> BodyTooLarge:
    """The refusal of a body of more than `limit` bytes."""
    return BodyTooLarge(f"The body is larger than {limit} bytes", hint=hint)


JSON_BODY = BodyKind(
    re.compile(rb'application/json(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8"))?[ \t]*;?[ \t]*', re.IGNORECASE),
    lambda: UnsupportedMediaType("content-type: must be application/json, in UTF-8", hint="Send Content-Type: application/json"),
    lambda: UnsupportedMediaType("content-encoding: compressed bodies are not taken", hint="Send the JSON as it is"),
    body_too_large,
    incomplete_body,
)
PUSHED_BODY = JSON_BODY._replace(media_type=None)
"""Pushed bodies are parsed as JSON, whatever Content-Type their senders set."""
FORM_BODY = BodyKind(
    re.compile(rb'application/x-www-form-urlencoded(?:[ \t]*;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8"))?', re.IGNORECASE),
    lambda: UnsupportedMediaType("Only forms are taken here", hint="Send Content-Type: application/x-www-form-urlencoded"),
    lambda: UnsupportedMediaType("Compressed forms are not taken", hint="Send the form as it is"),
    body_too_large,
    partial(incomplete_body, what="form", hint="Send it again"),
)
"""Plain forms only: no other type of body can be sent by a page of another site without asking first."""
MCP_BODY = JSON_BODY._replace(media_type=None, compressed=None, too_large=partial(body_too_large, hint="Send less at once"))
"""The SDK looks at the type of a message."""
FORM_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


async def read_form(
    scope: HttpScope, receive: Receive, *, most: int = FORM_BYTES, long_fields: Collection[str] = frozenset()
) -> Mapping[str, str]:
    """The fields of a posted form of a page, of at most `most` bytes. It waits for the client."""
    headers = dict(scope["headers"])
    check_body_length(FORM_BODY, headers, most)
    check_body_type(FORM_BODY, headers)
    body = await BodyReader(FORM_BODY, scope, receive).read(most)
    try:
        return form_fields(body.decode("ascii"), long_fields)
    except UnicodeDecodeError:
        raise unreadable_form() from None


class FormFields(dict[str, str]):
    """The fields of a form as they were sent. A page that shows them again finds those that were left out empty."""

    def __missing__(self, name: str) -> str:
        return ""


def form_fields(text: str, long_fields: Collection[str] = frozenset()) -> Mapping[str, str]:
    """The fields of a page's form or query: each once but BOX_FIELDS, without the space around it, and without control characters.

    `long_fields` may have several lines, which end in LF, however the browser ends them.
    """
    try:
        pairs = read_pairs(text, FORM_FIELDS + MOST_BOXES)
    except ValueError:
        raise unreadable_form() from None
    if sum(name not in BOX_FIELDS for name, _ in pairs) > FORM_FIELDS:
        raise unreadable_form()
    found = FormFields()
    for name, value in pairs:
        if name in found and name not in BOX_FIELDS:
            raise BadRequest("A field of the form was sent twice", hint="Load the page again and send it once more")
        if name in long_fields:
            value = value.replace("\r\n", "\n").replace("\r", "\n")
        line = value.replace("\n", "") if name in long_fields else value
        if FORM_CONTROL_CHARACTERS.search(name) or FORM_CONTROL_CHARACTERS.search(line):
            raise BadRequest("A field of the form holds a control character", hint="Type the text instead of pasting it, on one line")
        found[name] = f"{found[name]}.{value.strip()}" if name in found else value.strip()
    return found


def unreadable_form() -> BadRequest:
    """The refusal of what is neither a form nor a query."""
    return BadRequest("What was sent cannot be read as a form", hint="Load the page again and send it once more")
