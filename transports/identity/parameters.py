"""The parameters of a request: each at most once, in visible ASCII (RFC 6749 sections 3.1, 3.2 and appendix A)."""

import re
from typing import cast
from urllib.parse import parse_qsl, urlencode

from transports.http.asgi import BodyMessage, Headers, HttpScope, Receive
from transports.identity.oauth_error import OauthError

MOST = 40
VISIBLE = re.compile(r"[\x20-\x7e]*", re.ASCII)
FORM = "application/x-www-form-urlencoded"
LARGEST_BODY = 16 * 1024

Parameters = dict[str, str]


def read_parameters(text: bytes) -> Parameters:
    """The parameters by name. What was sent without a value counts as not sent."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST)
    except ValueError:
        raise OauthError("invalid_request", f"The parameters must be percent-encoded ASCII, at most {MOST} of them") from None
    if len({name for name, _ in pairs}) != len(pairs):
        raise OauthError("invalid_request", "A parameter was sent twice; send each once")
    if not all(VISIBLE.fullmatch(name) and VISIBLE.fullmatch(value) for name, value in pairs):
        raise OauthError("invalid_request", "A parameter holds something else than visible ASCII")
    return {name: value for name, value in pairs if value}


def written(parameters: Parameters) -> bytes:
    """The same again, for whoever reads them next."""
    return urlencode(parameters).encode()


def header(headers: Headers, name: bytes) -> str:
    """A header's value; empty when it was not sent."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def media_type(scope: HttpScope) -> str:
    """The content type without its parameters."""
    return header(scope["headers"], b"content-type").partition(";")[0].strip().lower()


async def read_body(scope: HttpScope, receive: Receive, wanted: str) -> bytes:
    """The body, when it is of the type and size that is taken here."""
    if media_type(scope) != wanted:
        raise OauthError("invalid_request", f"Content-Type must be {wanted}")
    pieces, size, more = list[bytes](), 0, True
    while more:
        message = cast(BodyMessage, await receive())
        if message["type"] == "http.disconnect":
            raise OauthError("invalid_request", "The connection ended before the body was complete")
        piece, more = message.get("body", b""), message.get("more_body", False)
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_BODY:
            raise OauthError("invalid_request", f"The body is larger than {LARGEST_BODY} bytes", 413)
    return b"".join(pieces)
