"""Cross-origin calls: what browsers are told so that pages of the listed origins may call and read the answers (Fetch standard, CORS).

Credentials are never allowed: a page of another origin sends a key or a token of its own, and no cookie of ours.
"""

import re

from transports.http.asgi import Headers

CORS_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE"
CORS_REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
    "X-Confirm-Token",
    "X-Approval-Reason",
    "X-Idempotency-Key",
    "X-MCP-Readonly",
    "X-MCP-Toolsets",
)
"""Request headers that a page may send, beside those that every page may."""
CORS_PARAMETER_HEADER = re.compile(r"mcp-param-[a-z0-9_-]{1,64}", re.ASCII | re.IGNORECASE)
"""The headers that repeat a tool's arguments have its arguments' names."""
MOST_PARAMETER_HEADERS = 32
CORS_ANSWER_HEADERS = (
    "Allow",
    "Content-Disposition",
    "ETag",
    "Idempotent-Replayed",
    "Link",
    "Mcp-Session-Id",
    "RateLimit",
    "RateLimit-Policy",
    "Request-Id",
    "Retry-After",
    "WWW-Authenticate",
)
"""Answer headers that a page may read, beside those that every page may."""
CORS_SECONDS = 600
"""Choice: a browser asks again after ten minutes, so that an origin that was taken off the list is out by then."""
ALLOW_ORIGIN, HTML_PREFIX = b"access-control-allow-origin", b"text/html"
VARY_ORIGIN = (b"vary", b"Origin")


def cors_headers(sent: Headers, answered: Headers, listed: frozenset[str]) -> Headers:
    """The headers to add to an answer at an address that pages of `listed` origins may call.

    Pages of ours that people read are not for other pages, so an answer in HTML is not allowed to any of them.
    """
    origin = origin_header(sent)
    if origin not in listed or any(
        name == ALLOW_ORIGIN or (name == b"content-type" and value[:9] == HTML_PREFIX) for name, value in answered
    ):
        return [VARY_ORIGIN]
    exposed = (b"access-control-expose-headers", ", ".join(CORS_ANSWER_HEADERS).encode())
    return [(ALLOW_ORIGIN, origin.encode("latin-1")), exposed, VARY_ORIGIN]


def preflight_headers(sent: Headers, listed: frozenset[str]) -> Headers | None:
    """The headers for a browser that asks whether a page may make a call; None where none asks that, or for a page of no listed origin.

    Choice: it tells what may be sent at all, not what this path takes, so that a page can read the 404 or 405 of the call itself.
    """
    asked = [value for name, value in sent if name == b"access-control-request-method"]
    origin = origin_header(sent)
    if not asked or origin not in listed:
        return None
    names = b",".join(value for name, value in sent if name == b"access-control-request-headers").decode("latin-1").split(",")
    own = [name.strip() for name in names if CORS_PARAMETER_HEADER.fullmatch(name.strip())][:MOST_PARAMETER_HEADERS]
    return [
        (ALLOW_ORIGIN, origin.encode("latin-1")),
        (b"access-control-allow-methods", CORS_METHODS),
        (b"access-control-allow-headers", ", ".join((*CORS_REQUEST_HEADERS, *own)).encode("latin-1")),
        (b"access-control-max-age", b"%d" % CORS_SECONDS),
        VARY_ORIGIN,
    ]


def origin_header(sent: Headers) -> str:
    """The origin of the page that calls; empty without one, and where there are several."""
    origins = [value.decode("latin-1") for name, value in sent if name == b"origin"]
    return origins[0] if len(origins) == 1 else ""
