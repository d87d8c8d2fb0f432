"""The messages of OAuth and where they go: paths; parameters, each at most once in visible ASCII; answers, of which only public ones may
be stored; and errors."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson

from registry.binding import read_pairs
from transports.http.asgi import Headers, HttpScope, Receive, Send
from transports.http.body import OAUTH_BYTES, OAUTH_FIELDS, BodyKind, BodyReader, check_body_type
from transports.http.response import send_reply

SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server"
ISSUER_PATH = "/auth"
JWKS_PATH, AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH = (
    f"{ISSUER_PATH}/{name}" for name in ("jwks", "authorize", "token", "register", "revoke")
)


def server_metadata_paths(base_url: str) -> frozenset[str]:
    """The well-known part goes between host and path of the issuer. A proxy that serves us under a path may or may not take that away."""
    return frozenset({f"{SERVER_METADATA_PATH}{urlsplit(base_url).path}{ISSUER_PATH}", f"{SERVER_METADATA_PATH}{ISSUER_PATH}"})


def protocol_paths(base_url: str) -> frozenset[str]:
    return frozenset({JWKS_PATH, AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH}) | server_metadata_paths(base_url)


class OauthError(Exception):
    """An OAuth error response. The description is our own text and never repeats what was sent."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(error)
        self.error, self.description, self.status = error, description, status


NO_STORE_HEADERS: Headers = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache"), (b"referrer-policy", b"no-referrer")]
JSON_HEADER = (b"content-type", b"application/json")


class OauthAnswer(NamedTuple):
    status: int
    body: bytes
    headers: Headers
    stored: bool = False


def json_answer(status: int, body: dict[str, object]) -> OauthAnswer:
    return OauthAnswer(status, orjson.dumps(body), [JSON_HEADER])


def public_answer(body: bytes, seconds: int) -> OauthAnswer:
    return OauthAnswer(200, body, [JSON_HEADER, (b"cache-control", b"public, max-age=%d" % seconds)], stored=True)


def error_answer(refused: OauthError, *, basic: bool) -> OauthAnswer:
    """OAuth's error object; a program that came with a header is told which one is taken (RFC 6749 section 5.2)."""
    answer = json_answer(refused.status, {"error": refused.error, "error_description": refused.description})
    if refused.status == 401 and basic:
        answer.headers.append((b"www-authenticate", b'Basic realm="connectivity"'))
    return answer


async def send_oauth_answer(send: Send, answer: OauthAnswer, *, head_only: bool = False) -> None:
    headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"x-content-type-options", b"nosniff")]
    if not answer.stored:
        headers += NO_STORE_HEADERS
    await send_reply(send, answer.status, headers, b"" if head_only else answer.body)


VISIBLE_ASCII = re.compile(r"[\x20-\x7e]*", re.ASCII)

OauthParameters = dict[str, str]


def read_parameters(text: bytes) -> OauthParameters:
    """The parameters by name. What was sent without a value counts as not sent."""
    try:
        pairs = read_pairs(text.decode("ascii"), OAUTH_FIELDS)
    except ValueError:
        raise OauthError("invalid_request", f"The parameters must be percent-encoded ASCII, at most {OAUTH_FIELDS} of them") from None
    if len({name for name, _ in pairs}) != len(pairs):
        raise OauthError("invalid_request", "A parameter was sent twice; send each once")
    if not all(VISIBLE_ASCII.fullmatch(name) and VISIBLE_ASCII.fullmatch(value) for name, value in pairs):
        raise OauthError("invalid_request", "A parameter holds something else than visible ASCII")
    return {name: value for name, value in pairs if value}


def header_text(headers: Headers, name: bytes) -> str:
    """A header's value; empty when it was not sent."""
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def oauth_body(media_type: str) -> BodyKind:
    """The kind of body that an endpoint takes, whatever parameters its media type has."""

    def too_large(limit: int) -> Exception:
        return OauthError("invalid_request", f"The body is larger than {limit} bytes", 413)

    def incomplete(timed_out: bool) -> Exception:
        del timed_out
        return OauthError("invalid_request", "The connection ended before the body was complete")

    return BodyKind(
        re.compile(rb"\s*%b\s*(?:;.*)?" % re.escape(media_type.encode()), re.IGNORECASE | re.DOTALL),
        lambda: OauthError("invalid_request", f"Content-Type must be {media_type}"),
        None,
        too_large,
        incomplete,
    )


OAUTH_FORM, OAUTH_JSON = oauth_body("application/x-www-form-urlencoded"), oauth_body("application/json")


async def read_oauth_body(kind: BodyKind, scope: HttpScope, receive: Receive) -> bytes:
    """The body, when it is of the type and size that is taken here. It waits for the client. OauthError: it is not."""
    check_body_type(kind, dict(scope["headers"]))
    return await BodyReader(kind, scope, receive).read(OAUTH_BYTES)
