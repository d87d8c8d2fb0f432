"""By which names a request is known outside: X-Request-Id of a proxy of ours, and the trace of W3C Trace Context."""

import re
from typing import NamedTuple

from registry.redaction import mask
from transports.http.asgi import Headers

REQUEST_ID = re.compile(r"[A-Za-z0-9._~:/+=;@-]{1,128}")
TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
VERSION = "00"
LONGEST = 512


class Correlation(NamedTuple):
    """What stands in a request's line of the log beside our own id; empty where nothing was told."""

    client_request_id: str = ""
    trace: str = ""


NOBODY = Correlation()


def correlation_of(headers: Headers) -> Correlation:
    """What the headers tell. A header that was sent twice, or does not follow its grammar, tells nothing; no request is refused for it.

    Choice: an id that looks like a secret is left out, since a proxy may hand on whatever its client sent.
    """
    request_id = single(headers, b"x-request-id")
    if not REQUEST_ID.fullmatch(request_id) or mask(request_id) != request_id:
        request_id = ""
    trace = TRACEPARENT.fullmatch(single(headers, b"traceparent"))
    known = trace is not None and (trace[3] is None or trace[1] != VERSION)  # later versions may say more behind it
    return Correlation(request_id, trace[2] if trace is not None and known else "")


def single(headers: Headers, name: bytes) -> str:
    """A header that was sent once and is not too long; else nothing."""
    found = [value for each, value in headers if each == name]
    return found[0].strip(b" \t").decode("latin-1") if len(found) == 1 and len(found[0]) <= LONGEST else ""
