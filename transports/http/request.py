"""A request's head, read in one pass over the header bytes and held to the rules of the server. What has two readings is refused."""

import re
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from registry.errors import BadRequest, Forbidden, HeadersTooLarge, Misdirected, UriTooLong
from registry.policy import key_spellings
from transports.http.asgi import Headers, HttpScope

MOST_HEADERS = 100
"""Choice: as many header fields as Apache takes; each costs the same, however short it is."""


@dataclass(frozen=True, slots=True)
class HttpRules:
    """Sizes in bytes. `hosts` are names without a port, `*` stands for any; `origins` are compared whole.

    Pages of `cross_origins` are told by CORS headers that they may call; that of our own pages needs none.
    `probed` are the paths that load balancers ask: by address, without a Host, and also when the server is at its limit.
    """

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    cross_origins: frozenset[str] = frozenset()
    url_bytes: int = 8 * 1024
    header_bytes: int = 16 * 1024
    authorization_bytes: int = 8 * 1024
    headers: int = MOST_HEADERS
    probed: frozenset[bytes] = frozenset({b"/health", b"/health/ready"})

    def serves(self, host: str) -> bool:
        """Whether a Host header names one of our hosts; its port does not matter, since a proxy may have changed it."""
        if host in self.hosts or "*" in self.hosts:
            return True
        if host.startswith("["):
            name, closed, port = host[1:].partition("]")
            port = port.removeprefix(":") if closed and port[:1] in ("", ":") else "?"
        else:
            name, _, port = host.partition(":")
        return name.removesuffix(".") in self.hosts and (not port or (port.isascii() and port.isdigit()))


# Any of these twice is two requests in one: never "first wins".
SINGLE_HEADERS = frozenset(
    {
        b"authorization",
        b"idempotency-key",
        b"x-idempotency-key",
        b"x-confirm-token",
        b"x-approval-reason",
        b"last-event-id",
        b"content-type",
        b"content-encoding",
        b"content-length",
        b"transfer-encoding",
        b"host",
        b"origin",
    }
)
HEADER_CONTROL_CHARACTERS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
LENGTH_DIGITS = re.compile(rb"[0-9]{1,18}")
HEADER_FRAMING_BYTES = 4  # ": " and CRLF
header_value = itemgetter(1)


class RequestHead(NamedTuple):
    """What the door needs of the headers. `length` is None when no Content-Length was sent."""

    single: dict[bytes, bytes]
    raw_path: bytes
    length: int | None
    chunked: bool

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    def text(self, name: bytes) -> str | None:
        value = self.single.get(name)
        return None if value is None else value.decode("latin-1")

    def words(self, name: bytes) -> str | None:
        """A header that people read: UTF-8, which RFC 9110 leaves to whoever defines the header."""
        value = self.single.get(name)
        return None if value is None else value.decode(errors="replace")

    def credential(self) -> str | None:
        """The bearer credential; empty when the scheme came alone, None when another scheme or nothing came.

        Choice: another scheme counts as nothing presented (RFC 6750 3.1), so the 401 tells which scheme to use.
        """
        value = self.single.get(b"authorization")
        if value is None or value[:6].lower() != b"bearer" or value[6:7] not in (b"", b" "):
            return None
        return value[7:].strip(b" ").decode("latin-1")

    def idempotency_key(self) -> str | None:
        """The key under either of its header names. Two spellings of one key are one key, and the one in quotes tells more."""
        given = [key for key in (self.text(b"idempotency-key"), self.text(b"x-idempotency-key")) if key is not None]
        if len(given) > 1 and key_spellings(given[0])[-1] != key_spellings(given[1])[-1]:
            raise BadRequest(
                "Idempotency-Key and X-Idempotency-Key: given with different values",
                param="idempotency_key",
                hint="Send one of the two headers",
            )
        return max(given, key=len, default=None)


def read_head(scope: HttpScope, rules: HttpRules) -> RequestHead:
    """Sizes, ambiguities, host and origin; nothing here looks at who calls."""
    raw_path = scope.get("raw_path") or scope["path"].encode()
    if len(raw_path) + len(scope["query_string"]) + 1 > rules.url_bytes:
        raise UriTooLong(f"The request target is longer than {rules.url_bytes} bytes", hint="Send long input in the body")
    headers, single, size = scope["headers"], dict[bytes, bytes](), 0
    if len(headers) > rules.headers:
        raise HeadersTooLarge(f"The request has more than {rules.headers} headers", hint="Send fewer headers")
    for name, value in headers:
        size += len(name) + len(value) + HEADER_FRAMING_BYTES
        if name in SINGLE_HEADERS:
            if name in single:
                raise BadRequest(f"{name.decode()}: the header was sent twice", hint="Send it once")
            single[name] = value
    if size > rules.header_bytes:
        raise HeadersTooLarge(f"The headers are larger than {rules.header_bytes} bytes in all", hint="Send fewer or shorter headers")
    if HEADER_CONTROL_CHARACTERS.search(b"".join(map(header_value, headers))):
        raise BadRequest("A header value holds a control character or goes over several lines", hint="Send it on one line, as visible text")
    if len(single.get(b"authorization", b"")) > rules.authorization_bytes:
        raise HeadersTooLarge(f"authorization: longer than {rules.authorization_bytes} bytes", hint="Send the credential itself")
    length, chunked = body_framing(single)
    if raw_path not in rules.probed:
        check_host(single.get(b"host"), rules)
    origin = single.get(b"origin")
    if origin is not None and origin.decode("latin-1") not in rules.origins:
        raise Forbidden("The origin of this page may not call the service", hint="Its operator lists it in SERVICE_ALLOWED_ORIGINS")
    return RequestHead(single, raw_path, length, chunked)


def body_framing(single: dict[bytes, bytes]) -> tuple[int | None, bool]:
    """How long the body is: one way of saying it, and a way we read."""
    length, coding = single.get(b"content-length"), single.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadRequest("Content-Length and Transfer-Encoding exclude each other", hint="Send one of them")
        if coding.lower() != b"chunked":
            raise BadRequest("transfer-encoding: only chunked is taken", hint="Send the body with Content-Length")
        return None, True
    if length is None:
        return None, False
    if not LENGTH_DIGITS.fullmatch(length):
        raise BadRequest("content-length: must be a decimal number of bytes", hint="Send the body's length")
    return int(length), False


def check_host(host: bytes | None, rules: HttpRules) -> None:
    """Refuse other hosts, so that a rebound DNS name reaches nothing."""
    if host is None:
        raise BadRequest("host: missing; it is required", hint="Send the host name of the service")
    if not rules.serves(host.decode("latin-1").lower()):
        hint = "Its operator names it in SERVICE_BASE_URL or SERVICE_ALLOWED_HOSTS"
        raise Misdirected("This server does not serve the host that was asked for", hint=hint)


ACCEPT_QUALITY = re.compile(rb";\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)
ACCEPT_HTML, ACCEPT_JSON = b"text/html", b"application/json"


def reads_pages(headers: Headers) -> bool:
    """Browsers ask for HTML by its name when somebody goes to an address or sends a form; programs do not.

    Choice: who names JSON as well is a program unless it likes HTML better (RFC 9110 section 12.5.1).
    """
    liked = {ACCEPT_HTML: 0.0, ACCEPT_JSON: 0.0}
    for part in b",".join(value for name, value in headers if name == b"accept").lower().split(b","):
        named = part.partition(b";")[0].strip()
        if named in liked:
            found = ACCEPT_QUALITY.search(part)
            liked[named] = max(liked[named], 1.0 if found is None else float(found[1]))
    return liked[ACCEPT_HTML] > liked[ACCEPT_JSON]
